"""Export as ``tasks.jsonl``: one task per line with SWE-bench's columns first; lists are JSON lists."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from excise.system.files import replace_lines


class JsonlExporter:
    """Exports tasks as JSON lines."""

    name = "jsonl"

    def export(self, rows: Iterator[Mapping[str, object]], into: Path) -> None:
        """Write ``tasks.jsonl`` atomically into the folder ``into``."""
        replace_lines(into / "tasks.jsonl", (json.dumps(row, ensure_ascii=False) for row in rows))
