"""Documents lose the rows of tables, and the items of lists, that are about removed code alone."""

from __future__ import annotations

import pytest

from excise.deleters.documents.gone_names import GoneCode, GoneNames
from excise.deleters.documents.sections import shortened_documents
from excise.deleters.documents.tables import rows_of

SIMPLE = """Kit
===

===========  =============
Name         What
===========  =============
make_box     makes a box,
             of paper
open_box     opens make_box
===========  =============

Done.
"""
GRID = """Kit
===

+-----------------+--------------+
| Name            | What         |
+=================+==============+
| :func:`make_box`| makes a box  |
|                 | of paper     |
+-----------------+--------------+
| open_box        | opens one    |
+-----------------+--------------+
"""
BARS = """# Kit

| Name | What |
|------|------|
| [`make_box(text, size=1)`](#make_box) | makes a box |
| make_box or open_box | both |
| open_box | opens one |
"""
LISTED = """Kit
===

.. list-table::
   :header-rows: 1

   * - Name
     - What
   * - ``make_box``
     - Makes a box
   * - ``open_box``
     - Opens one
"""
ONE_ROW = "# Kit\n\n| Name | What |\n|---|---|\n| `make_box` | makes a box |\n"


def left(text: str, *names: str) -> str:
    """A document without what names functions or classes of the package."""
    dotted = frozenset(f"kit.{name}" for name in names)
    code = GoneCode(GoneNames(names, dotted), dotted)
    (pair,) = dict(shortened_documents({"README.md": text.encode()}, code)).values() or [(b"", text.encode())]
    return (pair[1] or b"").decode()


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        (SIMPLE, "make_box     makes a box,\n             of paper\n"),
        (
            GRID,
            "| :func:`make_box`| makes a box  |\n|                 | of paper     |\n"
            "+-----------------+--------------+\n",
        ),
        (BARS, "| [`make_box(text, size=1)`](#make_box) | makes a box |\n"),
        (LISTED, "   * - ``make_box``\n     - Makes a box\n"),
    ],
)
def test_rows_go_whose_first_cell_is_the_name(text: str, lost: str) -> None:
    assert lost in text
    assert left(text, "make_box") == text.replace(lost, "")


def test_rows_of_things_go_by_their_column_of_names() -> None:
    things = "# Kit\n\n| Task | Function | Class |\n|---|---|---|\n"
    rows = ("| Make boxes | `make_box` | `Box` |\n", "| [Open](x) them | [`open_box`](y) | `Box` |\n")
    assert left(things + "".join(rows), "open_box") == things + rows[0]
    assert left(things + "".join(rows), "Box") == things + "".join(rows), "rows are about functions"
    grid = GRID.replace("| Name            |", "| Task            |").replace("| What         |", "| Function     |")
    grid = grid.replace("| :func:`make_box`|", "| to make boxes   |").replace("| makes a box  |", "| ``make_box`` |")
    grid = grid.replace("| of paper     |", "|              |").replace(
        "| open_box        | opens one    |", "| open them       | open_box     |"
    )
    lost = (
        "| to make boxes   | ``make_box`` |\n|                 |              |\n+-----------------+--------------+\n"
    )
    assert lost in grid
    assert left(grid, "make_box") == grid.replace(lost, "")
    columns = SIMPLE.replace("Name         What", "Task         Function").replace("makes a box,", "make_box")
    columns = columns.replace("             of paper\n", "").replace("make_box     make", "fold paper   make")
    columns = columns.replace("open_box     opens make_box", "look into    open_box")
    assert left(columns, "make_box") == columns.replace("fold paper   make_box\n", "")


@pytest.mark.parametrize(
    "text",
    [
        "| Option to set | Default |\n|---|---|\n| output format | `make_box` |\n| other thing | `b` |\n",
        "| Task | Function | Needs |\n|---|---|---|\n| read files | read() and `kept` | `make_box` |\n| x | a | b |\n",
        "| Task | Function |\n|---|---|\n| read files | `make_box` |\n| write files | `make_box` |\n| x y | `b` |\n",
        "| Box to use | Class |\n|---|---|\n| red ones | make_box or `b` |\n| others there | `c` |\n",
    ],
)
def test_other_columns_say_nothing_of_what_a_row_is_about(text: str) -> None:
    assert left(f"# Kit\n\n{text}", "make_box") == f"# Kit\n\n{text}"


def test_cells_of_dots_are_looked_at_once() -> None:
    text = f"| What | Page |\n|---|---|\n| the intro | {'.' * 20_000} a b |\n| a c | make_box |\n"
    assert "make_box" in left(f"# Kit\n\n{text.replace('Page', 'Name')}", "make_box")


def test_long_lines_of_blanks_are_looked_at_once() -> None:
    assert rows_of(["a | b", " " * 200_000 + "x", "c | d"]) is None


def test_the_only_row_of_a_table_stays() -> None:
    assert left(ONE_ROW, "make_box") == ONE_ROW


def test_items_that_begin_with_the_name_of_a_class_go() -> None:
    text = "# Kit\n\n- Filter: takes things out\n- Box: has things\n- Filters and more\n"
    assert left(text, "Filter") == text.replace("- Filter: takes things out\n", "")
    assert left(text, "filter") == text
    assert left("# Kit\n\n- copy: the number of copies\n", "copy") == "# Kit\n\n- copy: the number of copies\n"


def test_items_that_are_names_lose_one() -> None:
    text = "# Kit\n\n* `make_box`, `open_box`, close_box\n* open_box, close_box\n* make_box\n"
    assert left(text, "make_box") == "# Kit\n\n* `open_box`, close_box\n* open_box, close_box\n"


def test_what_stands_below_a_row_or_an_item_that_is_gone_goes_no_further_than_that() -> None:
    lost = "   * - ``make_box``\n     - Makes a box.\n\n       It is big.\n"
    text = LISTED.replace("   * - ``make_box``\n     - Makes a box\n", f"   * - ``a_box``\n     - One\n{lost}")
    text += "   * - ``last_box``\n     - Last\n"
    assert left(text, "make_box") == text.replace(lost, "\n")


def test_ordinary_words_are_no_names() -> None:
    table = "# Kit\n\n| Status | What |\n|:-:|:-:|\n| open | it is open |\n| closed | it is not |\n"
    assert left(table, "open") == table
    assert "| `open`" not in left(table.replace("| open", "| `open()`"), "open")
    fields = "# Kit\n\n- Date: 2020-01-01\n- License: MIT\n"
    assert left(fields, "Date") == fields


def test_a_name_in_a_cell_that_lists_names_goes_alone() -> None:
    rows = ("| A    | `open_box`_,  |\n", "|      | `make_box`_,  |\n", "|      | `shut_box`_   |\n")
    text = "# Kit\n\n| Name | Kinds |\n|---|---|\n" + "".join(rows)
    assert left(text, "make_box") == text.replace("|      | `make_box`_,  |\n", "")


def test_text_may_stand_directly_above_a_table() -> None:
    lost = "| `make_box` | makes a box |\n"
    text = (
        f"# Kit\n\nAll of it, as make_box does. Boxes are small:\n| Name | What |\n|---|---|\n{lost}| `a_box` | one |\n"
    )
    assert left(text, "make_box") == text.replace(lost, "").replace("All of it, as make_box does. ", "")
