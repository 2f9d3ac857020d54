"""Conversion of records to and from JSON, and content hashes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")


def content_id(kind: str, *parts: object) -> str:
    """Return a 16-digit hexadecimal content hash; equal arguments give equal ids.

    ``parts`` are strings, numbers, records, or nested mappings and sequences of them.
    """
    text = json.dumps([kind, *parts], sort_keys=True, separators=(",", ":"), default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _plain(value: object) -> object:
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    return json.loads(to_json(value))


_adapters: dict[object, Any] = {}


def _adapter(cls: Any) -> Any:
    """Return the pydantic ``TypeAdapter`` of a type, cached."""
    if cls not in _adapters:
        from pydantic import TypeAdapter

        _adapters[cls] = TypeAdapter(cls)
    return _adapters[cls]


def to_json(record: object, *, indent: int | None = None) -> bytes:
    """Serialise a record (or a tuple or dict of records) to JSON."""
    return bytes(_adapter(type(record)).dump_json(record, indent=indent))


def to_dict(record: object) -> dict[str, Any]:
    """Convert a record to JSON-compatible values."""
    plain: dict[str, Any] = json.loads(to_json(record))
    return plain


def from_json(cls: type[T], data: bytes | str) -> T:
    """Make a record of type ``cls`` from JSON. Raises ``pydantic.ValidationError`` if the data does not fit."""
    record: T = _adapter(cls).validate_json(data)
    return record


def from_dict(cls: type[T], data: Mapping[str, object]) -> T:
    """Make a record from JSON-compatible values. Raises ``pydantic.ValidationError`` if they do not fit."""
    return from_json(cls, json.dumps(data))
