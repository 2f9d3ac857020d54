"""Import of Harbor's task folders.

Harbor has no fields for repository, commit and gold patch. They are looked for, in this order, in ``tests/config.json``
(where its adapters keep the row of the set that a task was made from), in ``[metadata]`` of ``task.toml``, in the
``Dockerfile`` (``git clone`` and ``git checkout``) and in the solution (a patch file, or a patch in ``solve.sh``). A
task of which only an image is known is read, too: what its files tell can be checked without running it.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from excise.datasets.imports.row_files import FieldError, Fields
from excise.datasets.imports.swebench_rows import FORGE
from excise.errors import ConfigError
from excise.types import BadRow, ForeignTask

CONFIG = "task.toml"
"""File that makes a folder a task."""
TESTS = "harbor_tests"
"""Folder of the checkout in which the test files of a task run that has no patch of tests."""
MAX_FILE_BYTES = 1 << 20
"""Bytes above which a file of a task is not read."""
_CLONE = re.compile(r"git\s+clone\s+(?:-\S+(?:\s+(?!\S*://)\S+)?\s+)*(?P<url>(?:https?|git|ssh|file)://\S+)")
_CHECKOUT = re.compile(
    r"git\s+(?:-C\s+\S+\s+)?(?:checkout|reset\s+--hard|switch\s+--detach)\s+(?P<rev>[0-9a-f]{7,40})\b"
)
_HEREDOC = re.compile(r"<<-?\s*(?P<quote>['\"]?)(?P<end>\w+)(?P=quote)[^\n]*\n(?P<body>.*?)\n(?P=end)\b", re.DOTALL)


class HarborImporter:
    """Reads folders with a ``task.toml``."""

    name = "harbor"

    def read(self, path: Path) -> Iterator[ForeignTask | BadRow]:
        """The tasks of a folder, at any depth, sorted by path; the folder may be a task itself.

        Raises :class:`ConfigError` if there is none.
        """
        if not path.is_dir():
            raise ConfigError(f"{path} is no folder: Harbor's tasks are folders with a {CONFIG}.")
        folders = sorted(found.parent for found in path.rglob(CONFIG))
        if not folders:
            raise ConfigError(f"{path} holds no {CONFIG}: Harbor's tasks are folders with one.")
        seen: dict[str, str] = {}
        for folder in folders:
            place = folder.relative_to(path).as_posix() if folder != path else folder.name
            try:
                task = _task(folder, place)
                if task.instance_id in seen:
                    raise FieldError("name", f"{task.instance_id} is the name of {seen[task.instance_id]}, too.")
            except FieldError as error:
                yield BadRow(place=place, instance_id=folder.name, field=error.field, problem=error.problem)
                continue
            seen[task.instance_id] = place
            yield task


def _task(folder: Path, place: str) -> ForeignTask:
    """The task of a folder. Raises :class:`FieldError`."""
    config = _toml(folder / CONFIG)
    files = {path.relative_to(folder).as_posix(): text for path, text in _texts(folder)}
    statement = files.get("instruction.md", "")
    if not statement.strip():
        raise FieldError("instruction.md", "is missing or empty: it is what the agent is told.")
    fields = Fields(_known(config, files))
    repo, url = _repository(fields, files)
    environment = config.get("environment")
    image = str(environment.get("docker_image") or "") if isinstance(environment, Mapping) else ""
    patch = _gold(fields, files)
    fail_to_pass = fields.tests("FAIL_TO_PASS", required=False) or None
    test_patch = fields.patch("test_patch", required=False) or files.get("tests/test.patch", "")
    has_tests = bool(test_patch or fail_to_pass)
    return ForeignTask(
        instance_id=Fields({"instance_id": folder.name}).instance_id(),
        format="harbor",
        place=place,
        repo=repo,
        urls=(url,) if url else (),
        commit=_commit(fields, files),
        patch=patch,
        test_patch=test_patch,
        test_files=() if has_tests else _test_files(files),
        problem_statement=statement,
        hints_text=fields.text("hints_text", ""),
        interface=fields.text("interface", ""),
        fail_to_pass=fail_to_pass,
        pass_to_pass=fields.tests("PASS_TO_PASS", required=False) if fail_to_pass else None,
        created_at=fields.date(),
        version=fields.text("version", ""),
        language=fields.text("language", "python").lower(),
        image_name=image,
        environment_files=tuple((name, text) for name, text in files.items() if name.startswith("environment/")),
        solution_script=files.get("solution/solve.sh", ""),
        row=json.dumps({"task.toml": config, "files": sorted(files)}, ensure_ascii=False, default=str),
    )


def _toml(path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise FieldError(CONFIG, f"cannot be read: {error}") from None


def _texts(folder: Path) -> Iterator[tuple[Path, str]]:
    """The text files of a task, sorted by path; links, binary and large files are left out."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_FILE_BYTES:
            continue
        data = path.read_bytes()
        if b"\0" not in data:
            yield path, data.decode("utf-8", "replace")


def _known(config: Mapping[str, Any], files: Mapping[str, str]) -> dict[str, Any]:
    """What the task's files say in SWE-bench's names, the most reliable place last."""
    metadata = config.get("metadata")
    found: dict[str, Any] = dict(metadata) if isinstance(metadata, Mapping) else {}
    for name in ("tests/tests.json", "tests/config.json"):
        try:
            value = json.loads(files.get(name, "{}"))
        except ValueError:
            continue
        if isinstance(value, Mapping):
            found |= value
    return found


def _repository(fields: Fields, files: Mapping[str, str]) -> tuple[str, str]:
    """``owner/name`` of the project and the URL of its repository; both empty if nothing names it."""
    if fields.text("repo", "") and "base_commit" in fields.row:
        repo = fields.text("repo")
        if "/" in repo:
            return repo, FORGE.format(repo=repo)
    found = _CLONE.search(_dockerfile(files))
    if found is None:
        return fields.text("repo", ""), ""
    url = found["url"].strip("'\"").removesuffix("/").removesuffix(".git")
    return "/".join(url.split("/")[-2:]), url


def _commit(fields: Fields, files: Mapping[str, str]) -> str:
    if fields.text("base_commit", ""):
        return fields.commit()
    found = _CHECKOUT.findall(_dockerfile(files))
    return str(found[-1]) if found else ""


def _dockerfile(files: Mapping[str, str]) -> str:
    """The Dockerfile's instructions, with continued lines joined."""
    return files.get("environment/Dockerfile", "").replace("\\\n", " ")


def _gold(fields: Fields, files: Mapping[str, str]) -> str:
    """The gold patch; empty if the solution is no patch."""
    if fields.text("patch", ""):
        return fields.patch("patch")
    for name, text in files.items():
        if name.startswith("solution/") and name.endswith((".patch", ".diff")):
            return text if text.endswith("\n") else f"{text}\n"
    for found in _HEREDOC.finditer(files.get("solution/solve.sh", "")):
        if found["body"].lstrip().startswith("diff --git "):
            return found["body"].lstrip() + "\n"
    return ""


def _test_files(files: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The task's own test files, as files of the checkout."""
    names = [name for name in files if re.fullmatch(r"tests/(?:test_\w+|\w+_test)\.py", name)]
    return tuple((f"{TESTS}/{name.removeprefix('tests/')}", files[name]) for name in names)
