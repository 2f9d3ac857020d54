"""The artefacts of Rust's tools; see :class:`excise.protocols.ScrubRules`."""

from __future__ import annotations

from excise.extractors.rust.analysis.inline_tests import separate_tests
from excise.protocols import ScrubRules

SCRUB_RULES = ScrubRules(
    marked_folders=(
        ("target", "CACHEDIR.TAG"),
        ("target", ".rustc_info.json"),
        ("target", "debug/.cargo-lock"),
        ("target", "release/.cargo-lock"),
    ),
    folders=frozenset({"incremental"}),
    suffixes=frozenset({".rlib", ".rmeta", ".rcgu.o", ".profraw", ".profdata", ".crate", ".o", ".a", ".so", ".pdb"}),
    names=frozenset({".cargo-checksum.json", "Cargo.toml.orig", ".rustc_info.json"}),
    made_anew=frozenset({"Cargo.toml", "Cargo.lock"}),
    separate_tests=separate_tests,
)
"""``target`` holds the compiled crate and its documentation; ``.cargo-checksum.json`` forbids cargo to use what has
changed."""
