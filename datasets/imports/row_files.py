"""Reads rows of other tools' sets from JSON lines, JSON and Parquet, with messages about what is wrong in a field.

Nothing is downloaded: a set of a hub is read from its folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from excise.errors import ConfigError, ExciseError
from excise.types import BadRow, ForeignTask

SUFFIXES = (".parquet", ".jsonl", ".json")
"""Kinds of files, the preferred one first: of a folder, the files of the first kind that it has are read."""
MAX_ROW_TEXT = 2000
"""Characters that are kept of a row that cannot be read."""
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}")
_REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9._-]+")
_COMMIT = re.compile(r"[0-9a-f]{7,40}")


class FieldError(ExciseError):
    """A field of a row is missing or wrong."""

    reason = "bad_row"

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field, self.problem = field, problem

    def __reduce__(self) -> tuple[object, ...]:
        """Keep both parts when the error crosses a process boundary."""
        return (FieldError, (self.field, self.problem))


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one row; each method raises :class:`FieldError` for a wrong one."""

    row: Mapping[str, Any]
    """Name to value."""

    def text(self, name: str, default: str | None = None) -> str:
        """A text; ``default`` if the field is missing or null, which is an error without a default."""
        value = self.row.get(name)
        if value is None:
            if default is None:
                raise FieldError(name, "is missing. Add it, or name the format that the file has.")
            return default
        if not isinstance(value, str):
            raise FieldError(name, f"is {_kind(value)}, not a text.")
        return value

    def instance_id(self, name: str = "instance_id") -> str:
        """The id of a task: letters, digits and ``. _ + -``, since files are named after it."""
        value = self.text(name)
        if not _ID.fullmatch(value):
            raise FieldError(name, f"{value[:80]!r} cannot name files; use letters, digits and . _ + - only.")
        return value

    def repo(self, name: str = "repo") -> str:
        """``owner/name``."""
        value = self.text(name)
        if not _REPO.fullmatch(value) or ".." in value:
            raise FieldError(name, f"{value[:80]!r} is not owner/name.")
        return value

    def commit(self, name: str = "base_commit") -> str:
        """A commit id, or a prefix of one with at least seven digits."""
        value = self.text(name).lower()
        if not _COMMIT.fullmatch(value):
            raise FieldError(name, f"{value[:80]!r} is no commit id: 7 to 40 hexadecimal digits are needed.")
        return value

    def patch(self, name: str, *, required: bool = True) -> str:
        """A patch, with a line end after its last line; empty only if it is not ``required``."""
        value = self.text(name, None if required else "")
        if not value.strip():
            if required:
                raise FieldError(name, "is empty: without it nothing can be checked.")
            return ""
        return value if value.endswith("\n") else f"{value}\n"

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts, also as the text of a JSON list; empty if the field is missing."""
        value = self.row.get(name)
        if isinstance(value, str) and value.strip():
            try:
                value = json.loads(value)
            except ValueError:
                raise FieldError(name, "is a text, but not a JSON list.") from None
        if value in (None, ""):
            return ()
        if not isinstance(value, Sequence) or not all(isinstance(item, str) for item in value):
            raise FieldError(name, f"is {_kind(value)}, not a list of texts.")
        return tuple(dict.fromkeys(value))

    def tests(self, name: str, *, required: bool) -> tuple[str, ...]:
        """Ids of tests; an empty list is an error if it is ``required``."""
        if required and name not in self.row:
            raise FieldError(name, "is missing. Add it, or name the format that the file has.")
        found = self.texts(name)
        if required and not found:
            raise FieldError(name, "is empty: without a test that fails there is nothing to solve.")
        return found

    def date(self, name: str = "created_at") -> str:
        """A date as ISO text in UTC, from such a text or from milliseconds since 1970; empty for anything else."""
        value = self.row.get(name)
        if isinstance(value, datetime):
            found = value
        elif isinstance(value, int | float) and 0 < value < 1e13:
            found = datetime.fromtimestamp(value / 1000, UTC)
        else:
            try:
                found = datetime.fromisoformat(str(value).strip().replace("Z", "+00:00"))
            except ValueError:
                return ""
        zoned = found if found.tzinfo else found.replace(tzinfo=UTC)
        return zoned.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def mapping(self, name: str) -> Mapping[str, Any]:
        """An object, also as the text of a JSON object; empty if the field is missing."""
        value = self.row.get(name)
        if isinstance(value, str) and value.strip():
            try:
                value = json.loads(value)
            except ValueError:
                raise FieldError(name, "is a text, but not a JSON object.") from None
        if value in (None, ""):
            return {}
        if not isinstance(value, Mapping):
            raise FieldError(name, f"is {_kind(value)}, not an object.")
        return value


def _kind(value: object) -> str:
    names = {bool: "a truth value", int: "a number", float: "a number", str: "a text", list: "a list"}
    names |= {dict: "an object"}
    return names.get(type(value), type(value).__name__)


Place = str
"""File with line or number of the row."""
Parse = Callable[[Fields, Place], ForeignTask]
"""Makes the task of a row; raises :class:`FieldError`."""


def read_tasks(path: Path, parse: Parse) -> Iterator[ForeignTask | BadRow]:
    """The tasks of a file, or of all files of a folder. Ids that come twice are bad rows.

    Raises :class:`ConfigError` if there is no such file.
    """
    seen: dict[str, Place] = {}
    for place, row in _rows(path):
        text = row_json(row) if isinstance(row, Mapping) else str(row)
        instance_id = str(row.get("instance_id") or "") if isinstance(row, Mapping) else ""
        try:
            if not isinstance(row, Mapping):
                raise FieldError("row", f"is not a JSON object: {str(row)[:120]}")
            task = parse(Fields(row), place)
            if task.instance_id in seen:
                raise FieldError("instance_id", f"{task.instance_id} was at {seen[task.instance_id]} already.")
        except FieldError as error:
            yield BadRow(
                place=place, instance_id=instance_id, field=error.field, problem=error.problem, row=text[:MAX_ROW_TEXT]
            )
            continue
        seen[task.instance_id] = place
        yield task


def row_json(row: Mapping[str, Any]) -> str:
    """A row as JSON; dates become texts."""
    return json.dumps(row, ensure_ascii=False, default=str)


def _rows(path: Path) -> Iterator[tuple[Place, Mapping[str, Any] | str]]:
    """(place, row) of all rows; a row that is no JSON is a text."""
    for file in _files(path):
        name = file.name if file == path else file.relative_to(path).as_posix()
        if file.suffix == ".parquet":
            yield from _parquet_rows(file, name)
        elif file.suffix == ".json" and file.read_text("utf-8", "replace").lstrip().startswith("["):
            yield from _json_rows(file, name)
        else:
            yield from _line_rows(file, name)


def _files(path: Path) -> list[Path]:
    if path.is_file():
        if path.suffix not in SUFFIXES:
            raise ConfigError(f"{path}: only {', '.join(SUFFIXES)} files can be read.")
        return [path]
    if not path.is_dir():
        raise ConfigError(f"{path} does not exist.")
    for suffix in SUFFIXES:
        found = sorted(file for file in path.rglob(f"*{suffix}") if not file.name.startswith("."))
        if found:
            return found
    raise ConfigError(f"{path} holds no {', '.join(SUFFIXES)} file.")


def _parquet_rows(file: Path, name: str) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        number = 0
        for batch in parquet.ParquetFile(file).iter_batches(batch_size=100):
            for row in batch.to_pylist():
                number += 1
                yield f"{name} row {number}", row
    except (OSError, pa.ArrowException) as error:
        raise ConfigError(f"{file} cannot be read as Parquet: {error}") from error


def _json_rows(file: Path, name: str) -> Iterator[tuple[Place, Mapping[str, Any] | str]]:
    try:
        rows = json.loads(file.read_text("utf-8"))
    except ValueError as error:
        raise ConfigError(f"{file} cannot be read as JSON: {error}") from error
    for number, row in enumerate(rows, 1):
        yield f"{name} row {number}", row if isinstance(row, Mapping) else str(row)


def _line_rows(file: Path, name: str) -> Iterator[tuple[Place, Mapping[str, Any] | str]]:
    with file.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                row = line
            yield f"{name} line {number}", row if isinstance(row, Mapping) else line.strip()
