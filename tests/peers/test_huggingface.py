"""HuggingFace's own libraries on an exported folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import Run

pytestmark = pytest.mark.peers

PROGRAM = """
import json, sys
from datasets import get_dataset_config_names, load_dataset
from huggingface_hub import DatasetCard
folder, cache = sys.argv[1:]
tasks = load_dataset(folder, split="train", cache_dir=cache)
counts = {name: load_dataset(folder, name, split="train", cache_dir=cache).num_rows
          for name in get_dataset_config_names(folder)}
card = DatasetCard.load(folder + "/README.md")
print(json.dumps({"rows": list(tasks), "counts": counts, "card": card.data.to_dict(), "text": card.text}))
"""


def test_datasets_and_cards_are_read(
    run_peer: Run, exported: Callable[[str], Path], stored: Any, tmp_path: Path
) -> None:
    folder = exported("huggingface")
    done = run_peer("data", "python", "-c", PROGRAM, folder, tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    rows = stored.taskset.task_rows()
    for row in found["rows"]:
        row["needs"] = {pair["key"]: pair["value"] for pair in row["needs"]}
    added = {"needs": {}, "similar_share": None}  # by later versions
    assert found["rows"] == [{**row, **{name: row.get(name) or empty for name, empty in added.items()}} for row in rows]
    assert found["counts"] == {"tasks": 8, "repos": 1, "environments": 1, "verdicts": 128}
    assert found["card"]["license"] == "mit"
    assert found["card"]["size_categories"] == ["n<1K"]
    assert "| shapes | 1.2.0 | MIT | a local folder | 8 |" in found["text"]
    assert "`FAIL_TO_PASS`" in found["text"]
