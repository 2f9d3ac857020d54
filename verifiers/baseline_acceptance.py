"""Acceptance of a baseline: whether enough of a project's tests pass; if not, the most common cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from excise.config import VerdictSettings
from excise.envs.install.failure_classes import Cause, cause_of, main_cause
from excise.envs.install.system_packages import what_to_install
from excise.errors import EnvironmentFailure
from excise.types import Baseline, Status, TestRun, path_of

_BAD = frozenset({Status.FAILED, Status.ERROR})
_SHOWN = 3


def require_enough(settings: VerdictSettings, baseline: Baseline, first: TestRun) -> None:
    """Raise unless enough tests pass in every run of the baseline and most test files can be collected.

    ``first`` is the first run of the baseline, which has the failures' messages. The reason of the
    :class:`EnvironmentFailure` is the cause that most failures share, if there is one and enough would pass without it;
    else ``flaky`` (enough tests pass in some of the runs), ``collect_error``, ``low_pass`` or ``no_tests``.
    """
    counts = Counter(baseline.statuses.values())
    passed, bad = counts[Status.PASSED], counts[Status.FAILED] + counts[Status.ERROR]
    shortfall = _shortfall(settings, passed, bad, baseline)
    if not shortfall:
        return
    failures = {r.test_id: r.message for r in first.results if r.status in _BAD}
    evidence = _evidence(failures | baseline.uncollected)
    cause = main_cause(failures | baseline.uncollected)
    if cause is not None and _explains(settings, cause, passed, failures, baseline.uncollected):
        text = f"{shortfall} {cause.count} of the failures have one cause:\n" + "\n".join(cause.examples)
        if cause.reason == "missing_system_lib":
            text = f"{text}\n{what_to_install(text, ())}".strip()
        raise EnvironmentFailure(text, reason=cause.reason)
    unsteady = sum("PASSED" in story for story in baseline.flaky.values())
    if unsteady and not _shortfall(settings, passed + unsteady, bad, baseline):
        stories = [f"{test}: {story}" for test, story in list(baseline.flaky.items())[:_SHOWN]]
        text = f"{shortfall} {unsteady} more pass only sometimes:\n" + "\n".join(stories)
        raise EnvironmentFailure(text, reason="flaky")
    if not passed + bad and not baseline.uncollected:
        raise EnvironmentFailure(f"{shortfall} {counts[Status.SKIPPED]} are skipped.", reason="no_tests")
    reason = "collect_error" if len(baseline.uncollected) and not bad else "low_pass"
    raise EnvironmentFailure(f"{shortfall} {evidence}".strip(), reason=reason)


def too_slow(run: TestRun, limit_s: float) -> EnvironmentFailure:
    """The failure for a run that timed out; its reason is the failure class that took most of the time, if one did."""
    failures = {r.test_id: r.message for r in run.results if r.status in _BAD}
    cause = main_cause(failures)
    summary = f"The tests did not end within {limit_s:.0f} s."
    waited = sum(r.duration_s for r in run.results if cause is not None and cause_of(r.message) == cause.reason)
    spent = sum(r.duration_s for r in run.results)
    if cause is not None and (2 * cause.count >= len(run.results) or 2 * waited >= spent):
        text = f"{summary} {cause.count} of the {len(run.results)} that ran fail for one cause, after {waited:.0f} s:\n"
        return EnvironmentFailure(text + "\n".join(cause.examples), reason=cause.reason)
    return EnvironmentFailure(
        f"{summary} Raise verdict.suite_timeout_s, or lower verdict.test_timeout_s so that hanging tests end sooner. "
        f"Last output: {run.detail[-300:]}",
        reason="timeout",
    )


def uncollectable(errors: Mapping[str, str]) -> EnvironmentFailure:
    """The failure for a project none of whose tests can be collected; ``errors`` maps file, or nothing where the run
    ended before any, to message."""
    cause = main_cause(errors)
    reasons = {reason for message in errors.values() if (reason := cause_of(message))}
    reason = cause.reason if cause is not None and len(reasons) == 1 and cause.count == len(errors) else "collect_error"
    if list(errors) == [""]:
        return EnvironmentFailure(f"No test can be collected. {errors['']}", reason=reason)
    shown = "\n".join(f"{path}: {message}" for path, message in list(errors.items())[:_SHOWN])
    are = "test file cannot be collected:" if len(errors) == 1 else "test files cannot be collected; first"
    return EnvironmentFailure(f"{len(errors)} {are} {shown}", reason=reason)


def _shortfall(settings: VerdictSettings, passed: int, bad: int, baseline: Baseline) -> str:
    """A sentence that says what is insufficient; empty if nothing is."""
    if passed < settings.min_passing:
        return f"Only {passed} tests pass; at least {settings.min_passing} are needed."
    if passed < settings.min_pass_rate * (passed + bad):
        return f"Only {passed} of {passed + bad} tests that ran pass; {settings.min_pass_rate:.0%} are needed."
    lost = len(baseline.uncollected)
    files = len({path_of(test) for test in baseline.statuses} | baseline.uncollected.keys())
    if 2 * lost > files:
        return f"{lost} of {files} test files cannot be loaded."
    return ""


def _explains(
    settings: VerdictSettings, cause: Cause, passed: int, failures: Mapping[str, str], uncollected: Mapping[str, str]
) -> bool:
    """Whether a cause explains the shortfall: half of the failures have it, or without them enough tests pass."""
    total = len(failures) + len(uncollected)
    rest = len([t for t, message in failures.items() if cause_of(message) != cause.reason])
    good_without = passed >= settings.min_passing and passed >= settings.min_pass_rate * (passed + rest)
    return 2 * cause.count >= total or (good_without and cause.count >= settings.min_passing)


def _evidence(failures: Mapping[str, str]) -> str:
    if not failures:
        return ""
    kinds = Counter(message.partition(":")[0][:80] for message in failures.values())
    common = ", ".join(f"{count} {kind or 'without a message'}" for kind, count in kinds.most_common(_SHOWN))
    first = next(iter(failures.items()))
    return f"First failure: {first[0]}: {first[1]}\nMost common: {common}"
