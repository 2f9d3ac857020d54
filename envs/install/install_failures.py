"""Classifies the output of a failed installation."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MAX_LINES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallFailure:
    """Why one attempt to install failed."""

    reason: str
    """Class of :class:`excise.errors.EnvironmentFailure`."""
    of_project: bool = False
    """Whether the project itself could not be built, rather than a requirement."""
    missing: tuple[str, ...] = ()
    """Distributions that the index does not have at all."""
    unbuilt: tuple[str, ...] = ()
    """Distributions that could not be built."""
    detail: str = ""
    """The lines of the output that describe the failure."""


_NETWORK = re.compile(
    r"dns error|failed to lookup address|tcp connect error|connection (refused|reset)|could not connect"
    r"|error sending request|operation timed out|network is unreachable|temporary failure in name resolution"
    r"|client error \(connect\)|server returned an error|50[0234] (bad gateway|service|gateway|internal server)"
    r"|429 too many requests|http status (client|server) error|network timeout|tls (handshake|error|connection)"
    r"|handshake eof|peer closed connection|failed to (fetch|download)[^\n]*(timeout|timed out)",
    re.IGNORECASE,
)
_COMPILERS = r"(gcc|cc|g\+\+|clang|cargo|rustc|cmake|make|swig|gfortran|pg_config|mysql_config|krb5-config)"
_SYSTEM = re.compile(
    r"fatal error: \S+\.h: no such file|cannot find -l\S+|pkg-config"
    rf"|command '?\S*{_COMPILERS}\S*'? failed: no such|{_COMPILERS}: (command )?not found"
    rf"|no such file or directory: '?{_COMPILERS}|\S+-config.{{0,20}}not found"
    r"|(cargo|rust)\b[^\n]{0,60}(is not installed|not found|no such)|can't find rust compiler|unknown compiler"
    r"|unable to find (\S+ )?library|could not find \S+ (headers|library)|library .{0,40}not found",
    re.IGNORECASE,
)
_PROJECT = re.compile(
    r"failed to (build|prepare|download and build|generate|parse)[^\n]*file:///testbed|failed to parse[^\n]*/testbed"
    r"|/testbed\b[^\n]*does not appear to be|\w*_for_build_editable|\bbuild_editable\b",
    re.IGNORECASE,
)
_BUILD = re.compile(r"failed to (build|download and build)|the build backend returned an error", re.IGNORECASE)
_UNBUILT = re.compile(r"failed to (?:download and )?build `([A-Za-z0-9][\w.-]*)==", re.IGNORECASE)
_MISSING = re.compile(r"([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])? was not found in the (?:package registry|provided)")
_ERROR_LINE = re.compile(
    "error|cause:|hint:|\u00d7|\u2570|\u251c|fatal|not found|cannot|failed|No module", re.IGNORECASE
)
"""Lines of an error report; the symbols are those of uv's tree of causes."""
_DISK = re.compile(r"no space left on device|disk quota exceeded", re.IGNORECASE)


def classify(output: str, *, index_failed: bool) -> InstallFailure:
    """Classify the output of uv and of the build tools that it ran.

    ``index_failed``: a package index did not answer the host. Otherwise a network error is the build's own download.
    """
    detail = error_lines(output)
    of_project = bool(_PROJECT.search(output))
    missing = tuple(dict.fromkeys(_MISSING.findall(output)))
    if missing:
        return InstallFailure(reason="resolve_conflict", missing=missing, of_project=of_project, detail=detail)
    if _DISK.search(output):
        return InstallFailure(reason="infra", detail=detail)
    if _NETWORK.search(output) and "No solution found" not in output:
        return InstallFailure(reason="infra" if index_failed else "network_required", detail=detail)
    if of_project or _BUILD.search(output):
        reason = "missing_system_lib" if _SYSTEM.search(output) else "build_native"
        unbuilt = tuple(dict.fromkeys(_UNBUILT.findall(output)))
        return InstallFailure(reason=reason, of_project=of_project, unbuilt=unbuilt, detail=detail)
    return InstallFailure(reason="resolve_conflict", detail=detail)


def error_lines(output: str) -> str:
    """The last lines that describe an error, at most a dozen, joined."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR_LINE.search(line)]
    return "\n".join((errors or lines)[-_MAX_LINES:])[:3000]
