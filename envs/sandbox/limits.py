"""Limits are given or refused, never silently left out."""

from __future__ import annotations

from collections.abc import Mapping

from excise.errors import SandboxError
from excise.protocols import Policy

ALWAYS = ("memory", "pids", "disk")
"""Limits that every policy asks for."""


def wanted_limits(policy: Policy) -> tuple[str, ...]:
    """Names of the limits that a policy asks for."""
    return (*ALWAYS, *(() if policy.network else ("network_off",)), *(("cpus",) if policy.cpus is not None else ()))


def require_limits(policy: Policy, how: Mapping[str, str], backend: str, advice: str, *, lenient: bool) -> None:
    """Raise :class:`SandboxError` for a limit that this machine cannot give, unless ``lenient``.

    ``how`` says of each limit that can be given by what; ``advice`` what would make the others possible.
    """
    missing = [name for name in wanted_limits(policy) if not how.get(name)]
    if missing and not lenient:
        raise SandboxError(
            f"The sandbox {backend} cannot limit {' and '.join(missing)} on this machine. {advice} "
            "Or accept it: `--set lenient_sandbox=true` runs without what cannot be limited.",
            reason="limit_unavailable",
        )
