"""The card of an exported dataset: ``README.md`` with a YAML header, as HuggingFace's hub reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from excise.datasets.schema import TABLES
from excise.protocols import ExportedSet, ExportedTask
from excise.types import Repo

LICENSES = frozenset(
    {
        "apache-2.0", "mit", "bsd-2-clause", "bsd-3-clause", "isc", "mpl-2.0", "gpl-2.0", "gpl-3.0", "lgpl-2.1",
        "lgpl-3.0", "agpl-3.0", "unlicense", "zlib", "cc0-1.0", "postgresql", "bsl-1.0", "artistic-2.0", "epl-2.0",
    }
)  # fmt: skip
"""Identifiers of the hub; any other licence is ``other``."""
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def card_text(tasks: ExportedSet, configurations: Sequence[str], *, whole_set: bool) -> str:
    """The text of the card."""
    import yaml

    projects: dict[str, tuple[Repo, Counter[str]]] = {}
    versions: set[str] = set()
    count = 0
    for task in tasks.tasks():
        count += 1
        versions.add(task.certificate.excise_version)
        _, tiers = projects.setdefault(task.repo.tree, (task.repo, Counter()))
        _count(tiers, task)
    repos = [repo for repo, _ in projects.values()]
    header = _header(tasks.name, count, repos, configurations)
    parts = [
        f"---\n{yaml.safe_dump(header, sort_keys=False, allow_unicode=True)}---",
        f"# {tasks.name}",
        f"{count} coding tasks from {len(projects)} projects. In each, one feature of a real project is missing, and "
        "the tests that cover it are hidden; the task is to write the feature again. Every task was proven by running "
        "its tests: they fail without the feature, pass with the gold patch, and empty stand-ins do not pass.",
        _projects_text(list(projects.values())),
        _use_text(whole_set),
        _schema_text(configurations),
        _made_text(versions),
        _licence_text(),
    ]
    return "\n\n".join(parts) + "\n"


def _count(tiers: Counter[str], task: ExportedTask) -> None:
    tiers["tasks"] += 1
    tiers[f"tier {task.task.difficulty.tier}"] += 1


def hub_license(text: str) -> str:
    """The hub's identifier of a licence, ``other`` if it has none."""
    name = text.strip().lower().removesuffix("-only").removesuffix("-or-later")
    return name if name in LICENSES else "other"


def size_category(count: int) -> str:
    """The hub's name for a number of rows."""
    return next((name for limit, name in SIZES if count < limit), "n>1M")


def _header(name: str, count: int, repos: Sequence[Repo], configurations: Sequence[str]) -> dict[str, Any]:
    licenses = sorted({hub_license(repo.license) for repo in repos}) or ["other"]
    return {
        "pretty_name": name,
        "license": licenses[0] if len(licenses) == 1 else licenses,
        "language": ["en"],
        "task_categories": ["text-generation"],
        "size_categories": [size_category(count)],
        "tags": ["code", "coding-agents", "reinforcement-learning", "swe-bench", "excise"],
        "configs": [
            {
                "config_name": configuration,
                **({"default": True} if configuration == "tasks" else {}),
                "data_files": [{"split": "train", "path": f"{configuration}/train-*.parquet"}],
            }
            for configuration in configurations
        ],
    }


def _projects_text(projects: Sequence[tuple[Repo, Counter[str]]]) -> str:
    tiers = sorted({tier for _, counts in projects for tier in counts if tier != "tasks"})
    lines = [
        "## Projects",
        "",
        f"| project | version | licence | source | tasks | {' | '.join(tiers)} |",
        "|---|---|---|---|--:|" + "--:|" * len(tiers),
    ]
    for repo, counts in sorted(projects, key=lambda found: found[0].repo):
        source = "a local folder" if repo.source.startswith("dir:") else f"`{repo.source}`"
        cells = [repo.repo, repo.version, repo.license or "unknown", source, str(counts["tasks"])]
        cells += [str(counts[tier]) for tier in tiers]
        lines.append(f"| {' | '.join(_cell(cell) for cell in cells)} |")
    return "\n".join([*lines, "", "Tiers go from 0 (one body) to 5 (several files)."])


def _cell(text: str) -> str:
    """A text from a project's manifest on one line, without the characters that end cells or begin tags."""
    return " ".join(text.split()).translate({ord("|"): "/", ord("<"): "&lt;"})[:200]


def _use_text(whole_set: bool) -> str:
    lines = ["## Use", "", "```python", "from datasets import load_dataset", ""]
    lines += ['tasks = load_dataset("OWNER/NAME", split="train")', "```"]
    if whole_set:
        lines += ["", "`excise pull OWNER/NAME --out SET` restores the whole task set, with sources and grading kits;"]
        lines += ["`excise grade`, `excise verify` and `excise train` work on it."]
    return "\n".join(lines)


def _schema_text(configurations: Sequence[str]) -> str:
    lines = ["## Schema", "", "Maps are lists of `key` and `value`."]
    for name in configurations:
        table = TABLES[name]
        lines += ["", f"### {name}", "", table.comment, "", "| column | type | meaning |", "|---|---|---|"]
        for column in table.columns:
            meaning = column.comment.replace("``", "`").replace("|", "\\|")
            lines.append(f"| `{column.name}` | {column.kind.replace('<', '&lt;')} | {meaning} |")
    return "\n".join(lines)


def _made_text(versions: set[str]) -> str:
    return (
        f"## How it was made\n\nBy excise {', '.join(sorted(versions))}: from each project's own tests and coverage. "
        "The verdicts of all gates are in the column `certificate`. The tests are the project's own: where they are "
        "thin, a wrong answer can pass. Public projects may be in a model's training data."
    )


def _licence_text() -> str:
    return (
        "## Licences\n\nStatements, patches and sources come from the projects and keep their licences, which the "
        "table above and `repos.license` name."
    )
