"""Reader of tox.ini, ``[tool.tox]`` and noxfile.py: requirements of tests, interpreters, and calls of pytest."""

from __future__ import annotations

import ast
import configparser
import itertools
import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

from excise.envs.manifests.manifest import Manifest, table, words
from excise.envs.manifests.pyproject import load_pyproject
from excise.envs.manifests.pytest_calls import pytest_commands
from excise.envs.manifests.requirements import parse_line, valid_requirement

_NON_TEST_ENV = re.compile(
    r"lint|doc|mypy|typing|type|pre-?commit|style|format|release|publish|build|bench|cover|flake|pkg|package"
)

_TEST_ENV = re.compile(r"\{?(py(thon)?-?\{?3|py\d|py$|tests?\b|unit|\d\.\d)")


def read_tox(root: Path) -> Manifest:
    """Merge what tox (INI or TOML) and nox declare."""
    ini, toml, nox = _tox_ini(root), _tox_toml(root), _noxfile(root)
    parts = [part for part in (ini, toml, nox) if part]
    return Manifest(
        tested_pythons=tuple(dict.fromkeys(v for p in parts for v in p.tested_pythons)),
        test_requirements=tuple(dict.fromkeys(v for p in parts for v in p.test_requirements)),
        test_extras=tuple(dict.fromkeys(v for p in parts for v in p.test_extras)),
        test_groups=tuple(dict.fromkeys(v for p in parts for v in p.test_groups)),
        test_env=tuple(dict.fromkeys(v for p in parts for v in p.test_env)),
        test_commands=tuple(dict.fromkeys(v for p in parts for v in p.test_commands)),
        evidence=tuple(line for p in parts for line in p.evidence),
    )


# --------------------------------------------------------------------------------------------- tox
def _tox_ini(root: Path) -> Manifest | None:
    parser = configparser.ConfigParser(interpolation=None, strict=False, delimiters=("=",))
    for file, prefix in (("tox.ini", ""), ("setup.cfg", "tox:")):
        try:
            parser.read_string((root / file).read_text(encoding="utf-8", errors="replace"))
        except (OSError, configparser.Error):
            continue
        if parser.has_section(f"{prefix}tox") or parser.has_section("testenv"):
            break
    else:
        return None
    main = dict(parser[f"{prefix}tox"]) if parser.has_section(f"{prefix}tox") else {}
    names = _envlist(main.get("envlist") or main.get("env_list") or "")
    sections = ["testenv", *(s for s in parser.sections() if s.startswith("testenv:") and _is_test_env(s[8:]))]
    tables = [
        {key: _follow(parser, value) for key, value in parser[s].items()} for s in sections if parser.has_section(s)
    ]
    return _from_environments(root, file, names, tables)


def _follow(parser: configparser.ConfigParser, value: str) -> str:
    """Replace references ``{[section]key}`` by their values, without recursion."""

    def refer(match: re.Match[str]) -> str:
        return parser.get(match[1], match[2], fallback="")

    return re.sub(r"\{\[([^\]]+)\](\w+)\}", refer, value)


def _tox_toml(root: Path) -> Manifest | None:
    data = table(load_pyproject(root), "tool", "tox")
    file = "pyproject.toml"
    if (root / "tox.toml").is_file():
        try:
            data, file = tomllib.loads((root / "tox.toml").read_text(encoding="utf-8")), "tox.toml"
        except (OSError, ValueError):
            return None
    if isinstance(data.get("legacy_tox_ini"), str):
        parser = configparser.ConfigParser(interpolation=None, strict=False, delimiters=("=",))
        try:
            parser.read_string(str(data["legacy_tox_ini"]))
        except configparser.Error:
            return None
        envlist = parser.get("tox", "envlist", fallback="") or parser.get("tox", "env_list", fallback="")
        tables = [dict(parser["testenv"])] if parser.has_section("testenv") else []
        return _from_environments(root, file, _envlist(envlist), tables)
    if not data:
        return None
    environments = table(data, "env")
    chosen = [table(data, "env_run_base"), *(table(environments, name) for name in environments if _is_test_env(name))]
    flat = [{k: "\n".join(_lines(v)) for k, v in entry.items() if isinstance(v, list)} for entry in chosen]
    return _from_environments(root, file, words(data.get("env_list")), flat)


def _lines(value: list[object]) -> list[str]:
    """The strings of a list; a nested list is a command and joined to one string."""
    return [
        " ".join(words(item)) if isinstance(item, list) else item for item in value if isinstance(item, (str, list))
    ]


def _is_test_env(name: str) -> bool:
    return bool(_TEST_ENV.match(name.lower())) and not _NON_TEST_ENV.search(name.lower())


