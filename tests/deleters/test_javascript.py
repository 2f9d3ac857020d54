"""What deleters of JavaScript take out, and what they leave exactly as it was."""

from __future__ import annotations

from dataclasses import replace

import pytest

from excise.deleters.code_editors import editor_of
from excise.deleters.edits.byte_edits import apply_edits
from excise.deleters.javascript.byte_spans import removals
from excise.deleters.javascript.emptied_blocks import with_emptied
from excise.deleters.javascript.unused_code import without_unused
from excise.deleters.patches.git_patches import apply_patch
from excise.deleters.statement.problem_statement import write_statement
from excise.errors import DeletionRefused
from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.extractors.javascript.analysis.grammar import descendants, parse_tree
from excise.protocols import CONSTANTS, EMPTY
from excise.types import Deletion, Feature, FeatureKind

from .planned_deletions import REPO

FILES = {
    "package.json": '{"name": "p", "main": "index.js"}',
    "index.js": "'use strict'\n\nconst one = require('./lib/one')\nconst util = require('./lib/util')\n\n"
    "module.exports = {\n  one: one,\n  two: util.two,\n  three: util.three\n}\n",
    "index.d.ts": "/** One. */\nexport function one(a: { b: number }): void;\nexport function two(): string\n",
    "lib/one.js": "'use strict'\n\nconst fs = require('fs')\nconst os = require('os')\nconst LIMIT = 3\n\n"
    "// Says one.\nmodule.exports = function one (a) {\n  return fs.existsSync(a) && LIMIT\n}\n\n"
    "os.hostname()\n",
    "lib/util.js": "const util = { two, three }\n\nfunction two () { return 2 }\n\n/** Three. */\n"
    "function three (x) {\n  return two() + x\n}\n\nmodule.exports = { two, three: three, four: (x) => x }\n",
    "lib/box.js": "class Box {\n  constructor () {\n    this.n = 0\n  }\n\n"
    "  // Adds.\n  add (n) {\n    this.n += n\n  }\n\n"
    "  get () { return this.n }\n}\nmodule.exports = Box\n",
    "test/all.js": "const test = require('tape')\nconst { one, two } = require('..')\n\n"
    "test('one', (t) => {\n  t.equal(one('x'), false)\n  t.end()\n})\n\n"
    "test('two', (t) => {\n  t.equal(two(), 2)\n  t.end()\n})\n",
}
TESTS = ("test/all.js::one", "test/all.js::two")


def delete(symbol: str, deleter: str, *tests: str, **files: str) -> tuple[Deletion, dict[str, str | None]]:
    texts = {**FILES, **files}
    codebase = JavaScriptCodebase.from_texts(texts, tests=TESTS)
    feature = Feature(
        feature_id="f", kind=FeatureKind.FUNCTION, tier=1, entry=(symbol,), symbols=(symbol,), tests=tests
    )
    deletion = editor_of("javascript").deleters[deleter]().delete(codebase, feature)
    data = {path: text.encode() for path, text in texts.items()}
    changed = apply_patch(data, deletion.source_patch + deletion.hide_patch)
    return deletion, {path: None if new is None else new.decode() for path, new in changed.items()}


def test_a_removed_function_goes_with_its_exports_imports_and_declarations() -> None:
    deletion, changed = delete("lib/one.js::one", "remove", "test/all.js::one")
    assert changed["lib/one.js"] == "'use strict'\n\nconst os = require('os')\n\nos.hostname()\n"
    assert changed["index.js"] == (
        "'use strict'\n\nconst util = require('./lib/util')\n\n"
        "module.exports = {\n  two: util.two,\n  three: util.three\n}\n"
    )
    assert changed["index.d.ts"] == "export function two(): string\n"
    assert changed["test/all.js"] == (
        "const test = require('tape')\nconst { two } = require('..')\n\n"
        "test('two', (t) => {\n  t.equal(two(), 2)\n  t.end()\n})\n"
    )
    assert deletion.hidden == ("test/all.js::one",)
    assert dict(deletion.registrations) == {
        "index.js": "one: one",
        "index.d.ts": "export function one(a: { b: number }): void;",
    }


def test_a_function_that_is_still_called_is_not_removed() -> None:
    with pytest.raises(DeletionRefused, match=r"lib/util.js, which stays, refers to two"):
        delete("lib/util.js::two", "remove")


