"""Floats as calls are recorded: the hexadecimal digits of their bits."""

from __future__ import annotations

import struct


def float_of(bits: str) -> float:
    """The float with these bits."""
    value: float = struct.unpack(">d", bytes.fromhex(bits))[0]
    return value


def bits_of(value: float) -> str:
    """The bits of a float."""
    return struct.pack(">d", value).hex()
