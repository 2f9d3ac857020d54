"""The artefacts of JavaScript's tools; see :class:`excise.protocols.ScrubRules`."""

from __future__ import annotations

from excise.protocols import ScrubRules

SCRUB_RULES = ScrubRules(
    caches=frozenset(
        {
            "node_modules", ".nyc_output", ".parcel-cache", ".turbo", ".next", ".nuxt", ".svelte-kit", ".rollup.cache",
        }
    ),
    folders=frozenset({"dist", "build", "coverage", "umd", "jspm_packages", "bower_components", ".npm", ".yarn"}),
    suffixes=frozenset({".map", ".tsbuildinfo", ".tgz", ".cpuprofile", ".heapsnapshot"}),
    names=frozenset({".eslintcache", ".stylelintcache", "npm-debug.log"}),
    compiled=(
        (".ts", (".d.ts", ".js", ".cjs", ".mjs")),
        (".tsx", (".d.ts", ".js", ".jsx", ".cjs", ".mjs")),
        (".mts", (".d.mts", ".mjs")),
        (".cts", (".d.cts", ".cjs")),
    ),
    not_compiled=frozenset({"test", "tests", "__tests__", "spec", "specs"}),
)  # fmt: skip
"""Bundles hold the whole source, minified but with its names; source maps hold it as it is written."""
