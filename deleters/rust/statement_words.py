"""How problem statements write about Rust code; see :class:`excise.protocols.StatementWords`."""

from __future__ import annotations

from collections.abc import Sequence

from excise.deleters.rust.bodies import PLACEHOLDER


class RustWords:
    """The words of Rust."""

    fence = "rust"
    placeholder = PLACEHOLDER
    imports = r"(?:pub(?:\([^)]*\))? )?(?:use|extern crate|mod)\s"
    heads = (
        r"(?:pub(?:\([^)]*\))? )?(?:(?:const|unsafe|async|default|extern(?: \"[^\"]*\")?) )*"
        r"(?:fn|struct|enum|union|trait) (\w+)"
    )

    def module_of(self, path: str) -> str:
        """The path of a module in its crate."""
        parts = path.removesuffix(".rs").removeprefix("src/").split("/")
        inside = [part for part in parts if part not in {"lib", "main", "mod"}]
        return "::".join(["crate", *inside])

    def missing_file(self, path: str) -> Sequence[str]:
        """What the compiler says of a file that is not there."""
        return [f"// error[E0583]: file not found for module: {path}"]

    def failure(self, path: str, name: str, deleter: str) -> Sequence[str]:  # noqa: ARG002
        """A call of a function that lacks its code."""
        return [f"{name.replace('.', '::')}(...) // panics: not implemented"]
