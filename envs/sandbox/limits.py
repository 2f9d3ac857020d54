"""Checks that a sandbox backend can enforce every limit of a policy."""

from __future__ import annotations

from collections.abc import Mapping

from excise.errors import SandboxError
from excise.protocols import Policy

ALWAYS = ("memory", "pids", "disk")
"""Names of the limits that every policy sets."""


def requested_limits(policy: Policy) -> tuple[str, ...]:
    """Return the names of the limits that a policy sets."""
    return (*ALWAYS, *(() if policy.network else ("network_off",)), *(("cpus",) if policy.cpus is not None else ()))


def require_limits(policy: Policy, enforced: Mapping[str, str], backend: str, advice: str, *, lenient: bool) -> None:
    """Raise :class:`SandboxError` for a limit that this machine cannot enforce, unless ``lenient``.

    ``enforced`` maps each limit that can be enforced to the mechanism; ``advice`` says how to enable the others.
    """
    missing = [name for name in requested_limits(policy) if not enforced.get(name)]
    if missing and not lenient:
        raise SandboxError(
            f"The sandbox {backend} cannot limit {' and '.join(missing)} on this machine. {advice} "
            "Or accept it: `--set lenient_sandbox=true` runs without what cannot be limited.",
            reason="limit_unavailable",
        )
