"""Values that lifted tests of all languages but Python report as texts: how they are stored, compared and judged.

A test's values are a JSON text, which :func:`as_json` makes. No program judges them: a value is right if it is the
original's, since only checks of one certain value, or truth, are lifted.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from excise.protocols import LiftedRun, ReportedValues
from excise.types import Status, TestResult

_MINUS_ZERO = re.compile(r"(?<![\w.])-(?=0(?:\.0)?(?![\w.]))")
"""The sign of a zero, which is equal to the other zero."""
_CONSTANT = frozenset(
    {"true", "false", "None", "nil", "<nil>", "", '""', "()", "Ok(())", "[]", "{}", "null", "undefined", "threw"}
)
"""Texts of values that anybody would report, if a test reports nothing else."""


class _Values(NamedTuple):
    """What a test reported."""

    returned: bool
    """Whether the test returned, and had not failed."""
    values: tuple[tuple[str, str, str], ...]
    """(the check's number in the test, the key of an item of a map that it belongs to, the text of the value)."""


def as_json(reported: Mapping[str, Any]) -> str:
    """The values of a test as a JSON text, from the report of a supervisor.

    Those of items of a map are sorted: a loop takes them in any order.
    """
    values = [[str(part) for part in value] for value in reported["values"]]
    plain = [value for value in values if not value[1]]
    keyed = sorted(value for value in values if value[1])
    return json.dumps({"returned": reported["returned"] is True, "values": [*plain, *keyed]}, separators=(",", ":"))


def what_is_reported(values: str) -> ReportedValues:
    """What to keep of the values of a test on the original code: a digest, empty if the test did not return."""
    found = _parsed(values)
    texts = {text for _, _, text in found.values}
    telling = len(texts) > 1 or not texts <= _CONSTANT
    return ReportedValues(nested=_digest(found) if found.returned else "", telling=bool(texts) and telling)


def judged(asked: LiftedRun) -> tuple[TestResult, ...]:
    """The results of the tests of a judging run: one has passed if its values are equal to the original's."""
    results = []
    for test, values in (asked.seen or {}).items():
        original = asked.originals.get(test, ReportedValues()).nested
        equal = bool(original) and _digest(_parsed(values)) == original
        results.append(TestResult(test_id=test, status=Status.PASSED if equal else Status.FAILED))
    return tuple(results)


def _parsed(values: str) -> _Values:
    found = json.loads(values)
    return _Values(found["returned"], tuple((site, key, text) for site, key, text in found["values"]))


def _digest(found: _Values) -> str:
    texts = [(site, key, _MINUS_ZERO.sub("", text)) for site, key, text in found.values]
    return hashlib.sha256(json.dumps([found.returned, texts]).encode()).hexdigest()[:32]
