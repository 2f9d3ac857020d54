"""Writes src/lookup/tables.json, which is not kept in the repository."""

import json
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
TABLES = {"squares": [n * n for n in range(20)], "cubes": [n**3 for n in range(20)]}
(HERE.parent / "src" / "lookup" / "tables.json").write_text(json.dumps(TABLES))
