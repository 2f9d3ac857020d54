"""Source files in which a removal leaves nothing: they go as a whole."""

from __future__ import annotations

import re
from collections.abc import Collection
from posixpath import dirname

from tree_sitter import Node

from excise.deleters.python.references.dependent_removal import DependentRemover
from excise.deleters.python.references.remaining_words import paths_of_words, words_of
from excise.extractors.python.analysis.grammar import (
    docstring_node,
    field,
    of_types,
    parse_tree,
    statements,
    text_of,
)

_IMPORTS = frozenset({"import_statement", "import_from_statement"})
_FOR_CHECKERS = re.compile(r"(?:\w+\.)?TYPE_CHECKING")
_LOGGERS = (b"logging.getLogger(", b"getLogger(")


def remove_emptied_files(remover: DependentRemover) -> None:
    """Plan the removal of modules of packages that lose their last definition, and that nothing imports any more.

    What is left of them is a docstring, a logger, private names, and imports from elsewhere that these use. The
    ``__init__`` of a package stays, and so does a module whose dotted name is a string in code that stays: it may be
    imported by that.
    """
    for path, plan in sorted(remover.plans.items()):
        is_packaged = f"{dirname(path)}/__init__.py" in remover.codebase.modules and not path.endswith("__init__.py")
        is_source = is_packaged and not remover.codebase.is_test(path) and not plan.deleted
        if not is_source or not plan.lost_names or remover.is_imported(path):
            continue
        rest = _without_docstring(parse_tree(words_of(plan).after).root_node)
        used = {word for each in rest if each.type not in _IMPORTS for word in re.findall(r"\w+", text_of(each))}
        asserted = {text_of(each.named_children[0]) for each in rest if _asserts_a_name(each)}
        rest = [each for each in rest if not (_asserts_a_name(each) or _imports_only(each, asserted))]
        is_kept = any(_holds_something(each, remover.codebase.names.tops, used) for each in rest)
        if not is_kept and not _is_named_by_a_string(remover, path):
            plan.deleted = True


def _is_named_by_a_string(remover: DependentRemover, path: str) -> bool:
    """Whether a string in code that stays is the dotted name of a module; ``import_module`` may begin it with a dot."""
    names, last = remover.codebase.names, path.rpartition("/")[2].removesuffix(".py")
    pattern = re.compile(rf"""["']((?:\w+\.)+{re.escape(last)}|\.+(?:\w+\.)*{re.escape(last)})["']""".encode())
    for other in paths_of_words(remover.codebase).get(last, ()):
        plan = remover.plans.get(other)
        code = remover.codebase.modules[other].source if plan is None else words_of(plan).after
        for match in pattern.finditer(code):
            node = parse_tree(code).root_node.descendant_for_byte_range(*match.span(1))
            if node is None or node.type != "string_content" or (node.start_byte, node.end_byte) != match.span(1):
                continue
            dotted = text_of(node)
            is_end = dotted.startswith(".") and f".{names.name_of(path)}".endswith(f".{dotted.lstrip('.')}")
            if names.absolute(dotted, other) == path or (is_end and _is_imported(node)):
                return True
    return False


def _is_imported(content: Node) -> bool:
    """Whether a string is an argument of ``import_module``."""
    arguments = content.parent.parent if content.parent is not None else None
    call = arguments.parent if arguments is not None and arguments.type == "argument_list" else None
    return call is not None and text_of(field(call, "function")).rpartition(".")[2] == "import_module"


def _without_docstring(root: Node) -> list[Node]:
    docstring = docstring_node(root)
    return [each for each in statements(root) if each != docstring]


def _asserts_a_name(statement: Node) -> bool:
    """Whether a statement is ``assert name``, so that no linter calls the import of the name unused."""
    parts = statement.named_children
    return statement.type == "assert_statement" and len(parts) == 1 and parts[0].type == "identifier"


def _imports_only(statement: Node, names: Collection[str]) -> bool:
    bound = [text_of(each).rpartition(" as ")[2] for each in statement.children_by_field_name("name")]
    return statement.type in _IMPORTS and bool(bound) and all(each in names for each in bound)


def _holds_something(statement: Node, own: Collection[str], used: Collection[str]) -> bool:
    """Whether a statement is a reason to keep its file.

    ``own`` are the names of the project's packages, ``used`` the words of statements other than imports.
    """
    if statement.type == "expression_statement":
        inner = statement.named_children[0] if statement.named_children else statement
        left, right = inner.child_by_field_name("left"), inner.child_by_field_name("right")
        is_logger = right is not None and right.type == "call" and (right.text or b"").startswith(_LOGGERS)
        name = text_of(left) if left is not None and left.type == "identifier" else ""
        is_private = re.match(r"_(?!_)", name) is not None and not of_types(inner, "call", "assignment")[1:]
        return not (is_logger or is_private or name == "__all__")
    if statement.type == "if_statement" and _FOR_CHECKERS.fullmatch(text_of(field(statement, "condition"))):
        read = statements(field(statement, "consequence"))
        run = [each for block in of_types(statement, "else_clause") for each in statements(field(block, "body"))]
        return any(each.type not in _IMPORTS and _holds_something(each, own, used) for each in read) or any(
            _holds_something(each, own, used) for each in run
        )
    if statement.type in _IMPORTS:
        names = [text_of(each) for each in statement.children_by_field_name("name")]
        source = statement.child_by_field_name("module_name")
        sources = {each.partition(".")[0].partition(" ")[0] for each in ([text_of(source)] if source else names)}
        bound = {name.rpartition(" as ")[2].partition(".")[0] for name in names}
        return "" in sources or not sources.isdisjoint(own) or not bound or not bound <= set(used)
    return statement.type not in {"future_import_statement", "pass_statement"}
