"""Judging of what lifted tests reported: values must be the original's, and some texts need only match a pattern.

A text that a test matches begins with :data:`MATCHED`. Its patterns are in the judging form of the test's file, and
asked for in a sandbox without anything of a solution (``excise_node_judge.cjs``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from excise.extractors.reported_texts import judged, what_is_reported
from excise.protocols import LiftedRun, ReportedValues, Session
from excise.types import Recipe, Status, TestResult, name_in_file, path_of, without_parameter

MATCHED = "~"
_JUDGE = "/excise/inside/excise_node_judge.cjs"


def originals_values(values: str) -> ReportedValues:
    """What to keep of the values of a test on the original code: of texts that are matched, no more than that."""
    found = what_is_reported(values)
    return replace(found, nested=what_is_reported(_masked(values)).nested)


def judge_values(
    session: Session, recipe: Recipe, root: str, asked: LiftedRun, seen: Mapping[str, str], timeout_s: float
) -> tuple[TestResult, ...]:
    """The results of the tests of a judging run, whose reported values are ``seen``."""
    equal = judged(replace(asked, seen={test: _masked(values) for test, values in seen.items()}, forms={}))
    passed = [result.test_id for result in equal if result.status is Status.PASSED]
    texts = [
        {"path": path_of(test), "test": name_in_file(without_parameter(test)), "number": number, "text": text[1:]}
        for test in passed
        for number, _, text in json.loads(seen[test])["values"]
        if text.startswith(MATCHED)
    ]
    if not texts:
        return equal
    stdin = json.dumps({"root": root, "texts": texts}).encode()
    done = session.exec(("node", _JUDGE), timeout_s=timeout_s, stdin=stdin, env=dict(recipe.env))
    try:
        fits = json.loads(done.stdout)
    except ValueError:
        fits = [False] * len(texts)
    wrong = {(text["path"], text["test"]) for text, right in zip(texts, fits, strict=True) if right is not True}
    return tuple(
        replace(result, status=Status.FAILED)
        if (path_of(result.test_id), name_in_file(without_parameter(result.test_id))) in wrong
        else result
        for result in equal
    )


def _masked(values: str) -> str:
    """The values without the texts that are matched; sorted by the places of checks, of which two may run at once."""
    found = json.loads(values)
    masked = [[number, key, MATCHED if text.startswith(MATCHED) else text] for number, key, text in found["values"]]
    found["values"] = sorted(masked, key=lambda value: str(value[0]))
    return json.dumps(found)
