"""What deleters take out of TypeScript and ECMAScript modules; what they leave can be loaded, and has types."""

from __future__ import annotations

from dataclasses import replace

import pytest

from excise.deleters.all_deleters import get
from excise.deleters.code_editors import editor_of
from excise.deleters.patches.git_patches import apply_patch, touched
from excise.deleters.statement.problem_statement import write_statement
from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.protocols import CONSTANTS, EMPTY
from excise.types import Deletion, Feature, FeatureKind, Visibility

from .planned_deletions import REPO

FILES = {
    "package.json": '{"name": "p", "main": "dist/index.js", "type": "module"}',
    "src/index.ts": "import type { A, B } from './types'\nimport { helper } from './util.js'\n\n"
    "interface Local { x: A }\ntype Kept = B\n\n"
    "/** Says over. */\nexport function over(a: string): string\nexport function over(a: number): number\n"
    "export function over(a: any): any {\n  const l: Local = helper(a)\n  return l\n}\n\n"
    "export const kept = (k: Kept): Kept => k\n",
    "src/box.ts": "export class Box<T> extends Array<T> implements Iterable<T> {\n  private n = 0\n\n"
    "  constructor(x: number, readonly y?: string) {\n    super(x)\n    this.n = x\n  }\n\n"
    "  // Puts.\n  put(a: string): void\n  put(a: any): void { this.n = a }\n\n"
    "  set size(v: number) { this.n = v }\n}\n",
    "src/util.ts": "export function helper(x: any): any { return x }\n",
    "src/types.ts": "export type A = number\nexport type B = string\n",
    "src/main.ts": "import { over, kept } from './index'\nimport only from './default.js'\n"
    "export { over } from './index'\nexport * from './util'\nconsole.log(kept)\n",
    "src/default.ts": "export default function only() { return 1 }\nexport const other = 2\n",
    "index.d.ts": "/** A. */\nexport declare function over(a: string): string;\n"
    "export declare function over(a: number): number;\ndeclare const k: 1;\nexport { over as o, k };\n",
    "test/all.test.ts": "import { describe, it } from 'node:test'\nimport { over, kept } from '../src/index'\n\n"
    "describe('all', () => {\n  it('is over', () => { over('a') })\n  it('is kept', () => { kept('a') })\n})\n",
}
TESTS = ("test/all.test.ts::all::is over", "test/all.test.ts::all::is kept")


def delete(symbol: str, deleter: str, *tests: str) -> tuple[Deletion, dict[str, str]]:
    codebase = JavaScriptCodebase.from_texts(FILES, tests=TESTS)
    feature = Feature(
        feature_id="f", kind=FeatureKind.FUNCTION, tier=1, entry=(symbol,), symbols=(symbol,), tests=tests
    )
    deletion = editor_of("javascript").deleters[deleter]().delete(codebase, feature)
    return deletion, changed_by(deletion.source_patch + deletion.hide_patch)


def changed_by(patch: str) -> dict[str, str]:
    data = {path: text.encode() for path, text in FILES.items()}
    return {path: "" if new is None else new.decode() for path, new in apply_patch(data, patch).items()}


def test_a_removed_function_goes_with_its_overloads_types_imports_and_declarations() -> None:
    _, changed = delete("src/index.ts::over", "remove", TESTS[0])
    assert changed["src/index.ts"] == (
        "import type { B } from './types'\n\ntype Kept = B\n\nexport const kept = (k: Kept): Kept => k\n"
    )
    assert changed["index.d.ts"] == "declare const k: 1;\nexport { k };\n"
    assert changed["test/all.test.ts"] == (
        "import { describe, it } from 'node:test'\nimport { kept } from '../src/index'\n\n"
        "describe('all', () => {\n  it('is kept', () => { kept('a') })\n})\n"
    )


def test_no_module_imports_or_exports_what_is_gone() -> None:
    _, changed = delete("src/index.ts::over", "remove")
    assert changed["src/main.ts"] == (
        "import { kept } from './index'\nimport only from './default.js'\nexport * from './util'\nconsole.log(kept)\n"
    )
    _, changed = delete("src/default.ts::only", "remove")
    assert changed["src/main.ts"].startswith("import { over, kept } from './index'\nexport { over }")
    assert changed["src/default.ts"] == "export const other = 2\n"


def test_a_stub_keeps_overloads_and_drops_what_only_its_body_used() -> None:
    _, changed = delete("src/index.ts::over", "stub")
    assert changed["src/index.ts"] == (
        "import type { B } from './types'\n\ntype Kept = B\n\n"
        "/** Says over. */\nexport function over(a: string): string\nexport function over(a: number): number\n"
        "export function over(a: any): any {\n  throw new Error('not implemented')\n}\n\n"
        "export const kept = (k: Kept): Kept => k\n"
    )


