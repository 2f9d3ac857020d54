"""Derives pytest arguments and paths from the calls of pytest in a project's automation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from excise.envs.manifests.manifest import Manifest
from excise.envs.plan.pytest_options import safe_addopts

_WITHOUT_VALUE = re.compile(
    r"-[vqxslra]+|-r\w+|--(verbose|quiet|exitfirst|showlocals|strict(-markers|-config)?|no-cov|full-trace|no-header"
    r"|no-summary|disable-warnings|doctest-modules|last-failed|failed-first|pyargs|noconftest)|[^=]+=.*"
)
"""Options without a value: the next word is separate."""
_IGNORED_OPTIONS = ("-W", "--pythonwarnings", "--import-mode")
"""Options that only make pytest stricter, or that depend on how the project is installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PytestCommand:
    """The options and paths with which to call pytest."""

    arguments: tuple[str, ...] = ()
    """Options that select tests or change how they run."""
    paths: tuple[str, ...] = ()
    """Files and folders; empty if any call leaves them to pytest's configuration."""


def common_pytest_command(root: Path, manifest: Manifest) -> PytestCommand:
    """Return the options that all calls share, and the paths of all calls together.

    CI splits suites over jobs by markers or folders, so an option of only one call is not used.
    """
    if not manifest.test_commands:
        return PytestCommand()
    options = [_pairs(safe_addopts(words)) for words in manifest.test_commands]
    common = [
        pair for pair in options[0] if pair[0] not in _IGNORED_OPTIONS and all(pair in other for other in options)
    ]
    paths = [_paths(root, words) for words in manifest.test_commands]
    all_paths = dict.fromkeys(path for found in paths for path in found) if all(paths) else {}
    return PytestCommand(arguments=tuple(word for pair in common for word in pair), paths=tuple(all_paths))


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
    """Folders and Python files of the tree among the words, except values of options."""
    found = []
    for word, before in zip(words, ["", *words], strict=False):
        value = before.startswith("-") and not _WITHOUT_VALUE.fullmatch(before)
        path = word.partition("::")[0].removeprefix("./").rstrip("/")
        inside = path and not word.startswith(("-", "/")) and ".." not in Path(path).parts
        if inside and not value and ((root / path).is_dir() or (path.endswith(".py") and (root / path).is_file())):
            found.append(path)
    return [] if "." in found else found
