"""Vendored copies of a project are removed from its environment."""

from __future__ import annotations

from pathlib import Path

from excise.envs.install.layer_contents import remove_vendored_copies


def test_copies_of_the_project_go_and_everything_else_stays(tmp_path: Path) -> None:
    site = tmp_path / "lib/python3.13/site-packages"
    for path in (
        "setuptools/_vendor/more_itertools/more.py",
        "setuptools/_vendor/more_itertools-10.3.0.dist-info/METADATA",
        "setuptools/_vendor/jaraco/text.py",
        "other/extern/more_itertools.py",
        "more_itertools_user/more_itertools/mine.py",
    ):
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text("x = 1\n")
    gone = remove_vendored_copies(tmp_path, ("more_itertools",))
    assert gone == (
        "lib/python3.13/site-packages/other/extern/more_itertools.py",
        "lib/python3.13/site-packages/setuptools/_vendor/more_itertools",
    )
    left = {p.relative_to(site).as_posix() for p in site.rglob("*") if p.is_file()}
    assert left == {
        "setuptools/_vendor/more_itertools-10.3.0.dist-info/METADATA",
        "setuptools/_vendor/jaraco/text.py",
        "more_itertools_user/more_itertools/mine.py",
    }


def test_nothing_happens_where_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    assert remove_vendored_copies(tmp_path, ("pkg",)) == ()
