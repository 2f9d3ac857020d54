"""Rendering of one task for the terminal, as Markdown or as JSON."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import groupby
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.markdown import Markdown
from rich.rule import Rule
from rich.syntax import Syntax
from rich.text import Text

from excise.datasets.taskset import TaskSet
from excise.datasets.visible_text import visible
from excise.types import IMPORTED, Certificate, GateOutcome, Quarantine, Task, Verdict, to_dict

MAX_TESTS = 20
"""Maximum number of test ids listed per group; ``all_tests`` lists all."""

MAX_VALUE = 200
"""Maximum number of characters shown of one evidence value."""

_COLORS = {GateOutcome.PASSED: "green", GateOutcome.FAILED: "red", GateOutcome.UNDECIDED: "yellow"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowOptions:
    """How :func:`render` prints a task."""

    as_json: bool = False
    """Print the records of task and certificate as JSON; other options are ignored."""
    as_markdown: bool = False
    """Print Markdown, for reports; see :func:`markdown`."""
    claims: Mapping[str, str] = field(default_factory=dict)
    """Gate name to the gate's claim, for gates whose claim is printed instead of a verdict's detail."""
    all_tests: bool = False
    """List all test ids instead of the first :data:`MAX_TESTS` of each group."""


def render(taskset: TaskSet, instance_id: str, console: Console, options: ShowOptions = ShowOptions()) -> None:
    """Print a task and its certificate.

    If the output is not a terminal, it has no markup, colours or line breaks. Raises :class:`StoreError` for an
    unknown id.
    """
    task, certificate = taskset.task(instance_id), taskset.certificate(instance_id)
    quarantines = taskset.quarantines(instance_id)
    if options.as_json:
        record: dict[str, object] = {"task": to_dict(task), "certificate": to_dict(certificate)}
        record |= {"quarantines": [to_dict(quarantine) for quarantine in quarantines]} if quarantines else {}
        console.file.write(json.dumps(record, ensure_ascii=False, indent=1) + "\n")
        return
    if options.as_markdown:
        console.file.write(markdown(task, certificate, options.claims, quarantines))
        return
    is_piped = not console.is_terminal
    task = task if is_piped else _harmless(task)
    sections: dict[str, RenderableType] = {
        "Problem statement": Text(task.problem_statement) if is_piped else Markdown(task.problem_statement),
        "Gold patch": _diff(task.patch, is_piped),
        "Hidden tests": _diff(task.test_patch, is_piped),
        "Details that hidden tests need": _needs(task),
        "Tests": _tests(task, None if options.all_tests else MAX_TESTS),
        "Certificate": _certificate(certificate, options.claims),
    }
    console.print(_header(task), soft_wrap=is_piped)
    for quarantine in quarantines:
        console.print(Text(_quarantine_notice(quarantine), style="bold red"), soft_wrap=is_piped)
    for title, body in sections.items():
        console.print(Text(), Rule(title, align="left"))
        console.print(body, soft_wrap=is_piped)


def _harmless(task: Task) -> Task:
    """The task with a name in place of each character that would control the terminal."""
    found = {each.name: getattr(task, each.name) for each in fields(task)}
    texts: dict[str, Any] = {name: visible(text) for name, text in found.items() if type(text) is str}
    return replace(task, **texts)


def markdown(
    task: Task, certificate: Certificate, claims: Mapping[str, str], quarantines: Sequence[Quarantine] = ()
) -> str:
    """Task and certificate as Markdown, for reports and reviews."""
    fence = "`" * max(4, 1 + max((len(run) for run in re.findall("`+", task.patch)), default=0))
    lines = [f"# {task.instance_id}", "", f"{task.repo} {task.version}, removed: {', '.join(task.removed)}", ""]
    lines += [line for quarantine in quarantines for line in (f"**{_quarantine_notice(quarantine)}**", "")]
    lines += ["## Problem statement", "", task.problem_statement.strip(), "", "## Gold patch", ""]
    lines += [f"{fence}diff", task.patch.rstrip("\n"), fence, "", "## Certificate", ""]
    for _, group in groupby(certificate.verdicts, key=lambda v: v.gate):
        runs = list(group)
        deciding = _deciding_verdict(runs)
        claim = claims.get(deciding.gate) or deciding.detail
        lines += [f"### {deciding.gate}: {deciding.outcome.value}", "", claim, ""]
        lines += [f"- run: {', '.join(_run_summary(runs, deciding))}"]
        lines += [f"- {name}: `{value.replace('`', chr(39))}`" for name, value in _evidence_lines(deciding)] + [""]
    tools = ", ".join(f"{name} {version}" for name, version in sorted(certificate.tools.items()))
    lines += [f"Flake rate {certificate.flake_rate:.3g} over {_count(certificate.num_runs, 'run')}; cost "]
    lines[-1] += f"{certificate.cpu_s:.1f} CPU s. Made by excise {certificate.excise_version} with {tools}."
    return "\n".join([*lines, "", f"Digest `{certificate.digest}`.", ""])


def _quarantine_notice(quarantine: Quarantine) -> str:
    if quarantine.gate:
        what = f"{quarantine.gate} {quarantine.reason}".strip()
        return f"QUARANTINED: the certificate no longer holds: {what}: {quarantine.detail}"
    where = f" ({', '.join(quarantine.places)})" if quarantine.places else ""
    return f"QUARANTINED: {quarantine.level} {quarantine.label}: {quarantine.detail}{where} Leak {quarantine.leak_id}."


def _header(task: Task) -> RenderableType:
    level = task.difficulty
    facts = {
        "repository": f"{task.repo} {task.version} ({task.language})",
        "commit": task.base_commit,
        "removed": ", ".join(task.removed),
        "shown": f"{task.visibility.value}; {IMPORTED if task.deleter == IMPORTED else f'deleted by {task.deleter}'}",
        "difficulty": f"{level.kind.value}, tier {level.tier}: {_count(level.loc, 'line')} in "
        f"{_count(level.num_files, 'file')}, {_count(level.num_symbols, 'symbol')}, "
        f"complexity {level.complexity}, {_count(level.fan_in, 'reference')} from outside",
    }
    return Group(Text(task.instance_id, style="bold"), _facts(facts))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _facts(facts: Mapping[str, str]) -> Text:
    lines = [Text.assemble((f"{name:<12}", "dim"), value) for name, value in facts.items()]
    return Text("\n").join(lines)


def _diff(patch: str, is_piped: bool) -> RenderableType:
    text = patch.rstrip("\n")
    if not text:
        return Text("(none: the tests are visible)", style="dim")
    if is_piped:
        return Text(text)
    return Syntax(text, "diff", theme="ansi_dark", background_color="default", word_wrap=True)


def _needs(task: Task) -> RenderableType:
    """Each place where a solver finds details, with the details."""
    by_place: dict[str, list[str]] = defaultdict(list)
    for label, place in task.needs.items():
        by_place[place].append(label)
    if not by_place:
        return Text("(none besides names and signatures)", style="dim")
    lines = (Text.assemble((place, "bold"), f": {', '.join(sorted(labels))}") for place, labels in by_place.items())
    return Group(*lines)


def _tests(task: Task, limit: int | None) -> RenderableType:
    return Group(
        *_test_list("FAIL_TO_PASS", "must pass again", task.fail_to_pass, limit),
        *_test_list("PASS_TO_PASS", "must stay green", task.pass_to_pass, limit),
    )


def _test_list(name: str, requirement: str, ids: Sequence[str], limit: int | None) -> Iterable[RenderableType]:
    yield Text.assemble((name, "bold"), f": {_count(len(ids), 'test')} {requirement}")
    for test_id in ids[:limit]:
        yield Text(f"  {test_id}")
    if limit is not None and len(ids) > limit:
        yield Text(f"  … and {len(ids) - limit} more", style="dim")


def _certificate(certificate: Certificate, claims: Mapping[str, str]) -> RenderableType:
    gates = [list(group) for _, group in groupby(certificate.verdicts, key=lambda v: v.gate)]
    tools = ", ".join(f"{name} {version}" for name, version in sorted(certificate.tools.items()))
    facts = {
        "cost": f"{certificate.cpu_s:.1f} CPU s, {certificate.wall_s:.1f} s",
        "flake rate": f"{certificate.flake_rate:.3g} over {_count(certificate.num_runs, 'run')}",
        "made by": f"excise {certificate.excise_version}" + (f" with {tools}" if tools else ""),
        "id": certificate.certificate_id,
        "digest": certificate.digest or "(none: made before certificates were sealed)",
    }
    return Group(*(_gate_line(runs, claims) for runs in gates), Text(), _facts(facts))


def _gate_line(runs: Sequence[Verdict], claims: Mapping[str, str]) -> RenderableType:
    """The outcome, claim and runs of a gate, followed by its evidence."""
    deciding = _deciding_verdict(runs)
    line = Text.assemble((f"{deciding.outcome.value:<9} ", _COLORS[deciding.outcome]), (deciding.gate, "bold"))
    if claim := claims.get(deciding.gate):
        line.append(f": {claim}")
    line.append(f" [{', '.join(_run_summary(runs, deciding))}]", style="dim")
    if deciding.outcome is not GateOutcome.PASSED:
        line.append(f" {deciding.reason}: {deciding.detail}", style=_COLORS[deciding.outcome])
    for name, value in _evidence_lines(deciding):
        line.append(f"\n          {name}: {value}", style="dim")
    return line


def _deciding_verdict(runs: Sequence[Verdict]) -> Verdict:
    """The verdict that decides a gate: the first that did not pass, else the first."""
    return next((v for v in runs if v.outcome is not GateOutcome.PASSED), runs[0])


def _run_summary(runs: Sequence[Verdict], deciding: Verdict) -> Iterable[str]:
    """Number of runs and tests of a gate, and their CPU time."""
    yield _count(len(runs), "run")
    if deciding.num_tests:
        yield _count(deciding.num_tests, "test")
    yield f"{sum(v.cpu_s for v in runs):.1f} CPU s"


def _evidence_lines(verdict: Verdict) -> Iterable[tuple[str, str]]:
    """Names and values of a verdict's evidence, test counts by status first; long values are truncated."""
    if verdict.statuses:
        counts = Counter(str(status) for status in verdict.statuses.values())
        yield "statuses", ", ".join(f"{number} {status}" for status, number in sorted(counts.items()))
    for name, value in sorted(verdict.evidence.items()):
        if value:
            yield name, value if len(value) <= MAX_VALUE else f"{value[:MAX_VALUE]}…"
