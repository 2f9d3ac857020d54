"""Real functions to plant, from installed packages: each with its module, complete and without the function."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from excise.extractors.languages import get_language
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.types import Symbol
from excise.verifiers.leaks.fingerprints import EMPTY, Hashes, unique
from excise.verifiers.leaks.targets import Target, code_pairs, definitions_in, targets_of

PACKAGES = ("toolz", "jinja2", "rich", "packaging", "tomlkit", "sortedcontainers", "pathspec", "click", "idna", "dask")
MIN_LOC, MAX_LOC = 6, 60


@dataclass(frozen=True)
class Subject:
    """One function that is planted in artefacts."""

    symbol: Symbol
    module: bytes
    """Source of the module with the function."""
    shipped: bytes
    """Source of the module without the function."""
    targets: tuple[Target, ...]
    name: str
    """Name of the function."""
    dotted: str
    """Import name of the module."""
    codebase: PythonCodebase
    """The package of the module, parsed."""

    def siblings(self) -> Hashes:
        """Fingerprints of the byte code of the other definitions of the module."""
        symbol = self.symbol
        others = definitions_in(self.codebase, self.codebase.modules[symbol.path].symbols[0])
        stay = [(s, body) for s, body in others if not (symbol.start <= s.start and s.end <= symbol.end)]
        return unique(np.concatenate([EMPTY, *(code_pairs(s, body) for s, body in stay)]))

    @property
    def code(self) -> str:
        """Source of the function."""
        return self.module[self.symbol.start : self.symbol.end].decode()


def subjects(count: int, seed: int = 0, packages: tuple[str, ...] = PACKAGES) -> list[Subject]:
    """Draw ``count`` functions and methods, equally from all packages; those of the first ones, if they are few."""
    rng = random.Random(seed)
    lanes: list[list[_Place]] = []
    found: list[_Place] = []
    for package in packages[:count]:
        lanes.append(list(_places(package)))
        rng.shuffle(lanes[-1])
    while len(found) < count and any(lanes):
        found += [lane.pop() for lane in lanes if lane][: count - len(found)]
    return [_subject(place) for place in found]


@dataclass(frozen=True)
class _Place:
    """Where a function is defined."""

    package: str
    codebase: PythonCodebase
    path: str
    symbol: Symbol


def _places(package: str) -> Iterator[_Place]:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return
    root = Path(next(iter(spec.submodule_search_locations)))
    paths = sorted(p.relative_to(root).as_posix() for p in root.rglob("*.py") if "tests" not in p.parts)
    codebase = get_language("python").parse(root, paths)
    assert isinstance(codebase, PythonCodebase)
    for path, module in codebase.modules.items():
        for symbol in module.symbols:
            if symbol.is_callable and MIN_LOC <= symbol.loc <= MAX_LOC and not symbol.name.startswith("__"):
                yield _Place(package, codebase, path, symbol)


def _subject(place: _Place) -> Subject:
    symbol, source = place.symbol, place.codebase.modules[place.path].source
    text = source[symbol.start : symbol.end].decode()
    return Subject(
        symbol=symbol,
        module=source,
        shipped=source[: symbol.start] + b"pass\n" + source[symbol.end :],
        targets=tuple(targets_of(place.codebase, [(symbol.symbol_id, text)])),
        name=symbol.name,
        codebase=place.codebase,
        dotted=".".join([place.package, *place.path.removesuffix(".py").removesuffix("/__init__").split("/")]),
    )
