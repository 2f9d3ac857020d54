"""What a function without a result always does has to be noticed."""

from __future__ import annotations

import pytest

from excise.deleters.go.parts import PARTS as GO
from excise.deleters.java.parts import PARTS as JAVA
from excise.deleters.javascript.parts import PARTS as JAVASCRIPT
from excise.deleters.rust.parts import PARTS as RUST
from excise.deleters.syntax_parts import syntax_parts
from excise.extractors.go.analysis.codebase import GoCodebase
from excise.extractors.java.analysis.codebase import JavaCodebase
from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.extractors.rust.analysis.codebase import RustCodebase

LANGUAGES = {
    "m.go": (GoCodebase, GO), "A.java": (JavaCodebase, JAVA), "m.js": (JavaScriptCodebase, JAVASCRIPT),
    "src/lib.rs": (RustCodebase, RUST),
}  # fmt: skip
GO_PURGE = (
    "package a\n\nfunc (c *Cache) Purge() {\n\tc.mu.Lock()\n\tdefer c.mu.Unlock()\n"
    "\tif c.seen != nil {\n\t\tc.tell()\n\t}\n%s}\n"
)


@pytest.mark.parametrize(
    ("path", "code", "essential"),
    [
        ("m.go", GO_PURGE % "\tc.init()\n", {"line 9"}),
        ("m.go", GO_PURGE % "\tc.init()\n\tc.size = 0\n", set()),
        ("m.go", "package a\n\nfunc (c *Cache) Purge() int {\n\tc.init()\n\treturn 1\n}\n", set()),
        ("A.java", "class A {\n    void clear() {\n        items.clear();\n    }\n}\n", {"line 3"}),
        ("A.java", "class A {\n    int clear() {\n        items.clear();\n        return 1;\n    }\n}\n", set()),
        ("m.js", "export function clear(a) {\n  a.reset()\n}\n", {"line 2"}),
        ("m.js", "export function clear(a) {\n  a.reset()\n  return a\n}\n", set()),
        ("m.js", "export function clear(a) {\n  a.reset()\n  a.stop()\n}\n", set()),
        ("src/lib.rs", "pub fn clear(a: &mut A) {\n    a.reset();\n}\n", {"line 2"}),
        ("src/lib.rs", "pub fn clear(a: &mut A) -> u8 {\n    a.reset();\n    1\n}\n", set()),
    ],
)
def test_the_only_effect_of_a_function_without_a_result_is_essential(path: str, code: str, essential: set[str]) -> None:
    codebase, grammar = LANGUAGES[path]
    found = syntax_parts(codebase.from_texts({path: code}), {path: frozenset(range(1, 99))}, grammar)
    assert {part.what for part in found if part.is_essential} == essential
