"""Reader of pyproject.toml: PEP 621 and 735, poetry, pdm, flit, hatch, setuptools."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from packaging.utils import canonicalize_name

from excise.envs.manifests.manifest import Manifest, table, words

_FILE = "pyproject.toml"


def load_pyproject(root: Path) -> dict[str, object]:
    """The parsed pyproject.toml; empty if it is missing or invalid."""
    return _toml(root / _FILE)


def _toml(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def static_metadata(root: Path, version: str) -> str:
    """A pyproject.toml with the project's requirements, from which they are read without building the project.

    Empty if its own pyproject.toml does not fix them: it has no ``[project]``, a tool computes them, or tools may read
    them from somewhere else.
    """
    data = load_pyproject(root)
    project, tools = table(data, "project"), table(data, "tool")
    computed = {"dependencies", "optional-dependencies"} & {*words(project.get("dynamic"))}
    if not _text(project.get("name")) or computed or tools.keys() & {"uv", "poetry"}:
        return ""
    lines = ["[project]", f"name = {_quoted(_text(project['name']))}", f"version = {_quoted(version)}"]
    if requires_python := _text(project.get("requires-python")):
        lines.append(f"requires-python = {_quoted(requires_python)}")
    lines.append(f"dependencies = {_list(project.get('dependencies'))}")
    lines.append("[project.optional-dependencies]")
    lines += (
        f"{_quoted(extra)} = {_list(wanted)}" for extra, wanted in table(project, "optional-dependencies").items()
    )
    return "".join(f"{line}\n" for line in lines)


def _list(texts: object) -> str:
    return f"[{', '.join(map(_quoted, words(texts)))}]"


def _quoted(text: str) -> str:
    """A string of TOML; all that JSON escapes is escaped in the same way."""
    return json.dumps(text, ensure_ascii=False)


def read_pyproject(root: Path) -> Manifest:
    """Read what pyproject.toml declares about installing (but not about pytest and tox)."""
    data = load_pyproject(root)
    if not data:
        return Manifest()
    if hatch := _toml(root / "hatch.toml"):
        data = {**data, "tool": {**table(data, "tool"), "hatch": hatch | table(data, "tool", "hatch")}}
    project, poetry = table(data, "project"), table(data, "tool", "poetry")
    flit = table(data, "tool", "flit", "metadata")
    requires_python = (
        _text(project.get("requires-python"))
        or poetry_specifier(_text(table(poetry, "dependencies").get("python")))
        or _text(flit.get("requires-python"))
    )
    groups = _groups(data)
    roots, packages = _layout(data)
    return Manifest(
        name=_text(project.get("name"))
        or _text(poetry.get("name"))
        or _text(flit.get("dist-name") or flit.get("module")),
        requires_python=requires_python,
        classifier_pythons=pythons_of(words(project.get("classifiers") or poetry.get("classifiers"))),
        dependencies=words(project.get("dependencies"))
        or poetry_requirements(table(poetry, "dependencies"))
        or words(flit.get("requires")),
        extras=_extras(data),
        groups=groups,
        test_extras=_hatch(data, "features"),
        test_groups=_hatch(data, "dependency-groups"),
        source_roots=roots,
        packages=packages,
        build_backend=_text(table(data, "build-system").get("build-backend")) or "setuptools",
        has_extensions=_compiles(data),
        evidence=tuple(
            f"{_FILE}: {line}"
            for line in (
                f"requires-python {requires_python}" if requires_python else "",
                f"groups {', '.join(groups)}" if groups else "",
            )
            if line
        ),
    )


def pythons_of(classifiers: tuple[str, ...]) -> tuple[str, ...]:
    """Minor versions of Python 3 in trove classifiers."""
    found = (re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", text.strip()) for text in classifiers)
    return tuple(match[1] for match in found if match)


def poetry_specifier(version: str) -> str:
    """Convert a version constraint of poetry to a PEP 440 specifier (``^1.2`` is ``>=1.2,<2``, ``*`` is empty)."""
    parts = [_constraint(part.strip()) for part in version.rpartition("||")[2].split(",")]
    return ",".join(part for part in parts if part)


def _constraint(text: str) -> str:
    if text in ("", "*"):
        return ""
    match = re.fullmatch(r"([\^~])\s*(\d+(?:\.\d+)*)(.*)", text)
    if not match:
        return f"=={text}" if text[0].isdigit() else text.replace(" ", "")
    sign, version, _ = match.groups()
    numbers = [int(n) for n in version.split(".")]
    first = next((i for i, n in enumerate(numbers) if n), len(numbers) - 1)
    keep = first if sign == "^" else min(1, len(numbers) - 1)
    upper = [*numbers[:keep], numbers[keep] + 1]
    return f">={version},<{'.'.join(map(str, upper))}"


def poetry_requirements(dependencies: Mapping[str, object], *, optional: bool = False) -> tuple[str, ...]:
    """Convert a dependency table of poetry or a Pipfile to requirements; those from git or paths are left out."""
    found = []
    for name, value in dependencies.items():
        if name.lower() == "python":
            continue
        entry = value[0] if isinstance(value, list) and value else value
        entry = {"version": entry} if isinstance(entry, str) else entry
        if not isinstance(entry, dict) or "version" not in entry or (entry.get("optional") and not optional):
            continue
        extras = f"[{','.join(words(entry.get('extras')))}]" if entry.get("extras") else ""
        marker = f" ; {entry['markers']}" if entry.get("markers") else ""
        found.append(f"{name}{extras}{poetry_specifier(_text(entry['version']))}{marker}")
    return tuple(found)


def _extras(data: dict[str, object]) -> dict[str, tuple[str, ...]]:
    extras = {name: words(value) for name, value in table(data, "project", "optional-dependencies").items()}
    flit = table(data, "tool", "flit", "metadata", "requires-extra")
    extras |= {name: words(value) for name, value in flit.items() if name not in extras}
    poetry = table(data, "tool", "poetry")
    known = {
        re.split(r"[\[<>=!~; ]", r)[0]: r for r in poetry_requirements(table(poetry, "dependencies"), optional=True)
    }
    for name, value in table(poetry, "extras").items():
        extras.setdefault(name, tuple(known.get(item, item) for item in words(value)))
    return extras


_HATCH_NAMES = {"default": "dev", "hatch-test": "test"}


def hatch_environments(data: dict[str, object]) -> dict[str, object]:
    """Tables of hatch's environments by name."""
    return table(data, "tool", "hatch", "envs")


