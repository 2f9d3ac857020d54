"""Source files in which a removal leaves nothing: they go as a whole."""

from __future__ import annotations

from posixpath import dirname

from tree_sitter import Node

from excise.deleters.python.references.dependent_removal import DependentRemover
from excise.deleters.python.references.remaining_words import words_of
from excise.extractors.python.analysis.grammar import docstring_node, parse_tree, statements


def remove_emptied_files(remover: DependentRemover) -> None:
    """Plan the removal of modules of packages that lose their last definition, and that nothing imports any more.

    What is left of them is a docstring, and imports from ``__future__``. The ``__init__`` of a package stays.
    """
    for path, plan in sorted(remover.plans.items()):
        is_packaged = f"{dirname(path)}/__init__.py" in remover.codebase.modules and not path.endswith("__init__.py")
        is_source = is_packaged and not remover.codebase.is_test(path) and not plan.deleted
        if not is_source or not plan.lost_names or remover.is_imported(path):
            continue
        if not any(map(_holds_something, _without_docstring(parse_tree(words_of(plan).after).root_node))):
            plan.deleted = True


def _without_docstring(root: Node) -> list[Node]:
    docstring = docstring_node(root)
    return [each for each in statements(root) if each != docstring]


def _holds_something(statement: Node) -> bool:
    if statement.type == "expression_statement":
        inner = statement.named_children[0] if statement.named_children else statement
        left = inner.child_by_field_name("left")
        return left is None or left.text != b"__all__"
    return statement.type != "future_import_statement"