def test_an_element_of_an_object_that_is_exported_as_a_whole_goes() -> None:
    api = (
        "'use strict'\n\nfunction up (a) { return a + 1 }\n\nfunction down (a) { return a - 1 }\n\n"
        "/**\n * @property {function} up - Up.\n * @property {function} down\n */\n"
        "const out = { up, down }\nmodule.exports = out\nmodule.exports.default = out\n"
    )
    user = {"lib/user.js": "const { down } = require('./api')\nmodule.exports = () => down(1)\n"}
    _, changed = delete("lib/api.js::up", "remove", **{"lib/api.js": api}, **user)
    assert changed["lib/api.js"] == (
        "'use strict'\n\nfunction down (a) { return a - 1 }\n\n/**\n * @property {function} down\n */\n"
        "const out = { down }\nmodule.exports = out\nmodule.exports.default = out\n"
    )
    with pytest.raises(DeletionRefused, match=r"lib/user\.js::user, which stays, refers to down"):
        delete("lib/api.js::down", "remove", **{"lib/api.js": api}, **user)
    with pytest.raises(DeletionRefused, match=r"lib/api\.js, which stays, refers to up"):
        delete("lib/api.js::up", "remove", **{"lib/api.js": f"{api}out.up(1)\n"})


def test_declarations_lose_members_of_the_class_and_those_that_nothing_has_any_more() -> None:
    types = (
        "/** A box. */\nexport declare class Box {\n    get(): number;\n"
        "    /** Adds. */\n    add(n: number): void;\n}\n"
        "interface Tub {\n  add: (n: number) => void\n  get(): number\n}\n"
    )
    _, changed = delete("lib/box.js::Box.add", "remove", **{"box.d.ts": types})
    left = "/** A box. */\nexport declare class Box {\n    get(): number;\n}\ninterface Tub {\n"
    assert changed["box.d.ts"] == f"{left}  get(): number\n}}\n"
    other = {"box.d.ts": types, "lib/tub.js": "class Tub {\n  add () {}\n}\nmodule.exports = Tub\n"}
    _, changed = delete("lib/box.js::Box.add", "remove", **other)
    assert changed["box.d.ts"] == f"{left}  add: (n: number) => void\n  get(): number\n}}\n"


MANUAL = """# Box

A box.

- [`box.put(n)`](#boxputn)
* <a href="#get"><code>box.<b>get()</b></code></a>
- [Putting](#boxputn), [others](#get)
- Of the [API](#options)
- It is [here](#boxputn)
  and there.

## Options

None.

## API

### box.put(n)

Adds.

```js
box.put(3)
```

#### Options

Few.

<a name="get"></a>
### box.get()

What `put()` made of it. Numbers are large.

<a name="more"></a>
### More

See `put(n)` for more.
"""
TRAY = {
    "README.md": MANUAL,
    "lib/tray.js": "class Tray {\n  put (n) { this.n += n }\n\n  get () { return this.n }\n}\nmodule.exports = Tray\n",
}


def test_documents_lose_sections_entries_and_sentences_about_what_is_gone() -> None:
    deletion, changed = delete("lib/tray.js::Tray.put", "remove", **{**TRAY, "CHANGELOG.md": MANUAL})
    assert changed["README.md"] == (
        '# Box\n\nA box.\n\n* <a href="#get"><code>box.<b>get()</b></code></a>\n- [Putting](#boxputn), [others](#get)\n'
        "- Of the [API](#options)\n- It is [here](#boxputn)\n  and there.\n\n## Options\n\nNone.\n\n## API\n\n"
        '<a name="get"></a>\n### box.get()\n\nNumbers are large.\n'
    )
    assert "CHANGELOG.md" not in changed
    codebase = JavaScriptCodebase.from_texts({**FILES, **TRAY}, tests=TESTS)
    text = write_statement(codebase, deletion, REPO, TESTS, documents={"README.md": MANUAL}).text
    assert "> ### box.put(n)\n> \n> Adds.\n> \n> ```js\n> box.put(3)" in text


