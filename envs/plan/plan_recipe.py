"""Plans the recipe of an environment from a project's manifests: deterministic, without a model or a network."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from excise.envs.interpreters import Interpreter, choose, fits
from excise.envs.manifests.manifest import Manifest
from excise.envs.manifests.read_manifest import read_manifest
from excise.envs.plan.plugin_names import CORE_KEYS, TOOL_MARKERS
from excise.envs.plan.project_layout import find_layout
from excise.envs.plan.pytest_command import common_pytest_command
from excise.envs.plan.pytest_options import safe_addopts
from excise.envs.plan.requirements_of_tests import requirements_of_tests
from excise.envs.plan.scan_tests import TestUsage, find_tests, scan_tests
from excise.errors import EnvironmentFailure
from excise.types import Recipe, Repo, SourceSpec

PREFERRED_NEWEST = (3, 13)
"""Newer interpreters are chosen only if the project admits no older one."""

_RELEASE_DATES = {
    (3, 8): "2019-10-14",
    (3, 9): "2020-10-05",
    (3, 10): "2021-10-04",
    (3, 11): "2022-10-24",
    (3, 12): "2023-10-02",
    (3, 13): "2024-10-07",
    (3, 14): "2025-10-07",
}
_SUPPORTED_AFTER = timedelta(days=540)
"""Time after an interpreter's release until test tools support it."""
_EDITABLE_SINCE = datetime(2022, 9, 1, tzinfo=UTC)
"""Date from which the common build backends support editable installs (PEP 660)."""
_NOT_EDITABLE = ("mesonpy", "scikit_build_core", "maturin", "py_build_cmake", "sipbuild")
"""Backends whose editable installs need the build folder or build tools again at every import."""
_STRICT_KEYS = ("strict", "strict_config", "strict_markers")
"""Settings with which pytest rejects unknown settings and markers."""


def plan_recipe(root: Path, repo: Repo, spec: SourceSpec, interpreters: Sequence[Interpreter], cutoff: str) -> Recipe:
    """Plan the recipe for the project in ``root``.

    Only releases before ``cutoff`` (an ISO date; empty for all) are installed. The date is moved forward to the time
    when the interpreter and editable installs were supported: a project of 2014 needs a test runner and a build backend
    that support its interpreter. Raises :class:`EnvironmentFailure` (``no_tests``, ``python_unavailable``).
    """
    manifest = read_manifest(root)
    command = common_pytest_command(root, manifest)
    test_paths, files = find_tests(root, manifest, command.paths)
    if not test_paths:
        raise EnvironmentFailure(
            f"{repo.repo} {repo.version}: no tests in its files. Source distributions often leave them out; "
            f"try its git URL.",
            reason="no_tests",
        )
    interpreter, why = choose_interpreter(manifest, repo, spec, interpreters)
    roots, packages = find_layout(root, manifest)
    usage = scan_tests(files)
    local = _local_names(root, (*roots, *test_paths, ".")) | set(packages)
    found = requirements_of_tests(manifest, usage, local, interpreter.version)
    limit = _cutoff(cutoff, interpreter)
    return Recipe(
        python=interpreter.version,
        requirements=_with_spec(spec, list(found.by_name.values())),
        constraints=tuple(f"{name}=={version}" for name, version in manifest.locked.items()),
        extras=tuple(dict.fromkeys((*found.extras, *spec.extras))),
        editable=_install_mode(manifest),
        roots=roots,
        packages=packages,
        env=manifest.test_env,
        test_args=(
            *safe_addopts(manifest.addopts),
            *command.arguments,
            *_relax_strictness(manifest, usage),
            *spec.test_args,
        ),
        test_paths=test_paths,
        system_packages=manifest.system_packages,
        cutoff=limit,
        evidence=(why, *manifest.evidence, *found.evidence),
    )


