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


def test_values_that_lost_statements_gave_are_not_read_and_their_loops_go() -> None:
    left = left_of(
        """
        text, size := "a b", 0
        state := -1
        for len(text) > 0 {
        \tword, text, state = Lookup(text, state)
        \tsize = size + 1
        }
        fmt.Println(size, state)
        other()
        """
    )
    assert left == "other()"
    assert left_of("let n = 1\nn = Lookup(n)\nn = n + 1\nn = 2\nuse(n)\n") == "let n = 1\nn = 2\nuse(n)"
    assert left_of("let n = 1\nlet n = make()\nuse(Lookup(n))\nother()\n") == "other()"
    assert left_of("while (more) {\n  Lookup(more)\n  step()\n}\n") == "while (more) {\n  step()\n}"


@pytest.mark.parametrize(
    "made",
    [
        "let b = Box::load(1)?;",
        "b := store.NewBox(1)",
        "const b = new Box(1)",
        "Box b = new Box()",
        "let b: Box<u8> = Box::make()",
    ],
)
def test_objects_that_an_example_makes_have_lost_what_their_types_have(made: str) -> None:
    assert left_of(f"{made}\nc := other()\nuse(b.open(1))\nc.open(2)\nb.shut()\n") == (
        f"{made}\nc := other()\nc.open(2)\nb.shut()"
    )


def test_what_a_function_of_a_package_gives_is_not_the_package() -> None:
    lines = ["s := structs.New(one)", "f := structs.Fields(one)", "for _, g := range s.Fields() {", "\tuse(g)", "}"]
    left = without_uses(lines, GoneUses(names=(), members=(), owned=("structs.Fields",)))
    assert left == [lines[0], *lines[2:]]


def test_nothing_is_left_of_a_program_that_only_prepares_for_it() -> None:
    program = """
        package main

        import (
        \t"log"
        \t"example.com/x/doc"
        \t"fmt"
        )

        func main() {
        \tcmd := &Command{
        \t\tUse: "test",
        \t}
        \terr := Lookup(doc.Kind, cmd)
        \tif err != nil {
        \t\tlog.Fatal(err)
        \t}%s
        }
        """
    assert left_of(program % "") == ""
    assert left_of(program % "\n        \tfmt.Println(1)") == (
        'package main\n\nimport (\n\t"fmt"\n)\n\nfunc main() {\n\tfmt.Println(1)\n}'
    )


def test_hidden_lines_alone_are_no_example() -> None:
    assert left_of("# #[cfg(a)]\n# fn main() {\n#[cfg(b)]\nlet x = Lookup(1);\n# }\n#\n") == ""
    assert left_of("# use a::b;\n#[cfg(b)]\nlet x = Lookup(1);\n#[cfg(c)]\nlet y = other();\n") == (
        "# use a::b;\n#[cfg(c)]\nlet y = other();"
    )


