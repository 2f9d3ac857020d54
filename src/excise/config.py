"""Settings of a run: TOML files, ``EXCISE_`` environment variables, ``--set a.b=v``, own options; the later one wins.

Each of them is checked by itself, so that an error names the place where it stands. Paths are absolute afterwards:
those in a file are relative to the file's folder, all others to the working directory.

Settings that can change a verdict live in :class:`VerdictSettings` and are part of every cache key;
the others (paths, number of workers) are not.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

from excise.toml_settings import (
    PHRASES,
    absolute_path,
    merge,
    nested,
    parse_override,
    parse_value,
    read_toml,
    validated,
    with_absolute_paths,
)
from excise.types import SourceSpec, Visibility

_PATHS = ("out", "cache", "model.replay")
_RELATIVE = re.compile(r"(git\+|dir:|archive:)?([^:/~][^:/]*(?:/.*)?)")
"""A source that is a path and not absolute, unless it is a bare word."""
_PHRASES = {
    **PHRASES,
    "missing": "is missing",
    "string_type": "write it in quotes",
    "path_type": "write a path, in quotes",
    "tuple_type": "write it as a list, in brackets",
    "model_type": "write it as a table of settings",
    "dataclass_type": 'write a source as "pypi:name", or as a table with spec',
}
"""Texts for users, where pydantic's own say little to somebody who writes a TOML file."""


def _listed(value: object) -> object:
    """Sources as a list of tables; a bare string in it is a table with ``spec`` alone."""
    if isinstance(value, str):
        raise ValueError(f'write it as a list: sources = ["{value}"]')
    if isinstance(value, Mapping):
        raise ValueError("write [[sources]] with two brackets, once for each source")
    if not isinstance(value, (list, tuple)):
        raise ValueError('write it as a list: sources = ["pypi:name"], or as [[sources]] tables')
    return tuple({"spec": entry} if isinstance(entry, str) else entry for entry in value)


def _usable(source: SourceSpec) -> SourceSpec:
    if not source.spec.strip():
        raise ValueError("spec is empty; name a source, for example pypi:toolz")
    if source.limit is not None and source.limit < 1:
        raise ValueError("limit has to be 1 or more; leave it out for the limit of the run")
    return source


def _day(value: object) -> object:
    """``auto``, nothing, or a date, which TOML also has without quotes."""
    text = value.isoformat() if isinstance(value, date) else value
    if isinstance(text, str) and text not in ("", "auto"):
        try:
            datetime.fromisoformat(text)
        except ValueError:
            raise ValueError("write a date such as 2024-05-31, auto, or nothing") from None
    return text


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class VerdictSettings(_Strict):
    """What changes a verdict: part of the fingerprint of every stage."""

    baseline_runs: int = Field(default=3, ge=2)
    """Runs of the untouched project; the last one is shuffled."""
    starved_runs: int = Field(default=4, ge=0)
    """Further shuffled runs of it, side by side, as on a busy machine; none for suites of half a minute."""
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
    cpus: float | None = Field(default=None, ge=0.05)
    """Cores' worth of CPU time that one sandbox gets; without it as much as there is."""
    min_passing: int = Field(default=10, ge=1)
    """A project with fewer passing tests is refused."""
    min_pass_rate: float = Field(default=0.8, ge=0, le=1)
    """Share of the tests that ran which must pass."""
    max_f2p_share: float = Field(default=0.5, gt=0, le=1)
    """A feature that more of the tests execute is no feature but the core."""
    visibility: Visibility = Visibility.DOCSTRING
    """How much is given away: by the statement alone, or (``tests``) by tests that stay in the tree, too."""
    cutoff: Annotated[str, BeforeValidator(_day)] = "auto"
    """Only install releases before this date: ``auto`` takes the date of the sources, empty means no limit."""

    @field_validator("visibility")
    @classmethod
    def _implemented(cls, level: Visibility) -> Visibility:
        if level is Visibility.SAMPLE_TESTS:
            raise ValueError("is not implemented: use tests, docstring, signature or behaviour")
        return level

    def of(self, known: Mapping[str, Any]) -> VerdictSettings:
        """Settings as they were ``known`` to be, except for those that were given here; unknown names are ignored."""
        same = {name: value for name, value in known.items() if name in VerdictSettings.model_fields}
        given = {name: getattr(self, name) for name in self.model_fields_set}
        return VerdictSettings.model_validate(same | given)


