"""Reads ``Cargo.toml`` without running anything, and reduces it to what the tests of the crate need.

cargo resolves every dependency that a manifest names, also those of benchmarks, of features that are off, and of other
systems. So these go, with benchmarks, examples and tests that need what is not there.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from excise.errors import EnvironmentFailure

Table = dict[str, Any]

_DROPPED = frozenset({"workspace", "readme", "publish", "exclude", "include", "metadata", "default-run"})
"""Keys of ``[package]`` that no build needs."""
_NAMES_SOURCES = re.compile(r"\binclude(?:_str|_bytes)?\s*!|#\s*\[\s*path\b|(?m:^\s*mod\s+\w+\s*;)")
_CONDITION = re.compile(r'\b(not|all|any)\s*\(|(\w+)(?:\s*=\s*"([^"]*)")?|(\))|(,)')
_TRUE_HERE = {
    ("unix", None), ("target_os", "linux"), ("target_family", "unix"), ("target_pointer_width", "64"), ("test", None),
    ("target_env", "gnu"), ("target_endian", "little"), ("debug_assertions", None),
}  # fmt: skip
"""Conditions that hold on the machines that tests run on, whatever their processor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrateManifest:
    """What is known of a crate, and what its reduced manifest has."""

    name: str
    """Name of the package."""
    library: str
    """Name of the crate in code."""
    reduced: Table
    """The manifest that builds and tests use."""
    left_out: tuple[str, ...] = ()
    """Tests that need crates that are not there, as paths."""
    dependencies: tuple[str, ...] = field(default=())
    """Names of the packages that it needs."""
    members: tuple[str, ...] = ()
    """Those of them that the repository has in another folder."""

    def described(self) -> dict[str, Table]:
        """Name to description of all dependencies that are left."""
        kinds = ("dependencies", "build-dependencies", "dev-dependencies")
        return {name: found for kind in kinds for name, found in self.reduced.get(kind, {}).items()}

    def with_any_for_tests(self) -> CrateManifest:
        """The same with any version of the packages that only tests need."""
        kind = "dev-dependencies"
        free = {name: {**found, "version": "*"} for name, found in self.reduced.get(kind, {}).items()}
        return replace(self, reduced={**self.reduced, **({kind: free} if free else {})})


def read_manifest(root: Path, available: Collection[str]) -> CrateManifest:
    """Read and reduce the manifest in ``root``; ``available`` are the names of the packages on this machine.

    Raises :class:`EnvironmentFailure` (``no_manifest``, ``workspace``, ``proc_macro``, ``build_script``,
    ``missing_dependency``).
    """
    whole = _parsed(root)
    package = _package(whole)
    library = dict(whole.get("lib", {}))
    if library.get("proc-macro") or library.get("proc_macro"):
        raise EnvironmentFailure(
            "The crate is a procedural macro: it would run while the tests of a solution are compiled.",
            reason="proc_macro",
        )
    _check_build_script(root, package)
    on = _features_on(whole)
    needed = {
        kind: {n: d for n, d in _dependencies(whole, kind).items() if not d.get("optional") or n in on}
        for kind in ("dependencies", "build-dependencies")
    }
    tests = list(_tests(root, whole, on))
    development, left_out = _development(root, whole, tests, available)
    needed["dev-dependencies"] = development
    packages = sorted({str(d.get("package", n)) for kind in needed.values() for n, d in kind.items()})
    if missing := [name for name in packages if name not in available]:
        raise _missing(missing)
    kept = {name for name, d in needed["dependencies"].items() if d.get("optional")}
    reduced: Table = {
        "package": {**package, "autotests": False, "autobenches": False, "autoexamples": False},
        **({"lib": library} if library else {}),
        "features": _features(whole, needed["dependencies"], kept),
        **{kind: {n: _plain(d) for n, d in found.items()} for kind, found in needed.items()},
        "bin": [b for b in whole.get("bin", []) if set(b.get("required-features", [])) <= on],
        "test": [t for t in tests if t["path"] not in left_out],
        "workspace": {},
    }
    plain = str(library.get("name", package["name"])).replace("-", "_")
    return CrateManifest(
        name=str(package["name"]),
        library=plain,
        reduced={key: value for key, value in reduced.items() if value or key == "workspace"},
        left_out=tuple(sorted(left_out)),
        dependencies=tuple(packages),
        members=tuple(
            sorted(str(d.get("package", n)) for kind in needed.values() for n, d in kind.items() if "path" in d)
        ),
    )


