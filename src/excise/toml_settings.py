"""Reading settings: TOML files, ``--set a.b=value`` overrides, and pydantic's errors as messages for users.

The configurations of ``excise generate`` (:mod:`excise.config`), ``excise train`` and ``excise eval`` are read with it.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from excise.errors import ConfigError

M = TypeVar("M", bound=BaseModel)
PHRASES: Mapping[str, str] = {
    "extra_forbidden": "there is no such setting",
    "unexpected_keyword_argument": "there is no such setting",
}
"""pydantic's error code to the message for users that replaces pydantic's own. A message may contain ``{key}``, the
setting's dotted name, which otherwise precedes it, and values of pydantic's error context (``{gt}``, ``{ge}``)."""


def read_toml(path: Path) -> dict[str, Any]:
    """Return the values of a TOML file. Raises :class:`ConfigError` if it cannot be read."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: cannot be read: no such file. Give the path of a TOML file.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}).") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error


def parse_override(item: str, example: str, path_keys: Collection[str] = ()) -> dict[str, Any]:
    """Parse ``a.b=value`` to nested values. Raises :class:`ConfigError` that shows ``example`` if there is no key."""
    key, separator, text = item.partition("=")
    if not separator or not all(part.strip() for part in key.split(".")):
        raise ConfigError(f"--set {item}: write it as key=value, for example --set {example}")
    return nested(key, text.strip(), path_keys)


def nested(key: str, text: str, path_keys: Collection[str] = ()) -> dict[str, Any]:
    """Return ``{"a": {"b": value}}`` for the key ``a.b`` and the text of a TOML value."""
    parts = [part.strip() for part in key.split(".")]
    value = parse_value(text, is_path=".".join(parts) in path_keys)
    for part in reversed(parts):
        value = {part: value}
    found: dict[str, Any] = value
    return found


def parse_value(text: str, *, is_path: bool = False) -> Any:
    """Parse a TOML value. A bare word is a string, and so is any path (a folder may be called 2024)."""
    try:
        value = tomllib.loads(f"v = {text}")["v"]
    except tomllib.TOMLDecodeError:
        return text
    return text if is_path and not isinstance(value, str) else value


def merge(into: dict[str, Any], new: Mapping[str, Any]) -> None:
    """Update ``into`` by ``new``; nested tables are merged, all other values are replaced."""
    for key, value in new.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            merge(into[key], value)
        else:
            into[key] = value


def with_absolute_paths(values: Mapping[str, Any], folder: Path, path_keys: Collection[str]) -> dict[str, Any]:
    """Return the values with the paths at the dotted ``path_keys`` made absolute, relative to ``folder``."""
    changed = dict(values)
    for key, value in values.items():
        if isinstance(value, dict):
            below = {name.removeprefix(f"{key}.") for name in path_keys if name.startswith(f"{key}.")}
            changed[key] = with_absolute_paths(value, folder, below)
        elif key in path_keys and isinstance(value, (str, Path)):
            changed[key] = absolute_path(folder, value)
    return changed


def absolute_path(folder: Path, path: str | Path) -> Path:
    """Return the absolute path of ``path``, which is relative to ``folder``; ``~`` and leading ``..`` are resolved.

    A URL of an object store stays as it is.
    """
    if str(path).startswith("s3:/"):
        return Path(path)
    parts = Path(os.path.expanduser(path)).parts
    while parts and parts[0] == "..":
        folder, parts = folder.parent, parts[1:]
    return folder.joinpath(*parts)


def validated(
    kind: type[M],
    values: object,
    origin: str,
    *,
    phrases: Mapping[str, str] = PHRASES,
    prefix: str = "",
    hides: str | None = None,
) -> M:
    """Validate ``values`` as the model ``kind``.

    Raises :class:`ConfigError` that names ``origin``, the key and the expected value. ``prefix`` is the dotted name of
    the table that holds ``values``, with a dot at its end. Messages show the wrong value unless ``hides`` is ``None``
    or the key starts with ``hides`` (the value may be a secret).
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise ConfigError(_explain(error, origin, phrases, prefix, hides)) from error


def _explain(error: ValidationError, origin: str, phrases: Mapping[str, str], prefix: str, hides: str | None) -> str:
    """Return one line for each problem: origin, key, expected value."""
    lines = []
    for problem in error.errors():
        key = prefix + ".".join(str(part) for part in problem["loc"])
        phrase = phrases.get(problem["type"])
        message = problem["msg"].removeprefix("Value error, ")
        if phrase is not None:
            message = phrase.format(key=key, **problem.get("ctx", {}))
        is_named = not key or (phrase is not None and "{key}" in phrase)
        value = "" if hides is None or key.startswith(hides) else f" (got {problem['input']!r:.200})"
        lines.append(f"{origin}: {message}{value}" if is_named else f"{origin}: {key}: {message}{value}")
    return "\n".join(lines)