def _from_environments(root: Path, file: str, names: Iterable[str], tables: list[dict[str, str]]) -> Manifest:
    wanted: list[str] = []
    extras: list[str] = []
    groups: list[str] = []
    env: list[tuple[str, str]] = []
    for entry in tables:
        for line in _factor_lines(entry.get("deps", "")):
            parsed = parse_line(root, line)
            wanted += parsed.requirements
            extras += parsed.extras
        extras += [x for line in _factor_lines(entry.get("extras", "")) for x in re.split(r"[\s,]+", line)]
        groups += [x for line in _factor_lines(entry.get("dependency_groups", "")) for x in re.split(r"[\s,]+", line)]
        if wanted or extras or groups:
            break  # further sections repeat this for single interpreters, with other pins
    commands = [c for entry in tables for c in pytest_commands(entry.get("commands", ""))]
    for entry in tables[:1]:
        env += _literal_env(entry.get("setenv", "") or entry.get("set_env", ""))
    evidence = [f"{file}: deps {', '.join(dict.fromkeys(wanted))}"] if wanted else []
    return Manifest(
        tested_pythons=tuple(dict.fromkeys(v for name in names if (v := _python_of(name)))),
        test_requirements=tuple(dict.fromkeys(wanted)),
        test_extras=tuple(filter(None, dict.fromkeys(extras))),
        test_groups=tuple(filter(None, dict.fromkeys(groups))),
        test_env=tuple(dict.fromkeys(env)),
        test_commands=tuple(dict.fromkeys(commands)),
        evidence=tuple(evidence),
    )


def _factor_lines(value: str) -> Iterator[str]:
    """Lines of a tox value; conditional lines are included only if their condition is about tests in general."""
    for line in words(value):
        match = re.match(r"([!\w{},.-]+)\s*:\s+(.*)", line)
        if match is None:
            yield line
        elif re.fullmatch(r"py3?|tests?|unit|unittests?|pytest|cov|latest|default", match[1]):
            yield match[2]


def _literal_env(value: str) -> Iterator[tuple[str, str]]:
    for line in words(value):
        name, _, text = line.partition("=")
        name, text = name.strip(), text.strip()
        ours = name.startswith(("COV", "PIP_", "UV_", "TOX", "VIRTUALENV", "PYTHON", "PATH", "HOME"))
        if re.fullmatch(r"[A-Za-z_]\w*", name) and text and "{" not in text and not ours:
            yield name, text


def _envlist(text: str) -> list[str]:
    """Names of an envlist, with patterns such as ``py3{8,9}-{a,b}`` and ``py3{8-13}`` expanded."""
    names: list[str] = []
    for item in re.split(r"[,\s]+(?![^{]*\})", text):
        parts = [_alternatives(part) for part in re.split(r"(\{[^}]*\})", item.strip()) if part]
        names += ["".join(choice) for choice in itertools.islice(itertools.product(*parts), 200)]
    return [name for name in names if name]


def _alternatives(part: str) -> list[str]:
    if not part.startswith("{"):
        return [part]
    found: list[str] = []
    for choice in part.strip("{}").split(","):
        span = re.fullmatch(r"\s*(\d+)-(\d+)\s*", choice)
        found += [str(n) for n in range(int(span[1]), int(span[2]) + 1)] if span else [choice.strip()]
    return found


def _python_of(name: str) -> str:
    """The Python version in a name: ``3.9`` for ``py39``, ``py3.9-django``, ``python3.9``, ``test-3.9``; else empty."""
    if "pypy" in name:
        return ""
    match = re.search(r"(?:^|-)(?:py|python)-?3\.?(\d{1,2})(?![\d.])", name) or re.search(
        r"(?:^|-)3\.(\d{1,2})(?!\d)", name
    )
    return f"3.{int(match[1])}" if match and int(match[1]) < 30 else ""


# --------------------------------------------------------------------------------------------- nox
def _noxfile(root: Path) -> Manifest | None:
    try:
        tree = ast.parse((root / "noxfile.py").read_text(encoding="utf-8", errors="replace"))
    except (OSError, SyntaxError, ValueError):
        return None
    wanted: list[str] = []
    extras: list[str] = []
    pythons: list[str] = []
    commands: list[tuple[str, ...]] = []
    groups: list[str] = []
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        if not re.search("test|unit", function.name) or _NON_TEST_ENV.search(function.name):
            continue
        pythons += [v for d in function.decorator_list for v in _versions(d)]
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            line = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            action = getattr(call.func, "attr", "")
            if action == "install" or (action.startswith("run") and "install" in line[:3]):
                parsed = [parse_line(root, match) for match in re.findall(r"-[re]\s+\S+", " ".join(line))]
                parsed += [parse_line(root, word) for word in _named(line) if valid_requirement(word) or word[0] == "."]
                wanted += [r for p in parsed for r in p.requirements]
                extras += [x for p in parsed for x in p.extras]
            if action.startswith(("run", "install")):
                groups += re.findall(r"--(?:only-)?group[= ]([\w.-]+)", " ".join(line))
                extras += re.findall(r"--extras?[= ]([\w.-]+)", " ".join(line))
            if action == "run":
                commands += pytest_commands(shlex.join(line))
    return Manifest(
        tested_pythons=tuple(dict.fromkeys(pythons)),
        test_requirements=tuple(dict.fromkeys(wanted)),
        test_extras=tuple(dict.fromkeys(extras)),
        test_groups=tuple(dict.fromkeys(groups)),
        test_commands=tuple(dict.fromkeys(commands)),
        evidence=(f"noxfile.py: install {', '.join(dict.fromkeys(wanted))}",) if wanted else (),
    )


def _named(line: list[str]) -> list[str]:
    """The requirements among an installer's arguments, without its name, its options and their values."""
    words = line[line.index("install") + 1 :] if "install" in line[:3] else line
    return [word for word, before in zip(words, ["", *words], strict=False) if word and not before.startswith("-")]


def _versions(node: ast.expr) -> list[str]:
    return [
        inner.value
        for inner in ast.walk(node)
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str) and re.fullmatch(r"3\.\d+", inner.value)
    ]
