"""Settings from a TOML file with tables, for training and for evaluation: read, changed by ``--set``, checked."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from excise.config import Settings
from excise.errors import ConfigError

_PATHS = (
    "folder",
    "policy.model",
    "sdft.demonstrations",
    "excise.out",
    "excise.cache",
    "engine.python",
    "engine.weights",
)

M = TypeVar("M", bound=BaseModel)


def read_tables(path: Path, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """The values of a file, and over them ``overrides``: ``table.key=value`` with TOML values.

    Paths in the file are relative to its folder, others to the working directory. Raises :class:`ConfigError`.
    """
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}).") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error
    _make_absolute(values, path.resolve().parent)
    for item in overrides:
        more = _override(item)
        _make_absolute(more, Path.cwd())
        _merge(values, more)
    return values


def settings_from(values: dict[str, Any], kind: type[M], path: Path) -> M:
    """The settings that a file's values are; those of ``[excise]`` have to be the generator's.

    Raises :class:`ConfigError` that names the key and what was expected.
    """
    found = _checked(kind, values, path, "")
    _checked(Settings, values.get("excise", {}), path, "excise.")
    return found


def _checked(kind: type[M], values: object, path: Path, prefix: str) -> M:
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise ConfigError("\n".join(_explained(path, prefix, error))) from error


def _explained(path: Path, prefix: str, error: ValidationError) -> list[str]:
    lines = []
    for problem in error.errors():
        key = prefix + ".".join(str(part) for part in problem["loc"])
        unknown = problem["type"] in ("extra_forbidden", "unexpected_keyword_argument")
        said = "there is no such setting" if unknown else problem["msg"].removeprefix("Value error, ")
        lines.append(f"{path}: {key}: {said}" if key else f"{path}: {said}")
    return lines


def _override(item: str) -> dict[str, Any]:
    key, separator, text = item.partition("=")
    if not separator or not all(part.strip() for part in key.split(".")):
        raise ConfigError(f"--set {item}: write it as table.key=value, for example --set loop.steps=50")
    try:
        value = tomllib.loads(f"v = {text}")["v"]
    except tomllib.TOMLDecodeError:
        value = text
    for part in reversed(key.split(".")):
        value = {part.strip(): value}
    found: dict[str, Any] = value
    return found


def _merge(into: dict[str, Any], new: dict[str, Any]) -> None:
    for key, value in new.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _make_absolute(values: dict[str, Any], folder: Path) -> None:
    for dotted in _PATHS:
        *tables, last = dotted.split(".")
        table: Any = values
        for name in tables:
            table = table.get(name) if isinstance(table, dict) else None
        if isinstance(table, dict) and isinstance(table.get(last), str):
            table[last] = str(folder / Path(table[last]).expanduser())
