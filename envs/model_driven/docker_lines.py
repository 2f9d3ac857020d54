"""A recipe of commands as lines of a Dockerfile."""

from __future__ import annotations

import base64
import json

from excise.envs.model_driven.mock_files import MOCKS
from excise.envs.sandbox.mount_points import ENV
from excise.types import Recipe

PRELUDE = "set -euo pipefail\n"


def command_lines(recipe: Recipe, lock: str) -> str:
    """``RUN`` lines for the checkout's folder; ``lock`` is the path of a file that binds what they install."""
    cutoff = f" UV_EXCLUDE_NEWER={recipe.cutoff}" if recipe.cutoff else ""
    lines = [
        f"ENV UV_CONSTRAINT={lock}{cutoff}",
        f"RUN printf '#!/bin/sh\\nexec uv pip \"$@\"\\n' > {ENV}/bin/pip && chmod +x {ENV}/bin/pip",
        *(_mock(path, content) for path, content in recipe.mocks),
    ]
    if recipe.mocks:
        site = "import sysconfig; print(sysconfig.get_path('purelib'))"
        lines.append(f'RUN echo {MOCKS} > "$({ENV}/bin/python -c "{site}")/excise_mocks.pth"')
    shell = ["/bin/bash", "-c"]
    lines += [f"RUN {json.dumps([*shell, PRELUDE + command])}" for command in recipe.commands]
    return "\n".join(lines)


def _mock(path: str, content: str) -> str:
    data = base64.b64encode(content.encode()).decode()
    return f'RUN mkdir -p "$(dirname "{MOCKS}/{path}")" && echo {data} | base64 -d > "{MOCKS}/{path}"'