class ModelSettings(_Strict):
    """Where a model answers, over the OpenAI-compatible protocol, and what one job may cost. No keys: they stay in
    the environment.
    """

    base_url: str = ""
    """Address of the endpoint, for example ``http://localhost:8000/v1``."""
    model: str = ""
    """Name of the model there; empty: no model is used anywhere."""
    api_key_env: str = ""
    """Name of the environment variable that holds the key; empty for endpoints without one."""
    temperature: float = Field(default=0.0, ge=0, le=2)
    """Sampling temperature."""
    tool_calls: Literal["native", "text"] = "native"
    """``text`` for endpoints that know nothing of tools: calls are then written and read as text."""
    prompt_price: float = Field(default=0.0, ge=0)
    """Price of a million tokens read, in any currency."""
    completion_price: float = Field(default=0.0, ge=0)
    """Price of a million tokens written."""
    max_tokens: int = Field(default=2_000_000, ge=1)
    """Tokens of one job, read and written."""
    max_cost: float = Field(default=2.0, ge=0)
    """Cost of one job in the currency of the prices; 0 for no limit."""
    max_wall_s: float = Field(default=3600.0, gt=0)
    """Wall seconds of one job."""
    max_reply_tokens: int = Field(default=4096, ge=16)
    """Tokens of one answer."""
    call_timeout_s: float = Field(default=300.0, gt=0)
    """Wall seconds of one request."""
    context_chars: int = Field(default=240_000, ge=4000)
    """Characters of a conversation that the model can take; beyond, the oldest results are left out."""
    replay: Path | None = None
    """A folder of transcripts, or one of them: recorded answers are used in place of the model's."""

    @field_validator("base_url")
    @classmethod
    def _without_key(cls, url: str) -> str:
        if url and not re.fullmatch(r"https?://[^/@\s]+(/[^@\s]*)?", url):
            raise ValueError("write http(s)://host[:port]/path, without a user or key; see api_key_env")
        return url

    @field_validator("api_key_env")
    @classmethod
    def _a_name(cls, name: str) -> str:
        if name and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise PydanticCustomError("not_a_name", "give the NAME of an environment variable, never the key itself")
        return name

    @property
    def on(self) -> bool:
        """A model, or its recording, may be used."""
        return bool(self.model)


class DockerSettings(_Strict):
    """The Docker backend on this machine; ``sandbox = "docker"`` chooses it."""

    base_image: str = Field(default="host", min_length=1)
    """What environments are built on: ``host`` (this machine's own system), ``debootstrap``, or an image's name."""
    network: str = ""
    """The engine's network for installations; empty for its own bridge, or the host's network if it has none."""
    runtime: str = ""
    """The runtime of containers, such as ``runsc`` for gVisor; empty for the engine's default."""


class Settings(_Strict):
    """Everything ``excise generate`` and ``excise refresh`` can be told."""

    sources: Annotated[tuple[Annotated[SourceSpec, AfterValidator(_usable)], ...], BeforeValidator(_listed)] = ()
    """What to make tasks from; a later list takes the place of an earlier one."""
    out: Path = Field(default_factory=lambda: Path.cwd() / "excise-out")
    """The task set's folder; ``excise-out`` in the working directory if nothing is said."""
    cache: Path = Field(default_factory=lambda: default_cache())
    """Folder for mirrors, environments and finished stages."""
    limit: int | None = Field(default=None, ge=1)
    """At most this many tasks per source."""
    workers: int = Field(default_factory=lambda: max(1, os.cpu_count() or 1), ge=1)
    """Local worker processes."""
    scheduler: str = ""
    """Address of a Dask scheduler; empty starts a local one."""
    sandbox: str = "bubblewrap"
    """Name of the sandbox backend: ``bubblewrap`` or ``docker``."""
    lenient_sandbox: bool = False
    """Run even where the sandbox cannot enforce a limit on this machine; otherwise that is an error."""
    docker: DockerSettings = DockerSettings()
    """The Docker backend."""
    seed: int = 0
    """Decides the order in which features are tried."""
    verdict: VerdictSettings = VerdictSettings()
    """What changes a verdict."""
    model: ModelSettings = ModelSettings()
    """The model behind everything that is driven by one."""


