"""Parser of shell scripts: the programs that they run, the Python code in them, and the files that they write.

The script is never run. What cannot be parsed is left out, because a wrong guess could accuse honest work.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from excise.system.shell_syntax import ShellCommand, parse_shell

MAX_NESTED_SHELLS = 3
"""Maximum depth of nested shells (``bash -c "sh -c …"``) that are parsed."""
_LAUNCHERS = frozenset(
    {"sudo", "env", "time", "nohup", "exec", "command", "xargs", "timeout", "nice", "stdbuf", "builtin"}
)
"""Programs that run the program named in their arguments."""
_SEARCHERS = frozenset({"grep", "egrep", "fgrep", "rg", "ag", "sed", "awk", "gawk", "jq", "zipgrep"})
"""Programs whose first argument is a pattern or a script, unless an option gives it."""
_PATTERN_OPTION = re.compile(r"-[a-zA-Z]*[ef]$|--(?:regexp|file|expression)(?:=|$)")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_PYTHON = re.compile(r"(?:.*/)?(?:python[0-9.]*|pypy[0-9.]*|ipython)")
_SHELL = re.compile(r"(?:.*/)?(?:ba|da|z)?sh")


@dataclass(frozen=True, slots=True)
class Program:
    """One simple command of a script."""

    argv: tuple[str, ...]
    """Name and arguments, without launchers such as ``sudo`` and assignments; empty for a redirection alone."""
    writes: tuple[str, ...] = ()
    """Files that the command's output is redirected to."""

    @property
    def name(self) -> str:
        """Name of the program without its folder."""
        return self.argv[0].rpartition("/")[2] if self.argv else ""

    @property
    def files(self) -> tuple[str, ...]:
        """Arguments that are neither options nor the pattern or script of a searching program."""
        if self.name not in _SEARCHERS:
            return tuple(word for word in self.argv[1:] if not word.startswith("-"))
        words: list[str] = []
        has_pattern = takes_value = False
        for word in self.argv[1:]:
            if not takes_value and _PATTERN_OPTION.match(word):
                has_pattern, takes_value = True, "=" not in word
            elif takes_value or word.startswith("-"):
                takes_value = False
            else:
                words.append(word)
        return tuple(words if has_pattern else words[1:])


@dataclass(slots=True)
class Script:
    """A parsed shell script."""

    programs: list[Program] = field(default_factory=list)
    """Simple commands in order, including those of nested shells."""
    python: list[ast.Module] = field(default_factory=list)
    """Python code given to an interpreter with ``-c`` or on its standard input."""


def parsed(text: str, depth: int = 0) -> Script:
    """Parse a script that is nested in ``depth`` shells."""
    script = Script()
    for command in parse_shell(text):
        argv = _without_launchers([word.text for word in command.words])
        writes = tuple(file for redirection in command.redirections if (file := redirection.written_file))
        if not argv and not writes:
            continue
        program = Program(tuple(argv), writes)
        script.programs.append(program)
        for code in _python_code(program, command):
            _add_python(script, code)
        for inner in _inner_scripts(program, command) if depth < MAX_NESTED_SHELLS else ():
            nested = parsed(inner, depth + 1)
            script.programs += nested.programs
            script.python += nested.python
    return script


def _without_launchers(argv: list[str]) -> list[str]:
    """The words without assignments and without launchers and their options."""
    while argv:
        if _ASSIGNMENT.match(argv[0]):
            argv = argv[1:]
        elif argv[0].rpartition("/")[2] in _LAUNCHERS:
            argv = argv[1:]
            while argv and (argv[0].startswith("-") or argv[0].replace(".", "").rstrip("smh").isdigit()):
                argv = argv[1:]
        else:
            break
    return argv


def _python_code(program: Program, command: ShellCommand) -> Iterator[str]:
    """Yield code that a command passes to a Python interpreter."""
    if not program.argv or not _PYTHON.fullmatch(program.argv[0]):
        return
    for place, word in enumerate(program.argv[1:-1], 1):
        if re.fullmatch(r"-[a-zA-Z]*c", word):
            yield program.argv[place + 1]
            break
    if command.stdin is not None:
        yield command.stdin


def _inner_scripts(program: Program, command: ShellCommand) -> Iterator[str]:
    """Yield scripts that a command passes to a shell."""
    if not program.argv or not _SHELL.fullmatch(program.argv[0]):
        return
    short_options = "".join(word[1:] for word in program.argv[1:] if re.fullmatch(r"-[a-zA-Z]+", word))
    words = [word for word in program.argv[1:] if not word.startswith("-")]
    if "c" in short_options and words:
        yield words[0]
    if command.stdin is not None:
        yield command.stdin


def _add_python(script: Script, code: str) -> None:
    try:
        script.python.append(ast.parse(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Yield (dotted name, call) for calls of undotted names and of imported names, with the import resolved."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {
                (a.asname or a.name.partition(".")[0]): (a.name if a.asname else a.name.partition(".")[0])
                for a in node.names
            }
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {(alias.asname or alias.name): f"{node.module}.{alias.name}" for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            dotted = _dotted(node.func)
            first, _, rest = dotted.partition(".")
            if first in names:
                yield f"{names[first]}.{rest}" if rest else names[first], node
            elif dotted and not rest:
                yield dotted, node


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = _dotted(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return ""


def texts(node: ast.AST) -> Iterator[str]:
    """Yield the string constants in an expression."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value
