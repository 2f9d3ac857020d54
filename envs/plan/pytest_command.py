"""How a project's own automation runs its tests, as far as that can be taken over."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from excise.envs.manifests.manifest import Manifest
from excise.envs.plan.pytest_options import safe_addopts

_ALONE = re.compile(
    r"-[vqxslra]+|-r\w+|--(verbose|quiet|exitfirst|showlocals|strict(-markers|-config)?|no-cov|full-trace|no-header"
    r"|no-summary|disable-warnings|doctest-modules|last-failed|failed-first|pyargs|noconftest)|[^=]+=.*"
)
"""Options after which the next word is one of its own."""
_NOT_TAKEN = ("-W", "--pythonwarnings", "--import-mode")
"""Only stricter, or a matter of how the project is installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestCommand:
    """What all calls of pytest agree in."""

    __test__ = False

    arguments: tuple[str, ...] = ()
    """Options that decide what is collected and what it means."""
    paths: tuple[str, ...] = ()
    """Files and folders; empty if a call leaves them to pytest."""


def test_command(root: Path, manifest: Manifest) -> TestCommand:
    """Options that every call gives, and the paths of all of them.

    CI splits suites over jobs, by marks or folders: what only one of several calls selects is no rule for all.
    """
    if not manifest.test_commands:
        return TestCommand()
    options = [_pairs(safe_addopts(words)) for words in manifest.test_commands]
    common = [pair for pair in options[0] if pair[0] not in _NOT_TAKEN and all(pair in other for other in options)]
    paths = [_paths(root, words) for words in manifest.test_commands]
    told = dict.fromkeys(path for found in paths for path in found) if all(paths) else {}
    return TestCommand(arguments=tuple(word for pair in common for word in pair), paths=tuple(told))


def _pairs(arguments: Sequence[str]) -> list[tuple[str, ...]]:
    """Each option with its value."""
    pairs: list[tuple[str, ...]] = []
    for word in arguments:
        if pairs and len(pairs[-1]) == 1 and re.fullmatch(r"-[mkWpo]", pairs[-1][0]):
            pairs[-1] = (*pairs[-1], word)
        else:
            pairs.append((word,))
    return pairs


def _paths(root: Path, words: Sequence[str]) -> list[str]:
    """Folders and Python files of the tree among the words, but for values of options."""
    found = []
    for word, before in zip(words, ["", *words], strict=False):
        value = before.startswith("-") and not _ALONE.fullmatch(before)
        path = word.partition("::")[0].removeprefix("./").rstrip("/")
        inside = path and not word.startswith(("-", "/")) and ".." not in Path(path).parts
        if inside and not value and ((root / path).is_dir() or (path.endswith(".py") and (root / path).is_file())):
            found.append(path)
    return [] if "." in found else found