def default_cache() -> Path:
    """``$EXCISE_CACHE``, else ``$XDG_CACHE_HOME/excise``, else ``~/.cache/excise``; absolute."""
    if explicit := os.environ.get("EXCISE_CACHE"):
        return absolute_path(Path.cwd(), explicit)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "excise"


def load(
    files: Sequence[Path] = (),
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
    **direct: Any,
) -> Settings:
    """Read settings.

    ``files`` are TOML, the later one wins; ``EXCISE_A__B=value`` has a TOML value (a bare word is a string);
    ``overrides`` are ``a.b=value`` likewise; ``direct`` are values from command-line options (``None`` is ignored).
    Raises :class:`ConfigError` that names the file, variable or option, the key, and what was expected.
    """
    merged: dict[str, Any] = {}
    for path in files:
        merge(merged, _checked(_read(path), str(path)))
    options = ((f"--{name}", {name: value}) for name, value in direct.items() if value is not None)
    example = "verdict.gold_runs=5"
    sets = ((f"--set {item}", parse_override(item, example, _PATHS)) for item in overrides)
    for origin, values in (*_environment(environ), *sets, *options):
        merge(merged, _checked(with_absolute_paths(values, Path.cwd(), _PATHS), origin))
    return Settings.model_validate(merged)


def with_sources(settings: Settings, specs: Sequence[str]) -> Settings:
    """The settings with further sources, as somebody typed them. Raises :class:`ConfigError` for an empty one."""
    more = Settings.model_validate(_checked({"sources": list(specs)}, "sources")).sources
    return settings.model_copy(update={"sources": (*settings.sources, *more)})


def setting_of(variable: str) -> str:
    """The dotted key that an environment variable sets; empty if it is none of ours."""
    if not variable.startswith("EXCISE_"):
        return ""
    key = variable.removeprefix("EXCISE_").lower().replace("__", ".")
    return key if key.partition(".")[0] in Settings.model_fields else ""


def given_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that set something here, with paths made absolute: they mean the same in any other folder."""
    found = {}
    for name, value in sorted(environ.items()):
        key = setting_of(name)
        if key and (value or key not in _PATHS):  # an empty path is one that was not given
            found[name] = str(absolute_path(Path.cwd(), parse_value(value, is_path=True))) if key in _PATHS else value
    return found


def _read(path: Path) -> dict[str, Any]:
    values = read_toml(path)
    folder = path.parent.resolve()
    if isinstance(values.get("sources"), list):
        values["sources"] = [_local(entry, folder) for entry in values["sources"]]
    return with_absolute_paths(values, folder, _PATHS)


def _environment(environ: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, value in given_settings(environ).items():
        yield name, nested(setting_of(name), value, _PATHS)


def _local(entry: object, folder: Path) -> object:
    """An entry of a file's sources; a path in it (one with a slash) is seen from the file's folder."""
    if isinstance(entry, Mapping):
        return {**entry, "spec": _local(entry["spec"], folder)} if isinstance(entry.get("spec"), str) else entry
    match = _RELATIVE.fullmatch(entry) if isinstance(entry, str) else None
    if match is None or not (match[1] or "/" in match[2] or match[2] in (".", "..")):
        return entry  # pypi:name, a URL, an absolute path, a bare word
    return f"{match[1] or ''}{absolute_path(folder, match[2])}"


def _checked(values: dict[str, Any], origin: str) -> dict[str, Any]:
    validated(Settings, values, origin, phrases=_PHRASES, hides="model.")  # the settings of a model may be a key
    return values
