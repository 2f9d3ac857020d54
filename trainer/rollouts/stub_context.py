"""A stubbed function in its file: what stands in for it, what is around it, and how an answer takes its place."""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
import warnings
from dataclasses import dataclass, replace

from excise.errors import ExciseError
from excise.types import Task

RAISES = "raise NotImplementedError"
"""What stands in for what is missing."""
_HUNK = re.compile(r"@@ -(\d+)")
_CODE = re.compile(r"```(?:python|py)?[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)


class NoStandIn(ExciseError):
    """The task is not one of a single stubbed function."""

    reason = "no_stand_in"


class BadCode(Exception):
    """An answer that cannot take the place of the stand-in; says why."""


def is_stub(task: Task) -> bool:
    """Whether a task is one of a single function that is there and lacks something."""
    return task.deleter in ("stub", "line", "expression") and len(task.removed) == 1 and "::" in task.removed[0]


@dataclass(frozen=True, slots=True)
class MissingLine:
    """The one line that a task is about."""

    number: int
    """Of the line that stands in for it, from 0."""
    text: str
    """The line, without its indentation."""


def missing_line(task: Task) -> MissingLine | None:
    """The line, if the gold patch puts one in the place of one that raises; else ``None``."""
    gone: list[tuple[int, str]] = []
    come: list[str] = []
    number = 0
    for line in task.patch.splitlines():
        if hunk := _HUNK.match(line):
            number = int(hunk[1]) - 1
        elif line.startswith("-") and not line.startswith("--- "):
            gone.append((number, line[1:].strip()))
            number += 1
        elif line.startswith("+") and not line.startswith("+++ "):
            come.append(line[1:].strip())
        elif line.startswith(" "):
            number += 1
    if len(gone) != 1 or len(come) != 1 or not gone[0][1].startswith(RAISES):
        return None
    return MissingLine(gone[0][0], come[0])


@dataclass(frozen=True, slots=True)
class StandIn:
    """Where the stub is; lines count from 0, ends are behind the last."""

    path: str
    """File."""
    qualname: str
    """Function."""
    lines: tuple[str, ...]
    """All of the file, ends of lines included."""
    start: int
    """The line of ``def``."""
    body: int
    """First line of what stands in for the code."""
    end: int
    """Behind it."""

    @property
    def indent(self) -> str:
        """Of the body."""
        line = self.lines[self.body]
        return line[: len(line) - len(line.lstrip())]

    def at(self, missing: MissingLine) -> StandIn:
        """The same function, where only this line stands in for something. Raises :class:`NoStandIn`."""
        if missing.number >= len(self.lines) or not self.lines[missing.number].strip().startswith(RAISES):
            raise NoStandIn(f"{self.path} has nothing missing in line {missing.number + 1}.")
        return replace(self, body=missing.number, end=missing.number + 1)

    def around(self, num_lines: int) -> str:
        """The stub and what is near it, about ``num_lines`` lines; what is left out is marked."""
        spare = max(0, num_lines - (self.end - self.start))
        first = max(0, self.start - (2 * spare) // 3)
        last = min(len(self.lines), self.end + spare - (self.start - first))
        head, tail = ("# ...\n" if first else ""), ("# ...\n" if last < len(self.lines) else "")
        return head + "".join(self.lines[first:last]).rstrip("\n") + "\n" + tail

    def before(self, num_lines: int) -> str:
        """At most ``num_lines`` lines up to the body."""
        return "".join(self.lines[max(0, self.body - num_lines) : self.body])

    def with_body(self, code: str) -> str:
        """The file with ``code``, not indented, as the function's body. Raises :class:`BadCode`."""
        body = textwrap.indent(code.strip("\n"), self.indent)
        return self._checked([*self.lines[: self.body], body, "\n", *self.lines[self.end :]])

    def with_answer(self, answer: str) -> str:
        """The file with the code of an answer: the function as a whole, or its body. Raises :class:`BadCode`."""
        blocks = [textwrap.dedent(block).strip("\n") for block in _CODE.findall(answer)]
        if not blocks or not blocks[-1].strip():
            raise BadCode("there is no code block in the answer")
        name = self.qualname.rpartition(".")[2]
        for code in reversed(blocks):
            try:
                tree = _parsed(code)
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                problem = f"the code does not parse: {error}"
                continue
            found = [
                n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef) and n.name == name
            ]
            if not found:
                if any(isinstance(n, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef) for n in tree.body):
                    problem = f"there is no function {name} in the code"
                    continue
                return self.with_body(code)
            lines = _lines(code)[found[-1].lineno - 1 : found[-1].end_lineno]
            own = self.lines[self.start]
            text = textwrap.indent(textwrap.dedent("".join(lines)), own[: len(own) - len(own.lstrip())])
            return self._checked([*self.lines[: self.start], text.rstrip("\n"), "\n", *self.lines[self.end :]])
        raise BadCode(problem)

    def _checked(self, lines: list[str]) -> str:
        text = "".join(lines)
        try:
            _parsed(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise BadCode(f"the code does not parse: {error}") from None
        return text


def stand_in(task: Task, source: str) -> StandIn:
    """The stub of a task in its file's text. Raises :class:`NoStandIn`."""
    path, _, qualname = task.removed[0].partition("::")
    if not is_stub(task):
        raise NoStandIn(f"{task.instance_id} is not a task of one stubbed function.")
    try:
        node: ast.AST = _parsed(source)
    except (SyntaxError, ValueError) as error:
        raise NoStandIn(f"{task.instance_id}: {path} cannot be parsed here: {error}") from error
    for part in qualname.split("."):
        name, _, number = part.partition("#")
        same = [n for n in ast.walk(node) if isinstance(n, _NAMED) and n.name == name and n is not node]
        if len(same) <= int(number or 1) - 1:
            raise NoStandIn(f"{task.instance_id}: {path} has no {qualname}.")
        node = same[int(number or 1) - 1]
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        raise NoStandIn(f"{task.instance_id}: {qualname} is no function.")
    code = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    if not code or code[0].lineno == node.lineno:
        raise NoStandIn(f"{task.instance_id}: {qualname} has no body of its own.")
    return StandIn(path, qualname, _lines(source), node.lineno - 1, code[0].lineno - 1, node.end_lineno or node.lineno)


def decoded(data: bytes) -> tuple[str, str]:
    """A file's text and its encoding, in which all else is written back byte by byte. Raises :class:`NoStandIn`."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    except (SyntaxError, UnicodeDecodeError) as error:
        raise NoStandIn(f"The file is not text as Python has it: {error}") from error
    if text.encode(encoding) != data:
        raise NoStandIn(f"The file cannot be written back as {encoding}.")
    return text, encoding


def _lines(code: str) -> tuple[str, ...]:
    """Lines as Python counts them, ends included: a form feed ends none."""
    return tuple(io.StringIO(code, newline=""))


def _parsed(code: str) -> ast.Module:
    """The tree; what a model's code is warned of is nobody's business here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        return ast.parse(code)


_NAMED = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
