"""Values that lifted tests of all languages but Python report as texts: how they are stored, compared and judged.

A test's values are a JSON text, which :func:`as_json` makes. No program judges them: a value is right if it is the
original's, since only checks of one certain value, or truth, are lifted. Two kinds are no certain values, and are left
out of the digest; a judging form says which ones are right: ``~near 1.5`` is a number, ``~thrown A B`` the class of an
error with those above it. Such a form is JSON: name of a test to the places of its checks to ``{"near": [1.5, 0.1]}``
or ``{"thrown": ["B", "a.C"]}``, the simple or full names of classes.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from excise.protocols import LiftedRun, ReportedValues
from excise.types import Status, TestResult, name_in_file, path_of, without_parameter

_MINUS_ZERO = re.compile(r"(?<![\w.])-(?=0(?:\.0)?(?![\w.]))")
"""The sign of a zero, which is equal to the other zero."""
_CONSTANT = frozenset({
    "true", "false", "None", "nil", "null", "undefined", "<nil>", "", '""', "()", "Ok(())", "[]", "{}", "threw",
    "~thrown",
})  # fmt: skip
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
    texts = {"~thrown" if text.startswith("~thrown") else text for _, _, text in found.values}
    telling = len(texts) > 1 or not texts <= _CONSTANT
    return ReportedValues(nested=_digest(found) if found.returned else "", telling=bool(texts) and telling)


def judged(asked: LiftedRun) -> tuple[TestResult, ...]:
    """The results of the tests of a judging run: one has passed if its values are equal to the original's."""
    results = []
    for test, values in (asked.seen or {}).items():
        original, found = asked.originals.get(test, ReportedValues()).nested, _parsed(values)
        expected = _places(asked.forms.get(path_of(test), ""), name_in_file(without_parameter(test)))
        equal = bool(original) and _digest(found) == original
        is_right = equal and all(_is_right(text, expected.get(site, {})) for site, _, text in found.values)
        results.append(TestResult(test_id=test, status=Status.PASSED if is_right else Status.FAILED))
    return tuple(results)


def _places(form: str, test: str) -> Mapping[str, Mapping[str, Any]]:
    """The places of the checks of a test that say more than the original's texts."""
    places: Mapping[str, Mapping[str, Any]] = json.loads(form).get(test, {}) if form else {}
    return places


def _is_right(text: str, expected: Mapping[str, Any]) -> bool:
    """Whether a value without a certain text is one of those that are right."""
    kind, *words = text.split(" ")
    if kind == "~thrown":
        names = {re.split(r"[.$]", word)[-1] for word in words}
        names.update(word.replace("$", ".") for word in words)
        return bool(names.intersection(expected.get("thrown", ())))
    if kind == "~near":
        number, delta = expected.get("near", (math.nan, 0.0))
        try:
            return abs(float(words[0]) - float(number)) <= float(delta)
        except (ValueError, IndexError):
            return False
    return True


def _parsed(values: str) -> _Values:
    found = json.loads(values)
    return _Values(found["returned"], tuple((site, key, text) for site, key, text in found["values"]))


def _digest(found: _Values) -> str:
    texts = [(site, key, _certain(text)) for site, key, text in found.values]
    return hashlib.sha256(json.dumps([found.returned, texts]).encode()).hexdigest()[:32]


def _certain(text: str) -> str:
    """The part of a text that is the same for all right values."""
    is_open = text.startswith(("~near ", "~thrown"))
    return text.partition(" ")[0] if is_open else _MINUS_ZERO.sub("", text)
