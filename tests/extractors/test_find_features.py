"""Features from coverage: proposals, reasons for passing symbols over, determinism."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from excise.extractors.features.find_features import FoundFeatures, find_features
from excise.extractors.features.search_index import MIN_LOC, FeatureLimits, build_index
from excise.extractors.go.analysis.codebase import GoCodebase
from excise.extractors.java.analysis.codebase import JavaCodebase
from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.protocols import CodePath
from excise.types import CoverageMap, Feature, FeatureKind, Symbol

BODY = "    first = 1\n    second = 2\n    return first + second\n"


def function(name: str, *calls: str) -> str:
    used = "".join(f"    {call}()\n" for call in calls)
    return f"def {name}():\n{used}{BODY}\n\n"


def method(name: str) -> str:
    return "".join(f"    {line}\n" for line in function(name).replace("()", "(self)", 1).strip().splitlines())


def find(
    texts: Mapping[str, str],
    hits: Mapping[str, str],
    *,
    tests: int = 20,
    at_import: tuple[str, ...] = (),
    untrusted: tuple[str, ...] = (),
    share: float = 0.5,
    seed: int = 0,
    min_loc: int = MIN_LOC,
    path: Callable[[Symbol], CodePath | None] = lambda _: None,
) -> FoundFeatures:
    """``hits`` are symbol ids to the tests that execute them, as numbers; tests are spread over two files."""
    names = tuple(f"tests/test_{'ab'[n % 2]}.py::test_{n}" for n in range(tests))
    coverage = CoverageMap(
        env_id="env",
        tests=names,
        by_symbol={symbol: tuple(map(int, numbers.split())) for symbol, numbers in hits.items()},
        at_import=at_import,
    )
    trusted = frozenset(name for name in names if name.rpartition("_")[2] not in untrusted)
    languages: dict[str, Any] = {"py": PythonCodebase, "java": JavaCodebase}
    codebase = languages[next(iter(texts), "m.py").rpartition(".")[2]].from_texts(texts)
    limits = FeatureLimits(max_f2p_share=share, min_loc=min_loc)
    return find_features(codebase, coverage, trusted, tree="tree", limits=limits, seed=seed, path=path)


def named(found: FoundFeatures) -> dict[str, Feature]:
    return {
        " ".join([feature.kind, *(s.rpartition("::")[2] or s for s in feature.entry)]): feature
        for feature in found.features
    }


def test_functions_methods_classes_and_modules_are_features() -> None:
    texts = {"m.py": function("alone"), "n.py": "class Box:\n" + method("open") + "\n" + method("close")}
    hits = {
        "m.py": "0",
        "m.py::alone": "0",
        "n.py": "2 4",
        "n.py::Box": "2 4",
        "n.py::Box.open": "2",
        "n.py::Box.close": "4",
    }
    found = find(texts, hits)
    assert {"function alone", "method Box.open", "method Box.close", "class Box", "module m.py", "module n.py"} <= set(
        named(found)
    )
    box = named(found)["class Box"]
    assert box.symbols == ("n.py::Box",)
    assert box.tests == ("tests/test_a.py::test_2", "tests/test_a.py::test_4")
    assert (box.tier, named(found)["function alone"].tier, named(found)["module m.py"].tier) == (2, 1, 4)
    assert found.num_symbols == 4
    assert found.num_covered == 4


def test_paths_through_described_functions_are_a_sixth_as_many_features() -> None:
    described = [f"told{number}" for number in range(12)]
    texts = {"m.py": "".join(function(name).replace("():\n", '():\n    """Told."""\n') for name in described)}
    texts["m.py"] += function("silent") + function("once").replace("():\n", '():\n    """Told."""\n')
    hits = {f"m.py::{name}": f"{number} {number + 1}" for number, name in enumerate([*described, "silent"])}
    hits["m.py::once"] = "19"
    found = find(texts, hits, path=lambda symbol: CodePath("wide", f"less of {symbol.name}", 5))
    paths = [feature for feature in found.features if feature.changed]
    whole = [feature for feature in found.features if not feature.changed]
    assert len(paths) == -(-len(whole) // 6)
    assert {feature.entry[0].rpartition("::")[2] for feature in paths} <= set(described)
    first = paths[0]
    assert (first.name.partition(": ")[2], first.loc, len(first.tests)) == ("wide", 5, 2)
    assert first.changed[0][1] == f"less of {first.changed[0][0].rpartition('::')[2]}"
    kinds = {feature.kind for feature in whole}
    assert found.features[len(kinds)].changed, "a path comes after one feature of each kind"


def test_private_helpers_belong_to_the_feature() -> None:
    texts = {
        "m.py": function("_helper")
        + function("_shared")
        + function("entry", "_helper", "_shared")
        + function("other", "_shared")
    }
    hits = {"m.py::_helper": "0 2", "m.py::_shared": "0 2 4", "m.py::entry": "0 2", "m.py::other": "4"}
    found = named(find(texts, hits))
    assert found["function entry"].symbols == ("m.py::_helper", "m.py::entry")
    assert found["function entry"].loc == 3 + 3 + 2 + 2
    assert found["function other"].symbols == ("m.py::other",)


def test_helpers_in_other_files_make_it_cross_file() -> None:
    texts = {"m.py": "from n import _helper\n\n\n" + function("entry", "_helper"), "n.py": function("_helper")}
    hits = {"m.py::entry": "0", "n.py::_helper": "0"}
    feature = named(find(texts, hits))["cross_file entry"]
    assert feature.symbols == ("m.py::entry", "n.py::_helper")
    assert feature.tier == 4


def test_symbols_of_one_group_of_tests_are_one_feature_if_they_are_related() -> None:
    for prefix, user, are_related in (("", "", False), ("read_", "", True), ("", "main", True)):
        names = [f"{prefix}one", f"{prefix}two"]
        texts = {"m.py": "".join(map(function, [*names, "wide"])) + function("main", *(names if user else ()))}
        hits = {f"m.py::{names[0]}": "0", f"m.py::{names[1]}": "2", "m.py::wide": "0 1"}
        together = [f.tests for f in find(texts, hits).features if len(f.symbols) > 1]
        assert together == [("tests/test_a.py::test_0", "tests/test_a.py::test_2")] * are_related


@pytest.mark.parametrize(("hits", "is_part"), [("0 2", True), ("0 2 4", False)])
def test_most_of_a_group_with_the_same_tests_is_no_feature(hits: str, is_part: bool) -> None:
    part = ("m.py::inner", "m.py::outer", "m.py::upper")
    texts = {
        "m.py": function("inner") + function("outer", "inner") + function("upper", "inner") + function("inner_two")
    }
    found = find(texts, {**dict(zip(part, ("0 2", "0", "2"), strict=True)), "m.py::inner_two": hits})
    groups = [feature.symbols for feature in found.features if feature.kind is FeatureKind.MULTI]
    assert any({*part} < {*group} for group in groups)
    assert (part not in groups) is is_part


def test_a_word_of_many_files_relates_nothing() -> None:
    hits = {"a.py::check_one": "0", "b.py::check_two": "2"}
    for num_files, are_related in ((6, True), (12, False)):
        texts = {"a.py": function("check_one"), "b.py": function("check_two")}
        texts |= {f"m{number}.py": function(f"check_{number}") for number in range(num_files)}
        together = [f for f in find(texts, hits).features if len(f.symbols) > 1 and f.kind is not FeatureKind.MODULE]
        assert bool(together) is are_related


def test_many_that_tests_alone_relate_are_a_feature_if_they_are_most_of_a_file() -> None:
    names = ["add", "clear", "join", "pick", "swap"]
    hits = {f"m.py::{name}": "0 2" for name in names}
    for others, are_most in ((["wide", "zip"], True), (["wide", "zip", "yank"], False)):
        texts = {"m.py": "".join(map(function, [*names, *others]))}
        found = find(texts, {**hits, **{f"m.py::{other}": "0 1 3" for other in others}})
        assert (tuple(hits) in {feature.symbols for feature in found.features}) is are_most


def test_a_function_and_its_callees_are_one_feature() -> None:
    texts = {"m.py": function("outer", "inner"), "n.py": ""}
    texts["m.py"] += function("inner")
    hits = {"m.py::outer": "0 1", "m.py::inner": "0 1"}
    assert named(find(texts, hits))["multi inner outer"].symbols == ("m.py::inner", "m.py::outer")


def test_what_cannot_work_without_a_definition_goes_with_it() -> None:
    texts = {
        "m.py": function("inner")
        + function("outer", "inner")
        + function("wide", "inner")
        + function("wrapper", "inner"),
        "n.py": "from m import inner\n\n\nclass Box:\n    def __init__(self):\n        inner()\n",
    }
    hits = {
        "m.py::inner": "0 1 2",
        "m.py::outer": "1",
        "m.py::wide": "2 3",
        "n.py::Box": "0",
        "n.py::Box.__init__": "0",
    }
    found = named(find(texts, hits))
    outside = ("m.py::outer", "m.py::wrapper", "n.py::Box")
    assert found["function inner"].needed_by == outside, "a part of wide works without it"
    assert found["cross_file inner outer wrapper Box"].symbols == ("m.py::inner", *outside)
    assert found["cross_file inner outer wrapper Box"].needed_by == ()
    assert found["function outer"].needed_by == ()


@pytest.mark.parametrize(("hits", "is_whole"), [("2", True), ("", False)], ids=["covered", "not covered"])
def test_overloads_go_all_or_one_by_one(hits: str, is_whole: bool) -> None:
    body = "    byte[] first = new byte[4];\n    first[0] = 1;\n    first[1] = 2;\n"
    text = "public class C {\n" + "".join(
        f"  public static byte[] cut({kind} data) {{\n{body}    return {value};\n  }}\n\n"
        for kind, value in (("byte[]", "first"), ("String", "cut(data.getBytes())"), ("int", "first"))
    )
    codebase = JavaCodebase.from_texts({"C.java": text + "}\n"})
    array, string, number = (each.symbol_id for each in codebase.symbols().values() if each.is_callable)
    covered = {array: "0 1", string: "1", **({number: hits} if hits else {})}
    found = find({"C.java": text + "}\n"}, covered)
    contents = {frozenset({*each.symbols, *each.needed_by}) for each in found.features}
    assert (frozenset({array, string}) in contents) is not is_whole
    assert (frozenset({array, string, number}) in contents) is is_whole


def test_reasons_for_passing_over() -> None:
    texts = {
        "m.py": function("fine") + function("never") + function("early") + function("central") + function("_fine_part")
        + "def fine_small():\n    return 1\n\n\ndef huge():\n" + "    x = 1\n" * 801
        + "\n\nclass C:\n" + method("__call__"),
        "broken.py": function("inside") + "def (:\n",
        "pkg/_vendor/other.py": function("copied"),
        "tests/test_a.py": function("test_0"),
    }  # fmt: skip
    covered = ("fine", "early", "central", "_fine_part", "fine_small", "huge", "C", "C.__call__")
    hits = {f"m.py::{name}": "0" for name in covered}
    hits |= {"pkg/_vendor/other.py::copied": "0", "m.py::central": " ".join(map(str, range(11)))}
    hits |= {"broken.py::inside": "0", "tests/test_a.py::test_0": "0"}
    found = find(texts, hits, at_import=("m.py::early",))
    assert found.not_proposed == {
        "not_covered": 1, "runs_at_import": 1, "syntax_error": 1, "too_central": 1, "too_large": 1, "vendored": 1,
    }  # fmt: skip
    alone = {feature.entry for feature in found.features if len(feature.symbols) == 1}
    assert alone == {("m.py::fine",), ("m.py::C",)}, "small, private and special definitions are parts of features only"


def test_each_symbol_is_in_a_feature_or_has_a_reason() -> None:
    texts = {"m.py": function("_lonely") + function("fine") + "class Box:\n" + method("open")}
    hits = {"m.py::_lonely": "0", "m.py::fine": "3", "m.py::Box": "5", "m.py::Box.open": "5"}
    found = find(texts, hits)
    reports = {report.symbol: report for report in found.symbols}
    ids = {feature.feature_id for feature in found.features}
    assert reports["m.py::_lonely"].reason == "private"
    assert all(set(report.features) <= ids and bool(report.features) != bool(report.reason) for report in found.symbols)
    assert {len(named(found)[name].symbols) for name in ("class Box", "function fine")} == {1}
    assert set(reports["m.py::Box.open"].features) >= {named(found)["class Box"].feature_id}


def test_untrusted_tests_are_ignored() -> None:
    texts = {"m.py": function("shaky") + function("fine")}
    found = find(texts, {"m.py::shaky": "0", "m.py::fine": "0 2"}, untrusted=("0",))
    assert named(found)["function fine"].tests == ("tests/test_a.py::test_2",)
    assert found.not_proposed == {"not_covered": 1}
    assert found.num_covered == 1


def test_a_feature_that_all_tests_need_is_none() -> None:
    texts = {"m.py": function("core")}
    assert find(texts, {"m.py::core": "0 1"}, tests=2, share=1.0).features == ()
    assert find(texts, {"m.py::core": "0"}, tests=2, share=1.0).features != ()


def test_no_tests_and_no_code_are_no_problem() -> None:
    for texts, hits in (({}, {}), ({"m.py": ""}, {}), ({"m.py": function("f")}, {})):
        assert find(texts, hits, tests=0).features == ()


def test_the_order_mixes_kinds_and_depends_on_the_seed_alone() -> None:
    texts = {"m.py": "".join(function(f"f{n}") for n in range(12)), "n.py": "class Box:\n" + method("open")}
    hits = {f"m.py::f{n}": str(n) for n in range(12)} | {"n.py::Box": "13", "n.py::Box.open": "13"}
    first, again, other = (find(texts, hits, seed=seed).features for seed in (1, 1, 2))
    assert first == again
    assert [f.feature_id for f in first] != [f.feature_id for f in other]
    assert {f.feature_id for f in first} == {f.feature_id for f in other}
    kinds = [feature.kind for feature in first]
    assert len(set(kinds[:3])) == 3, "the rarer kinds come early"
    assert len({f.feature_id for f in first}) == len(first)
    assert all(feature.kind in FeatureKind for feature in first)


def test_programs_beside_the_project_come_last() -> None:
    texts = {path: function(name) for path, name in (("tools/a.py", "a"), ("kit/tools/b.py", "b"), ("tools.py", "c"))}
    hits = {f"{path}::{text[4]}": f"{number} {number + 1}" for number, (path, text) in enumerate(texts.items())}
    for seed in range(5):
        order = [feature.symbols[0].partition("::")[0] for feature in find(texts, hits, seed=seed).features]
        assert order[-1] == "tools/a.py"
        assert set(order) == set(texts)


def test_copies_are_a_feature_only_together() -> None:
    body = "".join(f"    total_{number} = sum(range({number}, {number} + 10))\n" for number in range(4))
    texts = {
        "m.py": f"def one():\n{body}\n\ndef fine():\n{body.replace('sum', 'max')}",
        "n.py": f"class C:\n    def other(self):\n{body.replace('    ', '        ')}",
    }
    hits = {"m.py": "0 2", "m.py::one": "0", "m.py::fine": "2", "n.py": "3", "n.py::C": "3", "n.py::C.other": "3"}
    found = find(texts, hits)
    assert found.not_proposed == {"has_twin": 3}
    assert list(named(found)) == ["function fine"]
    together = named(find(texts, hits | dict.fromkeys(("n.py", "n.py::C", "n.py::C.other"), "4")))
    assert together["cross_file one C"].symbols == ("m.py::one", "n.py::C")


def test_small_functions_are_features_if_requested() -> None:
    texts = {"m.py": "def tiny():\n    return 1\n\n\n" + function("alone")}
    hits = {"m.py::tiny": "0", "m.py::alone": "1"}
    assert "function tiny" not in named(find(texts, hits))
    assert find(texts, hits).not_proposed["too_small"] == 1
    assert named(find(texts, hits, min_loc=1))["function tiny"].loc == 2


SIBLING = """\
  let step = Math.ceil((1.6 * mask * defaultSize) / alphabet.length)
  return (size = defaultSize) => {
    let id = ''
    while (true) {
      let bytes = getRandom(step)
      // A compact alternative for `for (let i = 0; i < step; i++)`.
      let i = step
      while (i--) {
        id += alphabet[bytes[i] & mask] || ''
        if (id.length >= size) return id
      }
    }
  }
