"""Rollouts as rows of the table that is stored beside the tasks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from excise.datasets.queries.catalogue import connect
from excise.datasets.queries.rollouts import write_rollouts
from excise.datasets.storage.store import Store
from excise.trainer.reporting.rollout_rows import rollout_rows

from ..tiny_policy import random_group
from .example_groups import example_groups


def test_rollouts_are_stored_as_rows_beside_the_tasks(tmp_path: Path) -> None:
    with Store(tmp_path).writer() as writer:
        writer.publish()
    both = [*example_groups(), random_group("c", 1, [1.0, 0.0])]
    hinted = replace(both[0].rollouts[0].segments[0].turns[0], hint="No.", detector="unknown_tool")
    first = both[0].rollouts[0]
    first = replace(first, segments=(replace(first.segments[0], turns=(hinted,)),), penalty=0.25, diff="+x")
    both[0] = replace(both[0], rollouts=(first, *both[0].rollouts[1:]))
    rows = rollout_rows("run", 7, both, lambda ids: " ".join(map(str, ids)), {"t1": 2.0}.get)
    write_rollouts(tmp_path, "run", 7, rows)
    with connect(tmp_path) as connection:
        found = connection.execute(
            "SELECT rollout_id, counts, reward, advantage, hints, flags, version_min, text, diff, tier FROM rollouts "
            "WHERE group_id = 'a' ORDER BY rollout_id"
        ).fetchall()
        segments = connection.execute("SELECT segments FROM rollouts WHERE rollout_id = 'a-1'").fetchall()
    assert found[0] == ("a-0", True, 0.75, 0.375, ["unknown_tool"], [], 3, "1 2 3 4", "+x", 2.0)
    assert found[1][:4] == ("a-1", True, 0.0, -0.375)
    assert found[1][6:8] == (1, "1 2 3 4\n1 2 3")
    assert found[2][1:6] == (False, 1.0, None, [], ["leak_used"])
    assert found[3][1:4] == (False, 0.0, None)
    assert json.loads(segments[0][0])[1]["ids"] == [1, 2, 3]
