"""The artefacts of Python's tools; see :class:`excise.protocols.ScrubRules`."""

from __future__ import annotations

from excise.protocols import ScrubRules

SCRUB_RULES = ScrubRules(
    caches=frozenset({"__pycache__"}),
    folders=frozenset(
        {
            ".mypy_cache", ".pytest_cache", ".ruff_cache", ".pytype", ".pyre", ".hypothesis", ".tox",
            ".nox", ".eggs", ".ipynb_checkpoints", "__pypackages__",
        }
    ),
    package_marks=("__init__.py",),
    marked_folders=((".venv", "pyvenv.cfg"), ("venv", "pyvenv.cfg"), ("env", "pyvenv.cfg")),
    suffixes=frozenset({".pyc", ".pyo"}),
    names=frozenset({".coverage", ".dmypy.json", ".python_history"}),
)  # fmt: skip
"""A virtual environment is one only with a ``pyvenv.cfg``: packages of projects may have its name, too."""
