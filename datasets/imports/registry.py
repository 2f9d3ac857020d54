"""Registry of import formats."""

from __future__ import annotations

from importlib import import_module

from excise.errors import ConfigError
from excise.protocols import Importer

IMPORTERS = {
    "harbor": "excise.datasets.imports.harbor:HarborImporter",
    "r2e-gym": "excise.datasets.imports.r2e_gym:R2eGymImporter",
    "swe-rebench": "excise.datasets.imports.swebench_rows:SweRebenchImporter",
    "swe-smith": "excise.datasets.imports.swe_smith:SweSmithImporter",
    "swebench": "excise.datasets.imports.swebench_rows:SweBenchImporter",
}
"""Format name to ``module:class``."""


def importer(name: str) -> Importer:
    """The importer called ``name``. Raises :class:`ConfigError` if there is none."""
    if name not in IMPORTERS:
        raise ConfigError(f"Unknown import format {name!r}: choose from {', '.join(sorted(IMPORTERS))}.")
    module, _, cls = IMPORTERS[name].partition(":")
    instance: Importer = getattr(import_module(module), cls)()
    return instance