def test_documents_keep_what_other_code_or_the_language_has_by_the_name() -> None:
    other = {**TRAY, "lib/tub.js": "module.exports = ['put']\n"}
    assert "README.md" not in delete("lib/tray.js::Tray.put", "remove", **other)[1]
    assert "README.md" not in delete("lib/tray.js::Tray.get", "remove", **TRAY)[1]


def test_a_method_is_removed_with_its_comment() -> None:
    _, changed = delete("lib/box.js::Box.add", "remove")
    assert changed["lib/box.js"] == (
        "class Box {\n  constructor () {\n    this.n = 0\n  }\n\n  get () { return this.n }\n}\nmodule.exports = Box\n"
    )


def test_an_element_of_the_exports_is_removed_with_its_comma() -> None:
    _, changed = delete("lib/util.js::four", "remove")
    assert changed["lib/util.js"] is not None
    assert changed["lib/util.js"].endswith("module.exports = { two, three: three }\n")


def test_a_stub_keeps_the_definition_and_drops_what_only_its_body_used() -> None:
    deletion, changed = delete("lib/one.js::one", "stub")
    assert changed["lib/one.js"] == (
        "'use strict'\n\nconst os = require('os')\n\n// Says one.\nmodule.exports = function one (a) {\n"
        "  throw new Error('not implemented')\n}\n\nos.hostname()\n"
    )
    assert dict(deletion.text) == {"lib/one.js::one": "return fs.existsSync(a) && LIMIT"}
    assert [kind for kind, _ in deletion.stub_patches] == [*EMPTY, *CONSTANTS]


def test_a_statement_does_not_call_the_definition_of_an_inner_function_its_use() -> None:
    outer = (
        "module.exports = function parse (words) {\n  function isFlag (word) {\n    return word[0] === '-'\n  }\n\n"
        "  return words.filter((word) =>\n    word && isFlag(word))\n}\n"
    )
    files = {**FILES, "lib/parse.js": outer}
    codebase = JavaScriptCodebase.from_texts(files, tests=TESTS)
    deletion, changed = delete("lib/parse.js::parse.isFlag", "stub", "test/all.js::one", **{"lib/parse.js": outer})
    assert "not implemented" in str(changed["lib/parse.js"])
    text = write_statement(codebase, deletion, REPO, ("test/all.js::one",)).text
    assert "- `lib/parse.js::parse`: `word && isFlag(word))`\n" in text
    assert "function isFlag (word)" not in text, "its definition is no use of it"


def test_a_body_that_is_an_expression_becomes_a_block() -> None:
    _, changed = delete("lib/util.js::four", "stub")
    assert changed["lib/util.js"] is not None
    assert "four: (x) => {\n  throw new Error('not implemented')\n}" in changed["lib/util.js"]


def test_the_constructor_of_a_subclass_still_calls_the_other() -> None:
    text = "class A extends B {\n  constructor () {\n    super()\n    this.x = 1\n  }\n}\nmodule.exports = A\n"
    _, changed = delete("lib/a.js::A", "stub", **{"lib/a.js": text})
    assert changed["lib/a.js"] is not None
    assert "super(...arguments)\n    throw new Error" in changed["lib/a.js"]


def test_a_file_without_visible_tests_goes_as_a_whole() -> None:
    deletion, changed = delete("lib/one.js::one", "stub", *TESTS)
    assert changed["test/all.js"] is None
    assert deletion.hidden == TESTS


@pytest.mark.parametrize(
    ("symbol", "deleter", "reason"),
    [
        ("lib/one.js", "remove", "whole_module"),
        ("lib/box.js::Box.constructor", "stub", "constructor"),
        ("lib/no.js::no", "stub", "unknown_symbol"),
        ("test/all.js::one", "stub", "unknown_symbol"),
    ],
)
def test_what_cannot_be_deleted_is_refused(symbol: str, deleter: str, reason: str) -> None:
    with pytest.raises(DeletionRefused) as refused:
        delete(symbol, deleter)
    assert refused.value.reason == reason


def test_what_a_script_takes_out_of_an_exported_object_is_used() -> None:
    files = {
        "index.js": "function open () {}\nfunction shut () {}\nconst box = { open, shut }\nmodule.exports = box\n"
        "module.exports.box = box\n",
        "benchmark/run.mjs": "import { box } from '../index.js'\nconst { open: openBox } = box\nopenBox()\n",
    }
    with pytest.raises(DeletionRefused, match=r"benchmark/run\.mjs, which stays, refers to open"):
        delete("index.js::open", "remove", **files)
    _, changed = delete("index.js::shut", "remove", **files)
    assert "const box = { open }" in str(changed["index.js"])


