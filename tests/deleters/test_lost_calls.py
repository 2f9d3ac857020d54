"""Documents lose calls that a function does not answer any more without one of its paths."""

from __future__ import annotations

import pytest

from excise.deleters.all_deleters import get
from excise.deleters.patches.git_patches import apply_patch
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.types import Feature, FeatureKind

HEAD = """class Show:
    @log
    def run(self, rows, form='auto'):
        text = str(form)
        if form == 'auto':
            text = 'b'
"""
GONE = "        elif {}:\n            a = 1\n            b = a + 2\n            text = str(b)\n"
REST = "        else:\n            text = 'z' if 'x' in form else text\n        return text + rows[0]\n"
OTHER = "def run(rows, form):\n    return 1\n"
README = "# Show\n\nIt shows:\n\n```python\n>>> show.run(a)\n'b'\n>>> {}\n'3'\n```\n\nMore.\n"


@pytest.mark.parametrize(
    ("condition", "call", "more", "is_left"),
    [
        ("isinstance(form, str)", "show.run(a, form='x')", "", False),
        ("isinstance(form, str)", "show.run(a, form='auto')", "", True),
        ("isinstance(form, str)", "show.run(a, form=['x'])", "", True),
        ("isinstance(form, str)", "show.run(a, form=x)", "", True),
        ("isinstance(form, str)", "show.run(a, 'x')", "", True),  # a method of this name may be another one
        ("isinstance(form, str)", "show.run(a, form='x')", OTHER, True),
        ("isinstance(form, str) and rows", "show.run(a, form='x')", "", True),
        ("form == 'x'", "print(show.run(a, form='x'))", "", False),
        ("form == 'y'", "show.run(a, form='x')", "", True),
        ("form in ('x', 'y')", "show.run(a, form='x')", "", False),
        (f"form == {'-' * 9000}1", "show.run(a, form='x')", "", True),
    ],
)
def test_calls_with_what_only_a_lost_path_took_go(condition: str, call: str, more: str, *, is_left: bool) -> None:
    files = {"m.py": HEAD + GONE.format(condition) + REST, "n.py": more, "README.md": README.format(call)}
    expected = files["README.md"] if is_left else files["README.md"].replace(f">>> {call}\n'3'\n", "")
    assert readme_without_path(files) == expected


@pytest.mark.parametrize(
    ("condition", "more", "cell", "is_left"),
    [
        ("form == 'html'", "", "html", False),
        ("form in ('html', 'other')", "", "`html`", False),
        ("form in ('html', 'other')", "", "``html``", False),
        ("form == 'html' and rows", "OTHERS = ['html']\n", "html", True),
        ("form == 'html'", "", "`html`, `text`", True),
        ("form != 'html'", "", "html", True),
        ("form == 'h'", "", "h", True),  # it may be any word
        ("form in 'html'", "", "html", True),
    ],
)
@pytest.mark.parametrize("row", ["| {} | A page |\n", "{:16} A page\n"])
def test_rows_about_a_lost_path_go(condition: str, more: str, cell: str, row: str, *, is_left: bool) -> None:
    row = row.format(cell)
    border = f"{'=' * 16} ======\n"
    table = [f"{border}Form             Output\n{border}", f"text             html\n{border}"]
    if "|" in row:
        table = ["| Form | Output |\n| --- | --- |\n", "| text | html |\n"]
    document = "# Show\n\nIt has forms, such as html:\n\n{}\nMore.\n"
    readme = document.format(row.join(table))
    files = {"m.py": HEAD + GONE.format(condition) + REST, "n.py": more, "README.md": readme}
    assert readme_without_path(files) == (readme if is_left else document.format("".join(table)))


def readme_without_path(files: dict[str, str]) -> str:
    """The document after the path of the function is gone."""
    codebase = PythonCodebase.from_texts(files)
    symbol = codebase.symbols()["m.py::Show.run"]
    after = (HEAD + REST).encode()
    text = after[symbol.start :].decode().rstrip("\n")
    feature = Feature(
        feature_id="f",
        kind=FeatureKind.METHOD,
        tier=0,
        entry=(symbol.symbol_id,),
        symbols=(symbol.symbol_id,),
        tests=(),
        changed=((symbol.symbol_id, text),),
    )
    data = {path: text.encode() for path, text in files.items()}
    left = {**data, **apply_patch(data, get("path").delete(codebase, feature).source_patch)}
    assert left["m.py"] == after
    return (left["README.md"] or b"").decode()