def _hatch(data: dict[str, object], key: str) -> tuple[str, ...]:
    """``features`` (extras) or ``dependency-groups`` of hatch's environments for tests."""
    environments = hatch_environments(data).items()
    chosen = [table(value) for name, value in environments if re.search("test|default", name)]
    return tuple(dict.fromkeys(item for entry in chosen for item in words(entry.get(key))))


def _groups(data: dict[str, object]) -> dict[str, tuple[str, ...]]:
    raw = table(data, "dependency-groups")
    groups = {name: _expand(name, raw, ()) for name in raw}
    for name, value in table(data, "tool", "poetry", "group").items():
        groups.setdefault(name, poetry_requirements(table(value, "dependencies")))
    if old := poetry_requirements(table(data, "tool", "poetry", "dev-dependencies")):
        groups.setdefault("dev", old)
    for name, value in table(data, "tool", "pdm", "dev-dependencies").items():
        groups.setdefault(name, words(value))
    for name, value in hatch_environments(data).items():
        both = (*words(table(value).get("dependencies")), *words(table(value).get("extra-dependencies")))
        if both:
            groups.setdefault(_HATCH_NAMES.get(name, name), both)
    if uv := words(table(data, "tool", "uv").get("dev-dependencies")):
        groups.setdefault("dev", uv)
    return groups


def _expand(name: str, raw: Mapping[str, object], seen: tuple[str, ...]) -> tuple[str, ...]:
    """The requirements of a PEP 735 group and of the groups that it includes."""
    by_name = {canonicalize_name(key): value for key, value in raw.items()}
    entries = by_name.get(canonicalize_name(name))
    if name in seen or not isinstance(entries, list):
        return ()
    found: list[str] = []
    for entry in entries:
        if isinstance(entry, str):
            found.append(entry)
        elif isinstance(entry, dict) and isinstance(entry.get("include-group"), str):
            found += _expand(entry["include-group"], raw, (*seen, name))
    return tuple(dict.fromkeys(found))


def _layout(data: dict[str, object]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(source roots, top-level names) in the build configuration."""
    roots: list[str] = []
    packages: list[str] = []
    setuptools = table(data, "tool", "setuptools")
    roots += words(table(setuptools, "packages", "find").get("where"))
    roots += [value for value in (table(setuptools, "package-dir").get(""),) if isinstance(value, str)]
    packages += [name.split(".")[0] for name in words(setuptools.get("packages"))]
    packages += words(setuptools.get("py-modules"))
    for entry in _tables(table(data, "tool", "poetry").get("packages")):
        roots += [_text(entry.get("from"))] if entry.get("from") else []
        packages += [_text(entry.get("include")).split("/")[0].removesuffix(".py")]
    for target in words(table(data, "tool", "hatch", "build", "targets", "wheel").get("packages")):
        parent, _, name = target.strip("/").rpartition("/")
        roots, packages = [*roots, *([parent] if parent else [])], [*packages, name]
    for section in ("metadata", "module"):
        flit = table(data, "tool", "flit", section)
        module = _text(flit.get("module")) or (_text(flit.get("name")) if section == "module" else "")
        packages += [module.split(".")[0]] if module else []
    plain = [name for name in packages if re.fullmatch(r"\w+", name)]
    return tuple(dict.fromkeys(roots)), tuple(dict.fromkeys(plain))


def _compiles(data: dict[str, object]) -> bool:
    requires = " ".join(words(table(data, "build-system").get("requires"))).lower()
    tools = (
        "cython",
        "pybind11",
        "cffi",
        "maturin",
        "meson",
        "scikit-build",
        "setuptools-rust",
        "setuptools_rust",
        "mypyc",
        "numpy",
    )
    return any(tool in requires for tool in tools) or bool(table(data, "tool", "setuptools").get("ext-modules"))


def _tables(value: object) -> list[dict[str, object]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
