"""Trees are walked like by :mod:`ast`."""

from __future__ import annotations

import ast
from pathlib import Path

from excise.extractors.python.analysis.ast_walk import child_nodes, copied, statements_below, walk


def test_the_same_nodes_in_the_same_order() -> None:
    def is_shown(node: ast.AST) -> bool:
        return not isinstance(node, ast.expr_context | ast.operator | ast.unaryop | ast.boolop)

    tree = ast.parse(Path(__file__).read_text() + "a = -b + c and d\n" + CLAUSES)
    del tree.body[0].value  # type: ignore[attr-defined]
    assert list(walk(tree)) == list(filter(is_shown, ast.walk(tree)))
    for node in ast.walk(tree):
        assert child_nodes(node) == list(filter(is_shown, ast.iter_child_nodes(node)))


def test_a_copy_is_equal_and_shares_no_node_that_can_change() -> None:
    tree = ast.parse(Path(__file__).read_text() + CLAUSES)
    made = copied(tree)
    assert ast.dump(made, include_attributes=True) == ast.dump(tree, include_attributes=True)
    shared = {id(node) for node in ast.walk(tree)} & {id(node) for node in ast.walk(made)}
    assert all(not node._fields for node in ast.walk(made) if id(node) in shared)
    statement = made.body[-1]
    assert isinstance(statement, ast.Match)
    statement.cases.clear()
    assert tree.body[-1].cases  # type: ignore[attr-defined]


def test_children_are_those_at_the_time_of_the_parent() -> None:
    def walked(function: object) -> list[str]:
        tree = ast.parse("def f():\n    return 1\n\n\ndef g():\n    pass\n")
        found = []
        for node in function(tree):  # type: ignore[operator]
            found.append(type(node).__name__)
            if isinstance(node, ast.FunctionDef):
                node.body = [ast.Pass()]
        return found

    assert walked(walk) == walked(ast.walk)


def test_all_statements_are_found() -> None:
    tree = ast.parse(Path(__file__).read_text() + CLAUSES)
    assert set(statements_below(tree)) == {node for node in ast.walk(tree) if isinstance(node, ast.stmt)}


CLAUSES = """
if a:
    b = [c if d else e for f in (lambda: g)]
elif h:
    while i:
        j
    else:
        k
try:
    l
except m:
    n
else:
    for o in p:
        q
    else:
        r
finally:
    async def s():
        async with t:
            u
match v:
    case w:
        class x:
            y = 1
"""