def test_what_only_looks_like_it_stays() -> None:
    assert left_of('say("Lookup dump")  // dump\nother.open()\nx = duplicates.duplicated()') is None
    assert left_of("Box.open(1)\nother.open(2)") == "other.open(2)"


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("import tst, { dump } from 'x'\ntst(1)\ndump(2)", "import tst from 'x'\ntst(1)"),
        ("import React, {\n  dump\n} from 'x'\nReact()", "import React from 'x'\nReact()"),
        ("import { keep,\n  dump } from 'x'\nkeep()", "import { keep } from 'x'\nkeep()"),
        ("import {\n  keep, dump,\n  more,\n} from 'x'\nkeep()", "import {\n  keep,\n  more,\n} from 'x'\nkeep()"),
        ("import { dump as d, keep } from 'x'\nkeep(1)\nd(2)", "import { keep } from 'x'\nkeep(1)"),
        ("use a::{dump, b::{c, d}};\nc();", "use a::{b::{c, d}};\nc();"),
        ("use a::{keep, b::{dump, Lookup}};\nkeep();", "use a::keep;\nkeep();"),
        ("use a::{self, dump};\na::f();", "use a::{self};\na::f();"),
        ("# use tray::{dump, load};\nload(1);", "# use tray::{load};\nload(1);"),
        ("use a::{keep, dump,\n        more, Lookup};\nmore();", "use a::{keep,\n        more};\nmore();"),
        ("use a::{keep, dump, Lookup,\n        more};\nmore();", "use a::{keep,\n        more};\nmore();"),
        ("use a::{dump,\n        more};\nmore();", "use a::more;\nmore();"),
        ("export { keep } from 'a'\nexport { dump } from 'b'", "export { keep } from 'a'"),
    ],
)
def test_imports_keep_what_else_they_bring(before: str, expected: str) -> None:
    assert left_of(before) == expected


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("dump(x)\nif err := srv.Start(); err != nil {\n\tpanic(err)\n}", None),
        ("err := srv.Start()\ndump(x)\nif err != nil {\n\tpanic(err)\n}", None),
        ("n, err := Lookup(x)\nif err != nil {\n\tpanic(err)\n}\nrun()", "run()"),
    ],
)
def test_only_errors_of_lost_statements_are_checked_no_more(before: str, expected: str | None) -> None:
    assert left_of(before) == (expected or "\n".join(line for line in before.split("\n") if "dump" not in line))


def test_strings_and_comments_of_several_lines_are_no_code() -> None:
    assert left_of("t.replace(/\\(/g, '')\ndump(2)") is None, "a bracket that is not closed"
    assert left_of("/* a sad :-(\n dump\n*/\nrun()\ndump(1)") == "/* a sad :-(\n dump\n*/\nrun()"
    assert left_of("const x = `\ndump(1)\n`\nrun(x)\ndump(2)") == "const x = `\ndump(1)\n`\nrun(x)"
    assert left_of("fn f<'a>(x: &'a str) {\n    dump(x);\n    run(x);\n}") == "fn f<'a>(x: &'a str) {\n    run(x);\n}"


def test_attributes_belong_to_what_is_below_them() -> None:
    assert left_of("#[test]\nfn f() {\n    dump(1);\n}\n@Box(1)\nclass A {}\n") == "@Box(1)\nclass A {}"


@pytest.mark.parametrize(
    "unit", ["(", "{\n", "x.", '"', "`", "// ", "/* ", '"\\\\', "a, ", "import {", "const a = ", "const a = dump(b);\n"]
)
def test_hostile_examples_take_no_time(unit: str) -> None:
    start = time.process_time()
    without_uses((unit * 100_000 + "\nLookup()").split("\n"), GONE)
    assert time.process_time() - start < 60


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (
            "if (x) {\n  a();\n} else if (dump(x)) {\n  b();\n} else {\n  c();\n}",
            "if (x) {\n  a();\n} else {\n  c();\n}",
        ),
        ("if (x) {\n  a();\n} else {\n  dump(x);\n  c();\n}", "if (x) {\n  a();\n} else {\n  c();\n}"),
        ("try {\n  a();\n} catch (dump e) {\n  b();\n}\nc();", "c();"),
        (
            "import { dump as end, make } from 'box'\nitems.map(n => make(n))",
            "import { make } from 'box'\nitems.map(n => make(n))",
        ),
        (
            "import('x').then(m => {\n  foo(m.a, 1);\n  m.duplicate(1, 2);\n});",
            "import('x').then(m => {\n  foo(m.a, 1);\n});",
        ),
        ("console.log(`${dump(1)}`)\nrun()", "run()"),
        ("const a = dump(1)\nrun(`b ${a} c`)\nrun()", "run()"),
        ("expectType<'open'>(dump(x));\nexpectType<'shut'>(run(x));", "expectType<'shut'>(run(x));"),
    ],
)
def test_ways_aliases_and_templates(before: str, expected: str) -> None:
    assert left_of(before) == expected
