"""Settings of a run: TOML files, ``--set a.b=v``, ``EXCISE_`` environment variables, in rising order.

Settings that can change a verdict live in :class:`VerdictSettings` and are part of every cache key;
the others (paths, number of workers) are not.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from excise.errors import ConfigError
from excise.types import SourceSpec, Visibility


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class VerdictSettings(_Strict):
    """What changes a verdict: part of the fingerprint of every stage."""

    baseline_runs: int = Field(default=3, ge=2)
    """Runs of the untouched project; the last one is shuffled."""
    gold_runs: int = Field(default=3, ge=1)
    """Runs of the restored project per accepted task; the last one is shuffled."""
    suite_timeout_s: float = Field(default=1800.0, gt=0)
    """Wall seconds for one whole run of the tests."""
    test_timeout_s: float = Field(default=60.0, gt=0)
    """Wall seconds for one test."""
    install_timeout_s: float = Field(default=900.0, gt=0)
    """Wall seconds for one installation."""
    memory_mb: int = Field(default=4096, ge=64)
    """Memory of one sandbox."""
    pids: int = Field(default=256, ge=8)
    """Processes of one sandbox."""
    disk_mb: int = Field(default=2048, ge=16)
    """What one sandbox may write."""
    min_passing: int = Field(default=10, ge=1)
    """A project with fewer passing tests is refused."""
    min_pass_rate: float = Field(default=0.8, ge=0, le=1)
    """Share of the tests that ran which must pass."""
    max_f2p_share: float = Field(default=0.5, gt=0, le=1)
    """A feature that more of the tests execute is no feature but the core."""
    visibility: Visibility = Visibility.DOCSTRING
    """How much the problem statement gives away."""
    cutoff: str = "auto"
    """Only install releases before this date: ``auto`` takes the date of the sources, empty means no limit."""


class Settings(_Strict):
    """Everything ``excise generate`` and ``excise refresh`` can be told."""

    sources: tuple[SourceSpec, ...] = ()
    """What to make tasks from."""
    out: Path = Path("excise-out")
    """The task set's folder."""
    cache: Path = Field(default_factory=lambda: default_cache())
    """Folder for mirrors, environments and finished stages."""
    limit: int | None = Field(default=None, ge=1)
    """At most this many tasks per source."""
    workers: int = Field(default_factory=lambda: max(1, os.cpu_count() or 1), ge=1)
    """Local worker processes."""
    scheduler: str = ""
    """Address of a Dask scheduler; empty starts a local one."""
    sandbox: str = "bubblewrap"
    """Name of the sandbox backend."""
    seed: int = 0
    """Decides the order in which features are tried."""
    verdict: VerdictSettings = VerdictSettings()
    """What changes a verdict."""


def default_cache() -> Path:
    """``$EXCISE_CACHE``, else ``$XDG_CACHE_HOME/excise``, else ``~/.cache/excise``."""
    if explicit := os.environ.get("EXCISE_CACHE"):
        return Path(explicit)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "excise"


def load(
    files: Sequence[Path] = (),
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
    **direct: Any,
) -> Settings:
    """Read settings.

    ``files`` are TOML; ``overrides`` are ``a.b=value`` with a TOML value (a bare word is a string);
    ``EXCISE_A__B=value`` likewise; ``direct`` are values from command-line options (``None`` is ignored).
    Raises :class:`ConfigError` that names the file, the key, and what was expected.
    """
    merged: dict[str, Any] = {}
    for path in files:
        try:
            _merge(merged, tomllib.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            raise ConfigError(f"{path}: no such file. Give the path of a TOML file.") from None
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: cannot be read ({error}).") from error
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{path}: not valid TOML: {error}") from error
    for name, value in sorted(environ.items()):
        if name.startswith("EXCISE_") and name != "EXCISE_CACHE":
            key = name.removeprefix("EXCISE_").lower().replace("__", ".")
            if key.split(".")[0] in Settings.model_fields:
                _assign(merged, key, value)
    for item in overrides:
        key, separator, value = item.partition("=")
        if not separator:
            raise ConfigError(f"--set {item}: write it as key=value, for example --set verdict.gold_runs=5")
        _assign(merged, key.strip(), value.strip())
    for key, given in direct.items():
        if given is not None:
            merged[key] = given
    merged["sources"] = [_source(entry) for entry in merged.get("sources", ())]
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        raise ConfigError(_explain(error, files)) from error


def _source(entry: object) -> object:
    return {"spec": entry} if isinstance(entry, str) else entry


def _merge(into: dict[str, Any], new: Mapping[str, Any]) -> None:
    for key, value in new.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _assign(into: dict[str, Any], dotted: str, text: str) -> None:
    *parents, last = dotted.split(".")
    for parent in parents:
        into = into.setdefault(parent, {})
    try:
        into[last] = tomllib.loads(f"v = {text}")["v"]
    except tomllib.TOMLDecodeError:
        into[last] = text


def _explain(error: ValidationError, files: Sequence[Path]) -> str:
    where = ", ".join(str(f) for f in files) or "settings"
    lines = []
    for problem in error.errors():
        key = ".".join(str(part) for part in problem["loc"])
        lines.append(f"{where}: {key}: {problem['msg']} (got {problem['input']!r})")
    return "\n".join(lines)
