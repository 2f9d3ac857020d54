"""Files of ``excise schedule``, checked against the published schemas of GitHub Actions and Kubernetes."""

from __future__ import annotations

from pathlib import Path

import pytest

from excise.config import load
from excise.pipeline.services.schedule_files import cron_job, github_workflow, portable_refresh

from .conftest import Run

pytestmark = pytest.mark.peers

SETS = {
    "local": 'sources = ["pypi:toolz"]\n',
    "remote": (
        'sources = ["pypi:toolz"]\nout = "s3://bucket/x"\n[model]\nmodel = "m"\nbase_url = "http://localhost:1/v1"\n'
        'api_key_env = "KEY"\n'
    ),
}


@pytest.mark.parametrize("kind", SETS)
def test_the_files_fit_the_schemas(run_peer: Run, tmp_path: Path, kind: str) -> None:
    config = tmp_path / f"{kind}.toml"
    config.write_text(SETS[kind])
    settings = load([config], environ={})
    workflow, job = tmp_path / "workflow.yml", tmp_path / "job.yaml"
    workflow.write_text(github_workflow(portable_refresh(config, settings, "hourly")))
    job.write_text(cron_job(portable_refresh(config, settings, "hourly", has_checkout=False)))
    check = ("schedules", "check-jsonschema", "--builtin-schema", "vendor.github-workflows")
    done = run_peer(*check, workflow, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    for version in ("1.30", "1.37"):
        done = run_peer("schedules", "kubernetes-validate", "--strict", "-k", version, job, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    workflow.write_text(workflow.read_text().replace("timeout-minutes: 355", "timeout-minutes: soon"))
    assert run_peer(*check, workflow, cwd=tmp_path).returncode == 1
    job.write_text(job.read_text().replace("backoffLimit: 0", "backoffLimit: never"))
    assert run_peer("schedules", "kubernetes-validate", "--strict", job, cwd=tmp_path).returncode != 0
