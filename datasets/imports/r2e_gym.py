"""Import of R2E-Gym's rows.

A row holds a commit that solves the task, as JSON: its patch hunk by hunk, and the contents of the files before and
after. The tests are whole files, which its images have in ``/r2e_tests``; there are no lists of FAIL_TO_PASS, but the
status of every test with the commit. So the lists are found by running the tests with and without the gold patch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from excise.datasets.imports.row_files import FieldError, Fields, Place, read_tasks, row_json
from excise.types import BadRow, ForeignTask

TESTS = "r2e_tests"
"""Folder of the checkout in which its tests run."""
PROJECTS = {
    "aiohttp": "aio-libs/aiohttp",
    "bokeh": "bokeh/bokeh",
    "coveragepy": "nedbat/coveragepy",
    "datalad": "datalad/datalad",
    "numpy": "numpy/numpy",
    "orange3": "biolab/orange3",
    "pandas": "pandas-dev/pandas",
    "pillow": "python-pillow/Pillow",
    "pyramid": "Pylons/pyramid",
    "scrapy": "scrapy/scrapy",
    "statsmodels": "statsmodels/statsmodels",
    "sympy": "sympy/sympy",
    "tornado": "tornadoweb/tornado",
}
"""Its short names of projects."""
_SIGNS = {"context": " ", "added": "+", "deleted": "-", "note": "\\ "}


class R2eGymImporter:
    """Reads rows of R2E-Gym."""

    name = "r2e-gym"

    def read(self, path: Path) -> Iterator[ForeignTask | BadRow]:
        """The tasks of a ``.jsonl``, ``.json`` or ``.parquet`` file, or of a folder of such."""
        return read_tasks(path, self.parse)

    def parse(self, fields: Fields, place: Place) -> ForeignTask:
        """The task of a row. Raises :class:`FieldError`."""
        short = fields.text("repo_name")
        repo = short if "/" in short else PROJECTS.get(short.lower(), "")
        if not repo:
            raise FieldError("repo_name", f"{short!r} is no project of R2E-Gym; write owner/name.")
        fix = fields.commit("commit_hash")
        commit = fields.mapping("parsed_commit_content")
        if not commit:
            raise FieldError("parsed_commit_content", "is missing: it holds the gold patch.")
        base = str(commit.get("old_commit_hash") or "").removesuffix("^")
        return ForeignTask(
            instance_id=fields.instance_id()
            if "instance_id" in fields.row
            else f"{repo.replace('/', '__')}-{fix[:12]}",
            format=self.name,
            place=place,
            repo=repo,
            urls=(f"https://github.com/{repo}",),
            commit=_base_commit(base, fix),
            patch=patch_of(commit),
            test_files=_test_files(fields.mapping("execution_result_content")),
            problem_statement=fields.text("problem_statement"),
            fail_to_pass=None,
            pass_to_pass=None,
            expected=tuple((str(test), str(status)) for test, status in fields.mapping("expected_output_json").items()),
            image_name=fields.text("docker_image", ""),
            row=row_json(fields.row),
        )


def _base_commit(base: str, fix: str) -> str:
    """The commit before the fix; ``FIX^`` where the row does not name it."""
    is_id = 7 <= len(base) <= 40 and all(letter in "0123456789abcdef" for letter in base) and base != fix
    return base if is_id else f"{fix}^"


def patch_of(commit: Mapping[str, Any]) -> str:
    """The commit's changes outside tests as a patch. Raises :class:`FieldError`."""
    try:
        parts = [_file_patch(found) for found in commit["file_diffs"] if not is_test(found["header"]["file"]["path"])]
    except (KeyError, TypeError, AttributeError) as error:
        raise FieldError("parsed_commit_content", f"is not as R2E-Gym writes it ({error!r}).") from None
    if not "".join(parts):
        raise FieldError("parsed_commit_content", "changes no file outside tests.")
    return "".join(parts)


def is_test(path: str) -> bool:
    """Whether R2E-Gym counts a file of a commit as a test."""
    *folders, name = PurePosixPath(path).parts
    in_folder = not {"test", "tests", "Test", "Tests"}.isdisjoint(folders)
    return in_folder or name.startswith("test_") or name.endswith("_test.py")


def _file_patch(found: Mapping[str, Any]) -> str:
    """The patch of one file."""
    path = found["header"]["file"]["path"]
    lines = [f"diff --git a/{path} b/{path}"]
    if misc := found["header"].get("misc_line"):
        lines.append(misc)
    if not found["hunks"]:
        return ""  # a binary file, or a change of its mode
    minus, plus = found["minus_file"]["path"], found["plus_file"]["path"]
    lines += [f"--- {minus}", f"+++ {plus}"]
    for hunk in found["hunks"]:
        old, new = (_range(hunk["descriptor"][side]) for side in ("old_range", "new_range"))
        lines.append(f"@@ -{old} +{new} @@")
        lines += [f"{_SIGNS[line['type']]}{line['content']}" for line in hunk["line_group"]["all_lines"]]
    return "\n".join(lines) + "\n"


def _range(found: Mapping[str, Any]) -> str:
    return str(found["start"]) if found.get("length") is None else f"{found['start']},{found['length']}"


def _test_files(result: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """(path, text) of the tests."""
    names, codes = result.get("test_file_names") or (), result.get("test_file_codes") or ()
    if not names or len(names) != len(codes):
        raise FieldError("execution_result_content", "names no test files: they are only in the Docker image.")
    return tuple(
        (f"{TESTS}/{PurePosixPath(str(name)).name}", str(code)) for name, code in zip(names, codes, strict=True)
    )
