"""A stubbed function in its file: where its stub is, the code around it, and how an answer replaces the stub."""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
import warnings
from dataclasses import dataclass, replace

from excise.errors import ExciseError
from excise.types import Task, is_whole_file, name_in_file, path_of

RAISES = "raise NotImplementedError"
"""The statement that replaces deleted code in a stub."""
_HUNK = re.compile(r"@@ -(\d+)")
_CODE = re.compile(r"```(?:python|py)?[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)


class NoStub(ExciseError):
    """Raised for a task that does not consist of a single stubbed function."""

    reason = "no_stand_in"


class UnusableCode(Exception):
    """Raised when an answer's code cannot replace the stub; the message says why."""


def is_stub(task: Task) -> bool:
    """Whether a task in Python consists of one function that exists but lacks code."""
    leaves_names = task.language == "python" and task.deleter in ("stub", "line", "expression")
    return leaves_names and len(task.removed) == 1 and not is_whole_file(task.removed[0])


@dataclass(frozen=True, slots=True)
class MissingLine:
    """The single line that is missing from a task's function."""

    number: int
    """Index of the line that replaces it in the stub, from 0."""
    text: str
    """The missing line, without indentation."""


def missing_line(task: Task) -> MissingLine | None:
    """The missing line, if the gold patch replaces one raising line by one line; else ``None``."""
    removed: list[tuple[int, str]] = []
    added: list[str] = []
    number = 0
    for line in task.patch.splitlines():
        if hunk := _HUNK.match(line):
            number = int(hunk[1]) - 1
        elif line.startswith("-") and not line.startswith("--- "):
            removed.append((number, line[1:].strip()))
            number += 1
        elif line.startswith("+") and not line.startswith("+++ "):
            added.append(line[1:].strip())
        elif line.startswith(" "):
            number += 1
    if len(removed) != 1 or len(added) != 1 or not removed[0][1].startswith(RAISES):
        return None
    return MissingLine(removed[0][0], added[0])


@dataclass(frozen=True, slots=True)
class StubContext:
    """A stubbed function and its file. Line indices count from 0; ``end`` is exclusive."""

    path: str
    """Path of the file, relative to the project's root."""
    qualname: str
    """Qualified name of the function."""
    lines: tuple[str, ...]
    """All lines of the file, with their line ends."""
    start: int
    """Index of the ``def`` line."""
    body: int
    """Index of the first line of the stub's body (after the docstring)."""
    end: int
    """Index after the function's last line."""

    @property
    def indent(self) -> str:
        """Indentation of the body."""
        line = self.lines[self.body]
        return line[: len(line) - len(line.lstrip())]

    def narrowed_to(self, missing: MissingLine) -> StubContext:
        """A copy of this context in which only one line is replaced. Raises :class:`NoStub`."""
        if missing.number >= len(self.lines) or not self.lines[missing.number].strip().startswith(RAISES):
            raise NoStub(f"{self.path} has nothing missing in line {missing.number + 1}.")
        return replace(self, body=missing.number, end=missing.number + 1)

    def around(self, num_lines: int) -> str:
        """The stub with the code around it, about ``num_lines`` lines; ``# ...`` marks omitted code."""
        spare = max(0, num_lines - (self.end - self.start))
        first = max(0, self.start - (2 * spare) // 3)
        last = min(len(self.lines), self.end + spare - (self.start - first))
        head, tail = ("# ...\n" if first else ""), ("# ...\n" if last < len(self.lines) else "")
        return head + "".join(self.lines[first:last]).rstrip("\n") + "\n" + tail

    def before(self, num_lines: int) -> str:
        """At most ``num_lines`` lines that end where the body starts."""
        return "".join(self.lines[max(0, self.body - num_lines) : self.body])

    def with_body(self, code: str) -> str:
        """The file with ``code`` (not indented) as the function's body. Raises :class:`UnusableCode`."""
        body = textwrap.indent(code.strip("\n"), self.indent)
        return self._checked([*self.lines[: self.body], body, "\n", *self.lines[self.end :]])

    def with_answer(self, answer: str) -> str:
        """The file with the last usable code block of an answer: the whole function, or only its body.

        Raises :class:`UnusableCode`.
        """
        blocks = [textwrap.dedent(block).strip("\n") for block in _CODE.findall(answer)]
        if not blocks or not blocks[-1].strip():
            raise UnusableCode("there is no code block in the answer")
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
        raise UnusableCode(problem)

    def _checked(self, lines: list[str]) -> str:
        text = "".join(lines)
        try:
            _parsed(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise UnusableCode(f"the code does not parse: {error}") from None
        return text


def find_stub(task: Task, source: str) -> StubContext:
    """Find the stub of a task in the text of its file. Raises :class:`NoStub`."""
    path, qualname = path_of(task.removed[0]), name_in_file(task.removed[0])
    if not is_stub(task):
        raise NoStub(f"{task.instance_id} is not a task of one stubbed function.")
    try:
        node: ast.AST = _parsed(source)
    except (SyntaxError, ValueError) as error:
        raise NoStub(f"{task.instance_id}: {path} cannot be parsed here: {error}") from error
    for part in qualname.split("."):
        name, _, number = part.partition("#")
        same = [n for n in ast.walk(node) if isinstance(n, _NAMED) and n.name == name and n is not node]
        if len(same) <= int(number or 1) - 1:
            raise NoStub(f"{task.instance_id}: {path} has no {qualname}.")
        node = same[int(number or 1) - 1]
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        raise NoStub(f"{task.instance_id}: {qualname} is no function.")
    code = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    if not code or code[0].lineno == node.lineno:
        raise NoStub(f"{task.instance_id}: {qualname} has no body of its own.")
    return StubContext(
        path, qualname, _lines(source), node.lineno - 1, code[0].lineno - 1, node.end_lineno or node.lineno
    )


def decode_file(data: bytes) -> tuple[str, str]:
    """A file's text and its encoding, which encodes the text to the same bytes. Raises :class:`NoStub`."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    except (SyntaxError, UnicodeDecodeError) as error:
        raise NoStub(f"The file is not text as Python has it: {error}") from error
    if text.encode(encoding) != data:
        raise NoStub(f"The file cannot be written back as {encoding}.")
    return text, encoding


def _lines(code: str) -> tuple[str, ...]:
    """Lines as Python counts them, with their ends (unlike ``str.splitlines``, a form feed ends no line)."""
    return tuple(io.StringIO(code, newline=""))


def _parsed(code: str) -> ast.Module:
    """Parse code, without the warnings that a model's code may cause."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        return ast.parse(code)


_NAMED = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
