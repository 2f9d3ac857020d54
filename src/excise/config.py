"""Settings of a run, from TOML files, ``EXCISE_`` environment variables, ``--set a.b=v`` and command-line options.

The four origins are listed in the order in which they override each other: the last has precedence. Each is validated
separately, so that an error names its origin. Relative paths in a file are resolved against the file's folder, all
others against the working directory.

Settings that can change a verdict are in :class:`VerdictSettings` and are part of every cache key; the others
(paths, number of workers) are not.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

from excise.errors import ConfigError
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
from excise.types import SourceSpec, StatementStyle, Visibility

_PATHS = ("out", "cache", "model.replay")
_RELATIVE_SOURCE = re.compile(r"(git\+|dir:|archive:)?([^:/~][^:/]*(?:/.*)?)")
"""A source given as a relative path; a bare word without a slash is not a path."""
_PHRASES = {
    **PHRASES,
    "missing": "is missing",
    "string_type": "write it in quotes",
    "path_type": "write a path, in quotes",
    "tuple_type": "write it as a list, in brackets",
    "model_type": "write it as a table of settings",
    "dataclass_type": 'write a source as "pypi:name", or as a table with spec',
}
"""Error type to message, where pydantic's own message does not help the author of a TOML file."""


def _source_tables(value: object) -> object:
    """Return sources as a tuple of tables; a string becomes a table with only ``spec``. Raises :class:`ValueError`."""
    if isinstance(value, str):
        raise ValueError(f'write it as a list: sources = ["{value}"]')
    if isinstance(value, Mapping):
        raise ValueError("write [[sources]] with two brackets, once for each source")
    if not isinstance(value, (list, tuple)):
        raise ValueError('write it as a list: sources = ["pypi:name"], or as [[sources]] tables')
    return tuple({"spec": entry} if isinstance(entry, str) else entry for entry in value)


def _valid_source(source: SourceSpec) -> SourceSpec:
    """The source, with a subfolder that its spec names (``SPEC#subdirectory=FOLDER``) as one.

    Raises :class:`ValueError` for an empty spec or a limit below 1.
    """
    if not source.spec.strip():
        raise ValueError("spec is empty; name a source, for example pypi:toolz")
    if source.limit is not None and source.limit < 1:
        raise ValueError("limit has to be 1 or more; leave it out for the limit of the run")
    spec, _, subdir = source.spec.partition("#subdirectory=")
    return replace(source, spec=spec, subdir=source.subdir or subdir) if subdir else source


_ValidSource = Annotated[SourceSpec, AfterValidator(_valid_source)]


def _cutoff_text(value: object) -> object:
    """Return the cutoff as text (``auto``, empty or an ISO date), also for a TOML date. Raises :class:`ValueError`."""
    text = value.isoformat() if isinstance(value, date) else value
    if isinstance(text, str) and text not in ("", "auto"):
        try:
            datetime.fromisoformat(text)
        except ValueError:
            raise ValueError("write a date such as 2024-05-31, auto, or nothing") from None
    return text


