"""Reader of requirements files: the requirements by name, without options, hashes, paths and URLs."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from excise.envs.manifests.manifest import Manifest

_TEST_FILE = re.compile(r"(^|[-_./])(tests?|testing|dev|develop|development|ci)([-_.\d/]|$)")
_OTHER_FILE = re.compile(
    r"(^|[-_./])(docs?|documentation|lint|linting|mypy|typing|types|release|build|wheels|update|bench\w*)([-_./]|$)"
)

_FILES = (".txt", ".in", ".whl", ".zip", ".tar.gz", ".tar.bz2", ".egg")
"""Ends of words that name a file, though most of them could be names of distributions."""
_WITH_VALUE = frozenset(
    (
        *("-r", "--requirement", "-e", "--editable", "-c", "--constraint", "--group", "-t", "--target"),
        *("-i", "--index-url", "--extra-index-url", "-f", "--find-links"),
    )
)
"""Options of installers whose value is the next word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """The content of a requirements file."""

    requirements: tuple[str, ...] = ()
    """PEP 508 requirements by name."""
    extras: tuple[str, ...] = ()
    """Extras of the project itself (``-e .[test]``)."""


def read_requirement_files(root: Path) -> Manifest:
    """Read requirements files for tests, development or CI, in the root and in folders such as ``requirements``."""
    paths = [
        *root.glob("*req*.txt"),
        *root.glob("*req*.in"),
        *root.glob("req*/*.txt"),
        *root.glob("req*/*.in"),
        *(p for folder in ("test", "tests", "dev", "ci") for p in root.glob(f"{folder}/*req*.txt")),
    ]
    found: dict[str, tuple[str, ...]] = {}
    extras: list[str] = []
    for path in sorted(paths):
        name = path.relative_to(root).as_posix()
        if path.is_file() and _TEST_FILE.search(name.lower()) and not _OTHER_FILE.search(name.lower()):
            parsed = parse_requirements(root, name)
            if parsed.requirements and not (path.suffix == ".in" and path.with_suffix(".txt").is_file()):
                found[name] = parsed.requirements
            extras += parsed.extras
    return Manifest(requirement_files=found, test_extras=tuple(dict.fromkeys(extras)))


def parse_requirements(root: Path, name: str, seen: tuple[str, ...] = ()) -> Requirements:
    """The requirements of one file and of those that it includes by ``-r``; empty for a missing file."""
    path = (root / name).resolve()
    if name in seen or not path.is_relative_to(root.resolve()):
        return Requirements()
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return Requirements()
    wanted: list[str] = []
    extras: list[str] = []
    for line in re.sub(r"\\\n", " ", text).splitlines():
        parsed = parse_line(
            root, line, (path.parent / "x").relative_to(root.resolve()).parent.as_posix(), (*seen, name)
        )
        wanted += parsed.requirements
        extras += parsed.extras
    return Requirements(requirements=tuple(dict.fromkeys(wanted)), extras=tuple(dict.fromkeys(extras)))


def parse_line(root: Path, line: str, folder: str = ".", seen: tuple[str, ...] = ()) -> Requirements:
    """Parse one line of a requirements file, or one word that a tool passes to an installer."""
    text = re.sub(r"(^|\s)#.*", "", line).strip()
    if match := re.match(r"(?:-r|--requirement)[\s=]*(\S+)", text):
        for candidate in (Path(folder, match[1]).as_posix(), match[1]):
            if (root / candidate).is_file():
                return parse_requirements(root, candidate, seen)
        return Requirements()
    if match := re.fullmatch(r"(?:-e\s*|--editable[\s=]*)?(?:\.|\{toxinidir\}|file:\.)/?(?:\[([\w\s,.-]+)\])?", text):
        return Requirements(extras=tuple(re.split(r"[\s,]+", match[1].strip())) if match[1] else ())
    if not text or text.startswith("-") or text.endswith(_FILES):
        return Requirements()
    plain = re.split(r"\s+--", text)[0].strip()
    if (wanted := valid_requirement(plain)) and not Requirement(wanted).url:
        return Requirements(requirements=(wanted,))
    return Requirements()


def parse_install(root: Path, command: str) -> Requirements:
    """Parse the arguments of one ``pip install …`` or ``uv pip install …`` of a script."""
    try:
        arguments = shlex.split(command, comments=True)
    except ValueError:
        return Requirements()
    wanted: list[str] = []
    extras: list[str] = []
    iterator = iter(arguments)
    for word in iterator:
        value = next(iterator, "") if word in _WITH_VALUE else ""
        parsed = parse_line(root, f"{word} {value}".strip())
        wanted += parsed.requirements
        extras += parsed.extras
    return Requirements(requirements=tuple(wanted), extras=tuple(extras))


def valid_requirement(text: str) -> str:
    """The text if it is a PEP 508 requirement, else empty."""
    try:
        Requirement(text)
    except InvalidRequirement:
        return ""
    return text
