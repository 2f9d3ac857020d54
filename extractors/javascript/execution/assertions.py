"""The assertions of a test: which of their operands is found, which expected, and how the two are compared.

Known are node's ``assert``, that of chai, the methods of tests of tape and tap, and chains of ``expect`` (jest, vitest,
chai, expect.js). Only those are divided that one certain value satisfies, or one of several that have equal texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

from excise.extractors.divided_tests import Undividable
from excise.extractors.javascript.analysis.bindings import Binding, Bindings
from excise.extractors.javascript.analysis.grammar import FUNCTIONS, children, required, string_value, text, unwrapped

ERRORS = frozenset(
    {"AggregateError", "EvalError", "RangeError", "ReferenceError", "SyntaxError", "TypeError", "URIError"}
)
"""Classes of errors that no other class of the language extends."""
HARMLESS = frozenset(
    {"end", "plan", "pass", "fail", "comment", "teardown", "test", "timeoutAfter", "diagnostic", "name", "beforeEach",
     "afterEach", "before", "after", "mock", "setTimeout", "assert", "describe", "it"}
)  # fmt: skip
"""Members of tests that compare nothing."""
_NODE = re.compile(r"(?:node:)?assert(/strict)?|power-assert")
_ASSERTING = re.compile(r"(?:node:)?assert(?:/strict)?|power-assert|chai|should|expect(?:\.js)?")
_MAKING = frozenset({"only", "skip", "todo", "createHarness", "getHarness", "onFinish", "onFailure", "run", "default",
                     "createStream", "t", "Test", "tearDown", "autoend", "bailout", "pipe", "spawn"})  # fmt: skip
"""Members of the modules of tape and tap that make tests."""
_NODE_LOOSE = {"equal": "loose", "deepEqual": "loosely"}
_NODE_STRICT = {"equal": "strict", "deepEqual": "deep", "strictEqual": "strict", "deepStrictEqual": "deep"}
_CHAI = {
    "equal": "loose", "strictEqual": "strict", "deepEqual": "listed", "deepStrictEqual": "listed", "lengthOf": "size",
}  # fmt: skip
_TAPE = {
    **dict.fromkeys(("equal", "equals", "isEqual", "is", "strictEqual", "strictEquals"), "strict"),
    **dict.fromkeys(("deepEqual", "deepEquals", "isEquivalent", "same"), "deep"),
    **dict.fromkeys(("looseEqual", "looseEquals"), "loose"),
    **dict.fromkeys(("deepLooseEqual", "looseDeepEqual"), "loosely"),
}
_TAP = {
    **dict.fromkeys(("equal", "equals", "isEqual", "is", "strictEqual", "strictEquals"), "strict"),
    **dict.fromkeys(("strictSame", "strictDeepEqual", "isDeeply", "strictEquivalent"), "deep"),
    **dict.fromkeys(
        ("same", "deepEqual", "deepEquals", "equivalent", "looseEqual", "looseEquals", "isLoose"), "loosely"
    ),
}
_TRUTHS = frozenset({"ok", "true", "assert", "isOk"})
_FALSEHOODS = frozenset({"notOk", "notok", "false", "isNotOk"})
_NO_ERRORS = frozenset({"error", "ifError", "ifErr", "iferror"})
_CONSTANTS = {
    "isTrue": "%s", "isFalse": "%s", "isNull": "%s", "isUndefined": "%s", "isNaN": "%s", "isNotNull": "(%s) === null",
    "isDefined": "(%s) === undefined", "exists": "(%s) == null", "isNotTrue": "(%s) === true",
}  # fmt: skip
"""Methods of chai's ``assert`` with one operand, to what is reported of it."""
_UNEQUAL = frozenset({"notEqual", "notStrictEqual", "notDeepEqual", "notDeepStrictEqual", "not", "isNot", "notSame"})
_NOTHINGS = frozenset({"null", "undefined"})
_FILLERS = frozenset(
    {"to", "be", "been", "is", "that", "which", "has", "have", "with", "at", "of", "but", "does", "still", "also",
     "not", "deep", "resolves", "rejects", "eventually"}
)  # fmt: skip
_MATCHERS = {
    **dict.fromkeys(("toBe", "equal", "equals", "eq"), "strict"),
    **dict.fromkeys(("toEqual", "toStrictEqual"), "alike"),
    **dict.fromkeys(("eql", "eqls"), "listed"),
    **dict.fromkeys(("toHaveLength", "lengthOf", "length"), "size"),
}
_PLAIN = {
    "toBeNull": "null", "toBeUndefined": "undefined", "toBeTruthy": "", "toBeFalsy": "", "toBeNaN": "%s",
    "true": "true", "false": "false", "null": "null", "undefined": "undefined", "NaN": "%s", "ok": "",
}  # fmt: skip
"""Matchers without an expected value, to the constant that they ask for; empty for those of truth."""
_COUNTING = re.compile(r"expect\.(?:assertions|hasAssertions)")
_THROWS = frozenset({"toThrow", "toThrowError", "throw", "throws", "Throw", "throwError"})


