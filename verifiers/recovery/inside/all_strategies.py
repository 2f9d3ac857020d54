"""All recovery strategies, in the order in which they run, and the loop that runs them."""

from __future__ import annotations

import time

from excise.verifiers.recovery.inside import (
    bytecode,
    git_stores,
    hidden_texts,
    installed_copies,
    script_copies,
    tool_leftovers,
)
from excise.verifiers.recovery.inside.code_search import CodeSearch

TYPE_CHECKING = False
if TYPE_CHECKING:  # to import typing takes longer than most strategies
    from typing import Any, Callable

STRATEGIES: tuple[Any, ...] = (
    git_stores.History(),
    git_stores.Objects(),
    git_stores.Carving(),
    git_stores.Leftovers(),
    bytecode.ByteCode(),
    bytecode.CodeObjects(),
    tool_leftovers.ToolCaches(),
    tool_leftovers.Databases(),
    tool_leftovers.Pickles(),
    tool_leftovers.EditorLeftovers(),
    tool_leftovers.TestLeftovers(),
    installed_copies.InstalledCopies(),
    installed_copies.LiveImport(),
    installed_copies.Metadata(),
    installed_copies.Archives(),
    installed_copies.PackageIndex(),
    hidden_texts.Histories(),
    hidden_texts.Documents(),
    hidden_texts.Encoded(),
    hidden_texts.Strings(),
    hidden_texts.Stray(),
    hidden_texts.Processes(),
    hidden_texts.Mounts(),
)
"""Objects with ``name``, ``looks_at`` (a description) and ``run(search)``; a new one is one class and one line here."""
OF_LANGUAGES: tuple[tuple[tuple[str, ...], tuple[Any, ...]], ...] = (
    ((".js", ".cjs", ".mjs"), (script_copies.ScriptCopies(),)),
)
"""(suffixes of files, further strategies for code that was removed from such files)."""


def strategies_for(search: CodeSearch) -> list[Any]:
    """The strategies for the removed symbols."""
    paths = tuple(target.path for target in search.targets)
    more = [each for suffixes, own in OF_LANGUAGES if any(path.endswith(suffixes) for path in paths) for each in own]
    return [*STRATEGIES, *more]


def run_all(request: dict[str, Any], emit: Callable[[dict[str, Any]], None]) -> None:
    """Run the strategies and report the time and the error, if any, of each."""
    search = CodeSearch(request, emit)
    strategies = strategies_for(search)
    chosen = request.get("only") or [strategy.name for strategy in strategies]
    for strategy in strategies:
        if strategy.name not in chosen:
            continue
        search.strategy, search.num_items, search.chars = strategy.name, 0, 0
        began, problem = time.monotonic(), ""
        if search.is_out_of_time():
            problem = "no time was left"
        else:
            try:
                strategy.run(search)
            except Exception as error:  # a failing strategy must not stop the others
                problem = f"{type(error).__name__}: {error}"[:300]
        emit({"ended": strategy.name, "seconds": round(time.monotonic() - began, 3), "problem": problem})
    emit({"done": request["nonce"], "files": len(search.files()), "read": search.num_read, "bytes": search.bytes_read})
