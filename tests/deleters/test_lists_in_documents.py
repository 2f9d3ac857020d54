"""Lists in documents: what is about the items that are gone goes with them."""

from __future__ import annotations

import pytest

from .test_documents import left_of


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("* Making\n    * `gone_by(x)` (makes it)\n\n* Other parts\n    * `other()`\n",
         "* Other parts\n    * `other()`\n"),
        ("* Making\n    * `gone_by(x)` (makes it)\n* Other parts\n    * `other()`\n",
         "* Other parts\n    * `other()`\n"),
        ("* Making\n\n    Use it:\n\n    ```python\n    gone_by(1)\n    ```\n\n* Other\n\n    Text.\n",
         "* Other\n\n    Text.\n"),
        ("* Making things with it is easy, they say.\n    * `gone_by(x)`\n* Other\n",
         "* Making things with it is easy, they say.\n* Other\n"),
        ("* Making\n* `gone_by(x)`\n* Other\n", "* Making\n* Other\n"),
        ("* `other()`\n    * like `gone_by(x)`\n* `third()`\n", "* `other()`\n* `third()`\n"),
        ("* Other\n    * like `gone_by(x)`\n* Third\n", "* Other\n* Third\n"),
        ("- On Windows\n\n    ```python\n    gone_by(1)\n    ```\n\n- Third\n", "- On Windows\n\n- Third\n"),
    ],
)  # fmt: skip
def test_the_title_of_a_part_of_a_list_goes_with_the_last_item(before: str, expected: str) -> None:
    assert left_of(f"# pkg\n\n{before}\nEnd.\n", path="README.md") == f"# pkg\n\n{expected}\nEnd.\n"


def test_members_of_a_module_that_directives_list() -> None:
    text = "Boxes\n=====\n\n.. automodule:: pkg.{}\n   :members: {}other\n"
    assert left_of(text.format("m", "gone_by, ")) == text.format("m", "")
    assert left_of(text.format("n", "gone_by, ")) in {None, text.format("n", "gone_by, ")}
