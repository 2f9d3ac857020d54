"""``excise env``: examine one source, print what came of it, and write the Dockerfile that was asked for."""

from __future__ import annotations

import json
from pathlib import Path

from excise.config import Settings
from excise.envs.dockerfile import write_dockerfile
from excise.envs.sandboxes import get_sandbox
from excise.errors import ConfigError
from excise.pipeline.env_report import as_record, as_text
from excise.pipeline.environment import Examined, examine_source
from excise.types import SourceSpec


def run_env(settings: Settings, spec: SourceSpec, *, dockerfile: Path | None, as_json: bool) -> Examined:
    """Do it and print it. Raises :class:`ConfigError` without a sandbox, ``OSError`` for files."""
    can = get_sandbox(settings.sandbox).capabilities()
    if not can.available:
        raise ConfigError(f"The sandbox {settings.sandbox} cannot be used here: {can.detail} See `excise doctor`.")
    examined = examine_source(settings, spec)
    print(json.dumps(as_record(examined), indent=2) if as_json else as_text(examined))
    if dockerfile is not None and examined.environment is not None and examined.repo is not None:
        written = write_dockerfile(dockerfile, examined.repo, examined.environment, Path(examined.layer))
        if not as_json:
            print(f"Build it with: docker build -t {written.tag} -f {dockerfile} {dockerfile.parent}")
    return examined
