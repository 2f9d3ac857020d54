"""A model proposes a feature: it removes one in a sandbox with the whole project, and its edited tree is the proposal.

Only what is gone from the sources counts (:mod:`excise.extractors.features.proposed_features`): definitions, and parts
of functions that stay. The model's edits of
tests are ignored: which tests are hidden is decided by running them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import Field

from excise.agents.messages import Message
from excise.agents.tool import Arguments, Result, Tool, ToolError
from excise.agents.tool_loop import StopReason
from excise.envs.model_driven.model_access import ModelAccess
from excise.envs.sandbox.mount_points import REPO
from excise.errors import AgentError, DeletionRefused, PatchError
from excise.extractors.features.feature_names import MAX_SUMMARY
from excise.extractors.features.proposed_features import proposed_feature, removed_symbols, shortened_functions
from excise.extractors.features.search_index import SearchIndex
from excise.pipeline.stages.model_attempt import changes
from excise.pipeline.stages.proposal_trial import with_failing_tests
from excise.protocols import Session
from excise.trainer.rollouts.coding_tools import Toolbox
from excise.types import Feature, Symbol, SymbolKind
from excise.verifiers.agent_workspace import Workspace
from excise.verifiers.grading.intake import MAX_DIFF_BYTES, paths_of, sections
from excise.verifiers.workbench import Workbench

VERSION = 1
"""Version of the prompt and of the tools; part of cache keys."""
MAX_FINISHES = 3
"""How often the model may hand in what is no proposal."""
SHOWN_FILES = 60
"""Maximum number of source files that the prompt lists."""
SHOWN_SYMBOLS = 40
"""Maximum number of definitions that the prompt lists."""
SHOWN_FEATURES = 60
"""Maximum number of known features that the prompt lists."""
MAX_NAME = 80
"""Maximum number of characters of a feature's name."""

SYSTEM = """You prepare exercises for programmers. You are in the checkout of a Python project, at /testbed, which you
see and change with tools; there is no network. Remove one feature from it that users would miss and that its tests
check, so that a programmer can be asked to write it again:
- Take out everything that makes up the feature: its functions, methods, classes and files, the private helpers that
only it uses, its imports, exports and registrations. Delete the definitions; do not comment them out.
- Everything else must keep working: all tests that do not check the feature must still pass. Run them.
- Prefer several definitions that belong together, best in several files, to a single function; 20 to 300 lines.
- Do not change tests: those of the feature will fail, and that is what they are for.
- Do not propose a feature that is known already.
When the feature is gone, call finish with its name and one sentence that says what users could do with it."""