def test_a_stub_of_a_function_without_a_type_has_any() -> None:
    text = (
        "const KEPT = new Set<string>(['a'])\nexport async function f (x: number) { return KEPT.has(String(x)) }\n"
        "export const g = (x: number) => f(x)\n"
        "export class A {\n  constructor (x: number) {}\n  *all () { yield 1 }\n}\n"
    )
    codebase = JavaScriptCodebase.from_texts({"a.ts": text})
    symbols = ("a.ts::f", "a.ts::g", "a.ts::A")
    feature = Feature(feature_id="f", kind=FeatureKind.MULTI, tier=1, entry=symbols, symbols=symbols, tests=())
    patch = editor_of("javascript").deleters["stub"]().delete(codebase, feature).source_patch
    changed = (apply_patch({"a.ts": text.encode()}, patch)["a.ts"] or b"").decode()
    assert "f (x: number): Promise<any> {" in changed
    assert "g = (x: number): any => {" in changed
    assert "constructor (x: number) {" in changed
    assert "*all (): Generator<any> {" in changed
    assert "KEPT" not in changed


def test_stand_ins_have_the_types_of_what_they_stand_for() -> None:
    deletion, _ = delete("src/box.ts::Box", "stub")
    changed = changed_by(dict(deletion.stub_patches)["none"])["src/box.ts"]
    assert "    super(x)\n    return\n" in changed
    assert "put(a: any): void {\n    return undefined as any\n" in changed
    assert "set size(v: number) {\n    return\n" in changed


def test_stand_ins_that_return_one_value_fit_every_kind_of_function() -> None:
    source = (
        "function f(a) { return a + 1 }\nconst g = async (b, c) => b\nconst h = d => { return d }\nconst i = () => 1\n"
        "class K extends Array { constructor(x) { super(x) } set size(v) { this.n = v } }\n"
    )
    codebase = JavaScriptCodebase.from_texts({"a.js": source})
    symbols = [symbol for symbol in codebase.symbols() if symbol != "a.js"]
    stand_ins = dict(editor_of("javascript").stand_ins(codebase, symbols))
    assert stand_ins.keys() == {*EMPTY, *CONSTANTS}
    alone = dict(editor_of("javascript").stand_ins(codebase, ["a.js::K.size"]))
    assert alone.keys() == {*EMPTY, CONSTANTS[0]}, "a setter returns nothing: the others are equal"

    def lines(kind: str) -> list[str]:
        after = apply_patch({"a.js": source.encode()}, stand_ins[kind])["a.js"] or b""
        return [line.strip() for line in after.decode().splitlines() if "return" in line]

    assert lines("argument") == ["return arguments[0]", "return b", "return d", "return undefined", "return", "return"]
    assert lines("length")[:3] == [f"return Object({name}).length" for name in ("arguments[0]", "b", "d")]
    assert lines("text") == [*["return ''"] * 4, "return", "return"]
    typed = dict(delete("src/index.ts::over", "stub")[0].stub_patches)
    assert "return [] as any" in changed_by(typed["list"])["src/index.ts"]


@pytest.mark.parametrize(
    ("source", "returned"),
    [
        ("export function on(name: string, cb: (e: string) => void): number { return 1 + 1 }\n", "arguments[0]"),
        ("export function on(x, cb = () => 1) { return x + 1 }\n", "arguments[0]"),
        ("export function on(n): (x: number) => number { return (x) => x + n }\n", "arguments[0]"),
        ("export function on(sep = '=>') { return sep + 1 }\n", "arguments[0]"),
        ("export const on = (/* c */ x: number, y = 2) => x + y\n", "x"),
        ("export const on = <T>(x: T) => [x]\n", "x"),
        ("export const on = (na\u00efve = 1) => na\u00efve + 1\n", "na\u00efve"),
        ("export class B { on(cb: (e: string) => void): number { return 1 + 1 } }\n", "arguments[0]"),
    ],
)
def test_the_first_argument_of_every_kind_of_function(source: str, returned: str) -> None:
    codebase = JavaScriptCodebase.from_texts({"a.ts": source})
    (symbol,) = (each for each in codebase.symbols() if each.endswith("on"))
    patch = dict(editor_of("javascript").stand_ins(codebase, [symbol]))["argument"]
    after = (apply_patch({"a.ts": source.encode()}, patch)["a.ts"] or b"").decode()
    assert f"return {returned} as any\n" in after


