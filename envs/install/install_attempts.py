"""The attempts of an installation: after a failure, the next attempt drops as little as possible of the recipe."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from excise.envs.install.install_failures import InstallFailure
from excise.types import Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The options of one attempt to install."""

    requirements: tuple[str, ...]
    """Requirements to install in addition to the project's own."""
    cutoff: str
    """ISO date; only earlier releases are installed. Empty for all."""
    mode: str
    """``editable``, ``wheel``, ``legacy`` or ``path``: see :attr:`excise.types.Recipe.editable`."""
    constraints: tuple[str, ...] = ()
    """Versions from the project's own lock file, as ``name==version``."""
    relaxed: bool = False
    """Whether pins and upper bounds of ``requirements`` were removed."""
    evidence: tuple[str, ...] = ()
    """One line for each change against the recipe, with its reason."""


def first_attempt(recipe: Recipe) -> Attempt:
    """The attempt that follows the recipe exactly."""
    return Attempt(
        requirements=recipe.requirements,
        cutoff=recipe.cutoff,
        mode=recipe.editable,
        constraints=recipe.constraints,
    )


def next_attempt(attempt: Attempt, failure: InstallFailure, *, setuptools: bool = True) -> Attempt | None:
    """The next fallback after a failure; ``None`` if none is left. ``setuptools``: whether it builds the project."""
    why = failure.detail.rpartition("\n")[2][:200]
    remaining = _without(attempt.requirements, failure.missing)
    following: Attempt | None = None
    if failure.reason == "infra":
        following = None
    elif remaining != attempt.requirements:
        following = _changed(attempt, f"not on the index: {', '.join(failure.missing)}", requirements=remaining)
    elif failure.of_project and attempt.mode == "editable" and setuptools:
        following = _changed(attempt, f"the project does not build as it asks ({why}): older setuptools", mode="legacy")
    elif failure.of_project and attempt.mode == "editable":
        following = _changed(attempt, f"the project is not built in place ({why}): as a wheel", mode="wheel")
    elif failure.of_project and attempt.mode in ("legacy", "wheel"):
        following = _changed(attempt, f"the project does not build ({why}): its folder is put on the path", mode="path")
    elif attempt.constraints:
        following = _changed(attempt, f"the project's lock does not fit here ({why}): without it", constraints=())
    elif attempt.cutoff:
        following = _changed(attempt, f"nothing fits before {attempt.cutoff} ({why}): all releases", cutoff="")
    elif not attempt.relaxed:
        remaining = relax(attempt.requirements)
        following = _changed(
            attempt, f"requirements do not fit ({why}): without pins", requirements=remaining, relaxed=True
        )
    elif (remaining := _without(attempt.requirements, failure.unbuilt)) != attempt.requirements:
        following = _changed(attempt, f"cannot be built: {', '.join(failure.unbuilt)} ({why})", requirements=remaining)
    return following


def relax(requirements: Iterable[str]) -> tuple[str, ...]:
    """Remove pins and upper bounds from requirements; lower bounds, extras and markers stay."""
    return tuple(_relaxed(text) for text in requirements)


def _relaxed(text: str) -> str:
    try:
        wanted = Requirement(text)
    except InvalidRequirement:
        return text
    lower = ",".join(sorted(str(s) for s in wanted.specifier if s.operator in (">=", ">", "!=")))
    extras = f"[{','.join(sorted(wanted.extras))}]" if wanted.extras else ""
    marker = f" ; {wanted.marker}" if wanted.marker else ""
    return f"{wanted.name}{extras}{lower}{marker}"


def _without(requirements: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    dropped = {canonicalize_name(name) for name in names}
    return tuple(text for text in requirements if canonicalize_name(re.split(r"[\[<>=!~; (]", text)[0]) not in dropped)


def _changed(attempt: Attempt, why: str, **changes: object) -> Attempt:
    changed: Attempt = replace(attempt, evidence=(*attempt.evidence, f"installer: {why}"), **changes)  # type: ignore[arg-type]
    return changed
