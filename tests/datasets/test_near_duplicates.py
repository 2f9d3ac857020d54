"""Near-duplicates are found over nights, by content, and nothing else is called one."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from excise.datasets.queries.catalogue import query
from excise.datasets.storage import near_duplicates
from excise.datasets.storage.near_duplicates import FOLDER, signature, update
from excise.datasets.storage.store import Store
from excise.errors import StoreError

from .made_sets import many_rows


def patch_of(words: list[str]) -> str:
    return "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n" + "".join(f"+{word}\n" for word in words)


def words(seed: int, number: int = 120) -> list[str]:
    draw = random.Random(seed)
    return [f"value_{draw.randrange(10**6)} = {draw.randrange(10**6)}" for _ in range(number)]


def publish(root: Path, **patches: str) -> None:
    """Publish a project per patch; each is a feature of its own."""
    with Store(root).writer() as writer:
        for name in writer.names():
            writer.drop_repo(name)
        for name, patch in patches.items():
            rows = many_rows(name, 1)
            tasks = tuple(replace(t, instance_id=name, patch=patch, feature_id=name) for t in rows.tasks)
            writer.put_repo(name, replace(rows, tasks=tasks, certificates=(), verdicts=()))
        writer.publish()


def found(root: Path) -> dict[str, str]:
    return {entry.instance_id: entry.near_duplicate_of for entry in update(root)}


def test_a_task_of_an_earlier_night_is_recognised(tmp_path: Path) -> None:
    base = words(1)
    publish(tmp_path, first=patch_of(base), other=patch_of(words(2)))
    assert found(tmp_path) == {}
    publish(tmp_path, unrelated=patch_of(words(3)))  # the first one is gone
    assert found(tmp_path) == {}
    publish(tmp_path, late=patch_of([*base[:60], "a = 1", *base[61:]]), unrelated=patch_of(words(3)))
    assert found(tmp_path) == {"late": "first"}
    assert found(tmp_path) == {}, "known tasks are not reported again"
    rows = json.loads(query(tmp_path, "SELECT instance_id, near_duplicate_of, similarity FROM near_duplicates", "json"))
    assert [(row["instance_id"], row["near_duplicate_of"]) for row in rows] == [("late", "first")]
    assert rows[0]["similarity"] > 0.9


def test_within_a_night_the_first_id_is_the_original(tmp_path: Path) -> None:
    publish(tmp_path, a=patch_of(words(1)), b=patch_of(words(1)), c=patch_of(words(4)))
    assert found(tmp_path) == {"b": "a"}


def test_layout_and_comments_do_not_count_and_short_patches_say_nothing(tmp_path: Path) -> None:
    base = words(1)
    spaced = ["    " + line.replace(" = ", "=") for line in base]
    publish(
        tmp_path, a=patch_of(base), b=patch_of(["# new comment", *spaced]), c=patch_of(["x = 1"]), d=patch_of(["x = 1"])
    )
    assert found(tmp_path) == {"b": "a"}
    assert signature(patch_of(["x = 1"])) is None


def test_tasks_of_one_feature_are_not_compared(tmp_path: Path) -> None:
    rows = many_rows("a", 2)
    same = tuple(replace(task, patch=patch_of(words(1)), feature_id="one") for task in rows.tasks)
    with Store(tmp_path).writer() as writer:
        writer.put_repo("a", replace(rows, tasks=same))
        writer.publish()
    assert found(tmp_path) == {}


def test_a_set_without_tasks_or_index(tmp_path: Path) -> None:
    assert update(tmp_path) == ()
    publish(tmp_path, a=patch_of(words(1)))
    assert query(tmp_path, "SELECT count(*) AS n FROM near_duplicates", "csv").split() == ["n", "0"]


@pytest.mark.parametrize("kept", [0.95, 0.8, 0.5])
def test_the_estimate_is_near_the_share_of_common_triples(kept: float) -> None:
    """Against the exact Jaccard similarity of 40 pairs of patches: the mean error is that of 64 minima."""
    errors = []
    for seed in range(40):
        base = words(seed, 60)
        changed = [line if random.Random(seed + i).random() < kept else f"x{i} = {seed}" for i, line in enumerate(base)]
        one, two = (_triples(lines) for lines in (base, changed))
        estimate = float((signature(patch_of(base)) == signature(patch_of(changed))).mean())
        errors.append(estimate - len(one & two) / len(one | two))
    assert abs(np.mean(errors)) < 0.03
    assert np.std(errors) < 0.1


def _triples(lines: list[str]) -> set[tuple[str, ...]]:
    tokens = " ".join(lines).split()
    return {tuple(tokens[i : i + 3]) for i in range(len(tokens) - 2)}


def test_files_are_joined_and_rows_in_two_files_do_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_duplicates, "MAX_FILES", 2)
    for night in range(5):
        publish(tmp_path, **{f"night-{night}": patch_of(words(night))})
        assert found(tmp_path) == {}
        if night == 1:
            copy = tmp_path / FOLDER / "left-by-a-crash.parquet"
            copy.write_bytes(next((tmp_path / FOLDER).iterdir()).read_bytes())
    assert len(list((tmp_path / FOLDER).iterdir())) <= 2
    publish(tmp_path, again=patch_of(words(0)))
    assert found(tmp_path) == {"again": "night-0"}


def test_a_damaged_index_is_named(tmp_path: Path) -> None:
    publish(tmp_path, a=patch_of(words(1)))
    update(tmp_path)
    next((tmp_path / FOLDER).iterdir()).write_bytes(b"PAR1 nonsense")
    with pytest.raises(StoreError, match=r"is damaged .* Delete .*near-duplicates"):
        update(tmp_path)