@pytest.mark.parametrize(
    ("symbol", "signature"),
    [
        (
            "src/index.ts::over",
            "function over(a: string): string; function over(a: number): number; function over(a: any): any",
        ),
        ("src/index.ts::kept", "function kept(k: Kept): Kept"),
        ("src/box.ts::Box", "class Box extends Array<T> implements Iterable<T>"),
        ("src/box.ts::Box.put", "put(a: string): void; put(a: any): void"),
    ],
)
def test_signatures_have_types_and_overloads(symbol: str, signature: str) -> None:
    found = JavaScriptCodebase.from_texts(FILES).symbols()[symbol]
    assert found.signature == signature
    assert found.docstring in {"Says over.", "Puts.", ""}


def test_names_of_parameters_in_types_and_of_types_are_no_references() -> None:
    found = JavaScriptCodebase.from_texts(
        {
            "a.ts": "export function a(): void {}\nexport type F = (a: number) => void\n"
            "export function g<a>(x: a): a { return x }"
        }
    )
    assert not found.callers("a.ts::a") - {"a.ts::g"}


def test_declarations_in_namespaces_types_and_tests_of_types_go() -> None:
    files = {
        "package.json": '{"name": "box", "main": "box.js", "types": "box.d.ts"}',
        "box.js": (
            "/**\n * @typedef {object} Box\n * @property {function} spy - Spies.\n"
            " * @property {function} make - Makes.\n */\n\n"
            "function spy (a) { return a }\nfunction make () {}\nconst out = { make, spy }\nmodule.exports = out\n"
        ),
        "box.d.ts": (
            "declare namespace box {\n  export type SpyData = { calls: Call[] }\n  export type Call = { n: number }\n"
            "  export type Other = { n: number }\n  export type Box = {\n    make(): void\n"
            "    spy(a: number): SpyData\n  }\n"
            "  export function make (): void\n  export function spy (a: number, b: Other): SpyData\n}\nexport = box\n"
        ),
        "test/box.tst.ts": (
            "import { expect } from 'tstyche'\nimport { make, spy, SpyData } from '..'\n\n"
            "expect(make()).type.toBe<void>()\n\n"
            "const data = spy(1)\nexpect(data).type.toBe<SpyData>()\n"
        ),
        "other.d.ts": "import { Other } from './box'\nexport type Mine = Other\n",
        "test/helpers/index.ts": "export { make } from '../../box'\nexport { spy } from '../../box'\n",
        "test/spy.test-d.ts": "import { spy } from '..'\n\nspy(2)\n",
        "test/all.js": "const test = require('tape')\nconst { spy } = require('..')\ntest('spy', (t) => { spy(1) })\n",
    }
    codebase = JavaScriptCodebase.from_texts(files, tests=["test/all.js::spy"])
    symbols = ("box.js::spy",)
    feature = Feature(feature_id="f", kind=FeatureKind.FUNCTION, tier=1, entry=symbols, symbols=symbols, tests=())
    deletion = get("remove", "javascript").delete(codebase, feature)
    patch = deletion.source_patch + deletion.hide_patch
    left = apply_patch({path: files[path].encode() for path in touched(patch)}, patch)
    assert left["box.js"] == (
        b"/**\n * @typedef {object} Box\n * @property {function} make - Makes.\n */\n\n"
        b"function make () {}\nconst out = { make }\nmodule.exports = out\n"
    )
    assert left["box.d.ts"] == (
        b"declare namespace box {\n  export type Other = { n: number }\n  export type Box = {\n    make(): void\n  }\n"
        b"  export function make (): void\n}\nexport = box\n"
    )
    assert left["test/box.tst.ts"] == (
        b"import { expect } from 'tstyche'\nimport { make } from '..'\n\nexpect(make()).type.toBe<void>()\n"
    )
    assert left["test/spy.test-d.ts"] is None
    assert "test/helpers/index.ts" not in left


TWINS = {
    "package.json": '{"name": "ids", "main": "index.js", "browser": {"./index.js": "./index.browser.js"}}',
    "index.js": "export function make (size) { return 'a'.repeat(size) }\nexport { alphabet } from './alphabet.js'\n",
    "index.browser.js": "export let make = (size) => 'b'.repeat(size)\nexport let only = () => 1\n",
    "index.d.ts": "/** Makes. */\nexport function make(size?: number): string\nexport function only(): number\n",
    "alphabet.js": "export const alphabet = 'ab'\n",
    "weak/index.js": "export let make = (size) => 'c'.repeat(size)\nexport let other = () => 1\n",
    "weak/index.d.ts": "export function make(size?: number): string\nexport function other(): number\n",
    "types/all.d.ts": "export function make(size?: number): string\nexport function only(): number\n",
}


