"""What ``excise env`` prints: for people, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from excise.pipeline.services.examine_source import Examined
from excise.types import Recipe, to_dict


def as_record(examined: Examined) -> dict[str, Any]:
    """The answer as JSON: the records themselves, the counts and the pass rate."""
    record: dict[str, Any] = to_dict(examined)
    record.pop("layer")
    if examined.baseline is not None:
        record |= {"tests": examined.counts(), "pass_rate": round(examined.pass_rate(), 4)}
    return record


def as_text(examined: Examined) -> str:
    """The answer for people: the recipe with its reasons, then the tests or the failure."""
    return "\n".join(_lines(examined))


def _lines(examined: Examined) -> Iterator[str]:
    repo = examined.repo
    yield f"{examined.source}: " + (f"{repo.repo} {repo.version}".strip() if repo else "not fetched")
    if repo:
        yield f"  sources       {repo.source}, {repo.num_files} files" + (
            f", {repo.created_at[:10]}" if repo.created_at else ""
        )
    if (environment := examined.environment) is not None:
        yield from _recipe(environment.recipe)
        yield f"  lock          {len(environment.lock)} distributions; environment {environment.env_id}"
    if examined.baseline is not None:
        yield from _tests(examined)
    if examined.verified:
        yield "verified"
    else:
        yield f"{examined.reason} ({examined.stage})"
        yield from (f"  {line}" for line in examined.detail.splitlines())
        if examined.advice:
            yield f"What to do: {examined.advice}"


def _recipe(recipe: Recipe) -> Iterator[str]:
    yield f"  interpreter   {recipe.python}"
    yield f"  project       {_HOW[recipe.editable]}; packages {', '.join(recipe.packages)} in {', '.join(recipe.roots)}"
    if recipe.extras:
        yield f"  extras        {', '.join(recipe.extras)}"
    yield f"  requirements  {', '.join(recipe.requirements)}"
    if recipe.constraints:
        yield f"  own lock      {len(recipe.constraints)} versions"
    if recipe.cutoff:
        yield f"  released      before {recipe.cutoff}"
    if recipe.system_packages:
        yield f"  system        {' '.join(recipe.system_packages)}"
    if recipe.env:
        yield f"  variables     {' '.join(f'{name}={value}' for name, value in recipe.env)}"
    yield f"  tests         pytest {' '.join([*recipe.test_args, *recipe.test_paths])}"
    yield "  why"
    yield from (f"    {line}" for line in recipe.evidence)


_HOW = {
    "editable": "built in place",
    "wheel": "built as a wheel, laid into the checkout",
    "legacy": "built in place with an older setuptools",
    "path": "its folders are put on the path",
}


def _tests(examined: Examined) -> Iterator[str]:
    baseline = examined.baseline
    assert baseline is not None
    counts = ", ".join(f"{count} {name}" for name, count in examined.counts().items() if count)
    runs = f"{baseline.num_runs} runs of {baseline.wall_s:.1f} s"
    yield f"  result        {counts}: {examined.pass_rate():.1%} of those that ran pass; {runs}"
