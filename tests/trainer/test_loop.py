"""Whole runs with a tiny model: it learns, it goes on where it was, it does not hang."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from excise.trainer.loop import End
from excise.trainer.metrics import read_metrics

from .tiny_run import QUICK, RandomTasks, TinyRun, same


def test_reward_rises(tmp_path: Path) -> None:
    """Evidence 10a of the issue: the share of the wanted token climbs from chance to most of the answer."""
    began = time.monotonic()
    settings = replace(QUICK, steps=40, checkpoint_every=100, schedule=replace(QUICK.schedule, batch=6, group_size=12))
    run = TinyRun(tmp_path / "run", settings, lr=0.02)
    assert run.run() is End.STEPS
    rows = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert [row["step"] for row in rows] == list(range(1, 41))
    first = sum(row["reward"] for row in rows[:3]) / 3
    last = sum(row["reward"] for row in rows[-3:]) / 3
    assert first < 0.2
    assert last > 0.6
    assert all(row["logprob_difference_fresh"] < 1e-4 for row in rows)
    assert time.monotonic() - began < 60


def test_a_resumed_run_is_the_uninterrupted_one(tmp_path: Path) -> None:
    whole = TinyRun(tmp_path / "whole", replace(QUICK, steps=7))
    whole.run()
    first = TinyRun(tmp_path / "parts", replace(QUICK, steps=3))
    first.run()
    second = TinyRun(
        tmp_path / "parts", replace(QUICK, steps=7), seed=5
    )  # other weights and random states, until loaded
    second.run(resume=True)
    assert same(second.weights(), whole.weights())
    assert second.tasks.state() == whole.tasks.state()
