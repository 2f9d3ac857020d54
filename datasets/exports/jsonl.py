"""Export as ``tasks.jsonl``: one task per line with SWE-bench's columns first; lists are JSON lists."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from excise.protocols import ExportedSet, ExportReport
from excise.system.files import replace_lines


class JsonlExporter:
    """Exports tasks as JSON lines."""

    name = "jsonl"

    def export(self, tasks: ExportedSet, into: Path) -> ExportReport:
        """Write ``tasks.jsonl`` atomically into the folder ``into``."""
        count = 0

        def lines() -> Iterator[str]:
            nonlocal count
            for task in tasks.tasks():
                count += 1
                yield json.dumps(task.row, ensure_ascii=False)

        replace_lines(into / "tasks.jsonl", lines())
        return ExportReport(
            num_tasks=count,
            not_carried=("Sources, environments and grading kits: only the files in `set/` have them.",),
        )
