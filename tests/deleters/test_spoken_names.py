"""Text that means removed code by the words of its name: the code stays as a stub."""

from __future__ import annotations

import pytest

from .test_remove_details import delete


@pytest.mark.parametrize(
    ("files", "left"),
    [
        ({"README.md": "# Kit\n\nTells the moon phase of a day.\n"}, "the words of its name are left: moon phase"),
        ({"pkg/b.py": '"""Moon-phases and more."""\n'}, "the words of its name are left: Moon-phases"),
        ({"README.md": "# Kit\n\nTells the moon phase.\n", "pkg/b.py": "moon_phase_day = 1\n"}, ""),
        ({"README.md": "# Kit\n\nThe phase of a moon.\n"}, ""),
    ],
)
def test_the_words_of_a_name_mean_it(files: dict[str, str], left: str) -> None:
    code = "def moon_phase(x):\n    return x\n\n\ndef moon(phase):\n    return phase\n"
    found = delete({"pkg/__init__.py": "", "pkg/a.py": code, **files}, "pkg/a.py::moon_phase").uses_left
    assert [text for _, text in found if "its name" in text] == ([left] if left else [])
