"""excise: verified coding tasks made by deleting features from real repositories.

A task is made in stages; each is a function from records to records::

    Source -> Repo -> Environment -> CoverageMap -> Feature -> Deletion -> Task -> Certificate -> TaskSet

The records are in :mod:`excise.types`; the six interfaces that extensions implement
(source, language, sandbox, deleter, gate, exporter) are in :mod:`excise.protocols`.
Importing this package is cheap: it loads neither torch nor dask.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from excise.types import SCHEMA_VERSION

if TYPE_CHECKING:
    from excise.datasets.taskset import TaskSet as TaskSet

__version__ = "0.1.0"
__all__ = ["SCHEMA_VERSION", "TaskSet", "__version__"]

logging.getLogger(__name__).addHandler(logging.NullHandler())  # quiet until a run, or the caller, asks for a log


def __getattr__(name: str) -> object:
    """Load :class:`TaskSet` on first use, so that ``import excise`` stays light."""
    if name == "TaskSet":
        from excise.datasets.taskset import TaskSet

        return TaskSet
    raise AttributeError(f"module 'excise' has no attribute {name!r}")