def test_documents_of_a_function_with_a_common_name_go_where_the_package_or_nothing_stands_before_it() -> None:
    files = {
        "index.js": "function resolve () {}\nfunction shut () {}\nmodule.exports = { resolve, shut }\n",
        "README.md": (
            "# P\n\n`path.resolve()` is another. `shut()` closes. `resolve()` throws.\n\n## More\n\nMore.\n\n"
            "### Resolve\n\n```js\nconst uri = require('p')\nuri.resolve(1)\n```\n\n"
            "### Shut\n\n```js\nconst uri = require('p')\nuri.shut(Promise.resolve(1))\n```\n"
        ),
    }
    _, changed = delete("index.js::resolve", "remove", **files)
    assert changed["README.md"] == (
        "# P\n\n`path.resolve()` is another. `shut()` closes.\n\n## More\n\nMore.\n\n"
        "### Shut\n\n```js\nconst uri = require('p')\nuri.shut(Promise.resolve(1))\n```\n"
    )


@pytest.mark.parametrize(
    ("user", "is_refused"),
    [
        ("module.exports = (box) => box.refill(1)", True),
        ("module.exports = (box) => box?.refill?.(1)", True),
        ("module.exports = (box) => box.refill", False),
        ("module.exports = (box) => `box.refill(${box})`", True),
        ("module.exports = (box) => 'refill(' + box + ')'", True),
        ("module.exports = (box) => `prefill(${box})`", False),
        ("const jug = require('jug')\nmodule.exports = () => jug.refill(1)", False),
        ("module.exports = (box) => box.add(1)", False),
    ],
    ids=["object", "optional", "no call", "template", "text", "other word", "external", "of the language"],
)
def test_a_method_that_an_unknown_object_may_have_is_not_removed(user: str, is_refused: bool) -> None:
    box = "class Box {\n  refill (n) {\n    return n\n  }\n\n  add (n) {\n    return n\n  }\n}\nmodule.exports = Box\n"
    other = (
        "class Other {\n  refill (n) {\n    return 2\n  }\n\n"
        "  twice () {\n    return this.refill(1)\n  }\n}\nmodule.exports = Other\n"
    )
    files = {"lib/box.js": box, "lib/other.js": other, "lib/user.js": f"{user}\n"}
    symbol = "lib/box.js::Box.add" if ".add(" in user else "lib/box.js::Box.refill"
    if is_refused:
        with pytest.raises(DeletionRefused, match=r"lib/user\.js has .*refill") as refusal:
            delete(symbol, "remove", **files)
        assert refusal.value.reason == "used_elsewhere"
    else:
        assert "return n" in str(delete(symbol, "remove", **files)[1]["lib/box.js"])


def test_a_part_of_an_exported_object_that_its_reader_calls_is_not_removed() -> None:
    files = {
        "lib/plan.js": "function Store () {\n  return 1\n}\n\nmodule.exports = { name: 'a', storage: Store }\n",
        "lib/user.js": "module.exports = (plans, n) => plans[n].storage()\n",
    }
    with pytest.raises(DeletionRefused, match=r"plans\[n\]\.storage"):
        delete("lib/plan.js::Store", "remove", **files)


@pytest.mark.parametrize(
    ("use", "is_left"),
    [("this.close()", True), ("const near = this\n    return () => near.close(2)", True), ("file.close()", False)],
)
def test_an_object_that_calls_a_method_of_its_own_keeps_it_whatever_its_name(use: str, is_left: bool) -> None:
    box = (
        "function Box () {}\nBox.prototype.close = function () {\n  return 1\n}\n"
        f"Box.prototype.end = function (file) {{\n  if (file) {{\n    {use}\n  }}\n}}\nmodule.exports = Box\n"
    )
    if is_left:
        with pytest.raises(DeletionRefused, match=r"refers to this\.close|near\.close, which may mean what is removed"):
            delete("lib/box.js::Box.close", "remove", **{"lib/box.js": box})
    else:
        changed = delete("lib/box.js::Box.close", "remove", **{"lib/box.js": box})[1]
        assert "Box.prototype.close" not in (changed["lib/box.js"] or "")


