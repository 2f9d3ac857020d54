"""A statement that imports something, or else defines it, goes as a whole with what only removed code used."""

from __future__ import annotations

import pytest

from .test_remove_details import after, delete

CHOICE = """import sys
from reprlib import recursive_repr

if sys.version_info >= (3, 12):
    from collections import OrderedDict
else:
    # Its texts differ.
    from collections import OrderedDict as BaseOrderedDict

    class OrderedDict(BaseOrderedDict):
        @recursive_repr()
        def __repr__(self):
            return "{}"


"""
LEFT = 'def g():\n    """G."""\n    return {}\n'


@pytest.mark.parametrize("deleter", ["remove", "stub"])
@pytest.mark.parametrize(
    ("choice", "is_gone"),
    [
        (CHOICE, True),
        (
            CHOICE.replace("sys.version_info >= (3, 12)", "sys.argv").replace("    # Its", "    print()\n    # Its"),
            False,
        ),
        (CHOICE.replace("class Ordered", "def more():\n        return 1\n\n    class Ordered"), False),
        (CHOICE.replace("(BaseOrderedDict)", "(BaseOrderedDict, key=1)"), False),
        (CHOICE.replace("OrderedDict\nelse", "OrderedDict, UserDict\nelse") + "U = UserDict\n\n\n", False),
    ],
)
def test_a_choice_between_an_import_and_a_definition_goes_as_a_whole(
    choice: str, deleter: str, *, is_gone: bool
) -> None:
    files = {"m.py": f"{choice}def f():\n    return OrderedDict()\n\n\n{LEFT}"}
    left = after(files, delete(files, "m.py::f", deleter=deleter))["m.py"]
    assert left.startswith(choice) is not is_gone
    if is_gone:
        assert left.removeprefix("def f():\n    raise NotImplementedError\n\n\n") == LEFT
