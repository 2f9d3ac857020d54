"""A set whose names, statements, diffs, explanations and conversations try to run code or to deceive the reader."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from excise.datasets.queries.attempts import write_attempt
from excise.datasets.queries.imports import ImportRow, write_import
from excise.datasets.queries.refreshes import (
    FOLDER,
    FailureCount,
    ReverifiedTask,
    SourceReport,
    StageCost,
    write_report,
)
from excise.datasets.queries.rollouts import ROLLOUTS, RolloutRow, write_rollouts
from excise.datasets.rows import RepoRows
from excise.datasets.storage.near_duplicates import NearDuplicate
from excise.types import Certificate, Rejection, StatementStyle, Task, TaskStatement

from ..conftest import make_rows, make_task
from ..made_reports import made_attempt, made_report

SCRIPTS = (
    "<script>window.pwned=1</script><img src=x onerror='window.pwned=1'><svg onload=window.pwned=1>"
    "\"><iframe srcdoc='<script>parent.pwned=1</script>'></iframe>'--></title></textarea></style>"
)
BIDI = "admin\u202e txet desrever \u2066hidden\u2069 zero\u200bwidth bell\x07 esc\x1b[31m nul\x00"
STATEMENT = f"""# Bring back {SCRIPTS}

{SCRIPTS}