def twins_without(*symbols: str, **files: str) -> tuple[Deletion, dict[str, str]]:
    texts = {**TWINS, **files}
    codebase = JavaScriptCodebase.from_texts(texts)
    feature = Feature(feature_id="f", kind=FeatureKind.MULTI, tier=1, entry=symbols, symbols=symbols, tests=())
    deletion = get("remove", "javascript").delete(codebase, feature)
    left = apply_patch({path: text.encode() for path, text in texts.items()}, deletion.source_patch)
    return deletion, {path: (data or b"").decode() for path, data in left.items() if path.endswith(".d.ts")}


def test_declarations_of_modules_that_still_export_the_name_stay() -> None:
    assert twins_without("index.browser.js::make")[1] == {}, "index.js, weak/index.js still export it"
    changed = twins_without("index.browser.js::only")[1]
    assert changed == {
        path: "/** Makes. */\n" * (path == "index.d.ts") + "export function make(size?: number): string\n"
        for path in ("index.d.ts", "types/all.d.ts")
    }
    assert twins_without("weak/index.js::make")[1] == {"weak/index.d.ts": "export function other(): number\n"}
    deletion, changed = twins_without("index.js::make", "index.browser.js::make")
    assert changed == {"index.d.ts": "export function only(): number\n"}, "who is described by all.d.ts is not known"
    assert dict(deletion.registrations) == {"index.d.ts": "export function make(size?: number): string"}


def test_the_manifest_says_which_modules_a_declaration_file_describes() -> None:
    conditions = '{"exports": {".": {"types": "./types/all.d.ts", "import": {"default": "./index.js"}}}}'
    changed = twins_without("index.js::make", **{"package.json": conditions})[1]
    assert changed == {"types/all.d.ts": "export function only(): number\n"}, "index.browser.js still exports it"
    types = '{"main": "weak/index.js", "types": "types/all.d.ts"}'
    changed = twins_without("weak/index.js::make", **{"package.json": types})[1]
    assert set(changed) == {"types/all.d.ts", "weak/index.d.ts"}


def test_declarations_of_members_of_classes_of_the_same_name_stay() -> None:
    box = "export class Box {\n  put (n) { return n + 1 }\n\n  get () { return 1 }\n}\n"
    types = "export class Box {\n  put(n: number): number\n  get(): number\n}\n"
    files = {"a.js": box, "b.js": box, "a.d.ts": types, "b.d.ts": types}
    assert twins_without("a.js::Box.put", **files)[1] == {"a.d.ts": "export class Box {\n  get(): number\n}\n"}


def test_statements_name_declarations_that_went() -> None:
    deletion, _ = twins_without("index.js::make", "index.browser.js::make")
    codebase = JavaScriptCodebase.from_texts(TWINS)
    repo = replace(REPO, language="javascript")
    text = write_statement(codebase, deletion, repo, []).text
    assert "`index.d.ts`:\n\n```\nexport function make(size?: number): string\n```" in text
    hidden = write_statement(codebase, deletion, repo, [], Visibility.BEHAVIOUR).text
    assert "`index.d.ts`" in hidden
    assert "size?" not in hidden


@pytest.mark.parametrize(
    ("head", "removed", "told"),
    [
        ("", "index.cut", ["`cut`", "(in the function that `index.js` exports)", "- `index.js::use`: "]),
        (" index", "index.cut", ["`index.cut`", "(in `index`)", "- `index.js::index.use`: "]),
        ("", "index", ["the function that `index.js` exports", "module.exports = function (text)"]),
        (" index", "index", ["`index`", "module.exports = function index(text)"]),
    ],
)
def test_exported_functions_without_a_name_are_called_by_their_file(head: str, removed: str, told: list[str]) -> None:
    inner = "  function cut(a) {\n    return a;\n  }\n  function use(a) {\n    return cut(a);\n  }\n"
    source = f"module.exports = function{head}(text) {{\n{inner}  return use(text);\n}};\n"
    codebase = JavaScriptCodebase.from_texts({"index.js": source})
    name, repo = f"index.js::{removed}", replace(REPO, language="javascript")
    feature = Feature(feature_id="f", kind=FeatureKind.FUNCTION, tier=1, entry=(name,), symbols=(name,), tests=("t",))
    text = write_statement(codebase, get("stub", "javascript").delete(codebase, feature), repo, ("t",)).text
    assert all(each in text for each in told), text
