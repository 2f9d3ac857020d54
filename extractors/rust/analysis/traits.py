"""What traits say of their functions, those without a body included."""

from __future__ import annotations

from collections.abc import Iterator

from excise.extractors.rust.analysis.grammar import descendants, field_text, parse_tree
from excise.extractors.rust.analysis.parsed_file import documentation

CONVENTIONS = frozenset(
    {
        "Iterator",
        "DoubleEndedIterator",
        "ExactSizeIterator",
        "IntoIterator",
        "Clone",
        "PartialEq",
        "Eq",
        "PartialOrd",
        "Ord",
        "Hash",
        "Deref",
        "DerefMut",
        "Index",
        "IndexMut",
        "AsRef",
        "AsMut",
        "Borrow",
        "BorrowMut",
        "FromIterator",
        "Extend",
        "Read",
        "Write",
        "Seek",
        "BufRead",
    }
)
"""Traits of Rust's library whose functions do the same for every type."""


def documented_functions(source: bytes) -> Iterator[tuple[str, str, str]]:
    """(name of the trait, name of the function, documentation) of the documented functions of a file's traits."""
    for trait in (node for node in descendants(parse_tree(source).root_node) if node.type == "trait_item"):
        body = trait.child_by_field_name("body")
        for each in body.named_children if body is not None else ():
            if each.type in {"function_item", "function_signature_item"} and (words := documentation(each, source)):
                yield field_text(trait, "name", source), field_text(each, "name", source), words
