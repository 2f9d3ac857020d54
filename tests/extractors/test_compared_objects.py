"""Objects of libraries for command lines in recorded calls."""

from __future__ import annotations

import json

from excise.extractors.python.execution import recorded_calls


def test_objects_of_command_lines_with_items_are_compared_by_these() -> None:
    for content in ([["d", [[["s", "help"], ["i", "1"]]]]], [["l", [["i", "1"]]], "end"], [["builtins:KeyError"]]):
        found = json.dumps({"result": ["seen", ["click:Many"], *content]})
        other = found.replace("1", "2").replace("Key", "Index")
        assert [recorded_calls.same_outcome(found, each) for each in (found, other)] == [True, False]
