"""The model of pass rates: what it learns from attempts, how far it can be trusted, and what is stored."""

from __future__ import annotations

import json
import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from excise.datasets.difficulty.calibration import calibrate
from excise.datasets.difficulty.measures import Measures, measures_of
from excise.datasets.difficulty.observations import measures_in, observed_attempts, store_evaluation
from excise.datasets.difficulty.pass_rate_model import COEFFICIENTS, Observation, PassRateModel, Predictor, fit
from excise.datasets.difficulty.rungs import Level, Rung, all_rungs
from excise.datasets.difficulty.stored_model import refit, stored_model
from excise.datasets.queries.attempts import write_attempt
from excise.datasets.queries.catalogue import query
from excise.datasets.queries.scores import TaskScore, summarise
from excise.datasets.taskset import TaskSet
from excise.errors import StoreError
from excise.types import Visibility

from .test_attempts import row

STUB = Rung(Level.STUB, Visibility.DOCSTRING)
TRUTH = Predictor(
    bias=2.0, level=-0.6, visibility=-0.2, size=-0.5, symbols=-0.3, files=-0.2, fan_in=0.1, complexity=-0.4, tests=-0.2,
    statement=0.1, similar=1.5,
)  # fmt: skip


def drawn(rng: random.Random) -> Measures:
    """A task with random measures."""
    return Measures(
        rung=rng.choice(all_rungs()),
        loc=rng.choice([3, 10, 60, 200]),
        num_symbols=rng.choice([1, 2, 5, 12]),
        num_files=rng.choice([1, 2, 4]),
        fan_in=rng.choice([0, 1, 6]),
        complexity=rng.choice([1, 5, 20, 60]),
        num_tests=rng.choice([1, 4, 30]),
        statement_chars=rng.choice([300, 1200, 6000]),
        similar_share=rng.random(),
    )


def test_the_fit_recovers_coefficients_and_the_abilities_of_several_solvers() -> None:
    rng = random.Random(0)
    abilities = {"weak": 0.5, "strong": 3.0}
    rows = []
    for _ in range(3000):
        measures, solver = drawn(rng), rng.choice(sorted(abilities))
        rate = replace(TRUTH, bias=abilities[solver]).rate(measures)
        passed = sum(rng.random() < rate for _ in range(10))
        rows.append(Observation(measures=measures, passed=passed, failed=10 - passed, solver=solver))
    found = fit(rows)
    for name in COEFFICIENTS:
        error = abs(getattr(found.shared, name) - getattr(TRUTH, name))
        assert error < 4 * found.deviations[name] + 0.02, name
        assert 0 < found.deviations[name] < 0.2
    for solver, ability in abilities.items():
        assert found.abilities[solver] == pytest.approx(ability, abs=0.2)
    assert found.predictor("nobody").bias == Predictor().bias


def test_attempts_at_the_same_task_count_less_than_independent_ones() -> None:
    rows = [Observation(measures=Measures(rung=STUB, loc=loc), passed=0, failed=50) for loc in (10, 20)]
    doubtful, certain = fit(rows, correlation=0.5), fit(rows)
    assert certain.abilities[""] < doubtful.abilities[""] < Predictor().bias
    assert certain.deviations["level"] < doubtful.deviations["level"]


def test_without_attempts_the_prior_holds() -> None:
    assert fit([]) == PassRateModel()
    rates = [Predictor().rate(Measures(rung=Rung(level, Visibility.DOCSTRING))) for level in Level]
    assert rates == sorted(rates, reverse=True)
    small, large = (Predictor().rate(Measures(rung=STUB, loc=loc)) for loc in (5, 100))
    assert large < small
    assert Predictor().rate(Measures(rung=STUB, similar_share=0.9)) > Predictor().rate(Measures(rung=STUB))


def observations(
    truth: Predictor, rng: random.Random, num_projects: int = 8, num_tasks: int = 40
) -> dict[str, list[Observation]]:
    """Ten attempts at tasks of some projects, passed at the true rates."""
    found = {}
    for project in range(num_projects):
        for number in range(num_tasks):
            measures = drawn(rng)
            passed = sum(rng.random() < truth.rate(measures) for _ in range(10))
            found[f"p{project}__{number}"] = [Observation(measures=measures, passed=passed, failed=10 - passed)]
    return found


def test_calibration_tells_skill_from_noise() -> None:
    good = calibrate(observations(TRUTH, random.Random(1)))
    assert good is not None
    assert (good.num_projects, good.num_tasks, good.num_attempts) == (8, 320, 3200)
    assert good.skill > 0.2
    assert good.error < 0.06
    assert sum(each.num_attempts for each in good.bins) == 3200
    flat = Predictor(**dict.fromkeys(COEFFICIENTS, 0.0), bias=0.3)
    noise = calibrate(observations(flat, random.Random(2)))
    assert noise is not None
    assert abs(noise.skill) < 0.03
    assert calibrate({}) is None
    assert calibrate(dict(list(observations(TRUTH, random.Random(3), 1, 1).items()))) is None
    single = calibrate(observations(TRUTH, random.Random(4), num_projects=1))
    assert single is not None
    assert single.num_projects == 1


@pytest.fixture
def own_set(store_dir: Path, tmp_path: Path) -> Path:
    """A task set without attempts, for one test."""
    shutil.copytree(store_dir, tmp_path / "set", symlinks=True, ignore=shutil.ignore_patterns("attempts"))
    return tmp_path / "set"


def test_a_set_without_attempts_says_what_makes_some(own_set: Path) -> None:
    with pytest.raises(StoreError, match="excise solve"):
        refit(own_set)
    assert stored_model(own_set) is None
    assert json.loads(query(own_set, "SELECT * FROM predicted_rates", "json")) == []


def test_all_stored_attempts_count_and_their_predictions_can_be_queried(own_set: Path) -> None:
    tasks = list(TaskSet.open(own_set).tasks())
    assert measures_in(own_set) == {task.instance_id: measures_of(task) for task in tasks}
    first, second = sorted(task.instance_id for task in tasks)[:2]
    for number, solved in enumerate([True, True, False]):
        write_attempt(own_set, row("a", first, number, agent="model", model="m", style="terse", solved=solved))
    write_attempt(own_set, row("gold", second, 0, agent="gold", solved=True))
    scores = [TaskScore(instance_id=second, num_attempts=4, num_solved=1)]
    store_evaluation(own_set, summarise("../local one", 4, scores))
    found = refit(own_set)
    assert (found.num_attempts, found.num_tasks) == (7, 2)
    assert stored_model(own_set) == found.model
    assert set(found.model.abilities) == {"model m terse", "eval ../local one"}
    assert {path.parent for path in own_set.rglob("*local-one.json")} == {own_set / "evaluations"}
    rows = json.loads(query(own_set, "SELECT * FROM predicted_rates WHERE num_attempts > 0 ORDER BY solver", "json"))
    assert [(each["instance_id"], each["num_attempts"], each["num_passed"]) for each in rows] == [
        (second, 4, 1), (first, 3, 2),
    ]  # fmt: skip
    for each in rows:
        measures = measures_in(own_set)[each["instance_id"]]
        assert each["predicted"] == pytest.approx(found.model.predictor(each["solver"]).rate(measures), abs=1e-6)
    (own_set / "difficulty" / "model.json").write_text("{")
    with pytest.raises(StoreError, match="excise difficulty"):
        stored_model(own_set)


def test_attempts_at_tasks_that_are_gone_are_left_out(own_set: Path) -> None:
    write_attempt(own_set, row("a", "gone__1", 0, agent="model", solved=True))
    assert observed_attempts(own_set, measures_in(own_set)) == {}
