"""The test command of a JavaScript project: its test runner, options, and the packages that configuration names."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

RUNNERS = ("vitest", "jest", "mocha")
"""Test runners that are started with a test file; the first that a project uses is its own."""
TYPED = (".ts", ".tsx", ".mts", ".cts")
"""Suffixes of TypeScript."""
_CONFIGURATION = re.compile(
    r"(jest|vitest|vite|babel)\.config\.[\w.]+|jest\.setup\.\w+|\.babelrc(\.\w+)?|\.mocharc(\.\w+)?|\.swcrc|tsconfig[\w.-]*\.json|mocha\.opts"
)
_SCRIPTS = ("test", "unit", "test:unit", "tests-only", "test-only", "test:node", "mocha", "jest", "tests", "coverage")
"""Names of scripts that run the tests, best first."""
_VALUED = frozenset({"--import", "--require", "-r", "--loader", "--experimental-loader", "--conditions", "-C"})
"""Options of node with a value that decide how code is loaded."""
_PLAIN = frozenset({"--experimental-vm-modules", "--experimental-strip-types", "--experimental-import-meta-resolve"})
_MOCHA_VALUED = frozenset({"-r", "--require", "-u", "--ui", "--file", "--timeout", "-t", "-s", "--slow", "--extension",
                           "--config", "--import", "--loader", "-n", "--node-option"})  # fmt: skip
_PREFIX = re.compile(r"^(@babel/)?(babel-|jest-)?(preset|plugin|environment)-")
"""What short names lack."""
_MAX_BYTES = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class TestCommand:
    """How a project runs its tests."""

    __test__ = False

    runner: str = ""
    """One of :data:`RUNNERS`; empty where test files run themselves."""
    arguments: tuple[str, ...] = ()
    """Options of node."""
    words: tuple[str, ...] = ()
    """Options of mocha."""
    packages: tuple[str, ...] = ()
    """Packages that it needs, whether or not the manifest names them."""
    evidence: str = "package.json"
    """Where the runner was found."""

    @property
    def options(self) -> tuple[str, ...]:
        """The words of ``Recipe.test_args``."""
        runner = (f"runner={self.runner}",) if self.runner else ()
        return (*runner, *(f"mocha:{word}" for word in self.words), *self.arguments)

    def for_typescript(self, manifest: Mapping[str, Any]) -> TestCommand:
        """The command for files in TypeScript: with tsx, where nothing else compiles them when they are loaded."""
        if self.runner in {"jest", "vitest"}:
            return self
        compilers = re.compile(r"tsx|ts-node|ts-mocha|esbuild|@swc|sucrase|jiti|babel|strip-types|ts-eager")
        configured = str(manifest.get("mocha", ""))
        if any(compilers.search(word) for word in (*self.arguments, *self.words, configured)):
            return self
        return replace(self, arguments=(*self.arguments, "--import=tsx"), packages=(*self.packages, "tsx"))


def read_test_command(manifest: Mapping[str, Any], files: Collection[str]) -> TestCommand:
    """The command that the manifest's scripts and packages tell; ``files`` are names of the project's files."""
    scripts = {str(k): str(v) for k, v in _table(manifest, "scripts").items()}
    texts = [scripts[name] for name in _SCRIPTS if name in scripts]
    texts += [text for name, text in scripts.items() if name not in _SCRIPTS and "test" in name]
    packages = {*_table(manifest, "devDependencies"), *_table(manifest, "dependencies")}
    runner = ""
    for text in texts:
        runner = runner or next((each for each in RUNNERS if re.search(rf"(^|[\s/\"']){each}\b", text)), "")
    in_packages = next((each for each in RUNNERS if each in packages), "")
    in_files = next((each for each in RUNNERS if any(re.match(rf"\.?{each}(rc|\.config)", name) for name in files)), "")
    runner = runner or in_packages or in_files or ("mocha" if "test/mocha.opts" in files else "")
    arguments: list[str] = []
    words: list[str] = []
    for text in texts:
        for command in re.split(r"&&|\|\||;", text):
            found = _split(command)
            arguments += [each for each in _node_options(found, runner) if each not in arguments]
            if runner == "mocha" and not words:
                words = _mocha_options(found)
    if runner == "mocha" and any("ts-mocha" in text for text in texts):
        words += ["--require", "ts-node/register"]
    needed = (runner,) if runner else ()
    return TestCommand(runner=runner, arguments=tuple(arguments), words=tuple(words), packages=needed)


def named_packages(root: Path, manifest: Mapping[str, Any], command: TestCommand) -> set[str]:
    """Packages of the manifest that the configuration of test runners and compilers names, or that types come from."""
    texts = [str(manifest.get(name, "")) for name in ("jest", "mocha", "babel", "vitest")]
    texts += [*command.arguments, *command.words]
    for path in sorted((*root.iterdir(), *root.glob("test/*"), *root.glob("tests/*"))):
        if _CONFIGURATION.fullmatch(path.name) and path.is_file() and path.stat().st_size < _MAX_BYTES:
            texts.append(path.read_text(encoding="utf-8", errors="replace"))
    text = "\n".join(texts)
    found = set(command.packages)
    for table in ("devDependencies", "peerDependencies", "optionalDependencies"):
        for package in _table(manifest, table):
            if _is_named(package, text) or package == "typescript":
                found.add(package)
    types = {name for name in _table(manifest, "devDependencies") if name.startswith("@types/")}
    return found | (types if (root / "tsconfig.json").is_file() else set())


def _is_named(package: str, text: str) -> bool:
    """Whether a text names a package, or by the short name that babel and jest allow in configuration."""
    if re.search(rf"(?<![\w@/-]){re.escape(package)}(?![\w-])", text):
        return True
    short = _PREFIX.sub(lambda found: "@babel/" if found[1] else "", package)
    names = {short, short.removeprefix("@babel/")} - {package}
    return any(re.search(rf"[\"']{re.escape(name)}[\"']", text) for name in names)


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _node_options(words: list[str], runner: str) -> Iterable[str]:
    """Options of node that decide how code is loaded, of a command that starts node or the test runner by it."""
    if not words:
        return
    programs = {word.rpartition("/")[2] for word in words}
    for word in words:
        if word.startswith("NODE_OPTIONS="):
            yield from _node_options(["node", *word.partition("=")[2].split()], runner)
    if "tsx" in programs and "mocha" not in programs:
        yield "--import=tsx"
    end = next((n for n, word in enumerate(words) if word.rpartition("/")[2] == "mocha"), len(words))
    if "node" not in programs:
        return
    for place, word in enumerate(words[:end]):
        name, _, value = word.partition("=")
        if word in _PLAIN:
            yield word
        elif name in _VALUED:
            value = value or (words[place + 1] if place + 1 < len(words) else "")
            name = {"-r": "--require", "-C": "--conditions"}.get(name, name)
            if value and not value.startswith("-"):
                yield f"{name}={value}"


def _mocha_options(words: list[str]) -> list[str]:
    place = next(
        (n for n, word in enumerate(words) if word.rpartition("/")[2] in {"mocha", "_mocha", "ts-mocha"}), None
    )
    found: list[str] = []
    rest = words[place + 1 :] if place is not None else []
    for n, word in enumerate(rest):
        name, _, value = word.partition("=")
        if name in _MOCHA_VALUED:
            found += [name, value or (rest[n + 1] if n + 1 < len(rest) else "")]
    return found


def _table(manifest: Mapping[str, Any], name: str) -> dict[str, Any]:
    table = manifest.get(name)
    return dict(table) if isinstance(table, dict) else {}