def holds(condition: str) -> bool:
    """Whether a condition of ``[target.'cfg(…)']`` holds on the machines that tests run on."""
    if not condition.startswith("cfg("):
        return "linux-gnu" in condition
    tokens = list(_CONDITION.finditer(condition[4:-1]))

    def read(at: int) -> tuple[bool, int]:
        match = tokens[at]
        if match[1]:
            values, at = [], at + 1
            while at < len(tokens) and not tokens[at][4]:
                value, at = read(at) if not tokens[at][5] else (None, at + 1)
                values += [] if value is None else [value]
            result = {"not": not any(values), "all": all(values), "any": any(values)}[match[1]]
            return result, at + 1
        return (match[2], match[3]) in _TRUE_HERE, at + 1

    return read(0)[0] if tokens else False


# ------------------------------------------------------------------------------------------- reading
def _parsed(root: Path) -> Table:
    try:
        return tomllib.loads((root / "Cargo.toml").read_text("utf-8"))
    except FileNotFoundError:
        raise EnvironmentFailure("The project has no Cargo.toml in its main folder.", reason="no_manifest") from None
    except (OSError, ValueError) as error:
        raise EnvironmentFailure(f"Cargo.toml cannot be read: {error}", reason="no_manifest") from None


def _package(whole: Table) -> Table:
    package = whole.get("package") or whole.get("project")
    if not isinstance(package, dict) or "name" not in package:
        table = whole.get("workspace")
        listed = table.get("members") if isinstance(table, dict) else None
        members = ", ".join(map(str, listed[:5] if isinstance(listed, list) else ()))
        raise EnvironmentFailure(
            f"Cargo.toml describes a workspace ({members}), and no crate: name the folder of one, by "
            f"`subdir` or `SOURCE#subdirectory=FOLDER`.",
            reason="workspace",
        )
    shared = whole.get("workspace", {}).get("package", {})
    found = {}
    for key, value in package.items():
        if key in _DROPPED:
            continue
        if isinstance(value, dict) and value.get("workspace"):
            if key not in shared:
                raise EnvironmentFailure(f"Cargo.toml takes {key} from another folder's.", reason="workspace")
            found[key] = shared[key]
        else:
            found[key] = value
    return found


def _check_build_script(root: Path, package: Table) -> None:
    script = package.get("build", "build.rs")
    path = root / str(script)
    if script is False or not path.is_file():
        return
    if str(script) != "build.rs" or _NAMES_SOURCES.search(path.read_text("utf-8", "replace")):
        raise EnvironmentFailure(
            f"The build script {script} uses other files of the project: what a solution puts there would run while it "
            f"is compiled.",
            reason="build_script",
        )


def _dependencies(whole: Table, kind: str) -> dict[str, Table]:
    """Name to description of the dependencies of a kind that this system needs."""
    tables = [whole.get(kind, {}), whole.get(kind.replace("-", "_"), {})]
    tables += [t.get(kind, {}) for condition, t in whole.get("target", {}).items() if holds(condition)]
    shared = whole.get("workspace", {}).get("dependencies", {})
    found: dict[str, Table] = {}
    for table in tables:
        for name, value in table.items():
            description = {"version": value} if isinstance(value, str) else dict(value)
            if description.pop("workspace", False):
                base = shared.get(name, "*")
                description = {**({"version": base} if isinstance(base, str) else base), **description}
            found[name] = description
    return found


def _features_on(whole: Table) -> set[str]:
    """Features, and optional dependencies, that are on by default."""
    features, on, pending = whole.get("features", {}), set[str](), ["default"]
    while pending:
        name = pending.pop()
        if name in on:
            continue
        on.add(name)
        for each in features.get(name, []):
            if "?" not in each:
                pending.append(each.removeprefix("dep:").partition("/")[0])
    return on


