"""Results of compiling and inspecting: byte code, pickled code, listings. They contain names (leak level L3)."""

from __future__ import annotations

import ast
import base64
import dis
import io
import marshal
import os
import py_compile
import shutil
import subprocess
import types
import zipfile
import zlib
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path

VERSIONS = ("3.8", "3.9", "3.10", "3.12", "3.13", "3.14")


def _module(source: bytes, folder: Path) -> Path:
    work = folder.parent / f"{folder.name}-src"
    work.mkdir(exist_ok=True)
    path = work / "module.py"
    path.write_bytes(source)
    return path


def _compiled(source: bytes, folder: Path, optimize: int, **options: object) -> bytes:
    into = folder.parent / f"{folder.name}.pyc"
    py_compile.compile(str(_module(source, folder)), str(into), "module.py", True, optimize, quiet=0, **options)  # type: ignore[arg-type]
    return into.read_bytes()


def pyc(source: bytes, folder: Path) -> None:
    (folder / "module.cpython-311.pyc").write_bytes(_compiled(source, folder, 0))


def pyc_o(source: bytes, folder: Path) -> None:
    (folder / "module.opt-1.pyc").write_bytes(_compiled(source, folder, 1))


def pyc_oo(source: bytes, folder: Path) -> None:
    (folder / "module.opt-2.pyc").write_bytes(_compiled(source, folder, 2))


def pyc_by_hash(source: bytes, folder: Path) -> None:
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    (folder / "renamed.dat").write_bytes(_compiled(source, folder, 0, invalidation_mode=mode))


def pyc_in_zip(source: bytes, folder: Path) -> None:
    with zipfile.ZipFile(folder / "app.egg", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("module.pyc", _compiled(source, folder, 2))


def pyc_in_base64(source: bytes, folder: Path) -> None:
    (folder / "report.json").write_bytes(
        b'{"x": "' + base64.b64encode(zlib.compress(_compiled(source, folder, 2))) + b'"}'
    )


def marshalled(source: bytes, folder: Path) -> None:
    (folder / "cache.bin").write_bytes(b"head\0\1\2" + marshal.dumps(compile(source, "module.py", "exec")))


@cache
def interpreter(version: str) -> str | None:
    """Path of another version of CPython on this machine."""
    roots = [Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"]
    found = [str(p) for root in roots if root.is_dir() for p in root.glob(f"{version}.*/bin/python3")]
    return next(iter(found), None) or shutil.which(f"python{version}")


def pyc_of(version: str):  # type: ignore[no-untyped-def]
    def plant(source: bytes, folder: Path) -> None:
        program = "import py_compile, sys; py_compile.compile(sys.argv[1], sys.argv[2], 'm.py', True, 2)"
        python = interpreter(version)
        assert python
        into = folder / f"module.{version}.pyc"
        subprocess.run([python, "-I", "-c", program, str(_module(source, folder)), str(into)], check=True, timeout=60)

    plant.__name__ = f"pyc_{version.replace('.', '_')}"
    return plant


def _functions(code: types.CodeType) -> list[types.CodeType]:
    return [x for c in code.co_consts if isinstance(c, types.CodeType) for x in (c, *_functions(c))]


def cloudpickled(source: bytes, folder: Path) -> None:
    """Functions pickled by value, as Dask, Ray and joblib send them."""
    import cloudpickle

    codes = [c for c in _functions(compile(source, "module.py", "exec")) if not c.co_name.startswith("<")]
    here = {"__name__": "__main__"}  # without a module's name, all modules' attributes would be searched for each
    functions = [types.FunctionType(c, here, c.co_name) for c in codes if not c.co_freevars]
    (folder / "task.pkl").write_bytes(
        b"".join(cloudpickle.dumps(f) for f in functions)
        if len(functions) == 1
        else cloudpickle.dumps(functions + codes)
    )


def disassembly(source: bytes, folder: Path) -> None:
    out = io.StringIO()
    with redirect_stdout(out):
        dis.dis(compile(source, "module.py", "exec"))
    (folder / "dis.txt").write_text(out.getvalue())


def syntax_tree(source: bytes, folder: Path) -> None:
    (folder / "tree.txt").write_text(ast.dump(ast.parse(source)))


def syntax_tree_indented(source: bytes, folder: Path) -> None:
    (folder / "tree.log").write_text(ast.dump(ast.parse(source), indent=1, include_attributes=True))


COMPILED = (
    pyc, pyc_o, pyc_oo, pyc_by_hash, pyc_in_zip, pyc_in_base64, marshalled, cloudpickled, disassembly, syntax_tree,
    syntax_tree_indented, *(pyc_of(version) for version in VERSIONS if interpreter(version)),
)  # fmt: skip
