"""Where a value of the code meets a literal outside of checks: what is expected may hide there, and would stay."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from tree_sitter import Node

from excise.extractors.javascript.analysis.bindings import Binding
from excise.extractors.javascript.analysis.grammar import FUNCTIONS, children, descendants, required, text, unwrapped
from excise.extractors.javascript.execution.known_values import GLOBALS, MODULES, KnownValues

_TEXTS = frozenset({"string", "string_fragment", "number", "regex"})
_ARITHMETIC = frozenset({"+", "-", "*", "/", "%", "**", "^", "&", "|", "<<", ">>", ">>>"})
_BUILT_IN = MODULES | {"fs", "fs/promises", "http", "https", "net", "stream", "stream/promises", "events", "zlib",
                       "child_process", "readline", "timers", "timers/promises", "worker_threads", "vm", "async_hooks",
                       "perf_hooks", "crypto", "process", "tty", "dns", "test"}  # fmt: skip
_OF_NODE = frozenset({"process", "__dirname", "__filename", "console", "require", "module", "exports", "globalThis"})
_COMPARING = re.compile(
    r"(?:is|are|assert|deep|shallow|fast|strict|loose|not|node|called)*"
    r"(?:eqls?|equals?|equality|equivalent|same|identical|eq|cmp|compare|diff)(?:deep|with|to)?",
    re.IGNORECASE,
)
"""Names of functions that compare."""
_SPIES = re.compile(r"(?:always|never|once)?called(?:once)?with\w*|withargs|calledon", re.IGNORECASE)
_CUTTING = frozenset({"replace", "replaceAll", "split"})
_SEPARATORS = re.compile(r"[\"'`/](?:\\[rnts]|[\s+*?,.;:|\[\]^$-])*[\"'`/][a-z]*")
"""Texts and patterns that say nothing."""
_PLAIN = re.compile(
    r"JSON\.\w+|parseInt|parseFloat|Number\.parse\w+|Buffer\.(?:from|concat)|path\.(?!relative)\w+|util\.(?:format|inspect)|"
    r"Promise\.\w+|Array\.(?:from|isArray)|Object\.(?:keys|values|entries|create|freeze)|String|Number|Boolean"
)
"""Functions of the language that compare nothing."""
_DECLARING = frozenset({"variable_declarator", "lexical_declaration", "variable_declaration"})
_STUBBING = frozenset({"stub", "spy", "replace", "useFakeTimers", "createSandbox", "fake", "restore", "mock", "method"})


class HiddenComparisons:
    """Judges the expressions of one file; ``depending``: names of the code under test."""

    def __init__(self, values: KnownValues, depending: Collection[str]) -> None:
        self.values, self.bindings, self.source, self.depending = values, values.bindings, values.source, depending
        self._of_code: dict[int, bool] = {}

    def compares(self, node: Node) -> bool:
        """Whether a node, which is not an argument of the code, brings a value of the code together with a literal."""
        if node.type == "subscript_expression":
            index, owner = node.child_by_field_name("index"), node.child_by_field_name("object")
            return owner is not None and index is not None and self.values.is_known(owner) and self.is_of_code(index)
        if node.type == "new_expression":
            constructor = node.child_by_field_name("constructor")
            is_set = constructor is not None and text(constructor, self.source) in {"Set", "Map"}
            return is_set and self._mixes([node])
        is_key = node.type == "computed_property_name" and self.is_of_code(node)
        return is_key or self._calculates(node) or (node.type == "call_expression" and self._calls(node))

    def says(self, node: Node) -> bool:
        """Whether a node shows a literal to who runs it."""
        callee = node.child_by_field_name("function") if node.type == "call_expression" else None
        word = text(callee, self.source) if callee is not None else ""
        return word.startswith(("console.", "process.stdout", "process.stderr")) and self._has_text(node)

    def _calculates(self, node: Node) -> bool:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = node.child_by_field_name("operator")
        if left is None or right is None or operator is None or operator.type not in _ARITHMETIC:
            return False
        for one, other in ((left, right), (right, left)):
            is_number = operator.type != "+" or any(each.type == "number" for each in descendants(other))
            if is_number and self.values.is_known(other) and self.is_of_code(one):
                return True
        return False

    def _calls(self, node: Node) -> bool:
        callee, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        given = children(arguments) if arguments is not None else []
        word = text(callee, self.source).rpartition(".")[2] if callee is not None else ""
        if callee is None or not given or word in self.depending or self._is_own(callee):
            return False
        owner = callee.child_by_field_name("object") if callee.type == "member_expression" else None
        if _COMPARING.fullmatch(word) or _SPIES.fullmatch(word):
            return True
        if word in _CUTTING and owner is not None and self.is_of_code(node):
            return not all(map(self._is_separator, given))
        if owner is not None and self.values.is_known(owner) and not self._is_global(owner):
            return any(each.type not in FUNCTIONS and self.is_of_code(each) for each in given)
        return not _PLAIN.fullmatch(text(callee, self.source)) and self._is_foreign(callee) and self._mixes(given)

    def _is_foreign(self, callee: Node) -> bool:
        """Whether a called function is one of the language that computes, or of another file."""
        root = callee
        while root.type == "member_expression" and (inner := root.child_by_field_name("object")) is not None:
            root = unwrapped(inner)
        binding = self.bindings.of(root) if root.type == "identifier" else None
        if binding is None:
            return root.type == "identifier" and text(root, self.source) in GLOBALS
        if binding.module.removeprefix("node:") in MODULES:
            return True
        is_stub = text(callee, self.source).rpartition(".")[2] in _STUBBING
        return bool(binding.module) and not self._is_built_in(binding.module) and not is_stub

    def _mixes(self, nodes: Sequence[Node]) -> bool:
        """Whether there are values of the code and known ones with literals in some expressions."""
        queue, has_code, has_text = list(nodes), False, False
        while queue:
            node = queue.pop()
            if node.type in FUNCTIONS:
                continue
            if self.values.is_known(node) and node.type not in {"array", "arguments"}:
                has_text = has_text or self._has_text(node)
            elif node.type in {"array", "arguments", "new_expression"}:
                queue += children(node)
            else:
                has_code = has_code or self.is_of_code(node)
        return has_code and has_text

    def _has_text(self, node: Node) -> bool:
        """Whether an expression has a literal in it, or names a variable that may have one."""
        return any(
            (each.type in _TEXTS and not _SEPARATORS.fullmatch(text(each, self.source)))
            or ((binding := self.bindings.of(each)) is not None and not binding.module)
            for each in descendants(node)
        )

    def _is_separator(self, node: Node) -> bool:
        return node.type in {"string", "regex", "number"} and _SEPARATORS.fullmatch(text(node, self.source)) is not None

    def _is_own(self, callee: Node) -> bool:
        """Whether a called function is one of the file, whose comparisons are looked for in it."""
        binding = self.bindings.of(callee) if callee.type == "identifier" else None
        if binding is None or binding.module:
            return False
        value = unwrapped(binding.source.node) if binding.source is not None else None
        return binding.kind == "function" or (value is not None and value.type in FUNCTIONS)

    def _is_global(self, owner: Node) -> bool:
        inner = unwrapped(owner)
        if inner.type == "member_expression" and (first := inner.child_by_field_name("object")) is not None:
            return self._is_global(first)
        binding = self.bindings.of(inner) if inner.type == "identifier" else None
        return inner.type == "identifier" and (binding is None or bool(binding.module))

    def _is_built_in(self, module: str) -> bool:
        return module.removeprefix("node:") in _BUILT_IN

    # ------------------------------------------------------------------------------------------ of the code
    def is_of_code(self, node: Node) -> bool:
        """Whether the value of an expression may come of the code under test."""
        if self.values.is_known(node):
            return False
        for each in descendants(node):
            module = required(each, self.source)
            if each.type in {"this", "super"} or (module and not self._is_built_in(module)):
                return True
            if each.type in {"identifier", "shorthand_property_identifier"}:
                binding = self.bindings.of(each)
                word = text(each, self.source)
                is_global = binding is None and word not in GLOBALS | _OF_NODE
                if is_global if binding is None else self._is_binding_of_code(binding):
                    return True
        return False

    def _is_binding_of_code(self, binding: Binding) -> bool:
        key = binding.node.id
        if key not in self._of_code:
            self._of_code[key] = False  # one that is found again says no more
            self._of_code[key] = self._judged(binding)
        return self._of_code[key]

    def _judged(self, binding: Binding) -> bool:
        if binding.module:
            return not self._is_built_in(binding.module)
        if self.values.is_known_binding(binding) or self._is_counter(binding):
            return False
        if binding.kind == "variable" and not binding.writes and binding.source is not None:
            return self.is_of_code(binding.source.node)
        if binding.kind == "loop" and binding.source is not None:
            return self.is_of_code(binding.source.node)
        if binding.kind == "parameter":
            rows = self.values.rows_given_to(binding.owner)
            return rows is None or self.is_of_code(rows[0])
        return binding.kind != "function" or self.is_of_code(binding.owner)

    def _is_counter(self, binding: Binding) -> bool:
        """Whether a variable is that of the head of a loop, which counts."""
        around = binding.node.parent
        while around is not None and around.type in _DECLARING:
            around = around.parent
        return around is not None and around.type == "for_statement"
