"""The folder ``set`` of an export: the files of the task set itself, so that ``excise import`` restores it.

They are linked where that is possible. Formats have no place for grading kits, certificates, locks and sources; here
they travel beside what the other tool reads.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from excise.datasets.storage.snapshot import EMPTY_FILE
from excise.protocols import ExportedSet
from excise.system.files import link_or_copy

SET = "set"
"""Name of the folder."""
GENERATED = frozenset({"views.sql", EMPTY_FILE})
"""Names of files that whoever restores the set writes anew: no hash of the set's manifest covers them."""
NO_SET = (
    "The files of the set (sources, locks, kits, certificates): only a part of the set was exported, so that `set/` is "
    "missing, and `excise import` cannot restore it."
)


def write_set(tasks: ExportedSet, into: Path) -> bool:
    """Write the folder; return whether the whole set was exported, otherwise there is none."""
    shutil.rmtree(into / SET, ignore_errors=True)
    whole = False
    for path, file in tasks.files():
        whole = True
        if file.name in GENERATED:
            continue
        (into / SET / path).parent.mkdir(parents=True, exist_ok=True)
        link_or_copy(file, into / SET / path)
    return whole
