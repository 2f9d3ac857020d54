"""When new tasks are requested of the generator, and which."""

from __future__ import annotations

from excise.datasets.difficulty.measures import Measures
from excise.datasets.difficulty.pass_rate_model import Predictor
from excise.datasets.difficulty.rungs import Level, Rung
from excise.trainer.curriculum.request_policy import PoolStatus, RequestPolicy, RequestSettings
from excise.trainer.curriculum.task_request import TaskRequest
from excise.types import Visibility, from_json, to_json

STUB = Rung(Level.STUB, Visibility.DOCSTRING)


def sized(level: Level, loc: int) -> Measures:
    """What is known of a task of this level and size."""
    return Measures(rung=Rung(level, Visibility.DOCSTRING), loc=loc)


def view(now: int, rate: float, level: float, suited: int = 0) -> PoolStatus:
    return PoolStatus(now=now, rate=rate, level=level, rates={STUB: rate}, num_suited=suited, predictor=Predictor())


def test_requests_are_json_and_tell_which_tasks_fit() -> None:
    request = TaskRequest(lowest=Level.EXPRESSION, highest=Level.FUNCTION, pass_rate=(0.2, 0.6))
    assert from_json(TaskRequest, to_json(request)) == request
    assert from_json(TaskRequest, '{"lowest": "line", "highest": "stub"}').count == 32
    assert request.fits(sized(Level.STUB, 10)) == (0.2 <= Predictor().rate(sized(Level.STUB, 10)) <= 0.6)
    assert not request.fits(sized(Level.CLASS, 10))
    assert not request.fits(sized(Level.LINE, 2))
    assert not request.fits(sized(Level.STUB, 100_000))
    again = TaskRequest(lowest=Level.EXPRESSION, highest=Level.FUNCTION, pass_rate=(0.2, 0.6))
    assert (
        again.request_id == request.request_id != TaskRequest(lowest=Level.EXPRESSION, highest=Level.CLASS).request_id
    )


def test_nothing_is_requested_below_the_set_point_or_with_enough_tasks() -> None:
    sent: list[TaskRequest] = []
    asker = RequestPolicy(RequestSettings(), sent.append)
    assert asker.consider(view(20, rate=0.5, level=2, suited=100)) is None
    assert asker.consider(view(20, rate=0.9, level=2, suited=100)) is None
    assert asker.consider(view(2, rate=0.9, level=2)) is None, "too early to tell"
    assert asker.consider(view(20, rate=0.9, level=2)) is not None
    assert len(sent) == 1
    assert sent[0].lowest.order >= 2


def test_requests_stay_within_the_highest_level_of_the_mode() -> None:
    sent: list[TaskRequest] = []
    asker = RequestPolicy(RequestSettings(patience=10, highest=Level.EXPRESSION), sent.append)
    for now in range(20, 1000, 10):
        asker.consider(view(now, rate=0.9, level=0), num_made=0)
    assert {request.highest for request in sent} == {Level.EXPRESSION, Level.LINE}


def test_one_request_is_open_at_a_time_and_dry_rungs_are_skipped_for_a_while() -> None:
    sent: list[TaskRequest] = []
    asker = RequestPolicy(RequestSettings(patience=10), sent.append)
    assert asker.consider(view(20, rate=0.9, level=2))
    assert asker.consider(view(25, rate=0.9, level=2)) is None
    assert asker.open is sent[0]
    assert asker.consider(view(30, rate=0.9, level=2), num_made=7)
    first, second = sent
    assert (first.lowest, first.highest, first.visibility) != (second.lowest, second.highest, second.visibility)
    while asker.consider(view(30, rate=0.9, level=2), num_made=0):
        assert len(sent) < 30
    assert asker.open is None, "every rung was asked for in vain"
    assert asker.consider(view(69, rate=0.9, level=2)) is None
    again = asker.consider(view(70, rate=0.9, level=2))
    assert again
    assert (again.lowest, again.highest, again.visibility) == (first.lowest, first.highest, first.visibility)


def test_a_request_is_open_until_the_generator_is_done() -> None:
    sent: list[TaskRequest] = []
    asker = RequestPolicy(RequestSettings(patience=10, count=4), sent.append)
    first = asker.consider(view(20, rate=0.9, level=2))
    assert first
    assert asker.consider(view(1000, rate=0.9, level=2)) is None, "it is still at work"
    second = asker.consider(view(1001, rate=0.9, level=2), num_made=1)
    assert second
    assert (second.lowest, second.highest) == (first.lowest, first.highest), "some came: there may be more"


def test_any_task_of_the_easiest_rung_is_requested_if_all_are_too_hard() -> None:
    sent: list[TaskRequest] = []
    asker = RequestPolicy(RequestSettings(highest=Level.EXPRESSION), sent.append)
    easiest = Rung(Level.LINE, Visibility.TESTS)
    weak = Predictor(bias=-4.0)
    seen = PoolStatus(now=20, rate=0.0, level=0, rates={easiest: 0.0}, num_suited=0, predictor=weak)
    asked = asker.consider(seen)
    assert asked
    assert (asked.lowest, asked.highest, asked.visibility) == (Level.LINE, Level.LINE, Visibility.TESTS)
    assert asked.fits(sized(Level.LINE, 50))


def test_an_open_request_is_sent_again_after_a_resume() -> None:
    sent: list[TaskRequest] = []
    asker = RequestPolicy(RequestSettings(), sent.append)
    asker.consider(view(20, rate=0.9, level=2))
    later: list[TaskRequest] = []
    resumed = RequestPolicy(RequestSettings(), later.append)
    resumed.restore(asker.state())
    assert later == sent
    assert resumed.state() == asker.state()
    assert resumed.consider(view(21, rate=0.9, level=2)) is None