def _features(whole: Table, dependencies: Mapping[str, Table], kept: Collection[str]) -> Table:
    """The features without what they switch on in dependencies that are gone."""
    features = whole.get("features", {})
    every = _dependencies(whole, "dependencies")

    def stays(entry: str) -> bool:
        name = entry.removeprefix("dep:").partition("/")[0].removesuffix("?")
        if entry.startswith("dep:") or "/" in entry:
            return name in dependencies
        return name in features or name in kept or name not in every

    return {name: [entry for entry in entries if stays(entry)] for name, entries in features.items()}


def _tests(root: Path, whole: Table, on: Collection[str]) -> Iterator[Table]:
    """The integration tests: those that the manifest names, and those that cargo finds."""
    named = [dict(each) for each in whole.get("test", [])]
    for each in named:
        each.setdefault("path", f"tests/{each.get('name', '')}.rs")
    package = whole.get("package", {})
    if package.get("autotests", True):
        paths = {each["path"] for each in named}
        for path in sorted((root / "tests").glob("*.rs")) + sorted((root / "tests").glob("*/main.rs")):
            name = path.parent.name if path.name == "main.rs" else path.stem
            relative = path.relative_to(root).as_posix()
            if relative not in paths and all(each.get("name") != name for each in named):
                named.append({"name": name, "path": relative})
    for each in named:
        wanted = set(each.get("required-features", []))
        if (
            each.get("harness", True)
            and each.get("test", True)
            and wanted <= set(on)
            and (root / each["path"]).is_file()
        ):
            yield each


def _development(
    root: Path, whole: Table, tests: list[Table], available: Collection[str]
) -> tuple[dict[str, Table], set[str]]:
    """Dependencies that sources and tests use, and the tests that need others. Raises :class:`EnvironmentFailure`."""
    sources = _code([*(root / "src").rglob("*.rs")])
    helpers = {path: _code([path]) for path in (root / "tests").rglob("*.rs")}
    kept: dict[str, Table] = {}
    left_out: set[str] = set()
    missing = []
    for name, description in _dependencies(whole, "dev-dependencies").items():
        word = name.replace("-", "_")
        use = re.compile(rf"\b{word}\s*(?:::|!)|\buse\s+(?:::)?{word}\b|\bextern\s+crate\s+{word}\b")
        users = {path.relative_to(root).as_posix() for path, code in helpers.items() if use.search(code)}
        is_there = str(description.get("package", name)) in available
        if not use.search(sources) and not users:
            continue
        if is_there:
            kept[name] = description
        elif use.search(sources):
            missing.append(str(description.get("package", name)))
        else:
            left_out |= {each["path"] for each in tests if _uses_any(root, each["path"], users)}
    if missing:
        raise _missing(missing)
    return kept, left_out


def _uses_any(root: Path, test: str, users: Collection[str]) -> bool:
    """Whether a test is, or has as a module, one of some files."""
    if test in users:
        return True
    modules = set(re.findall(r"\bmod\s+(\w+)\s*;", _code([root / test])))
    return any(path.split("/")[1].removesuffix(".rs") in modules for path in users)


def _code(paths: Collection[Path]) -> str:
    """Texts of files, without comments to the end of a line."""
    return "\n".join(re.sub(r"//[^\n]*", "", path.read_text("utf-8", "replace")) for path in paths)


def _missing(names: Collection[str]) -> EnvironmentFailure:
    packages = ", ".join(f"librust-{name.lower().replace('_', '-')}-dev" for name in sorted(names)[:5])
    return EnvironmentFailure(
        f"The crate needs {', '.join(sorted(names)[:5])}, which neither this machine nor Debian's archive has under "
        f"its usual name ({packages}): install Debian's package, if there is one, or take another release of it.",
        reason="missing_dependency",
    )


def _plain(description: Table) -> Table:
    """A dependency as a registry has it."""
    kept = {"version", "optional", "default-features", "default_features", "features", "package"}
    found = {key: value for key, value in description.items() if key in kept}
    return found if "version" in found else {**found, "version": "*"}