"""
COPY = (
    SIBLING.replace("let i = step", "var j = step")
    .replace("i--", "j--")
    .replace("[i]", "[j]")
    .replace("alternative", "other way")
)


@pytest.mark.parametrize(
    ("path", "one", "other", "is_copy"),
    [
        ("js", f"exports.f = (alphabet, mask, defaultSize, getRandom) => {{\n{SIBLING}}}\n",
         f"exports.g = function g (alphabet, mask, defaultSize, getRandom) {{\n{COPY}}}\n", True),
        ("js", f"exports.f = (alphabet, mask, defaultSize, getRandom) => {{\n{SIBLING}}}\n",
         f"exports.g = (alphabet, mask, defaultSize, getRandom) => {{\n{COPY.replace('1.6', '1.7')}}}\n", False),
        ("js", f"exports.f = (alphabet, mask, defaultSize, getRandom) => {{\n{SIBLING}}}\n",
         f"exports.g = (mask, alphabet, defaultSize, getRandom) => {{\n{COPY}}}\n", False),
        ("py", "def f(rows, limit):\n    total = 0\n    for row in rows:  # all\n        total += row.size * limit\n"
         "    return [each for each in rows if each.size > total / len(rows)]\n",
         "def g(items, most):\n    found = 0\n    for item in items:\n        found += item.size * most\n"
         "    return [x for x in items if x.size > found / len(items)]\n", True),
        ("py", "def f(rows, limit):\n    total = 0\n    for row in rows:\n        total += row.size * limit\n"
         "    return [each for each in rows if each.size > total / len(rows)]\n",
         "def g(rows, limit):\n    total = 0\n    for row in rows:\n        total += row.width * limit\n"
         "    return [each for each in rows if each.size > total / len(rows)]\n", False),
        ("go", "package p\n\nfunc F(rows []int, n int) int {\n\ttotal := 0\n\tfor i, row := range rows {\n"
         "\t\ttotal += row * n * i\n\t}\n\treturn total + len(rows) + cap(rows)\n}\n",
         "package p\n\nfunc G(all []int, m int) int {\n\tsum := 0\n\tfor k, v := range all {\n"
         "\t\tsum += v * m * k\n\t}\n\treturn sum + len(all) + cap(all)\n}\n", True),
        ("java", "class A {\n  int f(int[] rows, int n) {\n    int total = 0;\n    for (int row : rows) {\n"
         "      total += row * n;\n    }\n    return total + rows.length + rows.hashCode();\n  }\n}\n",
         "class B {\n  int g(int[] all, int m) {\n    int sum = 0;\n    for (int each : all) {\n"
         "      sum += each * m;\n    }\n    return sum + all.length + all.hashCode();\n  }\n}\n", True),
    ],
    ids=["javascript", "number", "parameters", "python", "member", "go", "java"],
)  # fmt: skip
def test_bodies_with_other_local_names_are_copies(path: str, one: str, other: str, is_copy: bool) -> None:
    kinds: dict[str, Any] = {
        "js": JavaScriptCodebase, "py": PythonCodebase, "go": GoCodebase, "java": JavaCodebase,
    }  # fmt: skip
    codebase = kinds[path].from_texts({f"a.{path}": one, f"b.{path}": other})
    coverage = CoverageMap(env_id="env", tests=(), by_symbol={}, at_import=())
    index = build_index(codebase, coverage, frozenset(), FeatureLimits(max_f2p_share=1))
    functions = [symbol for symbol in codebase.symbols().values() if symbol.is_callable]
    assert len(functions) == 2
    assert {index.has_copy_outside(symbol) for symbol in functions} == {is_copy}
