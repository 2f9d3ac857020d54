"""The tools of a coding agent on a task's sandbox: read, search, edit, write, run, finish.

They act only through the session, so the sandbox's limits apply to them and all actions are recorded.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from excise.agents.tool import Arguments, Result, Tool, ToolError, clip
from excise.envs.sandbox.mount_points import REPO
from excise.errors import SandboxError
from excise.protocols import Session
from excise.types import WorkerOutcome

SYSTEM = """You are a programmer at work in the checkout of a Python project, at /testbed. You see and change it with
tools. Look at the code around what you are asked for, write it, and check it by running code or tests. There is no
network. Leave the tests that are there as they are. When the work is done, call finish."""
"""What an agent with these tools is told first."""
SEARCH_TIMEOUT_S = 30.0
"""Timeout in seconds of one search."""
MAX_MATCHES = 100
"""Maximum number of matching lines that a search shows."""


Text = Annotated[str, StringConstraints(min_length=1, max_length=50_000, pattern=r"^[^\x00]*$")]
"""Text that can be passed as an argument of a program."""


class ReadFile(Arguments):
    """Arguments of ``read_file``."""

    path: Text = Field(description="File, relative to the project's root.")
    start: int = Field(default=1, ge=1, description="First line.")
    lines: int = Field(default=200, ge=1, le=2000, description="How many lines.")


class Search(Arguments):
    """Arguments of ``search``."""

    pattern: Text = Field(description="Extended regular expression, as grep -E takes it.")
    path: Text = Field(default=".", description="File or folder to search.")


class EditFile(Arguments):
    """Arguments of ``edit_file``."""

    path: Text = Field(description="File to change.")
    old: str = Field(min_length=1, description="Text to replace; must stand in the file exactly once.")
    new: str = Field(description="Text to put in its place.")


class WriteFile(Arguments):
    """Arguments of ``write_file``."""

    path: Text = Field(description="File to write; one that exists is replaced.")
    content: str = Field(description="All of its text.")


class Run(Arguments):
    """Arguments of ``run``."""

    command: Text = Field(description="Shell command, run in the project's root.")
    timeout_s: float = Field(default=60.0, gt=0, description="Seconds after which it is ended.")


class Finish(Arguments):
    """Arguments of ``finish``: none."""


@dataclass(slots=True)
class Toolbox:
    """The tools of one session, and a record of their use for detectors."""

    session: Session
    command_s: float = 120.0
    """Maximum timeout in seconds of one command, whatever timeout the model requests."""
    output_chars: int = 8000
    """Maximum number of characters of a result; a longer one is shortened in the middle."""
    left_s: Callable[[], float] = lambda: float("inf")
    """Seconds that the attempt may still take; no command may take longer."""
    exit_code: int = 0
    """Exit code of the last command."""
    written: list[str] = field(default_factory=list)
    """Files changed by tools, relative to the project's root."""

    def tools(self) -> tuple[Tool[Any], ...]:
        """The tools that the model may call."""
        return (
            Tool(name="read_file", description="Show a file with line numbers.", arguments=ReadFile, run=self._read),
            Tool(name="search", description="Find lines in the project's files.", arguments=Search, run=self._search),
            Tool(
                name="edit_file",
                description="Replace a text that stands in a file exactly once.",
                arguments=EditFile,
                run=self._edit,
            ),
            Tool(name="write_file", description="Write a whole file.", arguments=WriteFile, run=self._write),
            Tool(
                name="run",
                description="Run a shell command, for example the tests; shows its output and exit code.",
                arguments=Run,
                run=self._run,
            ),
            Tool(
                name="finish",
                description="Say that the work is done. Nothing can be changed afterwards.",
                arguments=Finish,
                run=lambda _: Result(text="Done.", final=True),
            ),
        )

    def _text(self, path: str) -> str:
        try:
            return self.session.get(_inside(path)).decode("utf-8")
        except FileNotFoundError:
            raise ToolError(f"{path}: no such file") from None
        except UnicodeDecodeError:
            raise ToolError(f"{path}: not a text file") from None

    def _put(self, path: str, text: str) -> None:
        try:
            self.session.put(_inside(path), text.encode("utf-8", "surrogatepass"))
        except SandboxError as error:
            if "cannot be written" not in str(error):
                raise
            raise ToolError(str(error)) from None
        self.written.append(posixpath.relpath(_inside(path), REPO))

    def _read(self, wanted: ReadFile) -> str:
        lines = self._text(wanted.path).splitlines()
        shown = lines[wanted.start - 1 : wanted.start - 1 + wanted.lines]
        if not shown:
            raise ToolError(f"{wanted.path} has {len(lines)} lines")
        numbered = "\n".join(f"{wanted.start + n:5d}\t{line}" for n, line in enumerate(shown))
        more = len(lines) - (wanted.start - 1 + len(shown))
        return clip(numbered, self.output_chars) + (f"\n({more} more lines)" if more else "")

    def _search(self, wanted: Search) -> str:
        script = f'grep -rnIE --exclude-dir=.git -e "$1" -- "$2" 2>&1 | head -n {MAX_MATCHES + 1}'
        argv = ["/bin/sh", "-c", script, "sh", wanted.pattern, wanted.path]
        done = self.session.exec(argv, timeout_s=SEARCH_TIMEOUT_S, cwd=REPO)
        lines = done.stdout.decode(errors="replace").splitlines()
        if done.worker is not WorkerOutcome.OK:
            raise ToolError("the search took too long; search in fewer files")
        if not lines:
            return "nothing found"
        text = clip("\n".join(line[:300] for line in lines[:MAX_MATCHES]), self.output_chars)
        return text + ("\n(more lines match)" if len(lines) > MAX_MATCHES else "")

    def _edit(self, wanted: EditFile) -> str:
        text = self._text(wanted.path)
        count = text.count(wanted.old)
        if count != 1:
            what = "does not stand in the file" if count == 0 else f"stands in the file {count} times"
            raise ToolError(f"{wanted.path}: the text to replace {what}; nothing was changed")
        self._put(wanted.path, text.replace(wanted.old, wanted.new, 1))
        return f"{wanted.path} was changed."

    def _write(self, wanted: WriteFile) -> str:
        self._put(wanted.path, wanted.content)
        return f"{wanted.path} was written."

    def _run(self, wanted: Run) -> str:
        limit = max(1.0, min(wanted.timeout_s, self.command_s, self.left_s()))
        done = self.session.exec(shell_line(wanted.command), timeout_s=limit, cwd=REPO)
        self.exit_code = done.rc if done.worker is WorkerOutcome.OK else done.rc or -1
        output = clip((done.stdout + done.stderr).decode(errors="replace"), self.output_chars)
        ending = {
            WorkerOutcome.OK: f"exit code {done.rc}",
            WorkerOutcome.TIMEOUT: f"ended after {limit:.0f} s, it had not come to its end",
            WorkerOutcome.OOM: "killed, it used too much memory",
        }.get(done.worker, "killed")
        return f"{output.rstrip()}\n[{ending}]".lstrip()


def shell_line(command: str) -> list[str]:
    """The arguments that run a shell command in a sandbox, by bash where there is one."""
    return ["/bin/sh", "-c", 'command -v bash >/dev/null && exec bash -c "$0"; exec sh -c "$0"', command]


def _inside(path: str) -> str:
    """The absolute path in the sandbox; relative paths start at the project's root."""
    return posixpath.normpath(posixpath.join(REPO, path))
