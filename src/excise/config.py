"""Settings of a run: TOML files, ``EXCISE_`` environment variables, ``--set a.b=v``, own options; the later one wins.

Each of them is checked by itself, so that an error names the place where it stands. Paths are absolute afterwards:
those in a file are relative to the file's folder, all others to the working directory.

Settings that can change a verdict live in :class:`VerdictSettings` and are part of every cache key;
the others (paths, number of workers) are not.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from excise.errors import ConfigError
from excise.types import SourceSpec, Visibility

_PATHS = ("out", "cache", "model.replay")
_RELATIVE = re.compile(r"(git\+|dir:|archive:)?([^:/~][^:/]*(?:/.*)?)")
"""A source that is a path and not absolute, unless it is a bare word."""
_WORDS = {
    "extra_forbidden": "there is no such setting",
    "unexpected_keyword_argument": "there is no such setting",
    "missing": "is missing",
    "string_type": "write it in quotes",
    "path_type": "write a path, in quotes",
    "tuple_type": "write it as a list, in brackets",
    "model_type": "write it as a table of settings",
    "dataclass_type": 'write a source as "pypi:name", or as a table with spec',
}
"""pydantic's codes in our words, where its own say little to somebody who writes a TOML file."""


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
        return _beside(Path.cwd(), explicit)
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
        _merge(merged, _checked(_read(path), str(path)))
    options = ((f"--{name}", {name: value}) for name, value in direct.items() if value is not None)
    for origin, values in (*_environment(environ), *_overrides(overrides), *options):
        _merge(merged, _checked(_absolute(values, Path.cwd()), origin))
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
            found[name] = str(_beside(Path.cwd(), _value(key, value))) if key in _PATHS else value
    return found


def _read(path: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file. Give the path of a TOML file.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}).") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error
    folder = path.parent.resolve()
    if isinstance(values.get("sources"), list):
        values["sources"] = [_local(entry, folder) for entry in values["sources"]]
    return _absolute(values, folder)


def _environment(environ: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, value in given_settings(environ).items():
        yield name, _nested(setting_of(name), value)


def _overrides(overrides: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for item in overrides:
        key, separator, value = item.partition("=")
        if not separator or not all(part.strip() for part in key.split(".")):
            raise ConfigError(f"--set {item}: write it as key=value, for example --set verdict.gold_runs=5")
        yield f"--set {item}", _nested(key.strip(), value.strip())


def _nested(dotted: str, text: str) -> dict[str, Any]:
    """``{"a": {"b": value}}`` of ``a.b`` and a TOML value."""
    *parents, last = dotted.split(".")
    nested: dict[str, Any] = {last: _value(dotted, text)}
    for part in reversed(parents):
        nested = {part: nested}
    return nested


def _value(key: str, text: str) -> Any:
    try:
        value = tomllib.loads(f"v = {text}")["v"]
    except tomllib.TOMLDecodeError:
        return text
    return text if key in _PATHS and not isinstance(value, str) else value  # a folder may be called 2024


def _absolute(values: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The values with every path as seen from ``folder``."""
    changed = dict(values)
    for key, value in values.items():
        if isinstance(value, dict):
            below = {f"{key}.{name}": inner for name, inner in value.items()}
            changed[key] = {k.removeprefix(f"{key}."): v for k, v in _absolute(below, folder).items()}
        elif key in _PATHS and isinstance(value, (str, Path)):
            changed[key] = _beside(folder, value)
    return changed


def _local(entry: object, folder: Path) -> object:
    """An entry of a file's sources; a path in it (one with a slash) is seen from the file's folder."""
    if isinstance(entry, Mapping):
        return {**entry, "spec": _local(entry["spec"], folder)} if isinstance(entry.get("spec"), str) else entry
    match = _RELATIVE.fullmatch(entry) if isinstance(entry, str) else None
    if match is None or not (match[1] or "/" in match[2] or match[2] in (".", "..")):
        return entry  # pypi:name, a URL, an absolute path, a bare word
    return f"{match[1] or ''}{_beside(folder, match[2])}"


def _beside(folder: Path, path: str | Path) -> Path:
    """``path`` as seen from the absolute ``folder``, the same text from wherever the folder was reached."""
    parts = Path(os.path.expanduser(path)).parts
    while parts and parts[0] == "..":
        folder, parts = folder.parent, parts[1:]
    return folder.joinpath(*parts)


def _merge(into: dict[str, Any], new: Mapping[str, Any]) -> None:
    for key, value in new.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _checked(values: dict[str, Any], origin: str) -> dict[str, Any]:
    try:
        Settings.model_validate(values)
    except ValidationError as error:
        raise ConfigError(_explain(error, origin)) from error
    return values


def _explain(error: ValidationError, origin: str) -> str:
    lines = []
    for problem in error.errors():
        key = ".".join(str(part) for part in problem["loc"])
        said = _WORDS.get(problem["type"]) or problem["msg"].removeprefix("Value error, ")
        got = "" if key.startswith("model.") else f" (got {problem['input']!r:.200})"  # it may be a key
        lines.append(f"{origin}: {key}: {said}{got}")
    return "\n".join(lines)
