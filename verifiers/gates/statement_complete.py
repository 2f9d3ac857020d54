"""Gate 10: the problem statement names what the hidden tests need, and does not give the code away."""

from __future__ import annotations

import re

from excise.protocols import GateReport
from excise.types import Symbol, SymbolKind
from excise.verifiers.candidate import Candidate

MIN_LINE = 24
"""Shorter lines of code say nothing."""
MAX_LINES = 2
"""So many lines of code may stand in the statement by chance (an example that is also a line of the body)."""
_EDGES = " +-><#*|/.,\"'`\ufeff"
"""What surrounds a line of code that was copied: marks of diffs, prompts, comments, quotes, tables, JSON strings."""


def normal_lines(text: str) -> list[str]:
    """Lines without indentation and without marks at their ends, inner white space folded, blank ones dropped."""
    return [line for raw in text.splitlines() if (line := " ".join(raw.split()).strip(_EDGES))]


class StatementIsComplete:
    """Gate 10."""

    name = "g10_statement"
    claim = (
        "The statement names every removed definition that the hidden tests name, "
        f"and holds at most {MAX_LINES} long lines of the deleted code"
    )

    def check(self, candidate: Candidate) -> GateReport:
        """Look for names that are missing and for lines that are not."""
        missing = self._missing(candidate)
        given = self._given_away(candidate)
        reason = "statement_incomplete" if missing else "statement_gives_code" if len(given) > MAX_LINES else ""
        problem = f"{len(given)} lines of the deleted code stand in the statement."
        if missing:
            problem = f"The hidden tests use {', '.join(missing)}, which the statement does not name."
        evidence = {"characters": str(len(candidate.statement)), "names": str(len(candidate.deletion.removed))}
        verdict = candidate.judged(self, None, not reason, reason=reason, problem=problem, evidence=evidence)
        return GateReport(verdicts=[verdict])

    def _missing(self, candidate: Candidate) -> list[str]:
        """Removed names that occur as words in the hidden tests' files but not in the statement."""
        bench = candidate.bench
        files = {test.partition("::")[0] for test in candidate.fail_to_pass}
        text = "\n".join(
            bench.codebase.modules[path].source.decode(errors="replace")
            for path in files
            if path in bench.codebase.modules
        )
        names = {s.name.partition("#")[0] for s in _removed(candidate) if s.kind is not SymbolKind.MODULE}
        used = {name for name in names if re.search(rf"\b{re.escape(name)}\b", text)}
        return sorted(name for name in used if not re.search(rf"\b{re.escape(name)}\b", candidate.statement))

    def _given_away(self, candidate: Candidate) -> list[str]:
        """Lines of deleted code, docstrings and signatures left out, that stand in the statement."""
        modules = candidate.bench.codebase.modules
        lines: set[str] = set()
        allowed: set[str] = set()
        for symbol in _removed(candidate):
            if symbol.is_callable:
                code = modules[symbol.path].source[symbol.code_start : symbol.end]
                lines |= set(normal_lines(code.decode(errors="replace")))
            allowed |= set(normal_lines(symbol.docstring))
        stated = set(normal_lines(candidate.statement))
        return sorted(line for line in lines & stated - allowed if len(line) >= MIN_LINE)


def _removed(candidate: Candidate) -> list[Symbol]:
    """What is gone: the symbols of the deletion, and all that is inside of them."""
    codebase = candidate.bench.codebase
    outer = [codebase.symbols()[s] for s in candidate.deletion.removed if s in codebase.symbols()]
    found = {
        inner.symbol_id: inner
        for symbol in outer
        for inner in codebase.modules[symbol.path].symbols
        if symbol.start <= inner.start and inner.end <= symbol.end
    }
    return list(found.values())
