"""Gate 10: a solver finds what the hidden tests need, and the problem statement does not contain the deleted code."""

from __future__ import annotations

import re
from collections import Counter

from excise.deleters.statement.completeness import normal_lines
from excise.deleters.statement.descriptions import body_comments
from excise.deleters.statement.details import locate_all
from excise.protocols import GateReport
from excise.types import GivenBy, Need, Symbol, SymbolKind, Watched, name_in_file, path_of
from excise.verifiers.candidate import Candidate
from excise.verifiers.gates.verdict_rows import CheckResult, verdict_row

MIN_LINE = 24
"""Minimum number of characters of a line of code that counts: shorter ones (``return None``) occur anywhere."""
MAX_LINES = 2
"""Lines of the deleted code that a statement may contain: an example can equal a line of the body by chance."""


class StatementComplete:
    """Compares the statement with the hidden tests and the deleted code."""

    name = "g10_statement"
    claim = (
        "The statement names every removed definition that the hidden tests name, and every detail that they need, "
        "unless code that stayed shows it or it is Python's own convention; it holds at most "
        f"{MAX_LINES} long lines of the deleted code"
    )

    def check(self, candidate: Candidate) -> GateReport:
        """Check that no name that hidden tests use is missing, and at most :data:`MAX_LINES` lines of code are
        given."""
        missing = self._missing(candidate)
        needs = self._needs(candidate)
        missing += [need.label for need in needs if need.given in {GivenBy.DETAILS, GivenBy.ANSWER}]
        missing = [label for label in missing if candidate.task.needs.get(label) != GivenBy.OTHER]
        given = self._code_lines(candidate)
        reason = "statement_incomplete" if missing else "statement_gives_code" if len(given) > MAX_LINES else ""
        problem = f"{len(given)} lines of the deleted code stand in the statement."
        if missing:
            problem = f"The hidden tests use {', '.join(missing[:10])}, which the statement does not name."
        evidence = {
            "characters": str(len(candidate.task.problem_statement)),
            "names": str(len(candidate.deletion.removed)),
            **{f"needs_by_{place}": str(n) for place, n in sorted(Counter(need.given for need in needs).items())},
        }
        watched = _watched(candidate)
        if watched is not None:
            evidence["needs_by_watching"] = str(sum(need.is_watched for need in needs))
            if watched.problem:
                evidence["not_watched"] = watched.problem
        if candidate.untold:
            evidence["not_graded"] = f"Only the code could tell what they need: {', '.join(candidate.untold)}"
        result = CheckResult(passed=not reason, reason=reason, problem=problem, evidence=evidence)
        return GateReport(verdicts=[verdict_row(self, candidate, result)])

    def _missing(self, candidate: Candidate) -> list[str]:
        """Removed names that occur as words in the hidden tests' files but not in the statement."""
        bench = candidate.bench
        files = {path_of(test) for test in candidate.fail_to_pass}
        text = "\n".join(
            bench.codebase.modules[path].source.decode(errors="replace")
            for path in files
            if path in bench.codebase.modules
        )
        names = {s.name.partition("#")[0] for s in _removed(candidate) if s.kind is not SymbolKind.MODULE}
        assigned = set(candidate.deletion.removed) - bench.codebase.symbols().keys()
        names |= {name_in_file(name).rpartition(".")[2] for name in assigned}
        used = {name for name in names if re.search(rf"\b{re.escape(name)}\b", text)}
        return sorted(
            name for name in used if not re.search(rf"\b{re.escape(name)}\b", candidate.task.problem_statement)
        )

    def _needs(self, candidate: Candidate) -> list[Need]:
        """The details that hidden tests need, found anew and located in the finished statement."""
        bench = candidate.bench
        unseen = [test for test in candidate.fail_to_pass if test in candidate.hidden]
        lost = candidate.trees.lost_symbols()
        needs = bench.language.find_needs(bench.codebase, lost, unseen, _watched(candidate))
        return locate_all(needs, candidate.deletion, candidate.task.problem_statement, bench.codebase)

    def _code_lines(self, candidate: Candidate) -> list[str]:
        """Lines of deleted bodies, docstrings and comments excluded, that the statement contains."""
        modules = candidate.bench.codebase.modules
        lines: set[str] = set()
        allowed: set[str] = set()
        for symbol in _removed(candidate):
            if symbol.is_callable:
                code = modules[symbol.path].source[symbol.code_start : symbol.end]
                lines |= set(normal_lines(code.decode(errors="replace")))
            allowed |= set(normal_lines(symbol.docstring))
            allowed |= set(normal_lines(body_comments(candidate.bench.codebase, symbol)))
        stated = set(normal_lines(candidate.task.problem_statement))
        return sorted(line for line in lines & stated - allowed if len(line) >= MIN_LINE)


def _watched(candidate: Candidate) -> Watched | None:
    """What the hidden tests were seen to do."""
    return candidate.behaviour.recording.uses if candidate.behaviour is not None else None


def _removed(candidate: Candidate) -> list[Symbol]:
    """The symbols that the deletion removes, and all symbols inside them."""
    codebase = candidate.bench.codebase
    outer = [codebase.symbols()[s] for s in candidate.deletion.removed if s in codebase.symbols()]
    found = {
        inner.symbol_id: inner
        for symbol in outer
        for inner in codebase.modules[symbol.path].symbols
        if symbol.start <= inner.start and inner.end <= symbol.end
    }
    return list(found.values())