def test_helpers_of_hidden_tests_go_and_no_blank_line_ends_the_file() -> None:
    tests = (
        "const test = require('tape')\nconst { one, two } = require('..')\n\n"
        "test('two', (t) => {\n  t.equal(two(), 2)\n})\n\n"
        "test('one', (t) => {\n  check(t, one('x'))\n})\n\n"
        "function check (t, x) {\n  t.equal(x && check, false)\n}\n"
    )
    changed = delete("lib/one.js::one", "remove", "test/all.js::one", **{"test/all.js": tests})[1]
    assert changed["test/all.js"] == (
        "const test = require('tape')\nconst { two } = require('..')\n\ntest('two', (t) => {\n  t.equal(two(), 2)\n})\n"
    )


EMPTIED = """const cases = [['a', 1], ['b', 2]]
describe('all', () => {
  const more = [3]
  for (const [text, result] of cases) {
    // each
    it(text, () => {
      expect(one(text)).toBe(result)
    })
  }
  more.forEach((n) => {
    if (n) { it('n', () => { expect(one(n)).toBe(n) }); }
  })
  if (n) { it('m', () => { expect(one(n)).toBe(n) }) } else { setup() }
  it('two', () => {
    expect(two()).toBe(2)
  })
})
"""


def test_loops_of_hidden_tests_and_their_tables_go() -> None:
    source = EMPTIED.encode()
    root = parse_tree(source).root_node
    calls = [n for n in descendants(root) if n.type == "expression_statement" and n.text.startswith(b"it(")]
    spans = [(n.start_byte, n.end_byte) for n in calls if b"one(" in n.text]
    after = apply_edits(source, removals(source, with_emptied(source, spans), []))
    left = without_unused(source, after, nested=True).decode()
    assert [line for line in left.splitlines() if line.strip()] == [
        "describe('all', () => {",
        "  if (n) {  } else { setup() }",
        "  it('two', () => {",
        "    expect(two()).toBe(2)",
        "  })",
        "})",
    ]


@pytest.mark.parametrize(
    "source",
    [
        "cases.forEach((c) => {\n  if (c.a) { keep() } else if (c.b) { it(one) }\n})\n",
        "cases.forEach((c) => {\n  switch (c) { case 1: it(one); break; default: keep() }\n})\n",
        "describe('y', () => {\n  switch (p) { case 1: it(one); break; case 2: it(one); break }\n  keep()\n})\n",
        "when(ready, () => { it(one) }, () => { keep() })\n",
        "loadAll().then(() => { it(one) })\nkeep()\n",
        "export const table = [1]\nit(one, table)\nkeep()\n",
        "for (let i = 0, n = 5; keep();) { it(one, n, i); x() }\n",
        "describe('a', () => {\n  let x = 0\n  ;({ x } = load())\n  it(one, x)\n  keep()\n})\n",
    ],
)
def test_nothing_else_goes_with_what_is_emptied(source: str) -> None:
    data = source.encode()
    calls = [n for n in descendants(parse_tree(data).root_node) if n.type == "call_expression"]
    spans = [(n.start_byte, n.end_byte) for n in calls if (n.text or b"").startswith(b"it(one")]
    after = without_unused(data, apply_edits(data, removals(data, with_emptied(data, spans), [])), nested=True)
    assert b"keep()" in after
    assert not parse_tree(after).root_node.has_error
    assert (b"export const table" in after) is (b"export" in data)
    assert (b"let i = 0, n = 5" in after) is (b"let i" in data)
    assert (b"let x = 0" in after) is (b"let x" in data)


@pytest.mark.parametrize(("below", "is_kept"), [("\n", False), ("const other = 2\n\n", True)])
def test_the_comment_on_one_value_goes_with_it(below: str, is_kept: bool) -> None:
    comment = "/**\n * Limit of all.\n * @private\n */\n\n"
    source = f"{comment}const LIMIT = 3\n{below}exports.two = () => other\n\nexports.one = (a) => LIMIT + a\n"
    deletion, changed = delete("lib/util.js::one", "stub", "test/all.js::one", **{"lib/util.js": source})
    codebase = JavaScriptCodebase.from_texts({**FILES, "lib/util.js": source}, tests=TESTS)
    repo = replace(REPO, language="javascript")
    text = write_statement(codebase, deletion, repo, ("test/all.js::one",)).text
    assert "what they do is gone; so is what nothing else used: `const LIMIT = 3`." in text
    left = changed["lib/util.js"]
    assert left is not None
    assert "LIMIT" not in left
    assert left.startswith(comment) is is_kept


