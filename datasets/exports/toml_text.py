"""Writes TOML, for the few kinds of values that exports need."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(table: Mapping[str, object]) -> str:
    """The text of a TOML document: plain values first, then tables, then arrays of tables; ``None`` is left out."""
    return "\n".join(_table_lines(table, ())).strip() + "\n"


def _table_lines(table: Mapping[str, object], path: tuple[str, ...]) -> list[str]:
    present = {key: value for key, value in table.items() if value is not None}
    lines = [f"{_key(key)} = {toml_value(value)}" for key, value in present.items() if not _is_nested(value)]
    for key, value in present.items():
        name = ".".join(map(_key, (*path, key)))
        if isinstance(value, Mapping):
            lines += ["", f"[{name}]", *_table_lines(value, (*path, key))]
        elif _is_nested(value):
            assert isinstance(value, Sequence)
            for item in value:
                lines += ["", f"[[{name}]]", *_table_lines(item, (*path, key))]
    return lines


def _is_nested(value: object) -> bool:
    """Whether a value is a table or an array of tables."""
    return isinstance(value, Mapping) or (
        isinstance(value, Sequence) and bool(value) and all(isinstance(item, Mapping) for item in value)
    )


def toml_value(value: object) -> str:
    """One plain value. Raises ``TypeError`` for any other."""
    if isinstance(value, str):  # JSON's escapes are TOML's, too; DEL is the one character that only TOML escapes
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    raise TypeError(f"{type(value).__name__} is no value for TOML")


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else toml_value(key)
