"""The command line. Data goes to stdout, everything else to stderr.

Exit codes: 0 done; 1 failed (no source gave a task, a task did not verify, a file cannot be read or written);
2 usage or configuration; 3 partly done (some sources gave no task, some attempts were lost); 4 not graded (the
infrastructure failed); 130 interrupted.
"""

from __future__ import annotations

import gc as garbage_collector
from collections.abc import Callable
from typing import Annotated

import typer

import excise
from excise.pipeline.cli.attack_command import ATTACK_CODES, attack
from excise.pipeline.cli.audit_command import audit
from excise.pipeline.cli.compact_command import compact
from excise.pipeline.cli.diff_command import diff
from excise.pipeline.cli.difficulty_command import difficulty
from excise.pipeline.cli.env_command import env
from excise.pipeline.cli.eval_command import EVAL_CODES, evaluate
from excise.pipeline.cli.gc_command import gc
from excise.pipeline.cli.generate_command import GENERATE_CODES, generate
from excise.pipeline.cli.grade_command import GRADE_CODES, grade
from excise.pipeline.cli.import_command import IMPORT_CODES, import_
from excise.pipeline.cli.machine_commands import doctor, schedule
from excise.pipeline.cli.merge_command import merge
from excise.pipeline.cli.peer_commands import export, pull, push, sandbox
from excise.pipeline.cli.profile_command import profile
from excise.pipeline.cli.recover_command import recover
from excise.pipeline.cli.refresh_command import refresh
from excise.pipeline.cli.set_commands import checkout, query, show
from excise.pipeline.cli.solve_command import SOLVE_CODES, solve
from excise.pipeline.cli.train_command import TRAIN_CODES, train
from excise.pipeline.cli.verify_command import verify
from excise.pipeline.cli.view_command import view

app = typer.Typer(
    help="Turn well-tested repositories into verified coding tasks by deleting features.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.command(epilog=GENERATE_CODES)(generate)
app.command(epilog=GENERATE_CODES)(refresh)
app.command()(verify)
app.command()(query)
app.command()(show)
app.command()(view)
app.command()(checkout)
app.command()(export)
app.command("import", epilog=IMPORT_CODES)(import_)
app.command()(push)
app.command()(pull)
app.command()(diff)
app.command()(merge)
app.command()(compact)
app.command()(gc)
app.command()(sandbox)
app.command()(profile)
app.command()(doctor)
app.command()(schedule)
app.command()(env)
app.command()(recover)
app.command()(audit)
app.command(epilog=GRADE_CODES)(grade)
app.command(epilog=ATTACK_CODES)(attack)
app.command(epilog=SOLVE_CODES)(solve)
app.command(epilog=TRAIN_CODES)(train)
app.command()(difficulty)
app.command("eval", epilog=EVAL_CODES)(evaluate)


def _version(value: bool) -> None:
    if value:
        print(excise.__version__)
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Turn well-tested repositories into verified coding tasks by deleting features."""


GC_THRESHOLD = 50_000
"""New objects after which the garbage collector runs. With Python's own 700 it takes a tenth of a command's start."""


def main() -> None:
    """Entry point."""
    garbage_collector.set_threshold(GC_THRESHOLD)
    run: Callable[[], None] = app
    run()
