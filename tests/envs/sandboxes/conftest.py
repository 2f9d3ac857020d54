"""Removes what the probes of these tests leave."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def no_scratch_left() -> Iterator[None]:
    """Remove the folders of the probes, which the test modules import as a program does: by its bare name."""
    yield
    if probes := sys.modules.get("sandbox_probes"):
        probes.remove_scratch()
