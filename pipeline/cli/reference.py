"""Reference pages that are generated from the code: the commands from the command line, the settings from their models.

``python -m excise.pipeline.cli.reference commands > docs/commands.md``, and likewise ``configuration`` and
``training-settings``. A test compares the pages with the code.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import typer
from pydantic import BaseModel

EXIT_CODES = """| exit code | meaning |
|---|---|
| 0 | done; of `generate` and `refresh`: every source gave tasks |
| 1 | failed: no source gave a task, a task did not verify, a solution has reward 0, an attack succeeded, a set is missing or damaged, a file cannot be read or written, `doctor` misses something |
| 2 | wrong usage or configuration, a task that is not in the set, or no sandbox on this machine |
| 3 | partial: some sources gave no task, each with its reasons; the tasks of the others are published; of `solve`: some attempts were lost |
| 4 | not graded: the infrastructure failed, which says nothing about the solution; of `solve`: all attempts were lost |
| 130 | interrupted; what was finished is kept, and the same command continues from there |

A source counts as giving tasks if the run has at least one task of it, new or from the cache. It does not if it could not be
fetched, built or tested, or if all its candidates were refused. `--dry-run` counts the sources that can be resolved.
"""  # noqa: E501


def commands_page() -> str:
    """``docs/commands.md``: every command with its arguments and options."""
    from excise.pipeline.cli.main import app

    group: Any = typer.main.get_command(app)
    parts = [
        "# Commands\n",
        "Data goes to standard output, everything else to standard error. `excise COMMAND --help` prints the same.\n",
        "| command | what it does |\n|---|---|\n"
        + "".join(f"| [`excise {name}`](#excise-{name}) | {_first(c.help)} |\n" for name, c in group.commands.items()),
        EXIT_CODES,
    ]
    return "\n".join([*parts, *(_command(name, command) for name, command in group.commands.items())])


def _first(text: str) -> str:
    return " ".join(inspect.cleandoc(text).split("\n\n")[0].split())


def _command(name: str, command: Any) -> str:
    text = " ".join(inspect.cleandoc(command.help).split())
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option"]
    words = "".join(f" {_argument(p)}" for p in arguments)
    rows = [f"| `{_argument(p)}` | {p.help} |" for p in arguments]
    rows += [f"| `{', '.join(p.opts)}` | {p.help}{_default(p.default)} |" for p in options]
    table = "| argument or option | meaning |\n|---|---|\n" + "\n".join(rows) + "\n"
    return f"## `excise {name}`\n\n```\nexcise {name}{words} [OPTIONS]\n```\n\n{text}\n\n{table}" + (
        f"\n{command.epilog}\n" if command.epilog else ""
    )


def _argument(parameter: Any) -> str:
    name = parameter.name.upper() + ("…" if parameter.nargs == -1 else "")
    return name if parameter.required else f"[{name}]"


def _default(value: object) -> str:
    if value is None or isinstance(value, bool) or value == "":
        return ""
    return f" Default: `{value.value if isinstance(value, Enum) else value}`."


def configuration_page() -> str:
    """``docs/configuration.md``: every setting of ``generate``, ``refresh`` and the commands on a finished set."""
    from excise.config import Settings

    return f"{_CONFIGURATION}\n{_settings(Settings)}\n{_sources()}"


def training_page() -> str:
    """``docs/training-settings.md``: every setting of ``excise train`` and ``excise eval``. Imports torch."""
    from excise.trainer.setup.training_config import TrainSettings

    return f"{_TRAINING}\n{_settings(TrainSettings)}"


_TRAINING = """# Settings of training and evaluation

Generated from the settings' models; [training.md](training.md) says how they work together. `excise train` reads all of
them from one TOML file. `excise eval` reads `[engine]`, `[rollouts]`, `[eval]` and `[excise]` of the same file.
"""

_CONFIGURATION = """# Configuration

Generated from the settings' models. A setting stands in a TOML file (`--config`, repeatable, the later one wins), in
the environment (`EXCISE_VERDICT__GOLD_RUNS=5`) or on the command line (`--set verdict.gold_runs=5`). The environment
outranks files, `--set` outranks both, and an option of its own (`--out`, `--limit`) outranks all. `excise generate
--print-config` prints the settings as they result, with their defaults.

