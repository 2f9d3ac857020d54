"""What the files of a Go project say about its module, without running anything."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

IMPORT_PATH = re.compile(r"[\w.~-]+(?:/[\w.~-]+)*")
"""An import path."""
_MODULE = re.compile(r'(?m)^\s*module\s+"?([\w.~/-]+)"?')
_VERSION = re.compile(r"(?m)^go[ \t]+(\d+(?:\.\d+)+)")
_REPLACE = re.compile(r"(?m)^\s*(?:replace\s+)?[\w.~/-]+(?:\s+v\S+)?\s+=>\s+(\.\S*)")
_HOSTED = re.compile(r'"((?:[\w-]+\.)+[a-z]{2,}/[\w.~/-]+)"|\bgo get (?:-u )?((?:[\w-]+\.)+[a-z]{2,}/[\w.~/-]+)')
_COMMENT = re.compile(r'(?m)^package\s+\w+\s*//\s*import\s+"([\w.~/-]+)"')
_PACKAGE = re.compile(r"(?m)^package\s+(\w+)")
MAX_FILES = 400
"""Number of files that are searched for the import path of a project without ``go.mod``."""
LANGUAGE_VERSION = "1.13"
"""The version of the language that a generated ``go.mod`` declares: older than modules are no projects of today."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoManifest:
    """What is known of a project's module."""

    import_path: str = ""
    """Path under which its main folder is imported; empty if nothing tells."""
    made: str = ""
    """Content of a ``go.mod`` for a project that has none; empty for others."""
    has_vendor: bool = False
    """Whether the project brings the modules that it uses in ``vendor/``."""
    evidence: str = ""
    """The file that told the path."""
    version: str = ""
    """The version of Go that ``go.mod`` asks for: ``1.21.0``."""


def read_manifest(root: Path) -> GoManifest:
    """Read ``go.mod``; without one, look for the path in comments, imports and documents."""
    has_vendor = (root / "vendor" / "modules.txt").is_file()
    manifest = root / "go.mod"
    if manifest.is_file():
        text = manifest.read_text("utf-8", "replace")
        found, version = _MODULE.search(text), _VERSION.search(text)
        return GoManifest(
            import_path=found[1] if found else "",
            has_vendor=has_vendor,
            evidence="go.mod",
            version=version[1] if version else "",
        )
    path, evidence = _path_in_files(root)
    made = f"module {path}\n\ngo {LANGUAGE_VERSION}\n" if path else ""
    return GoManifest(import_path=path, made=made, evidence=evidence)


def _path_in_files(root: Path) -> tuple[str, str]:
    """The import path of the main folder and the file that tells it: of those named, the one most named.

    It ends with the name of the package, or with one that contains it. Of a project whose packages are all in folders,
    imports of these tell it. A single package that no file names by a path has its name as the path.
    """
    texts = {path.name: path.read_text("utf-8", "replace") for path in _files(root)}
    sources = {name: text for name, text in texts.items() if name.endswith(".go")}
    packages = {name for text in sources.values() for name in _PACKAGE.findall(text)} - {"main"}
    for name, text in texts.items():
        if found := _COMMENT.search(text):
            return found[1], name
    inside = [text for text in sources.values() if not any(p.endswith("_test") for p in _PACKAGE.findall(text))]
    others = {quoted for text in inside for quoted, _ in _HOSTED.findall(text)}  # no package imports itself
    counts: Counter[str] = Counter()
    where: dict[str, str] = {}
    for name, text in texts.items():
        for each in (first or second for first, second in _HOSTED.findall(text)):
            last = each.rstrip("/").rpartition("/")[2].lower()
            if each not in others and any(package.removesuffix("_test").lower() in last for package in packages):
                counts[each.rstrip("/.")] += 1
                where.setdefault(each.rstrip("/."), name)
    if not counts and not sources:
        return _path_before_folders(root)
    if not counts:  # nothing imports it: any path does
        own = {package.removesuffix("_test") for package in packages}
        return (own.pop(), min(sources)) if len(own) == 1 else ("", "")
    best = max(sorted(counts), key=lambda each: counts[each])
    return best, where[best]


def _path_before_folders(root: Path) -> tuple[str, str]:
    """What most imports have before the path of a folder of the project, of several folders, and the first file with
    one."""
    every = (path for path in sorted(root.rglob("*.go")) if "vendor" not in path.relative_to(root).parts)
    files = [path for path in every if path.is_file() and not path.is_symlink()][:MAX_FILES]
    folders = {path.parent.relative_to(root).as_posix() for path in files}
    counts: Counter[str] = Counter()
    meant: dict[str, set[str]] = defaultdict(set)
    where: dict[str, str] = {}
    for path in files:
        for each in {found for found, _ in _HOSTED.findall(path.read_text("utf-8", "replace"))}:
            parts = each.split("/")
            for number in range(2, len(parts)):
                before, folder = "/".join(parts[:number]), "/".join(parts[number:])
                if folder in folders:
                    counts[before] += 1
                    meant[before].add(folder)
                    where.setdefault(before, path.relative_to(root).as_posix())
    several = sorted(each for each in counts if len(meant[each]) > 1)  # one may be another project's, by chance
    best = max(several, key=lambda each: counts[each], default="")
    return best, where.get(best, "")


def _files(root: Path) -> Iterator[Path]:
    """Go files and documents of the main folder."""
    found = sorted(path for path in root.iterdir() if path.suffix in {".go", ".md", ".rst", ".txt"})
    yield from (path for path in found[:MAX_FILES] if path.is_file() and not path.is_symlink())
