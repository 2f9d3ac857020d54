"""Groups of entry points that code looks for."""

from __future__ import annotations

import pytest

from excise.extractors.python.analysis.codebase import PythonCodebase

from .planned_deletions import delete_symbol
from .test_leftovers import TEST


@pytest.mark.parametrize("code", ["entry_points(group='box.styles')", "GROUPS = {'box.styles': 'plain'}"])
def test_a_group_of_entry_points_that_code_looks_for_keeps_one(code: str) -> None:
    manifest = '[project]\nname = "m"\n\n[project.entry-points."box.styles"]\nplain = "m:gone"\n'

    def refused(manifest: str, code: str) -> bool:
        files = {"m.py": f"def gone(x):\n    return x + 1\n\n\n{code}\n", "test_m.py": TEST, "pyproject.toml": manifest}
        deletion = delete_symbol(PythonCodebase.from_texts(files), "m.py::gone", ("test_m.py::test_m",))
        return any("look for entry points of box.styles" in text for _, text in deletion.uses_left)

    assert refused(manifest, code)
    assert not refused(f'{manifest}other = "m:other"\n', code)
    assert not refused(manifest, code.replace("box.styles", "box.other"))
