"""Functions that hold the code of a JavaScript file: what they declare is declared at module level."""

from __future__ import annotations

import pytest

from excise.extractors.javascript.analysis.parsed_file import WHOLE
from excise.extractors.javascript.analysis.parser import parse_module

FACTORY = """
  'use strict';
  var toStr = Object.prototype.toString;
  function isEmpty(value) { return !value; }
  var paths = function (object) { return object; };
  paths.has = function (object, path) { return isEmpty(object) || toStr.call(path); };
  return paths;
"""
UNIVERSAL = (
    "(function (root, factory) {\n  if (typeof module === 'object') { module.exports = factory(); }\n"
    f"  else {{ root.paths = factory(); }}\n}})(this, function () {{{FACTORY}}});\n"
)


@pytest.mark.parametrize(
    "source",
    [
        UNIVERSAL,
        f"module.exports = (function () {{{FACTORY}}})();\n",
        f"var paths = (function () {{{FACTORY}}}());\nmodule.exports = paths;\n",
        f"!function () {{{FACTORY.replace('return paths', 'module.exports = paths')}}}();\n",
        f"(() => {{{FACTORY.replace('return paths', 'module.exports = paths')}}})();\n",
        f";(function () {{{FACTORY.replace('return paths', 'module.exports = paths')}}}).call(this);\n",
    ],
)
def test_definitions_in_a_function_that_is_called_at_once_are_found(source: str) -> None:
    module = parse_module("index.js", source.encode())
    assert [s.qualname for s in module.symbols] == ["", "isEmpty", "paths", "paths.has"]
    assert (WHOLE, ("paths",)) in [(each.name, each.local) for each in module.exports]
    uses = {(each.chain[0], each.owner, each.at_load) for each in module.references}
    assert {("isEmpty", "paths.has", False), ("toStr", "paths.has", False), ("Object", "", True)} <= uses


def test_what_such_a_function_returns_is_exported() -> None:
    source = b"module.exports = (function () { function a() { return 1; } return { a: a, b: function () {} }; })();\n"
    module = parse_module("index.js", source)
    assert [s.qualname for s in module.symbols] == ["", "a", "b"]
    assert {("a", ("a",)), ("b", ("b",))} <= {(each.name, each.local) for each in module.exports}


@pytest.mark.parametrize(
    "source",
    [
        "describe('x', function () { function a() {} });\n",
        "(function () { function a() {} })();\n(function () { function a() {} })();\n",
        "function outer() { (function () { function a() {} })(); }\n",
    ],
)
def test_other_functions_keep_their_names(source: str) -> None:
    """Two of them in a file may bind one name each to something else."""
    assert "a" not in [s.qualname for s in parse_module("index.js", source.encode()).symbols]


def test_parameters_are_no_names_of_the_module() -> None:
    module = parse_module("index.js", b"(function (window) { function a() { return window; } })(this);\n")
    assert "window" not in {each.chain[0] for each in module.references}
