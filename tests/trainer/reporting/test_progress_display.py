"""The display of a running run: lines in a log, a table in a terminal."""

from __future__ import annotations

import io

from rich.console import Console

from excise.trainer.reporting.progress_display import ProgressDisplay, sparkline


def test_a_log_gets_one_line_per_step() -> None:
    out = io.StringIO()
    with ProgressDisplay(Console(file=out, width=150), steps=9) as watch:
        watch.status("waiting [/x]")
        watch.step(1, {"reward": 0.5, "pass@1": 0.25})
        watch.message("read [this]")
    assert "step 1: pass@1 0.25, reward 0.5" in out.getvalue()
    assert "read [this]" in out.getvalue()
    quiet = io.StringIO()
    with ProgressDisplay(Console(file=quiet), steps=9, quiet=True) as watch:
        watch.step(1, {"reward": 0.5})
        watch.message("nothing")
    assert quiet.getvalue() == ""


def test_a_terminal_gets_a_table() -> None:
    out = io.StringIO()
    console = Console(file=out, width=120, force_terminal=True)
    with ProgressDisplay(console, steps=9) as watch:
        for step in (1, 2, 3):
            watch.step(step, {"reward": step / 4, "unknown": 1.0})
        watch.status("training on 4 groups [/x]")
        console.print(watch.table())
    text = out.getvalue()
    assert "step 3 of 9: training on 4 groups [/x]" in text
    assert "reward" in text
    assert "unknown" not in text
    assert sparkline([0.0, 0.5, 1.0]) == "▁▅█"
    assert sparkline([2.0]) == "▁"