class _Strict(BaseModel):
    """Base class: immutable, unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class VerdictSettings(_Strict):
    """Settings that can change a verdict; part of every stage's cache key."""

    baseline_runs: int = Field(default=2, ge=2)
    """Number of baseline runs of the original project; the last one is in random order. The coverage run is
    another: there, tests run alone, or in their own order and in reverse, and must pass too."""
    starved_runs: int = Field(default=4, ge=0)
    """Number of load-stress runs (parallel, in random order) of the original project; fewer for suites over 5 s, none
    for suites over 20 s."""
    gold_runs: int = Field(default=2, ge=1)
    """Number of runs with the gold patch applied, per accepted task; the last one is in random order."""
    repeat_share: float = Field(default=0.02, ge=0, le=1)
    """Share of the candidates whose forked test runs are all repeated in processes of their own; what these say counts,
    and `repos` has the number of candidates for which they differ."""
    suite_timeout_s: float = Field(default=1800.0, gt=0)
    """Time limit of one run of all tests in wall seconds."""
    test_timeout_s: float = Field(default=60.0, gt=0)
    """Time limit of one test in wall seconds."""
    install_timeout_s: float = Field(default=900.0, gt=0)
    """Time limit of one installation in wall seconds."""
    memory_mb: int = Field(default=4096, ge=64)
    """Memory limit of one sandbox in MiB."""
    pids: int = Field(default=256, ge=8)
    """Maximum number of processes in one sandbox."""
    disk_mb: int = Field(default=2048, ge=16)
    """Limit on the data that one sandbox may write, in MiB."""
    cpus: float | None = Field(default=None, ge=0.05)
    """CPU limit of one sandbox in cores; unset for no limit."""
    min_passing: int = Field(default=5, ge=1)
    """Minimum number of passing tests; projects with fewer are rejected."""
    min_pass_rate: float = Field(default=0.8, ge=0, le=1)
    """Minimum share of the executed tests that must pass."""
    max_f2p_share: float = Field(default=0.5, gt=0, le=1)
    """Maximum share of the tests that may execute a feature; above it, the code counts as core and is not deleted."""
    visibility: Visibility = Visibility.DOCSTRING
    """How much information the agent gets: from the statement only, or with ``tests`` also from tests in the tree, with
    ``sample_tests`` from a half of them."""
    sample_undescribed: bool = True
    """Where a task has no tests in sight and nothing says what the code does, show a half of the tests
    (``sample_tests``) rather than refuse it; and all tests, where they are cases of functions that test other code,
    too, and cannot be hidden alone."""
    cutoff: Annotated[str, BeforeValidator(_cutoff_text)] = "auto"
    """Install only releases before this date; ``auto`` for the date of the sources, empty for no limit."""

    def merged_with(self, stored: Mapping[str, Any]) -> VerdictSettings:
        """Return the ``stored`` settings, overridden by those set explicitly here. Unknown names are ignored."""
        kept = {name: value for name, value in stored.items() if name in VerdictSettings.model_fields}
        explicit = {name: getattr(self, name) for name in self.model_fields_set}
        return VerdictSettings.model_validate(kept | explicit)


class ModelSettings(_Strict):
    """The endpoint of a model (OpenAI-compatible) and the budget of one job. API keys come from the environment."""

    base_url: str = ""
    """URL of the endpoint, for example ``http://localhost:8000/v1``."""
    model: str = ""
    """Name of the model at the endpoint; empty to use no model."""
    api_key_env: str = ""
    """Name of the environment variable that holds the API key; empty for endpoints without a key."""
    temperature: float = Field(default=0.0, ge=0, le=2)
    """Sampling temperature."""
    tool_calls: Literal["native", "text"] = "native"
    """``text`` for endpoints without tool calling: tool calls are then sent and parsed as text."""
    prompt_price: float = Field(default=0.0, ge=0)
    """Price of a million prompt tokens, in any currency."""
    completion_price: float = Field(default=0.0, ge=0)
    """Price of a million completion tokens."""
    max_tokens: int = Field(default=2_000_000, ge=1)
    """Maximum number of prompt and completion tokens of one job."""
    max_cost: float = Field(default=2.0, ge=0)
    """Maximum cost of one job in the currency of the prices; 0 for no limit."""
    max_wall_s: float = Field(default=3600.0, gt=0)
    """Time limit of one job in wall seconds."""
    max_reply_tokens: int = Field(default=4096, ge=16)
    """Maximum number of tokens of one reply."""
    call_timeout_s: float = Field(default=300.0, gt=0)
    """Time limit of one request in wall seconds."""
    context_chars: int = Field(default=240_000, ge=4000)
    """Maximum length of a conversation in characters; above it, the oldest tool results are dropped."""
    replay: Path | None = None
    """Path of a transcript or a folder of transcripts to replay in place of a model."""
    solve_attempts: int = Field(default=0, ge=0, le=64)
    """Attempts of the model at each task, which is refused if none of them solves it; 0 for no attempts."""
    solve_steps: int = Field(default=40, ge=1)
    """Maximum number of replies in one attempt."""
    propose_features: int = Field(default=0, ge=0, le=100)
    """Features of each project that the model proposes beside those that are found; 0 for none."""
    propose_steps: int = Field(default=40, ge=1)
    """Maximum number of replies for one proposal."""
    write_statements: tuple[StatementStyle, ...] = ()
    """Styles in which the model writes a statement of each task, beside the deterministic ones; empty for none."""

    @field_validator("base_url")
    @classmethod
    def _url_without_credentials(cls, url: str) -> str:
        if url and not re.fullmatch(r"https?://[^/@\s]+(/[^@\s]*)?", url):
            raise ValueError("write http(s)://host[:port]/path, without a user or key; see api_key_env")
        return url

    @field_validator("api_key_env")
    @classmethod
    def _variable_name(cls, name: str) -> str:
        if name and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise PydanticCustomError("not_a_name", "give the NAME of an environment variable, never the key itself")
        return name

    @property
    def is_configured(self) -> bool:
        """Whether the settings name a model, which may be a recorded one."""
        return bool(self.model)


