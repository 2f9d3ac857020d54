"""Byte code in any file: loaded with the environment's interpreter, or read as strings if another one wrote it."""

from __future__ import annotations

import marshal
import os
import resource
from types import CodeType

from excise.verifiers.recovery.inside.code_search import MAX_COMPILED_BYTES, CodeSearch, magic, printable_strings

TYPE_CHECKING = False
if TYPE_CHECKING:  # to import typing takes longer than most strategies
    from typing import Any, Iterator

ANONYMOUS = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>", "<lambda>")


def functions(code: CodeType, inside: str = "") -> Iterator[tuple[str, CodeType]]:
    """(qualified name, code object) of all functions and classes below a module's code."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and constant.co_name not in ANONYMOUS:
            name = f"{inside}.{constant.co_name}" if inside else constant.co_name
            yield name, constant
            yield from functions(constant, name)


def shape(code: CodeType) -> dict[str, Any]:
    """Those parts of compiled code that come from its source: arguments, names and constants, without nested code."""
    constants = [repr(c)[:200] for c in code.co_consts if not isinstance(c, CodeType) and c is not None]
    return {
        "argcount": code.co_argcount,
        "varnames": list(code.co_varnames)[:200],
        "names": list(code.co_names)[:300],
        "consts": constants[:200],
    }


def report(search: CodeSearch, where: str, code: CodeType) -> None:
    """Report the removed functions in a module's code object."""
    wanted = {t.qualname: t for t in search.targets if t.qualname}
    module_wide = {t.stem for t in search.targets if not t.qualname}
    stem = os.path.basename(code.co_filename).partition(".")[0]
    for name, inner in functions(code):
        if name in wanted or stem in module_wide or any(name.startswith(w + ".") for w in wanted):
            search.report_code(where, name, shape(inner), marshal.dumps(inner))


class ByteCode:
    """Compiled modules under any name, in any folder."""

    name = "bytecode"
    looks_at = "compiled modules (default, optimised and moved caches), read with marshal"

    def run(self, search: CodeSearch) -> None:
        own = bytes.fromhex(magic())
        for path in search.compiled_copies():
            if search.is_out_of_time():
                return
            data = search.read(path, MAX_COMPILED_BYTES)
            if data[:4] == own:
                try:
                    code = marshal.loads(data[16:])
                except (ValueError, EOFError, TypeError):
                    code = None
                if isinstance(code, CodeType):
                    if os.path.basename(code.co_filename).partition(".")[0] in search.stems:
                        report(search, path, code)
                    continue
            if os.path.basename(path).partition(".")[0] in search.stems:
                search.report_definitions(path, printable_strings(data, 3), whole=True)


class CodeObjects:
    """marshalled code without a header, in files of any name: crash dumps, caches, cloudpickles."""

    name = "code_objects"
    looks_at = "marshalled code objects inside other binary files"

    def run(self, search: CodeSearch) -> None:
        before = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, before[1]))  # damaged data may give a tuple two billion items
        try:
            for path, data in search.untracked_files():
                if not path.endswith(".pyc") and b"\0" in data[:4096] and search.contains_name(data):
                    self.scan(search, path, data)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)

    def scan(self, search: CodeSearch, path: str, data: bytes) -> None:
        """Try to load a code object from every position where one may begin."""
        at, tries = data.find(b"\xe3"), 0
        while at >= 0 and tries < 200 and not search.is_out_of_time():
            tries += 1
            try:
                code = marshal.loads(data[at:])
            except (ValueError, EOFError, TypeError, MemoryError):
                code = None
            if isinstance(code, CodeType):
                if code.co_name in search.names:
                    search.report_code(path, code.co_name, shape(code), marshal.dumps(code))
                report(search, path, code)
            at = data.find(b"\xe3", at + 1)