```toml
limit = 20

[[sources]]
spec = "pypi:toolz==1.2.0"

[[sources]]
spec = "git+https://example.org/me/app.git@v1.4"
python = "3.12"
extras = ["test"]
limit = 5

[verdict]
gold_runs = 5
visibility = "signature"
```

Relative paths in a file (`out`, `cache`, and local sources such as `./app` or `../app`) are relative to the file's
folder; everywhere else they are relative to the working directory. A source beside the file is `./app`, not `app`.
"""


def _settings(model: type[Any]) -> str:
    return "\n".join(_tables(model, ""))


def _sources() -> str:
    from excise.types import SourceSpec

    return "\n".join(_tables(SourceSpec, "sources.")).replace("## `[sources]`", "## `[[sources]]`")


def _tables(model: type[Any], prefix: str) -> Iterator[str]:
    """A Markdown table for a model or a dataclass, then one for each table of settings inside of it."""
    docs = field_docs(model)
    rows, nested = [], []
    for name, annotation, default in _fields(model):
        inner = _table_type(annotation)
        if inner is not None:
            nested.append((f"{prefix}{name}", inner))
        else:
            rows.append(f"| `{name}` | {default} | {docs.get(name, '')} |")
    if rows:
        text = _first(model.__doc__ or "").replace("``", "`") if prefix else ""
        title = f"## `[{prefix.rstrip('.')}]`" if prefix else "## At the top of the file"
        yield f"{title}\n\n" + (f"{text}\n\n" if text else "") + _HEAD + "\n".join(rows) + "\n"
    for name, inner in nested:
        yield from _tables(inner, f"{name}.")


_HEAD = "| setting | default | meaning |\n|---|---|---|\n"


def _fields(model: type[Any]) -> Iterator[tuple[str, Any, str]]:
    """Name, type and default (as text) of each setting."""
    hints = get_type_hints(model)
    if issubclass(model, BaseModel):
        for name, field in model.model_fields.items():
            unwritten = field.default_factory is not None or isinstance(field.default, Path)
            default = "required" if field.is_required() else "see the meaning" if unwritten else _value(field.default)
            yield name, hints[name], default
        return
    for entry in dataclasses.fields(model):
        required = entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING
        unwritten = entry.default is dataclasses.MISSING
        default = "required" if required else "see the meaning" if unwritten else _value(entry.default)
        yield entry.name, hints[entry.name], default


def _table_type(annotation: Any) -> type[Any] | None:
    """Return the model or dataclass of a setting that is a table; ``None`` for lists and plain values."""
    if get_origin(annotation) in {tuple, list, dict}:
        return None
    kinds = [annotation, *get_args(annotation)]
    found = [k for k in kinds if isinstance(k, type) and (issubclass(k, BaseModel) or dataclasses.is_dataclass(k))]
    return found[0] if len(found) == 1 else None


def _value(value: object) -> str:
    """Return a default value as Markdown, in TOML's notation."""
    if isinstance(value, Enum):
        value = value.value
    if value is None:
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, str):
        return f'`"{value}"`'
    if isinstance(value, (tuple, list, frozenset)):
        return f"`{[v.value if isinstance(v, Enum) else v for v in value]}`"
    return f"`{value}`"


def field_docs(model: type[Any]) -> Mapping[str, str]:
    """The docstrings under the fields of a class and of the classes that it extends."""
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if base.__module__.startswith("excise."):
            body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
            assert isinstance(body, ast.ClassDef)
            for field, text in zip(body.body, body.body[1:], strict=False):
                if (
                    isinstance(field, ast.AnnAssign)
                    and isinstance(field.target, ast.Name)
                    and isinstance(text, ast.Expr)
                    and isinstance(text.value, ast.Constant)
                ):
                    doc = " ".join(str(text.value.value).split())
                    found[field.target.id] = doc.replace("``", "`").replace("|", "\\|")
    return found


PAGES: Mapping[str, Callable[[], str]] = {
    "commands": commands_page,
    "configuration": configuration_page,
    "training-settings": training_page,
}
"""Pages by the name of their file in ``docs/``."""

if __name__ == "__main__":
    sys.stdout.write(PAGES[sys.argv[1]]())
