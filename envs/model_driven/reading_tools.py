"""Read-only tools of agents: list, read and search files inside an open sandbox session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from excise.agents.tool import Arguments, Tool, ToolError
from excise.envs.model_driven.goals import output_of
from excise.envs.sandbox.mount_points import REPO
from excise.protocols import Session
from excise.types import WorkerOutcome

_READ_TIMEOUT_S = 30.0


def _no_option(path: str) -> str:
    if not path or path.startswith("-") or "\0" in path:
        raise ValueError("write a path that does not begin with a dash")
    return path


_Path = Annotated[str, AfterValidator(_no_option)]


class ListFiles(Arguments):
    """Arguments of ``list_files``."""

    path: _Path = Field(default=".", description="folder inside the repository")
    depth: int = Field(default=2, ge=1, le=6, description="how many levels down")


class ReadFile(Arguments):
    """Arguments of ``read_file``."""

    path: _Path = Field(description="file, relative to the repository's root, or absolute")
    start: int = Field(default=1, ge=1, description="first line")
    lines: int = Field(default=200, ge=1, le=1000, description="how many lines")


class Search(Arguments):
    """Arguments of ``search``."""

    pattern: str = Field(min_length=1, max_length=300, description="extended regular expression, as of grep -E")
    path: _Path = Field(default=".", description="file or folder inside the repository")


def read_file_tool(session_of: Callable[[], Session]) -> Tool[ReadFile]:
    """The tool ``read_file``, for the session that ``session_of()`` returns at the time of a call."""

    def read(wanted: ReadFile) -> str:
        last = wanted.start + wanted.lines - 1
        return _run(session_of(), "cat", "-n", "--", wanted.path, pipe=f"sed -n {wanted.start},{last}p")

    return Tool(name="read_file", description="Lines of a file, with their numbers.", arguments=ReadFile, run=read)


def reading_tools(session: Session) -> list[Tool[Any]]:
    """The tools ``list_files``, ``read_file`` and ``search``."""

    def listed(wanted: ListFiles) -> str:
        return _run(session, "find", wanted.path, "-maxdepth", str(wanted.depth), "-not", "-path", "*/.git/*",
                    pipe="sort")  # fmt: skip

    def found(wanted: Search) -> str:
        return _run(session, "grep", "-rnIE", "-e", wanted.pattern, "--", wanted.path, pipe="cut -c1-300", none=1)

    return [
        Tool(name="list_files", description="Files and folders below a folder.", arguments=ListFiles, run=listed),
        read_file_tool(lambda: session),
        Tool(name="search", description="Lines of files that match, with their places.", arguments=Search, run=found),
    ]


def _run(session: Session, *argv: str, pipe: str, none: int = 0) -> str:
    """Run ``argv | pipe``; ``none`` is the exit status with which ``argv`` reports that it found nothing."""
    script = f'set -o pipefail; "$@" | {pipe}'
    done = session.exec(["/bin/bash", "-c", script, "bash", *argv], timeout_s=_READ_TIMEOUT_S, cwd=REPO)
    if done.worker is not WorkerOutcome.OK:
        raise ToolError("that took too long; ask for less")
    if done.rc not in (0, none):
        raise ToolError(output_of(done).strip()[-500:] or f"status {done.rc}")
    return done.stdout.decode(errors="replace").rstrip() or "[nothing]"
