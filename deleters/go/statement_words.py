"""How problem statements write about Go code; see :class:`excise.protocols.StatementWords`."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from excise.deleters.go.bodies import PLACEHOLDER


class GoWords:
    """The words of Go."""

    fence = "go"
    placeholder = PLACEHOLDER
    imports = r'(?:import\s|\s+(?:[\w.]+\s+)?"[\w./~-]+"\s*$)'
    heads = r"(?:func(?: \([^)]*\))?|type) (\w+)"

    def module_of(self, path: str) -> str:
        """The folder of a package."""
        return posixpath.dirname(path) or path

    def missing_file(self, path: str) -> Sequence[str]:
        """What the compiler says of a file that is not there."""
        return [f"// {path} is missing"]

    def failure(self, path: str, name: str, deleter: str) -> Sequence[str]:  # noqa: ARG002
        """A call of a function that lacks its code."""
        return [f"{name}(...) // panic: not implemented"]
