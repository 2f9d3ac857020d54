"""Export as an environment of OpenEnv: a FastAPI server whose episodes are the tasks of the folder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from excise.datasets.exports.served_tasks import write_served_tasks
from excise.datasets.exports.toml_text import toml_text
from excise.datasets.exports.verifiers_taskset import module_name
from excise.protocols import ExportedSet, ExportReport
from excise.system.files import replace_file

PORT = 8000
"""Port of the server."""

NOT_CARRIED = (
    "The grading kit: without EXCISE_SET the server believes the report of the tests, which a solution can forge.",
    "A lock of the server's own packages: `uv lock` writes `uv.lock`, which `openenv validate` asks for.",
    "An image of the server: sandboxes in it would need excise and its rights.",
    "Gold patches, the gates' verdicts: only the files in `set/` have them.",
)


class OpenEnvExporter:
    """Exports tasks as an OpenEnv environment."""

    name = "openenv"

    def export(self, tasks: ExportedSet, into: Path) -> ExportReport:
        """Write ``openenv.yaml``, ``pyproject.toml``, ``server/app.py``, and the files of the tasks."""
        import yaml

        shutil.rmtree(into / "server", ignore_errors=True)
        count = sum(1 for _ in write_served_tasks(tasks, into))
        name = module_name(tasks.name)
        config = {"spec_version": 1, "name": name, "type": "space", "runtime": "fastapi", "app": "server.app:app"}
        replace_file(into / "openenv.yaml", yaml.safe_dump(config | {"port": PORT}, sort_keys=False).encode())
        replace_file(into / "pyproject.toml", toml_text(_project(name)).encode())
        replace_file(into / "__init__.py", b"")
        replace_file(into / "server" / "__init__.py", b"")
        replace_file(into / "server" / "app.py", tasks.materials.program("openenv_server.py"))
        run = (
            "# `excise` must be on PATH, or EXCISE its command; EXCISE_SET=PATH-OF-THE-SET lets excise grade",
            "uv lock && openenv validate .",
            f"python server/app.py --port {PORT}  # with openenv-core installed",
            f"openenv validate --url http://127.0.0.1:{PORT}",
            '# reset(instance_id="…") begins a task, step({"command": "ls"}) runs a command, step({"submit": true}) '
            "grades",
        )
        return ExportReport(num_tasks=count, not_carried=NOT_CARRIED, run=run)


def _project(name: str) -> dict[str, Any]:
    """The content of ``pyproject.toml``."""
    return {
        "project": {
            "name": f"openenv-{name.replace('_', '-')}",
            "version": "1.0",
            "description": "Coding tasks made by excise, as an environment of OpenEnv.",
            "requires-python": ">=3.11",
            "dependencies": ["openenv-core>=0.3"],
            "scripts": {"server": f"{name}.server.app:main"},
        },
        "build-system": {"requires": ["setuptools>=68"], "build-backend": "setuptools.build_meta"},
        "tool": {
            "setuptools": {
                "packages": [name, f"{name}.server"],
                "package-dir": {name: ".", f"{name}.server": "server"},
            }
        },
    }
