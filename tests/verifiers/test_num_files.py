"""Files count as changed where their code changed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from excise.extractors.languages import get_language
from excise.verifiers.build_candidate import num_files

CODE = b'"""Has f and g."""\n\n\ndef f():  # like g\n    """See g."""\n    return ["f", "g"]\n'


@pytest.mark.parametrize(
    ("path", "after", "changed"),
    [
        ("m.py", CODE.replace(b" and g", b""), 0),
        ("m.py", CODE.replace(b"  # like g", b""), 0),
        ("m.py", CODE.replace(b'    """See g."""\n', b""), 0),
        ("m.py", CODE.replace(b', "g"', b""), 1),
        ("m.py", CODE.replace(b"return", b"yield"), 1),
        ("m.py", None, 1),
        ("new.py", b"x = 1\n", 1),
        ("docs/api.rst", b"f\n", 0),
        ("docs/api.rst", None, 1),
        ("setup.cfg", b"[f]\n", 1),
    ],
)
def test_comments_and_prose_do_not_count(path: str, after: bytes | None, changed: int) -> None:
    files = {"m.py": CODE, "docs/api.rst": b"f\ng\n", "setup.cfg": b"[f]\n[g]\n"}
    bench = SimpleNamespace(
        language=get_language("python"),
        read=lambda paths: {each: files[each] for each in paths if each in files},
        codebase=SimpleNamespace(modules={"m.py", "new.py"}),
        documents={"docs/api.rst": "f\ng\n"},
    )
    split = SimpleNamespace(bench=bench, edits=lambda tree: {path: after} if tree == "deleted" else {})
    assert num_files(split) == changed  # type: ignore[arg-type]
