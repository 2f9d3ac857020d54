"""Data of hidden tests goes with them, and no data that others read."""

from __future__ import annotations

from .test_remove_details import F, after, delete


def test_a_file_that_a_test_may_read_by_its_own_name_stays() -> None:
    test = "from m import f\nfrom tests.tools import rows\n\n\ndef test_f():\n    assert f() in rows('red.json')\n"
    files = {
        "m.py": F,
        "tests/__init__.py": "",
        "tests/tools.py": "def rows(name):\n    return open(name)\n",
        "tests/red.json": "[1]\n",
        "tests/test_m.py": f"{test}\n\n@rows\ndef test_red():\n    assert 1\n",
    }
    left = after(files, delete(files, "m.py::f", hide=("tests/test_m.py::test_f",)))
    assert {"tests/red.json", "tests/test_m.py"} <= left.keys()
    files["tests/test_m.py"] = files["tests/test_m.py"].replace("test_red", "test_reddish")
    assert "tests/red.json" not in after(files, delete(files, "m.py::f", hide=("tests/test_m.py::test_f",)))


def test_a_file_whose_name_a_hidden_test_makes_goes() -> None:
    test = "import pytest\nfrom m import f\n\n\n@pytest.mark.parametrize('name', ['red', 'blue'])\ndef test_f(name):\n"
    test += "    assert f() in open(name + '.json')\n"
    files = {
        "m.py": F,
        "tests/red.json": "[1]\n",
        "tests/README.md": "The files are `red.json` and `blue.json`.\n",
        "tests/blue.json": "[2]\n",
        "tests/test_m.py": test,
        "tests/test_n.py": "def test_blue():\n    assert open('blue' + '.json')\n",
    }
    hide = ("tests/test_m.py::test_f[red]", "tests/test_m.py::test_f[blue]")
    left = after(files, delete(files, "m.py::f", hide=hide))
    assert "tests/blue.json" in left
    assert "tests/red.json" not in left
    files["tests/test_n.py"] += "    assert list(Path('tests').glob('*.json'))\n"
    assert "tests/red.json" in after(files, delete(files, "m.py::f", hide=hide))
    files["tests/test_n.py"] = "def test_n():\n    assert open(f're{1}.json')\n"
    assert "tests/red.json" in after(files, delete(files, "m.py::f", hide=hide))


def test_files_of_every_project_are_not_meant_by_words() -> None:
    test = "from m import f\n\n\ndef test_f():\n    assert f() in ('README', 'setup')\n"
    files = {"m.py": F, "tests/README.md": "Tests.\n", "tests/setup.cfg": "[a]\n", "tests/test_m.py": test}
    left = after(files, delete(files, "m.py::f", hide=("tests/test_m.py::test_f",)))
    assert {"tests/README.md", "tests/setup.cfg"} <= left.keys()


def test_a_file_with_the_whole_name_of_a_test_goes_with_it_alone() -> None:
    test = "from m import f\n\n\ndef test_f(record):\n    assert f()\n\n\ndef test_g(record):\n    assert 1\n"
    names = ["tests.test_m.test_f[a.b-c].json", "tests.test_m.test_g[a.b-c].json"]
    files = {"m.py": F, "tests/test_m.py": test, **{f"tests/tapes/{name}": "{}\n" for name in names}}
    left = after(files, delete(files, "m.py::f", hide=("tests/test_m.py::test_f",)))
    assert [f"tests/tapes/{name}" in left for name in names] == [False, True]
    others = ["tests.test_m.test_g[x.test_f.y].json", "tests.test_m.json", "tests.test_f.json"]
    files |= {f"tests/tapes/{name}": "{}\n" for name in others}
    left = after(files, delete(files, "m.py::f", hide=("tests/test_m.py::test_f",)))
    assert all(f"tests/tapes/{name}" in left for name in others)
