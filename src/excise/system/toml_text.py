"""Writes tables as TOML, as far as manifests have it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any


def toml_text(table: Mapping[str, Any]) -> str:
    """A manifest as text: scalars first, tables as ``[name]``, lists of tables as ``[[name]]``."""
    lines: list[str] = []
    for name, value in table.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            for each in value:
                lines += ["", f"[[{name}]]", *(f"{_key(k)} = {_value(v)}" for k, v in each.items())]
        elif isinstance(value, dict):
            lines += ["", f"[{name}]", *(f"{_key(k)} = {_value(v)}" for k, v in value.items())]
        else:
            lines.append(f"{_key(name)} = {_value(value)}")
    return "\n".join(lines).strip() + "\n"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[\w-]+", name) else _value(name)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + "".join(c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08x}" for c in value) + '"'
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(k)} = {_value(v)}' for k, v in value.items())} }}"
    return str(value)