[click](javascript:window.pwned=1) ![image](http://evil.example/x.png) <http://evil.example/> [data](data:text/html,x)

{BIDI} Z{"̴" * 60}algo

```python"onload=window.pwned=1
{SCRIPTS}
```

{"> " * 300}deep

| a | b |
|:--|--:|
| {SCRIPTS.replace("|", "")} | 2 |
"""
RUN = "run <b onclick=window.pwned=1>&\"'"
INSTANCE_IDS = ("a/../../b?x=1#<script>window.pwned=1</script>", "..", "toolz__%2e%2e%2fetc", f"x{'y' * 300}")


def _hostile_diff(path: str) -> str:
    lines = [f"+{SCRIPTS}", f"+{BIDI}", "+" + "x" * 100_000, *(f"+line {n}" for n in range(3000))]
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1,3004 @@ {SCRIPTS}\n old\n" + "\n".join(
        lines
    )


def hostile_task(instance_id: str, repo: str) -> tuple[Task, Certificate]:
    """A task full of attacks, and its certificate."""
    task, certificate = make_task("toolz", "take")
    path = "src/<img src=x onerror=window.pwned=1>.py"
    verdicts = tuple(
        replace(v, instance_id=instance_id, detail=SCRIPTS, evidence={SCRIPTS: SCRIPTS}) for v in certificate.verdicts
    )
    task = replace(
        task, instance_id=instance_id, repo=repo, problem_statement=STATEMENT, patch=_hostile_diff(path), version=BIDI,
        deletion_patch=_hostile_diff(path), test_patch="no diff at all " + SCRIPTS, interface=SCRIPTS,
        fail_to_pass=(f"tests/test_x.py::test[{SCRIPTS}]", BIDI), removed=(f"{path}::{SCRIPTS}",),
        needs={SCRIPTS: SCRIPTS},
    )  # fmt: skip
    return task, replace(certificate, instance_id=instance_id, verdicts=verdicts)


def hostile_rows() -> dict[str, RepoRows]:
    """Rows of one project with a hostile name."""
    rows = make_rows("toolz", ("take",))
    repo = f"owner/{SCRIPTS}"
    made = [hostile_task(instance_id, repo) for instance_id in INSTANCE_IDS]
    assert rows.repo is not None
    assert rows.report is not None
    rejection = Rejection(
        repo=repo, stage="gate", subject=SCRIPTS, reason=SCRIPTS, detail=BIDI + SCRIPTS, symbols=(SCRIPTS,),
        evidence={SCRIPTS: SCRIPTS},
    )  # fmt: skip
    return {
        repo: replace(
            rows,
            repo=replace(rows.repo, repo=repo, version=BIDI, license=SCRIPTS),
            report=replace(rows.report, repo=repo, source=SCRIPTS, not_proposed={SCRIPTS: 3}),
            tasks=tuple(task for task, _ in made),
            certificates=tuple(certificate for _, certificate in made),
            verdicts=(),
            statements=tuple(
                TaskStatement(
                    instance_id=task.instance_id,
                    style=StatementStyle.ISSUE,
                    author=SCRIPTS,
                    text=STATEMENT + SCRIPTS,
                    complete=False,
                    added=(SCRIPTS,),
                    missing=(BIDI, SCRIPTS),
                )
                for task, _ in made
            ),
            rejections=(rejection,),
        )
    }


REFRESH = "x <b onclick=window.pwned=1>&\"'"


def hostile_refreshes(folder: Path) -> None:
    """Reports whose sources, tasks and explanations are attacks, one with a hostile name, and one that is damaged."""
    proved = tuple(
        ReverifiedTask(instance_id=name, outcome=SCRIPTS, gate=SCRIPTS, reason=SCRIPTS, detail=BIDI + SCRIPTS)
        for name in INSTANCE_IDS
    )
    source = SourceReport(
        source=SCRIPTS, num_tasks=0, num_candidates=0, stage=SCRIPTS, reason=BIDI, detail=SCRIPTS + BIDI
    )
    pair = NearDuplicate(instance_id=INSTANCE_IDS[0], near_duplicate_of=SCRIPTS, similarity=0.9, snapshot=1)
    report = made_report(
        REFRESH, came=INSTANCE_IDS, went=(SCRIPTS, BIDI), reverified=proved, sources=(source,), error=SCRIPTS,
        run=SCRIPTS, failures=(FailureCount(stage=SCRIPTS, reason=SCRIPTS, count=1),), near_duplicates=(pair,),
        costs=(StageCost(stage=SCRIPTS, jobs=1, cpu_s=1.0, wall_s=1.0),), started_at=SCRIPTS, ending=SCRIPTS,
        excise_version=SCRIPTS,
    )  # fmt: skip
    write_report(folder, report, "")
    (folder / FOLDER / "damaged.json").write_text(SCRIPTS)


def hostile_attempts(folder: Path) -> None:
    """Attempts whose run, agent, model and style are attacks."""
    for number in range(2):
        more = {"agent": SCRIPTS, "model": BIDI, "style": SCRIPTS, "instance_id": INSTANCE_IDS[number]}
        write_attempt(folder, made_attempt("hostile", number, solved=bool(number), **more))
    more = {"agent": BIDI, "model": SCRIPTS, "ending": SCRIPTS, "instance_id": INSTANCE_IDS[0]}
    write_attempt(folder, made_attempt("<b>other", 0, solved=True, **more))


def hostile_imports(folder: Path) -> None:
    """Rows of another tool's set whose every text is an attack; the last one says that it is a task of this set."""
    for number, name in enumerate((SCRIPTS, BIDI, INSTANCE_IDS[0])):
        row = ImportRow(
            imported_set="<b>set", format=SCRIPTS, place=f"{SCRIPTS}:{number}", instance_id=name, repo=SCRIPTS,
            base_commit=SCRIPTS, status="imported" if number == 2 else SCRIPTS, reason=SCRIPTS, detail=BIDI + SCRIPTS,
            advice=SCRIPTS, checks={SCRIPTS: SCRIPTS, "g7_gold": BIDI}, unconfirmed={SCRIPTS: 1},
            unconfirmed_examples=(SCRIPTS, BIDI), history=SCRIPTS, num_attacks=2, attacks_on_log=(SCRIPTS,),
            attacks_on_excise=(SCRIPTS,), image_name=SCRIPTS, row=SCRIPTS + BIDI, row_sha256="0", excise_version="1",
        )  # fmt: skip
        write_import(folder, row)


def rollout(**changes: object) -> RolloutRow:
    """A rollout with plain values but for ``changes``."""
    plain = {"string": "", "int": 0, "float": 0.0, "bool": True, "list<string>": ()}
    return RolloutRow(**{**{c.name: plain[c.kind] for c in ROLLOUTS.columns}, **changes})  # type: ignore[arg-type]


def hostile_rollouts(folder: Path) -> None:
    """Rollouts whose model and tools wrote attacks."""
    turns = [{"start": 3, "end": 40, "stop": "end", "hint": SCRIPTS, "detector": SCRIPTS}]
    answer = f"<think>{SCRIPTS}</think>{BIDI}{SCRIPTS}"
    text = f"<|im_start|>user\n{SCRIPTS}<|im_end|>\n<|im_start|>assistant\n{answer}<|im_end|>"
    row = rollout(
        run=RUN, step=1, rollout_id=SCRIPTS, group_id="g", instance_id=INSTANCE_IDS[0], flags=(SCRIPTS,),
        hints=(SCRIPTS,), ending=SCRIPTS, detail=SCRIPTS, text=text, segments=json.dumps([{"turns": turns}]),
        diff=_hostile_diff("a.py"),
    )  # fmt: skip
    write_rollouts(folder, "hostile", 1, [row, replace(row, rollout_id="broken", segments="{", text="", diff=SCRIPTS)])