class DockerSettings(_Strict):
    """Settings of the Docker backend, used with ``sandbox = "docker"``."""

    base_image: str = Field(default="host", min_length=1)
    """Base image of environments: ``host`` (the system of this machine), ``debootstrap``, or the name of an image."""
    network: str = ""
    """Docker network for installations; empty for the default bridge, or the host's network without one."""
    runtime: str = ""
    """Container runtime, such as ``runsc`` for gVisor; empty for Docker's default."""


def _command(text: str) -> str:
    """Return a command line unchanged. Raises :class:`ValueError` if its quotes do not match."""
    try:
        shlex.split(text)
    except ValueError as error:
        raise ValueError(f"write a command with matching quotes ({error})") from None
    return text


class RefreshSettings(_Strict):
    """What ``excise refresh`` does after it has published."""

    reverify: int = Field(default=0, ge=0)
    """Number of published tasks that each refresh proves again, those proved longest ago first; 0 for none."""
    reverify_wall_s: float = Field(default=3600.0, gt=0)
    """Wall seconds after which no further task is begun to be proved again."""
    report_hook: Annotated[str, AfterValidator(_command)] = ""
    """Command that gets the report as JSON on its standard input; started without a shell. Empty for none."""
    report_hook_timeout_s: float = Field(default=60.0, gt=0)
    """Time limit of that command in wall seconds."""


class Settings(_Strict):
    """All settings of ``excise generate`` and ``excise refresh``."""

    sources: Annotated[tuple[_ValidSource, ...], BeforeValidator(_source_tables)] = ()
    """Sources to make tasks from; a later list replaces an earlier one."""
    out: Path = Field(default_factory=lambda: Path.cwd() / "excise-out")
    """Folder of the task set; ``excise-out`` in the working directory by default."""
    cache: Path = Field(default_factory=lambda: default_cache())
    """Cache folder for mirrors, environments and results of stages."""
    limit: int | None = Field(default=None, ge=1)
    """Maximum number of tasks per source; unset for no limit."""
    total: int | None = Field(default=None, ge=1)
    """Number of tasks of all sources after which `generate` ends; cheap sources then come first. Unset for no limit."""
    workers: int = Field(default_factory=lambda: max(1, os.cpu_count() or 1), ge=1)
    """Number of local worker processes; 1 runs everything in the main process. Unused with a scheduler."""
    scheduler: str = ""
    """Address of a Dask scheduler; empty for worker processes on this machine."""
    artifacts: str = "main"
    """How workers of a scheduler get sources and environments: ``main``, from this process through the scheduler;
    ``s3://bucket/folder`` or ``file:///folder``, from there; ``shared``: all machines see the same ``cache`` and
    ``out``."""
    sandbox: str = "bubblewrap"
    """Name of the sandbox backend: ``bubblewrap`` or ``docker``."""
    lenient_sandbox: bool = False
    """Whether to run if the sandbox cannot enforce a limit on this machine; otherwise that is an error."""
    docker: DockerSettings = DockerSettings()
    """Settings of the Docker backend."""
    seed: int = 0
    """Seed of the order in which features are tried."""
    verdict: VerdictSettings = VerdictSettings()
    """Settings that can change a verdict."""
    model: ModelSettings = ModelSettings()
    """The model for model-driven parts, such as the installer."""
    refresh: RefreshSettings = RefreshSettings()
    """What ``excise refresh`` does after it has published."""


