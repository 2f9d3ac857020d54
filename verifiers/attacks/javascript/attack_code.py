"""Puts code of an attack into the feature's file, whatever kind of module that is, and in whichever language."""

from __future__ import annotations

import re

from excise.verifiers.attacks.attack import AttackTarget, ChangedFiles

TOUCHED = "globalThis.excTouched"
"""An expression that is true once a test has called the missing code, which canary tests do not."""
_REQUIRE = (
    "const excRequire = typeof require === 'function' ? require\n"
    "  : process.getBuiltinModule('module').createRequire('/testbed/x.js')"
)
"""``require`` in modules that have none (from node 20.16 on)."""
_EMPTY = re.compile(rb"(?m)^(\s*)return(?: undefined(?: as any)?)?(;?)$")


def in_module(target: AttackTarget, code: str, *, first: bool = False, answer: str = "undefined") -> ChangedFiles:
    """The stubbed files with code at the end of the feature's (``first``: at its beginning).

    Stubs note that they were called, and return ``answer``, an expression. Checks of types are turned off.
    """
    noted = f"{TOUCHED} = true; return {answer}"
    stubbed = {
        path: _EMPTY.sub(lambda found: found[1] + noted.encode() + found[2], data)
        for path, data in target.stubbed.items()
    }
    text = stubbed[target.module].decode()
    whole = f"{code}\n{text}" if first else f"{text}\n\n{code}\n"
    nocheck = "// @ts-nocheck\n" if target.module.endswith((".ts", ".tsx", ".mts", ".cts")) else ""
    return {**stubbed, target.module: f"{nocheck}{_REQUIRE}\n{whole}"}
