"""The report of a refresh for people, and the hook command that sends it."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from excise.config import RefreshSettings
from excise.datasets.queries.refreshes import RefreshReport, report_json
from excise.errors import ExciseError
from excise.system.commands import run_command

TEXT_VARIABLE = "EXCISE_REPORT_TEXT"
"""Environment variable by which the hook command finds the report for people."""
MAX_LINES = 40
"""Lines of one list in the text; the JSON has all."""
MAX_SHOWN = 300
"""Characters of one explanation in the text."""
MAX_STDERR = 2000
"""Characters of a failed hook's error output that are repeated."""
_INVISIBLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def report_text(report: RefreshReport) -> str:
    """The report as plain text. Names and reasons come from strangers: each is one line without control characters."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: RefreshReport) -> Iterator[str]:
    changes = report.changes
    ending = "" if report.ending == "done" else f" ({report.ending})"
    yield f"excise refresh of {report.started_at}{ending}"
    if report.error:
        yield f"Error: {_plain(report.error)}"
    yield (
        f"{changes.num_came} added, {changes.num_changed} changed, {changes.num_went} removed, "
        f"{changes.unchanged} unchanged; {report.num_tasks} tasks"
        + (f" in snapshot {report.snapshot}" if report.snapshot is not None else "")
        + f"; {report.wall_s:.0f} s"
    )
    if report.reverified or report.num_not_reverified:
        held = sum(task.outcome == "holds" for task in report.reverified)
        left = f", no time for {report.num_not_reverified} more" if report.num_not_reverified else ""
        yield f"{held} of {len(report.reverified)} tasks proved again{left}"
    for outcome, title in (
        ("quarantined", "In quarantine, since their certificate no longer holds"),
        ("unconfirmed", "Failed once, and not when everything was built anew"),
        ("undecided", "Not decided"),
    ):
        tasks = [task for task in report.reverified if task.outcome == outcome]
        yield from _list(title, [f"{t.instance_id}: {t.gate} {t.reason}: {t.detail}" for t in tasks])
    for title, ids in (("Added", changes.came), ("Changed", changes.changed), ("Removed", changes.went)):
        yield from _list(title, ids)
    failed = [source for source in report.sources if source.stage]
    yield from _list("Sources that failed", [f"{s.source}: {s.stage}: {s.reason}: {s.detail}" for s in failed])
    yield from _list(
        "Rejections by stage",
        [f"{f.count} {f.stage}: {f.reason}" + _undecided(f.num_undecided) for f in report.failures],
    )
    yield from _list(
        "Near-duplicates",
        [f"{n.instance_id} of {n.near_duplicate_of} ({n.similarity:.2f})" for n in report.near_duplicates],
    )
    yield from _list(
        "Cost by stage", [f"{c.stage}: {c.cpu_s:.0f} CPU s, {c.wall_s:.0f} s in {c.jobs} jobs" for c in report.costs]
    )


def _undecided(count: int) -> str:
    return f" ({count} by the infrastructure)" if count else ""


def _list(title: str, entries: Sequence[str]) -> Iterator[str]:
    """A heading and a line for each entry; nothing without entries."""
    if entries:
        yield ""
        yield f"{title}:"
        yield from (f"  {_plain(entry)}" for entry in entries[:MAX_LINES])
        if len(entries) > MAX_LINES:
            yield f"  … and {len(entries) - MAX_LINES} more"


def _plain(text: str) -> str:
    """One line of at most :data:`MAX_SHOWN` characters, with characters that a terminal obeys replaced."""
    line = _INVISIBLE.sub("\N{REPLACEMENT CHARACTER}", " ".join(text.split()))
    return line if len(line) <= MAX_SHOWN else f"{line[:MAX_SHOWN]}…"


def send_report(settings: RefreshSettings, report: RefreshReport, text: Path) -> list[str]:
    """Run the report hook, if there is one: JSON on its standard input, the path ``text`` in :data:`TEXT_VARIABLE`.

    No shell reads the command, and nothing of the report is in its arguments. Returns what went wrong, for users.
    """
    command = shlex.split(settings.report_hook)
    if not command:
        return []
    environment = {**os.environ, TEXT_VARIABLE: str(text.absolute())}
    try:
        done = run_command(
            command, timeout_s=settings.report_hook_timeout_s, env=environment, stdin=report_json(report)
        )
    except ExciseError as error:
        return [f"The report hook failed: {error}"]
    except OSError as error:
        return [f"The report hook {command[0]} cannot be started: {error.strerror}"]
    if done.returncode == 0:
        return []
    said = _INVISIBLE.sub(" ", done.stderr.decode(errors="replace").strip()[-MAX_STDERR:])
    return [f"The report hook {command[0]} ended with exit status {done.returncode}{': ' + said if said else '.'}"]
