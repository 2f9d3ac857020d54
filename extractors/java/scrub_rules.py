"""The artefacts of Java's tools; see :class:`excise.protocols.ScrubRules`."""

from __future__ import annotations

from excise.protocols import ScrubRules

SCRUB_RULES = ScrubRules(
    caches=frozenset({".gradle", ".m2", ".ivy2"}),
    folders=frozenset({"target", "build", "out", "test-output", "apidocs", "javadoc"}),
    source_suffix=".java",
    suffixes=frozenset({".class", ".jar", ".war", ".ear", ".jmod", ".exec", ".hprof", ".jsa"}),
    names=frozenset({"jacoco.exec", "classes.lst"}),
)
"""Class files hold the code, jars hold class files or sources, and folders of builds hold both."""
