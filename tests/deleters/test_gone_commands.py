"""Commands that go with their entry points go from documents, too; other commands and the package of that name stay."""

from __future__ import annotations

import time

import pytest

from excise.deleters.documents.gone_commands import GoneCommands
from excise.deleters.patches.git_patches import apply_patch
from excise.deleters.python.references.entry_points import scripts_in
from excise.extractors.python.analysis.codebase import PythonCodebase

from .planned_deletions import delete_symbol
from .test_remove_details import after, delete

CODE = {
    "ferry/__init__.py": "",
    "ferry/fares.py": "def fare(length):\n    return length * 3\n",
    "ferry/board.py": "import sys\n\n\ndef main():\n    print(sys.argv)\n\n\ndef other():\n    return 1\n",
}
TOML = '[project]\nname = "ferry"\n\n[project.scripts]\nferry = "ferry.board:main"\n'
ALSO = 'harbour = "ferry.board:other"\n'
MAIN = "from .board import main\n\nmain()\n"


def left_of(document: str, manifest: str = TOML, path: str = "README.md", **files: str) -> str:
    """A document after the removal of ``main``."""
    code = {**CODE, "pyproject.toml": manifest, path: document, **files}
    return after(code, delete(code, "ferry/board.py::main")).get(path, "")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Fares.\n\n```sh\n$ ferry 3\n9\n```\n\nEnd.\n", "Fares.\n\nEnd.\n"),
        ("Fares.\n\n```console\n$ pip install ferry\n$ ferry 3\n9\n$ ls\n```\n",
         "Fares.\n\n```console\n$ pip install ferry\n$ ls\n```\n"),
        ("Fares.\n\n```bash\n# a lorry\nferry --long \\\n  7\n\ncat x | ferry\nls\n```\n",
         "Fares.\n\n```bash\n\nls\n```\n"),
        ("Fares.\n\nRun it::\n\n    $ ferry 3\n    9\n\nEnd.\n", "Fares.\n\nEnd.\n"),
        ("Fares.\n\n```\nusage: ferry [-h] LENGTH\n\n  -h  help\n```\n\nEnd.\n", "Fares.\n\nEnd.\n"),
        ("A ferry.\n\nThe `ferry` command prints fares. Ferries are slow.\n", "A ferry.\n\nFerries are slow.\n"),
        ("A ferry.\n\nBy the ferry command it prints fares. Ferries are slow.\n", "A ferry.\n\nFerries are slow.\n"),
        ("A ferry.\n\nSay `ferry --help` for more. Ferries are slow.\n", "A ferry.\n\nFerries are slow.\n"),
        ("A ferry.\n\nRunning `ferry` alone gives a prompt. Ferries are slow.\n", "A ferry.\n\nFerries are slow.\n"),
    ],
)  # fmt: skip
def test_calls_and_sentences_go(before: str, after: str) -> None:
    assert left_of(f"# Ferry\n\n{before}") == f"# Ferry\n\n{after}"


@pytest.mark.parametrize(
    "kept",
    [
        "`ferry` is a package.\n",
        "```sh\npip install ferry\n```\n",
        "```sh\n$ harbour ferry\n```\n",
        "```python\nferry = 3\nprint(ferry)\n```\n",
        "```\nferry sails\nnot today\n```\n",
    ],
)
def test_what_is_no_call_stays(kept: str) -> None:
    document = f"# Ferry\n\n{kept}\nEnd.\n"
    assert left_of(document, TOML + ALSO) == document


def test_the_sections_about_the_command_line_go_with_the_last_command() -> None:
    document = "# Ferry\n\nText.\n\n## Command line\n\nIt asks.\n\n### Options\n\nMany.\n\n## Fares\n\nHigh.\n"
    assert left_of(document) == "# Ferry\n\nText.\n\n## Fares\n\nHigh.\n"
    assert left_of(document, TOML + ALSO) == document


