"""The artefacts of Go's tools; see :class:`excise.protocols.ScrubRules`."""

from __future__ import annotations

from excise.protocols import ScrubRules

SCRUB_RULES = ScrubRules(
    folders=frozenset({"go-build", ".gocache", ".gopath"}),
    suffixes=frozenset({".test", ".out", ".pprof", ".coverprofile", ".a", ".o"}),
    names=frozenset({"coverage.txt", "cover.out", "coverage.out", "__debug_bin"}),
)
"""Test binaries hold the whole program, caches hold its packages, profiles hold its paths."""
