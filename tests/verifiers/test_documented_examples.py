"""Examples of documents that pass before a removal, and fail in the tree that it leaves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from excise.errors import DeletionRefused
from excise.verifiers.candidate import PlannedDeletion
from excise.verifiers.documented_examples import require_examples_hold
from excise.verifiers.workbench import Edits

from ..conftest import Vary

USED = ">>> from shapes import ring_area\n>>> ring_area(2, 1) > 9\nTrue\n"
README = f"# shapes\n\n```pycon\n{USED}>>> 1 + 1\n3\n>>> 1 + 1\n2\n```\n"
ROUND = "src/shapes/round.py"


@pytest.mark.parametrize(
    ("deleter", "result", "edits", "is_refused"),
    [
        ("remove", "9.4", {"README.md": f"More.\n\n{README}"}, False),
        ("remove", "0", {}, True),
        ("path", "0 / 0", {}, True),
        ("stub", "0", {}, False),
        ("remove_and_stub", "0", {}, False),
        ("remove", "0", {"README.md": README.replace(USED, "")}, False),
        ("remove", "0", {"README.md": None}, False),
    ],
)
def test_an_example_that_stays_has_to_pass_as_before(
    vary: Vary, deleter: str, result: str, edits: dict[str, str | None], *, is_refused: bool
) -> None:
    bench = vary({"README.md": README}, baseline=True)
    above = (bench.root / ROUND).read_text().partition("def ring_area")[0]
    texts = {**edits, ROUND: f"{above}def ring_area(outer, inner):\n    return {result}\n"}
    shipped: Edits = {path: text if text is None else text.encode() for path, text in texts.items()}
    deletion = SimpleNamespace(deleter=deleter)
    plan = cast("PlannedDeletion", SimpleNamespace(bench=bench, deletion=deletion, edits=lambda _: shipped))
    if not is_refused:
        require_examples_hold(plan)
        return
    with pytest.raises(DeletionRefused, match=r"README\.md: ring_area\(2, 1\) > 9") as refused:
        require_examples_hold(plan)
    assert refused.value.reason == "used_elsewhere"
    assert bench.passing_examples is not None
    assert len(bench.passing_examples) == 3, "one gives something else than it says"


def test_documents_without_examples_of_the_project_cost_no_run(vary: Vary, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = vary({"README.md": "# shapes\n\n>>> 1 + 1\n2\n"}, baseline=True)
    monkeypatch.setattr(bench, "run", pytest.fail)
    plan = SimpleNamespace(bench=bench, deletion=SimpleNamespace(deleter="remove"), edits=lambda _: {})
    require_examples_hold(cast("PlannedDeletion", plan))


@pytest.mark.parametrize("deleter", ["remove", "remove_and_stub", "stub"])
def test_other_languages_have_no_such_examples(deleter: str) -> None:
    """A removal of a compiled language may be called like a deleter that is Python's alone."""
    bench = SimpleNamespace(repo=SimpleNamespace(language="go"), run=pytest.fail, passing_examples=None)
    plan = SimpleNamespace(bench=bench, deletion=SimpleNamespace(deleter=deleter))
    require_examples_hold(cast("PlannedDeletion", plan))
