"""``tasks.jsonl``: one task a line, shaped as SWE-bench's rows (lists as lists), our columns after theirs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from excise.system.files import replace_lines


class JsonlExporter:
    """Rows as JSON lines."""

    name = "jsonl"

    def export(self, rows: Iterator[Mapping[str, object]], into: Path) -> None:
        """Write ``tasks.jsonl`` into ``into``, in one step."""
        replace_lines(into / "tasks.jsonl", (json.dumps(row, ensure_ascii=False) for row in rows))
