"""Local Dask workers: their events reach the folder of the run's log."""

from __future__ import annotations

import json
import logging
from pathlib import Path

from excise.pipeline.run.cluster import cluster_client, slot_resources
from excise.system.run_log import run_log


def test_events_of_workers_are_logged_beside_the_runs_own(tmp_path: Path) -> None:
    with run_log(tmp_path) as path, cluster_client("", 1) as client:
        event = client.submit(
            logging.getLogger("excise.somewhere").info, "request retried", resources=slot_resources(client)
        )
        event.result(timeout=60)
    (worker,) = path.parent.glob(f"{path.stem}-worker-*.jsonl")
    assert json.loads(worker.read_text())["event"] == "request retried"