@pytest.mark.parametrize(
    ("decorator", "name"),
    [("command()", "load_all"), ("command('load-all', help='x')", "load"), ("command", "load_all")],
)
def test_a_command_of_a_script_goes_alone(decorator: str, name: str) -> None:
    board = (
        f"import click\n\n\n@click.group()\ndef cli():\n    pass\n\n\n@cli.{decorator}\ndef {name}(n):\n    print(n)\n"
    )
    document = "# Ferry\n\n`ferry` asks.\n\n```sh\n$ ferry load-all 3\n3\n$ ferry sail\n```\n"
    code = {
        "ferry/__init__.py": "", "ferry/board.py": board, "README.md": document,
        "pyproject.toml": TOML.replace("main", "cli"),
    }  # fmt: skip
    left = after(code, delete(code, f"ferry/board.py::{name}"))["README.md"]
    assert left == document.replace("$ ferry load-all 3\n3\n", "")


@pytest.mark.parametrize("heading", ["ferry command", "The `ferry` command", "``ferry``", "ferry load command"])
def test_a_section_about_a_command_goes_with_its_label(heading: str) -> None:
    document = "Ferry\n=====\n\nA ferry.\n\n{}.. _fares:\n\nFares\n-----\n\nHigh.\n"
    section = f".. _calls:\n\n{heading}\n{'-' * 30}\n\nIt asks.\n\nOptions\n~~~~~~~\n\nMany.\n\n"
    manifest = TOML + ALSO
    assert left_of(document.format(section), manifest, "docs/a.rst") == document.format("")
    other = section.replace(heading, "A ferry at sea")
    assert left_of(document.format(other), manifest, "docs/a.rst") == document.format(other)


def test_a_module_that_can_be_run_is_a_command() -> None:
    document = "# Ferry\n\nText.\n\n```sh\npython -m ferry 3\n```\n"
    assert left_of(document, '[project]\nname = "ferry"\n', **{"ferry/__main__.py": MAIN}) == "# Ferry\n\nText.\n"


def test_scripts_of_all_kinds_of_manifests_are_found() -> None:
    toml = (
        b'[project.scripts]\na = "m:f"\n[project.entry-points.x]\nb = "m:g"\n[tool.poetry.scripts]\n"c-d" = "m.n:h"\n'
    )
    assert dict(scripts_in(toml)) == {"a": "m:f", "c-d": "m.n:h"}
    cfg = b"[options.entry_points]\nconsole_scripts =\n    a = m:f\n    b = m:g\nplugins =\n    c = m:h\n"
    assert dict(scripts_in(cfg)) == {"a": "m:f", "b": "m:g"}
    setup = b"setup(\n    entry_points={'console_scripts': ['a = m:f'],\n    },\n)\n"
    assert dict(scripts_in(setup)) == {"a": "m:f"}


def test_hostile_lines_take_no_long_time() -> None:
    commands = GoneCommands(scripts=("ferry",), modules=("ferry",))
    begun = time.process_time()
    for text in ("|A=" * 100_000, "A=b " * 100_000, "|" * 300_000, " " * 300_000, "`ferry " * 50_000):
        commands.left_of([text], is_shell=True)
        list(scripts_in(f"[project.scripts]\n{text}\n[{text}".encode()))
    assert time.process_time() - begun < 60


def test_metadata_of_an_archive_lose_entry_points_without_a_word() -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/m.py": "def gone():\n    return 1\n\n\ndef other():\n    return 2\n",
        "test_m.py": "def test_m():\n    assert 1\n",
        "pyproject.toml": '[project.scripts]\nold = "pkg.m:gone"\nnew = "pkg.m:other"\n',
        "pkg.egg-info/entry_points.txt": "[console_scripts]\nnew = pkg.m:other\nold = pkg.m:gone\n",
    }
    deletion = delete_symbol(PythonCodebase.from_texts(files), "pkg/m.py::gone", ("test_m.py::test_m",))
    left = apply_patch({path: text.encode() for path, text in files.items()}, deletion.source_patch)
    assert left["pkg.egg-info/entry_points.txt"] == b"[console_scripts]\nnew = pkg.m:other\n"
    assert [path for path, _ in deletion.registrations] == ["pyproject.toml"]
