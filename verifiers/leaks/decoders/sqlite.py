"""SQLite databases: rows are read by SQLite from a copy in memory that may only read; free pages as strings."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator

from excise.verifiers.leaks.decoders.strings import strings_of
from excise.verifiers.leaks.fragments import DecodingLimits

_MAX_ROWS = 200_000
_MAX_VALUE = 16 << 20
_MAX_STEPS = 4000
"""Maximum number of SQLite virtual machine instructions, in units of 10,000: a few seconds."""
_PLAIN = re.compile(r"\s*CREATE\s+TABLE\b", re.IGNORECASE)
_READS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ})


class Sqlite:
    """Extracts the values of all rows, and the strings of the whole file, deleted rows included."""

    name = "sqlite"
    whole = True

    def fits(self, data: bytes) -> bool:
        """Recognise a database or a write-ahead log by its signature."""
        return data.startswith((b"SQLite format 3\0", b"7\x7f\x06\x82", b"7\x7f\x06\x83"))

    def parts(self, data: bytes, limits: DecodingLimits, /) -> Iterator[bytes]:
        """Yield the file's strings, then the rows."""
        yield strings_of(data)
        if not data.startswith(b"SQLite"):
            return
        if data[18:20] == b"\x02\x02":
            data = data[:18] + b"\x01\x01" + data[20:]  # no WAL mode: the log is scanned as a separate file
        try:
            yield from _rows(data, limits)
        except (sqlite3.Error, MemoryError, OverflowError):  # damaged: its strings were read already
            limits.partial = True


def _rows(data: bytes, limits: DecodingLimits) -> Iterator[bytes]:
    base = sqlite3.connect(":memory:")
    try:
        base.deserialize(data)
        base.text_factory = bytes
        base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE)
        base.execute("PRAGMA trusted_schema=OFF")
        base.execute("PRAGMA cell_size_check=ON")
        steps = iter(range(_MAX_STEPS))
        base.set_progress_handler(lambda: next(steps, None) is None, 10_000)
        tables = base.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchmany(10_000)
        base.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in _READS else sqlite3.SQLITE_DENY)
        for name, sql in tables:
            if sql is not None and not _PLAIN.match(sql.decode(errors="replace")):
                continue  # a virtual table would run its module
            quoted = name.decode(errors="replace").replace('"', '""')
            try:
                for row in base.execute(f'SELECT * FROM "{quoted}" LIMIT {_MAX_ROWS}'):
                    yield from _values(row)
            except sqlite3.Error:
                limits.partial = True
    finally:
        base.close()


def _values(row: tuple[object, ...]) -> Iterator[bytes]:
    """Yield a row's short values as one part (a name and its arguments may be neighbours), and each long value."""
    values = [value for value in row if isinstance(value, bytes)]
    short = b"\n".join(value for value in values if len(value) < 256)
    if short:
        yield short
    yield from (value for value in values if len(value) >= 256)