@dataclass(frozen=True, slots=True)
class Part:
    """One value that a check reports."""

    found: Node
    """The operand that comes from the code, or the function that it calls."""
    mode: str
    """How its text is made: a member of ``MODES`` of ``excise_reported_values.cjs``; empty for what is only done."""
    expected: Node | None = None
    """The other operand."""
    form: str = "%s"
    """What is reported, with the operand in it."""
    call: str = ""
    """Another method of the reporter: ``throws``, ``rejects`` or ``resolves``."""
    keys: tuple[str, ...] = ()
    """Members of an error that are compared."""
    pattern: Node | None = None
    """The regular expression or text that what is found must match, or hold: it goes, and is asked for elsewhere."""


@dataclass(frozen=True, slots=True)
class Check:
    """One assertion."""

    node: Node
    """The whole expression."""
    parts: tuple[Part, ...]
    """What it reports, in this order; none for one that goes without anything in its place."""
    counted_by: str = ""
    """The assertion of a test, such as ``t.ok``, that takes its place in the number of its assertions."""
    dropped: tuple[Node, ...] = field(default=(), compare=False)
    """Operands that go, beside what is expected."""


class Assertions:
    """Recognises the assertions of one file."""

    def __init__(self, bindings: Bindings, kind: str, is_context: Callable[[Binding], bool]) -> None:
        self.bindings, self.source, self.kind, self._is_context = bindings, bindings.source, kind, is_context
        self._is_expect_js = any(each.module == "expect.js" for each in bindings.every())

    def check_of(self, node: Node) -> Check | None:
        """The assertion that a node is, if any. Raises :class:`Undividable` for one that cannot be divided."""
        if node.type == "member_expression" and text(node.named_children[-1], self.source) == "should":
            raise Undividable("assertion of another kind")
        function = node.child_by_field_name("function") if node.type == "call_expression" else None
        if function is None:
            return None
        if self._is_expect(function):
            return self._chain(node)
        if _COUNTING.fullmatch(text(function, self.source)):
            return Check(node, ())
        found = self._assertion(function)
        return self._method(node, *found) if found is not None and found[1] != "fail" else None

    # ------------------------------------------------------------------------------------------- methods
    def _is_expect(self, function: Node) -> bool:
        """Whether a called function is ``expect``, under whatever name."""
        root, words = self._chained(function)
        binding = self.bindings.of(root)
        if words:
            return binding is not None and binding.module == "chai" and words == ["expect"]
        is_named = text(root, self.source) == "expect" and (binding is None or binding.kind != "function")
        return is_named or (binding is not None and bool(binding.module) and binding.imported[-1:] == ("expect",))

    def _chained(self, node: Node) -> tuple[Node, list[str]]:
        """The first node of a chain of members, and the names behind it; an empty one for what is computed."""
        words = list[str]()
        while node.type in {"member_expression", "subscript_expression"}:
            inner, last = node.child_by_field_name("object"), node.child_by_field_name("property")
            if inner is None:
                break
            index = node.child_by_field_name("index")
            words.insert(0, text(last, self.source) if last is not None else string_value(index, self.source) or "")
            node = unwrapped(inner)
        return node, words

    def _assertion(self, function: Node) -> tuple[str, str, str] | None:
        """(flavour, method, what counts it) of a called function, if it asserts."""
        node, words = self._chained(function)
        binding = self.bindings.of(node) if node.type == "identifier" else None
        is_module = _ASSERTING.fullmatch(required(node, self.source) or "")
        if is_module or (binding is None and text(node, self.source) in {"assert", "chai"}):
            raise Undividable("assertion of another kind")
        for _ in range(3):  # const { equal } = assert
            source = binding.source if binding is not None and binding.kind == "variable" else None
            if binding is None or binding.module or source is None:
                break
            inner, before = self._chained(unwrapped(source.node))
            following = self.bindings.of(inner) if inner.type == "identifier" else None
            if following is None:
                break
            node, binding, words = inner, following, [*before, *map(str, source.path), *words]
        if binding is None:
            return None
        path = binding.source.path if binding.kind == "parameter" and binding.source is not None else ()
        if self._is_context(binding):
            return self._of_test(text(node, self.source), [*map(str, path), *words], is_whole=not path)
        members = [*binding.imported, *words]
        if found := _NODE.fullmatch(binding.module):
            is_strict = found[1] is not None or "strict" in members[:-1]
            method = members[-1] if members and members[-1] not in {"strict", "default"} else "ok"
            return ("strict" if is_strict else "node"), method, ""
        if binding.module in {"chai", "vitest"} and members[:1] == ["assert"]:
            return "chai", members[1] if len(members) > 1 else "ok", ""
        if binding.module in {"tape", "tap"} and members and members[0] not in HARMLESS | _MAKING:
            raise Undividable("assertion of another kind")
        if {"assert", "should", "must"} & {*members, text(node, self.source)}:
            raise Undividable("assertion of another kind")
        return None

    def _of_test(self, name: str, words: list[str], *, is_whole: bool) -> tuple[str, str, str] | None:
        """The same of a member of a test; ``is_whole``: whether its function gets the test itself by this name."""
        if not words or (words[0] in HARMLESS and words[0] != "assert"):
            return None
        if self.kind == "node" and (words[0] != "assert" or len(words) != 2):
            return None
        if not is_whole or not all(words):
            raise Undividable("assertion under another name")
        flavour, method = ("strict", "assert.ok") if self.kind == "node" else (self.kind, "ok")
        return flavour, words[-1], f"{name}.{method}"

    def _method(self, node: Node, flavour: str, method: str, counted_by: str) -> Check:
        arguments = node.child_by_field_name("arguments")
        given = children(arguments) if arguments is not None else []
        modes = {"node": {**_NODE_STRICT, **_NODE_LOOSE}, "strict": _NODE_STRICT, "chai": _CHAI, "tape": _TAPE}
        mode = modes.get(flavour, _TAP).get(method, "")
        if any(each.type == "spread_element" for each in given):
            raise Undividable("assertion with a list of arguments")
        if not given:
            raise Undividable("assertion of another kind")
        if mode and len(given) > 1:
            parts = self._equal(given[0], given[1], mode)
        elif method in _TRUTHS | _FALSEHOODS:
            parts = tuple(self._truth(given[0]))
        elif method in _NO_ERRORS:
            parts = (Part(given[0], "truth"),)
        elif method in _UNEQUAL and len(given) > 1 and text(given[1], self.source) in _NOTHINGS:
            parts = (Part(given[0], "truth", form=f"(%s) === {text(given[1], self.source)}"),)
        elif flavour == "chai" and method in _CONSTANTS:
            parts = (Part(given[0], "strict", form=_CONSTANTS[method]),)
        elif method in {"match", "matches"} and len(given) > 1 and given[1].type == "regex":
            parts = (Part(given[0], "matched", pattern=given[1]),)
        elif method in {"throws", "rejects"}:
            parts = (self._thrown(given[0], given[1:2], flavour, "rejects" if method == "rejects" else "throws"),)
        elif method in {"doesNotThrow", "doesNotReject"}:
            parts = (Part(given[0], "", call="rejects" if method == "doesNotReject" else "throws"),)
        else:
            raise Undividable("inequality" if method in _UNEQUAL else "assertion of another kind")
        return Check(node, parts, counted_by, tuple(given))

    def _equal(self, found: Node, expected: Node, mode: str) -> tuple[Part, ...]:
        return (Part(found, mode, expected),)

    def _truth(self, node: Node) -> Iterator[Part]:
        """What is reported of a value that is asked for its truth; a comparison within it is divided itself."""
        node = unwrapped(node)
        operator = node.child_by_field_name("operator")
        word = operator.type if operator is not None else ""
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        inner = node.child_by_field_name("argument")
        if node.type == "binary_expression" and left is not None and right is not None:
            if word == "&&":
                yield from self._truth(left)
                yield from self._truth(right)
            elif word in {"===", "=="}:
                yield from self._equal(left, right, "strict" if word == "===" else "loose")
            elif word in {"!==", "!="} and text(right, self.source) in _NOTHINGS:
                yield Part(left, "truth", form=f"(%s) {word} {text(right, self.source)}")
            else:
                raise Undividable("inequality")
        elif node.type == "unary_expression" and word == "!" and inner is not None:
            if unwrapped(inner).type == "binary_expression":
                raise Undividable("inequality")
            yield from self._truth(inner)
        else:
            yield Part(node, "truth")

    def _thrown(self, body: Node, given: Sequence[Node], flavour: str, call: str) -> Part:
        """What is reported of an error: that there is one, its class, or what is compared of it."""
        expected = unwrapped(given[0]) if given else None
        word = text(expected, self.source) if expected is not None else ""
        is_text = expected is not None and expected.type in {"string", "template_string"}
        if expected is None or (is_text and flavour not in {"chai", "expect"}):
            return Part(body, "thrown", call=call)
        if expected.type == "identifier" and self.bindings.of(expected) is None and word in ERRORS | {"Error"}:
            return Part(body, "error" if word == "Error" else "class", call=call)
        constructor = expected.child_by_field_name("constructor") if expected.type == "new_expression" else None
        made = text(constructor, self.source) if constructor is not None and not self.bindings.of(constructor) else ""
        if made in ERRORS | {"Error"} and flavour in {"node", "strict", "tape", "expect"}:
            return Part(body, "message", expected, call=call)
        if expected.type == "object" and flavour in {"node", "strict", "tape"}:
            keys = tuple(_keys(expected, self.source))
            if keys and all(re.fullmatch(r"[A-Za-z_$][\w$]*", key) for key in keys):
                return Part(body, "", expected, call=call, keys=keys)
        if (expected.type == "regex" and flavour != "tap") or (is_text and self._is_literal(expected)):
            return Part(body, "said" if flavour in {"node", "strict", "tape"} else "told", call=call, pattern=expected)
        raise Undividable("error that is compared otherwise")

    def _is_literal(self, node: Node) -> bool:
        return string_value(node, self.source) is not None

    # -------------------------------------------------------------------------------------------- chains
    def _chain(self, call: Node) -> Check:
        """The check of a chain that begins with ``expect(found)``."""
        arguments = call.child_by_field_name("arguments")
        given = children(arguments) if arguments is not None else []
        words, last, node = list[str](), list[Node](), call
        while (around := node.parent) is not None:
            if around.type == "member_expression" and around.child_by_field_name("object") == node:
                words.append(text(around.child_by_field_name("property") or around, self.source))
            elif around.type == "call_expression" and around.child_by_field_name("function") == node:
                inner = around.child_by_field_name("arguments")
                if around.parent is not None and around.parent.type == "member_expression":
                    raise Undividable("chain of several assertions")
                last = children(inner) if inner is not None else []
            else:
                break
            node = around
        if not words or not given or any(each.type == "spread_element" for each in (*given, *last)):
            raise Undividable("assertion of another kind")
        *before, matcher = words
        if not set(before) <= _FILLERS:
            raise Undividable("assertion of another kind")
        return Check(node, self._matched(given[0], matcher, last, set(before)), "", (*given, *last))

    def _matched(self, found: Node, matcher: str, given: list[Node], before: set[str]) -> tuple[Part, ...]:
        """What a matcher reports, with the words before it."""
        is_negated, is_resolved = "not" in before, bool(before & {"resolves", "eventually"})
        mode = _MATCHERS.get(matcher, "strict" if matcher == "be" and given else "")
        mode = "listed" if mode == "strict" and "deep" in before else mode
        mode = "loosely" if mode == "listed" and self._is_expect_js else mode
        part = None
        if matcher in _THROWS and not is_resolved:
            call = "rejects" if "rejects" in before else "throws"
            if len(given) > 1:
                raise Undividable("error that is compared otherwise")
            part = Part(found, "", call="throws") if is_negated else self._thrown(found, given[:1], "expect", call)
        elif "rejects" in before:
            pass
        elif matcher in {"toMatch", "match", "matches"} and given and not is_negated and self._is_pattern(given[0]):
            part = Part(found, "matched", call="resolves" if is_resolved else "", pattern=given[0])
        elif mode and given and not is_negated:
            part = Part(found, mode, given[0], call="resolves" if is_resolved else "")
        elif matcher in _PLAIN and not given and (not is_negated or not _PLAIN[matcher]):
            part = Part(found, "strict" if _PLAIN[matcher] else "truth", call="resolves" if is_resolved else "")
        elif not is_resolved and (form := self._asked(matcher, given, mode)):
            part = Part(found, "truth", form=form)
        if part is None:
            raise Undividable("inequality" if is_negated else "assertion of another kind")
        return (part,)

    def _is_pattern(self, node: Node) -> bool:
        return node.type == "regex" or self._is_literal(node)

    def _asked(self, matcher: str, given: list[Node], mode: str) -> str:
        """What a matcher asks for that names one constant, whether it is there or not; empty for another one."""
        word = text(given[0], self.source) if given else ""
        if mode in {"strict", "alike", "listed"} and word in _NOTHINGS:
            return f"(%s) === {word}"
        if given or matcher not in {"toBeDefined", "exist", "exists", *_PLAIN}:
            return ""
        constant = _PLAIN.get(matcher, "undefined")
        if matcher in {"exist", "exists"}:
            return "(%s) == null"
        return f"(%s) === {constant}" if constant not in {"", "%s"} else ""


def _keys(node: Node, source: bytes) -> Iterator[str]:
    """The keys of an object; an empty one for what is not ``key: value`` with a value that has one text."""
    for child in children(node):
        key, value = child.child_by_field_name("key"), child.child_by_field_name("value")
        is_pair = child.type == "pair" and key is not None and value is not None
        if not is_pair or value is None or key is None or value.type in {"regex", *FUNCTIONS}:
            yield ""
        else:
            yield string_value(key, source) or text(key, source)
