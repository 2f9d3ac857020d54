"""How problem statements write about Java code; see :class:`excise.protocols.StatementWords`."""

from __future__ import annotations

from collections.abc import Sequence

from excise.deleters.java.bodies import PLACEHOLDER


class JavaWords:
    """The words of Java."""

    fence = "java"
    placeholder = PLACEHOLDER
    imports = r"import\s"
    heads = (
        r"(?:(?:public|protected|private|static|final|abstract|synchronized|native|strictfp|default)\s+)*"
        r"(?:(?:class|interface|enum|record)\s+|(?:<[^>]*>\s*)?[\w.<>\[\], ?]+?\s+)?(\w+)"
    )

    def module_of(self, path: str) -> str:
        """The name of the type that the file is named after, with its package as far as the path tells."""
        inside = path.removesuffix(".java")
        for root in ("src/main/java/", "src/java/", "src/", "java/"):
            _, found, rest = inside.rpartition(root)
            if found:
                return rest.replace("/", ".")
        return inside.replace("/", ".")

    def missing_file(self, path: str) -> Sequence[str]:
        """What the compiler says of a type that is not there."""
        return [f"error: cannot find symbol: class {path.rpartition('/')[2].removesuffix('.java')}"]

    def failure(self, path: str, name: str, deleter: str) -> Sequence[str]:  # noqa: ARG002
        """A call of a method that lacks its code."""
        return [f"{name}(...) // java.lang.UnsupportedOperationException: not implemented"]
