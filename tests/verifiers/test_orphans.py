"""A removal that would leave the other half of what is gone is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from excise.errors import DeletionRefused
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.types import CoverageMap
from excise.verifiers.orphans import require_no_orphan

FILES = {
    "kit/ext/geo.py": "class GeoExtension:\n    def spaces(self):\n        return {}\n",
    "kit/ext/geo_entry.py": "class GeoEntry:\n    def write(self):\n        return 1\n",
    "kit/ext/media.py": "def spaces():\n    return {}\n",
    "kit/feed.py": "def used(x):\n    return x\n\n\ndef shared(x):\n    return x\n",
    "tests/test_geo.py": "def test_geo():\n    pass\n",
    "tests/test_feed.py": "def test_feed():\n    pass\n",
}
GEO, FEED = "tests/test_geo.py::test_geo", "tests/test_feed.py::test_feed"
EXECUTED = {
    "kit/ext/geo.py::GeoExtension.spaces": (1,),
    "kit/ext/geo_entry.py::GeoEntry.write": (1,),
    "kit/ext/media.py::spaces": (0,),
    "kit/feed.py::used": (1,),
    "kit/feed.py::shared": (0, 1),
}


def plan_of(files: dict[str, str], removed: str, deleter: str = "remove", **changed: tuple[int, ...]) -> Any:
    by_symbol = {symbol: changed.get(symbol.rpartition(".")[2], numbers) for symbol, numbers in EXECUTED.items()}
    coverage = CoverageMap(env_id="env", tests=(FEED, GEO), by_symbol=by_symbol, at_import=())
    bench = SimpleNamespace(
        prepared=SimpleNamespace(coverage=coverage),
        codebase=PythonCodebase.from_texts(files),
        trusted=frozenset({FEED, GEO}),
    )
    deletion = SimpleNamespace(deleter=deleter, removed=(removed,), text=((removed, ""),))
    return SimpleNamespace(bench=bench, deletion=deletion, hidden=frozenset({GEO}), shortened=frozenset())


def test_the_other_half_of_what_is_gone_is_told() -> None:
    with pytest.raises(DeletionRefused, match=r"geo\.py::GeoExtension\.spaces would be left .* about “geo”"):
        require_no_orphan(plan_of(FILES, "kit/ext/geo_entry.py"))


def test_what_other_tests_execute_what_has_other_words_and_what_a_stub_leaves_stays() -> None:
    require_no_orphan(plan_of(FILES, "kit/ext/geo_entry.py", "stub"))
    require_no_orphan(plan_of(FILES, "kit/ext/geo_entry.py", spaces=(0, 1)))
    others = {**FILES, "kit/maps.py": "def geo_map():\n    return 1\n"}
    require_no_orphan(plan_of(others, "kit/ext/geo_entry.py"))