def default_cache() -> Path:
    """Return the absolute path of the cache: ``$EXCISE_CACHE``, ``$XDG_CACHE_HOME/excise`` or ``~/.cache/excise``."""
    if explicit := os.environ.get("EXCISE_CACHE"):
        return absolute_path(Path.cwd(), explicit)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "excise"


def load(
    files: Sequence[Path] = (),
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
    **direct: Any,
) -> Settings:
    """Load settings.

    ``files`` are TOML files, later ones override earlier ones. Variables ``EXCISE_A__B=value`` and ``overrides``
    ``a.b=value`` hold TOML values (a bare word is a string). ``direct`` are values of command-line options (``None`` is
    ignored). Raises :class:`ConfigError` that names the file, variable or option, the key and the expected value.
    """
    merged: dict[str, Any] = {}
    for path in files:
        merge(merged, _validate(_read_file(path), str(path)))
    options = ((f"--{name}", {name: value}) for name, value in direct.items() if value is not None)
    example = "verdict.gold_runs=5"
    sets = ((f"--set {item}", parse_override(item, example, _PATHS)) for item in overrides)
    for origin, values in (*_environment_values(environ), *sets, *options):
        merge(merged, _validate(with_absolute_paths(values, Path.cwd(), _PATHS), origin))
    return Settings.model_validate(merged)


def with_sources(settings: Settings, specs: Sequence[str]) -> Settings:
    """Return the settings with further sources appended. Raises :class:`ConfigError` for an empty spec."""
    added = Settings.model_validate(_validate({"sources": list(specs)}, "sources")).sources
    return settings.model_copy(update={"sources": (*settings.sources, *added)})


def specs_in(path: Path) -> list[str]:
    """Return the sources in a file, one a line; ``#`` begins a comment, and relative paths belong to the file's folder.

    Raises :class:`ConfigError` if the file cannot be read or names no source.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in text.splitlines())
    specs = [str(_resolve_source(line, path.parent.resolve())) for line in lines if line]
    if not specs:
        raise ConfigError(f"{path} names no source. Write one a line, such as pypi:toolz.")
    return specs


def setting_key(variable: str) -> str:
    """Return the dotted key of the setting that an environment variable sets; empty for any other variable."""
    if not variable.startswith("EXCISE_"):
        return ""
    key = variable.removeprefix("EXCISE_").lower().replace("__", ".")
    return key if key.partition(".")[0] in Settings.model_fields else ""


def environment_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that are settings; their paths are made absolute, to be valid in any folder."""
    variables = {}
    for name, value in sorted(environ.items()):
        key = setting_key(name)
        if key and (value or key not in _PATHS):  # an empty path counts as unset
            variables[name] = (
                str(absolute_path(Path.cwd(), parse_value(value, is_path=True))) if key in _PATHS else value
            )
    return variables


def _read_file(path: Path) -> dict[str, Any]:
    values = read_toml(path)
    folder = path.parent.resolve()
    if isinstance(values.get("sources"), list):
        values["sources"] = [_resolve_source(entry, folder) for entry in values["sources"]]
    return with_absolute_paths(values, folder, _PATHS)


def _environment_values(environ: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, value in environment_settings(environ).items():
        yield name, nested(setting_key(name), value, _PATHS)


def _resolve_source(entry: object, folder: Path) -> object:
    """Return an entry of a file's sources, with a relative path resolved against the file's folder."""
    if isinstance(entry, Mapping):
        return (
            {**entry, "spec": _resolve_source(entry["spec"], folder)} if isinstance(entry.get("spec"), str) else entry
        )
    match = _RELATIVE_SOURCE.fullmatch(entry) if isinstance(entry, str) else None
    if match is None or not (match[1] or "/" in match[2] or match[2] in (".", "..")):
        return entry  # pypi:name, a URL, an absolute path, a bare word
    return f"{match[1] or ''}{absolute_path(folder, match[2])}"


def _validate(values: dict[str, Any], origin: str) -> dict[str, Any]:
    validated(Settings, values, origin, phrases=_PHRASES, hides="model.")  # values of these settings may be API keys
    return values
