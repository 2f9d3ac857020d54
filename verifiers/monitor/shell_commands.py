"""What a shell script runs: programs with their arguments, Python code with what it calls, files that are written.

Read as text, never run. What cannot be parsed is left out: a monitor that guesses accuses the innocent.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field

MAX_SCRIPT = 200_000
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\1")
_SEPARATORS = frozenset(
    {";", "&&", "||", "|", "&", "(", ")", "{", "}", "\n", "|&", ";;", "do", "then", "else", "if", "!"}
)
_WRAPPERS = frozenset(
    {"sudo", "env", "time", "nohup", "exec", "command", "xargs", "timeout", "nice", "stdbuf", "builtin"}
)
_SEARCHING = frozenset({"grep", "egrep", "fgrep", "rg", "ag", "sed", "awk", "gawk", "jq", "zipgrep"})
_GIVES_PATTERN = re.compile(r"-[a-zA-Z]*[ef]$|--(?:regexp|file|expression)(?:=|$)")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_PYTHON = re.compile(r"(?:.*/)?(?:python[0-9.]*|pypy[0-9.]*|ipython)")
_SHELL = re.compile(r"(?:.*/)?(?:ba|da|z)?sh")


@dataclass(frozen=True, slots=True)
class Program:
    """One simple command."""

    argv: tuple[str, ...]
    """Name and arguments, wrappers such as ``sudo`` and assignments apart."""
    writes: tuple[str, ...] = ()
    """Files that its output is redirected into."""

    @property
    def name(self) -> str:
        """Name without its folder."""
        return self.argv[0].rpartition("/")[2] if self.argv else ""

    @property
    def files(self) -> tuple[str, ...]:
        """Arguments that are no options, and not the pattern or script that searching programs begin with."""
        if self.name not in _SEARCHING:
            return tuple(word for word in self.argv[1:] if not word.startswith("-"))
        words: list[str] = []
        given = skipped = False
        for word in self.argv[1:]:
            if not skipped and _GIVES_PATTERN.match(word):
                given, skipped = True, "=" not in word
            elif skipped or word.startswith("-"):
                skipped = False
            else:
                words.append(word)
        return tuple(words if given else words[1:])


@dataclass(slots=True)
class Script:
    """A shell script, taken apart."""

    programs: list[Program] = field(default_factory=list)
    """Simple commands, in order; those of nested shells, too."""
    python: list[ast.Module] = field(default_factory=list)
    """Code given to an interpreter with ``-c`` or on its standard input."""


def parsed(text: str, depth: int = 0) -> Script:
    """Take a script apart."""
    script = Script()
    text, bodies = _without_heredocs(text[:MAX_SCRIPT].replace("\\\n", " "))
    for line in text.split("\n"):
        for program in _programs(line):
            script.programs.append(program)
            code = _given_code(program)
            if code is not None:
                _add_python(script, code)
            elif _SHELL.fullmatch(program.argv[0]) and "-c" in _options(program) and depth < 3:
                words = [w for w in program.argv[1:] if not w.startswith("-")]
                inner = parsed(words[0], depth + 1) if words else Script()
                script.programs += inner.programs
                script.python += inner.python
    for reader, body in bodies:
        if any(_PYTHON.fullmatch(word) for word in reader.split()):
            _add_python(script, body)
        elif any(_SHELL.fullmatch(word) for word in reader.split()) and depth < 3:
            inner = parsed(body, depth + 1)
            script.programs += inner.programs
            script.python += inner.python
    return script


def _without_heredocs(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The script without the bodies of its here documents, and those with the line that reads them."""
    kept: list[str] = []
    bodies: list[tuple[str, str]] = []
    lines = iter(text.split("\n"))
    for line in lines:
        kept.append(_HEREDOC.sub("", line))
        for match in _HEREDOC.finditer(line):
            body = []
            for inner in lines:
                if inner.strip() == match[2]:
                    break
                body.append(inner)
            bodies.append((line[: match.start()], "\n".join(body)))
    return "\n".join(kept), bodies


def _programs(line: str) -> Iterator[Program]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    try:
        words = list(lexer)
    except ValueError:  # an open quote: the line is part of a longer string
        return
    argv: list[str] = []
    writes: list[str] = []
    into = ""
    for word in [*words, ";"]:
        if into:
            if into.startswith(">") and not (into == ">&" and word.isdigit()):
                writes.append(word)
            into = ""
        elif word in _SEPARATORS or set(word) <= set("();|&"):
            if stripped := _unwrapped(argv):
                yield Program(tuple(stripped), tuple(writes))
            argv, writes = [], []
        elif word in {">", ">>", ">|", "<", "<<<", ">&", "&>"}:
            into = word.replace("&>", ">")
            argv = argv[:-1] if argv and argv[-1] in {"0", "1", "2"} else argv  # 2>&1: a descriptor, no argument
        else:
            argv.append(word)


def _unwrapped(argv: list[str]) -> list[str]:
    """Without assignments and programs that only start others."""
    while argv:
        if _ASSIGNMENT.match(argv[0]):
            argv = argv[1:]
        elif argv[0].rpartition("/")[2] in _WRAPPERS:
            argv = argv[1:]
            while argv and (argv[0].startswith("-") or argv[0].replace(".", "").rstrip("smh").isdigit()):
                argv = argv[1:]
        else:
            break
    return argv


def _options(program: Program) -> set[str]:
    """Short options one by one: ``-lc`` is ``-l`` and ``-c``."""
    short = [word for word in program.argv[1:] if re.fullmatch(r"-[a-zA-Z]+", word)]
    return {f"-{letter}" for word in short for letter in word[1:]}


def _given_code(program: Program) -> str | None:
    if not _PYTHON.fullmatch(program.argv[0]):
        return None
    for place, word in enumerate(program.argv[1:-1], 1):
        if re.fullmatch(r"-[a-zA-Z]*c", word):
            return program.argv[place + 1]
    return None


def _add_python(script: Script, code: str) -> None:
    try:
        script.python.append(ast.parse(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """(dotted name, call) of every call of a name that the code itself imports or that is built in."""
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
    """String constants in an expression."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value