class FinishProposal(Arguments):
    """Arguments of ``finish``."""

    name: str = Field(min_length=1, max_length=400, description="A few words that name the feature.")
    summary: str = Field(max_length=2000, description="What users could do with it, in one sentence.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalContext:
    """What is known of the project when a proposal is asked for."""

    bench: Workbench
    """The prepared repository."""
    index: SearchIndex
    """Which tests execute which symbols, and what can be deleted."""
    known: Sequence[Feature]
    """Features that were found or proposed before."""
    refused: Sequence[str] = ()
    """Why earlier proposals were refused."""


def propose(
    context: ProposalContext,
    access: ModelAccess,
    tree: Workspace,
    *,
    max_steps: int,
    left_s: Callable[[], float] = lambda: float("inf"),
) -> Feature:
    """Let the model remove a feature in a sandbox of the untouched project. What it removed counts in any case.

    Raises :class:`DeletionRefused` if that is no new feature, with the reason why the conversation ended if nothing was
    changed, and :class:`AgentError` if the model does not answer.
    """
    opening = (Message(role="system", content=SYSTEM), Message(role="user", content=project_facts(context)))
    with tree.open() as session:
        hand_in = _HandIn(context, session)
        coding = [tool for tool in Toolbox(session, left_s=left_s).tools() if tool.name != "finish"]
        try:
            done = access.run_agent("proposer", opening, [*coding, hand_in.tool()], max_steps=max_steps)
            ending, detail = (
                str(done.stop_reason),
                f"the conversation ended ({done.stop_reason}) after {done.steps} steps",
            )
        except AgentError as error:
            if error.reason != "budget":
                raise
            ending, detail = "budget", str(error).rstrip(".")
        else:
            if isinstance(done.value, Feature):
                return done.value
        if hand_in.refusal is not None and ending == StopReason.FINISHED:
            raise hand_in.refusal
        try:
            return hand_in.feature()
        except DeletionRefused as refusal:
            reason = ending if refusal.reason == "no_change" and hand_in.refusal is None else refusal.reason
            raise DeletionRefused(f"{refusal}; {detail}", reason=reason) from refusal


@dataclass(slots=True)
class _HandIn:
    """Reads the feature from the session's tree; the tool ``finish``."""

    context: ProposalContext
    session: Session
    refusal: DeletionRefused | None = None
    """Why the latest proposal was refused."""
    finishes: int = field(default=0)

    def tool(self) -> Tool[Any]:
        return Tool(
            name="finish",
            description="Hand in the proposal, once the feature is gone. Nothing can be changed afterwards.",
            arguments=FinishProposal,
            run=self._finish,
        )

    def _finish(self, wanted: FinishProposal) -> Result:
        self.finishes += 1
        try:
            feature = self.feature()
        except DeletionRefused as refusal:
            self.refusal = refusal
            if self.finishes >= MAX_FINISHES:
                return Result(text=f"refused: {refusal}", final=True)
            raise ToolError(f"{refusal}. Correct this and call finish again.") from None
        named = replace(
            feature,
            name=_line(wanted.name, MAX_NAME) or feature.name,
            summary=_line(wanted.summary, MAX_SUMMARY) or feature.summary,
        )
        return Result(text="Done.", final=True, value=named)

    def feature(self) -> Feature:
        """The feature that is gone from the tree. Raises :class:`DeletionRefused`."""
        context = self.context
        removed, shortened = removed_in(context.bench, self.session)
        tree = context.bench.repo.tree
        feature = proposed_feature(context.index, tree, removed, shortened, context.known)
        if feature.changed:
            feature = with_failing_tests(context.bench, context.index, feature)
            if not feature.changed:  # no part can go
                return proposed_feature(context.index, tree, removed, {}, context.known)
        return feature


def removed_in(bench: Workbench, session: Session) -> tuple[list[Symbol], dict[str, str]]:
    """What is gone from the sources in a session: definitions, and functions that lose a part with their texts.

    Raises :class:`DeletionRefused`.
    """
    edits = _edited_files(bench, session)
    if edits and all(bench.codebase.is_test(path) for path in edits):
        raise DeletionRefused("only tests were changed", reason="only_tests")
    sources = [path for path in edits if path in bench.codebase.modules]
    with tempfile.TemporaryDirectory(prefix="excise-proposal-") as folder:
        root = Path(folder)
        for path in sources:
            if (data := edits[path]) is not None:
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_bytes(data)
        after = bench.language.parse(root, [path for path in sources if edits[path] is not None])
        removed = removed_symbols(bench.codebase, after, sources)
        return removed, shortened_functions(bench.codebase, after, sources, removed)


def _edited_files(bench: Workbench, session: Session) -> dict[str, bytes | None]:
    """Path to content of the repository's files that the session changed; ``None`` for deleted ones."""
    diff = changes(session)
    if len(diff) > MAX_DIFF_BYTES:
        raise DeletionRefused("the changes are too large", reason="diff_too_large")
    known = frozenset(bench.paths)
    edits: dict[str, bytes | None] = {}
    try:
        touched = sorted(set().union(*(paths_of(part) for part in sections(diff))) & known)
    except PatchError as error:
        raise DeletionRefused(f"the changes cannot be read: {error}", reason=error.reason) from error
    for path in touched:
        try:
            edits[path] = session.get(f"{REPO}/{path}")
        except FileNotFoundError:
            edits[path] = None
    return edits


def project_facts(context: ProposalContext) -> str:
    """What the model would have to look up first: sources, what tests execute, known features, how to run the tests."""
    bench, index = context.bench, context.index
    modules = sorted(
        (s for s in index.symbols.values() if s.kind is SymbolKind.MODULE and s.loc), key=lambda s: (-s.loc, s.path)
    )
    covered = sorted(
        (s for s in index.symbols.values() if s.kind is not SymbolKind.MODULE and not index.part_reason(s)),
        key=lambda s: (-s.loc, s.symbol_id),
    )
    command = " ".join(["python -m pytest -q", *bench.recipe.test_args, *bench.recipe.test_paths])
    return "\n".join(
        [
            f"The project is {bench.repo.repo} {bench.repo.version}. `{command}` runs its tests, of which "
            f"{index.num_tests} count. At most {index.max_tests} of them may need the feature.",
            "Source files (lines of code):",
            *_listed([f"{s.path} ({s.loc})" for s in modules], SHOWN_FILES),
            "Largest definitions that tests execute and that could go (lines of code, tests):",
            *_listed(
                [f"{s.symbol_id} ({s.loc}, {len(index.tests.get(s.symbol_id, ()))})" for s in covered], SHOWN_SYMBOLS
            ),
            "Features that are known already:",
            *_listed([f"{f.name}: {', '.join(f.entry[:4])}" for f in _largest(context.known)], SHOWN_FEATURES),
            *(["Proposals that came to nothing:"] if context.refused else []),
            *(f"- {reason}" for reason in context.refused),
        ]
    )


def _largest(features: Sequence[Feature]) -> list[Feature]:
    return sorted(features, key=lambda f: (not f.proposed_by, -len(f.symbols), -f.loc, f.feature_id))


def _listed(lines: Sequence[str], limit: int) -> list[str]:
    shown = [f"- {line}" for line in lines[:limit]]
    return shown + ([f"- and {len(lines) - limit} more"] if len(lines) > limit else [])


def _line(text: str, limit: int) -> str:
    """The text on one line of printable characters, cut off at ``limit``."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"
