"""Examples in languages with braces, without what is gone."""

from __future__ import annotations

import time
from textwrap import dedent

import pytest

from excise.deleters.documents.code_examples import GoneUses, without_uses

GONE = GoneUses(names=("Lookup", "dump", "ToKebabCase"), members=("duplicate", "to_kebab_case"), owned=("Box.open",))


def left_of(text: str) -> str | None:
    left = without_uses(dedent(text).strip("\n").split("\n"), GONE)
    return None if left is None else "\n".join(left)


def test_statements_go_with_what_they_give_and_their_comments() -> None:
    left = left_of(
        """
        const bl = new BufferList()
        bl.append('hi')
        // => 2
        // A copy.
        const copy = bl.duplicate()
        // => 3
        copy.append('x')

        console.log("a copy", bl.length) // copy
        """
    )
    assert left == "const bl = new BufferList()\nbl.append('hi')\n// => 2\n\nconsole.log(\"a copy\", bl.length) // copy"


def test_a_name_that_gets_another_value_stays() -> None:
    left = left_of("let a = Lookup(1)\nuse(a)\na2()\nlet a = other()\nuse(a)\n")
    assert left == "a2()\nlet a = other()\nuse(a)"


def test_blocks_lose_statements_and_errors_are_checked_no_more() -> None:
    left = left_of(
        """
        func main() {
        \tn, err := flag.Lookup("x")
        \tif err != nil {
        \t\tpanic(err)
        \t}
        \tfmt.Println(n)
        \tflag.Parse()
        }
        """
    )
    assert left == "func main() {\n\tflag.Parse()\n}"


def test_imports_lose_names() -> None:
    assert left_of('import { parse, dump, load as read } from "spans";\nparse();') == (
        'import { parse, load as read } from "spans";\nparse();'
    )
    assert left_of("use heck::{ToSnakeCase, ToKebabCase};\nrun();") == "use heck::ToSnakeCase;\nrun();"
    assert left_of("use heck::{\n    ToSnakeCase,\n    ToKebabCase,\n};\nrun();") == (
        "use heck::{\n    ToSnakeCase,\n};\nrun();"
    )
    assert left_of("const {\n  dump,\n  load\n} = require('x')\n\nload()") == (
        "const {\n  load\n} = require('x')\n\nload()"
    )
    assert left_of("import org.box.Lookup;\nrun();") == "run();"


def test_nothing_is_left_of_an_example_of_it() -> None:
    assert left_of("use heck::ToKebabCase;\n\nassert_eq!(\n    x.to_kebab_case(),\n    1\n);") == ""
    assert left_of("const x = foo\n  .bar()\n  .duplicate();\nx.go();") == ""


def test_what_only_looks_like_it_stays() -> None:
    assert left_of('say("Lookup dump")  // dump\nother.open()\nx = duplicates.duplicated()') is None
    assert left_of("Box.open(1)\nother.open(2)") == "other.open(2)"


@pytest.mark.parametrize("unit", ["(", "{\n", "x.", '"', "`", "// ", "a, ", "import {", "const a = "])
def test_hostile_examples_take_no_time(unit: str) -> None:
    start = time.process_time()
    without_uses((unit * 100_000 + "\nLookup()").split("\n"), GONE)
    assert time.process_time() - start < 60
