"""Vendored copies of a project are removed from its environment."""

from __future__ import annotations

from pathlib import Path

from excise.envs.install.layer_contents import link_scripts, remove_vendored_copies


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


def test_scripts_that_are_copies_of_sources_run_these(tmp_path: Path) -> None:
    env, sources = tmp_path / "env", tmp_path / "sources"
    body = "import sys\n\nprint(sys.argv)\n"
    for path, text in {
        env / "bin/tool.py": f"#!/opt/env/bin/python\n{body}",
        env / "bin/other": f"#!/opt/env/bin/python\n{body}",
        env / "bin/wrapped": "#!/opt/env/bin/python\nimport re\n",
        sources / "tool.py": f"#!/usr/bin/env python\n{body}",
        sources / "scripts/other": f"#!/usr/bin/python3 -O\n{body}",
        sources / "wrapped": f"#!/usr/bin/env python\n{body}",
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    env.joinpath("bin/tool.py").chmod(0o755)
    assert link_scripts(env, sources) == ("other", "tool.py")
    assert (env / "bin/tool.py").read_text() == (
        "#!/opt/env/bin/python\nimport runpy\n\nrunpy.run_path('/testbed/tool.py', run_name=\"__main__\")\n"
    )
    assert "/testbed/scripts/other" in (env / "bin/other").read_text()
    assert (env / "bin/wrapped").read_text() == "#!/opt/env/bin/python\nimport re\n"
    assert (env / "bin/tool.py").stat().st_mode & 0o111
    assert link_scripts(env, sources) == ()