@pytest.mark.parametrize(
    ("value", "is_shown"),
    [
        ("Date.prototype.toISOString", True),
        ("new Map()", True),
        ("{}", True),
        (r"/%[0-9A-F/]{2}|\/=\x20'/gi", True),
        ("/[`]/", False),
        ("/a/ && 3 / 4", False),
        ("'three'", False),
        ("[1, 2]", False),
        ("{ a: 1 }", False),
    ],
)
def test_short_values_that_went_along_are_shown(value: str, is_shown: bool) -> None:
    source = f"const LIMIT = {value};\n\nexports.one = (a) => LIMIT + a\n"
    deletion, _ = delete("lib/util.js::one", "stub", "test/all.js::one", **{"lib/util.js": source})
    codebase = JavaScriptCodebase.from_texts({**FILES, "lib/util.js": source}, tests=TESTS)
    text = write_statement(codebase, deletion, replace(REPO, language="javascript"), ("test/all.js::one",)).text
    assert f"what nothing else used: `{f'const LIMIT = {value};' if is_shown else 'LIMIT'}`." in text


@pytest.mark.parametrize(
    ("imported", "said"),
    [
        ("const { join } = require('path')", "(`const fs = require('fs')` and 1 more)"),
        ("const join = require('path').join", "(`const fs = require('fs')`, `const join = require('path').join`)"),
    ],
)
def test_imports_on_one_line_that_are_gone_are_named(imported: str, said: str) -> None:
    source = (
        FILES["lib/one.js"].replace("const LIMIT", f"{imported}\nconst LIMIT").replace("&& LIMIT", "&& join(LIMIT)")
    )
    texts = {"lib/one.js": source}
    deletion, _ = delete("lib/one.js::one", "remove", "test/all.js::one", **texts)
    codebase = JavaScriptCodebase.from_texts({**FILES, **texts}, tests=TESTS)
    repo = replace(REPO, language="javascript")
    text = write_statement(codebase, deletion, repo, ("test/all.js::one",)).text
    assert f"imports that only this code used are gone as well {said}." in text


COMPUTED = """var isOne = function isOne (v) { return v === 1 || isOne(v[0]) }
var table = (function () {
  var array = []
  for (var i = 0; i < 9; ++i) { array[array.length] = ('%' + i.toString(16)).toUpperCase() }
  return array
}())
function half (n) { return n / 2 }
"""


@pytest.mark.parametrize(
    ("above", "is_kept"),
    [(COMPUTED, False), ("var table = (function () { seen.push(1); return 1 }())\n", True),
     ("var table = (function () { count += 1; return 1 }())\n", True),
     ("var table = (function () { var all = globalThis; all.count = 1; return 1 }())\n", True)],
)  # fmt: skip
def test_functions_and_tables_that_only_a_stubbed_body_used_go(above: str, is_kept: bool) -> None:
    source = f"{above}exports.two = () => 2\n\nexports.one = (a) => isOne(a) ? table[half(a)] : 0\n"
    _, changed = delete("lib/util.js::one", "stub", "test/all.js::one", **{"lib/util.js": source})
    left = changed["lib/util.js"]
    assert left is not None
    assert left.startswith(above if is_kept else "exports.two")


def test_a_method_with_several_names_is_not_removed() -> None:
    box = "function Box () {}\nBox.prototype.%s = function () {\n  return 1\n}\nmodule.exports = exports = Box\n"
    files = {"lib/box.js": box % "lid =\nBox.prototype.lids"}
    with pytest.raises(DeletionRefused, match=r"several names: \['lid', 'lids'\]") as refused:
        delete("lib/box.js::Box.lid", "remove", **files)
    assert refused.value.reason == "used_elsewhere"
    assert "lid" not in (delete("lib/box.js::Box.lid", "remove", **{"lib/box.js": box % "lid"})[1]["lib/box.js"] or "")