def choose_interpreter(
    manifest: Manifest, repo: Repo, spec: SourceSpec, interpreters: Sequence[Interpreter]
) -> tuple[Interpreter, str]:
    """Choose the interpreter; return it with the reason in one line.

    Candidates are admitted by ``requires-python``. Preferred are those that the project's CI runs or its classifiers
    name, then those not newer than 3.13 and released at most one year after the sources; of these, the newest.
    """
    if spec.python:
        return choose(spec.python, interpreters), f"sources file: python {spec.python}"
    required = _specifier(manifest.requires_python)
    admitted = [i for i in interpreters if fits(required or ">=3", i.version)]
    if not admitted:
        choose(required or ">=3", interpreters)
    declared = {*manifest.tested_pythons, *manifest.classifier_pythons}
    known = [i for i in admitted if ".".join(map(str, i.minor)) in declared] or admitted
    preferred = [i for i in known if i.minor <= PREFERRED_NEWEST] or known
    chosen = preferred[-1]
    if repo.created_at:
        latest = datetime.fromisoformat(repo.created_at) + timedelta(days=365)
        chosen = ([i for i in preferred if _release_date(i) <= latest] or preferred[:1])[-1]
    because = [f"requires-python {required}"] if required else []
    because += [f"declared {', '.join(sorted(declared, key=_number))}"] if declared else []
    because += [f"sources of {repo.created_at[:10]}"] if repo.created_at else []
    return chosen, f"python {chosen.version}: {'; '.join(because) or 'nothing is said about it'}"


def _install_mode(manifest: Manifest) -> str:
    if not manifest.build_backend:
        return "path"
    return "wheel" if manifest.build_backend.startswith(_NOT_EDITABLE) else "editable"


def _release_date(interpreter: Interpreter) -> datetime:
    return datetime.fromisoformat(_RELEASE_DATES[interpreter.minor]).replace(tzinfo=UTC)


def _cutoff(cutoff: str, interpreter: Interpreter) -> str:
    if not cutoff:
        return ""
    date = datetime.fromisoformat(cutoff)
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(date, _release_date(interpreter) + _SUPPORTED_AFTER, _EDITABLE_SINCE).strftime("%Y-%m-%dT%H:%M:%SZ")


def _specifier(text: str) -> str:
    """The text if it is a valid specifier, else empty; old manifests hold any text."""
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        return ""
    return text


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _local_names(root: Path, folders: Sequence[str]) -> frozenset[str]:
    """Import names that the repository's own files provide to its tests."""
    names: set[str] = set()
    for folder in dict.fromkeys(folders):
        base = root / folder
        for path in (base, *(p for p in base.rglob("*") if p.is_dir())) if base.is_dir() and folder != "." else (base,):
            if path.is_dir():
                names |= {p.stem for p in path.glob("*.py")} | {p.name for p in path.iterdir() if p.is_dir()}
    return frozenset(names)


def _with_spec(spec: SourceSpec, found: list[str]) -> tuple[str, ...]:
    """Requirements of the sources file, which replace those found for the same distribution."""
    asked = {_distribution(text) for text in spec.requirements}
    return (*spec.requirements, *(text for text in found if _distribution(text) not in asked))


def _distribution(text: str) -> str:
    try:
        return canonicalize_name(Requirement(text).name)
    except InvalidRequirement:
        return text


def _relax_strictness(manifest: Manifest, usage: TestUsage) -> tuple[str, ...]:
    """Return arguments that make pytest accept settings and markers of plugins that are not installed.

    Nothing is added unless it is needed, because a warning filter on the command line also affects child processes.
    """
    arguments = [word for key in _STRICT_KEYS if key in manifest.pytest_keys for word in ("-o", f"{key}=false")]
    if manifest.strict_warnings and set(manifest.pytest_keys) - CORE_KEYS:
        arguments += ["-W", "ignore::pytest.PytestConfigWarning"]
    if manifest.strict_warnings and usage.markers & TOOL_MARKERS:
        arguments += ["-W", "ignore::pytest.PytestUnknownMarkWarning"]
    return tuple(arguments)
