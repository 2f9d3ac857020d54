"""Exports with a server, driven by other tools' own packages: gold patches get the reward, doing nothing does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import Run

pytestmark = pytest.mark.peers

NEMO_GYM = """
import asyncio, json, subprocess, sys
from pathlib import Path
from verifiers.v1.tasksets.nemo_gym.taskset import NeMoGymConfig, NeMoGymTaskset
from verifiers.v1.tasksets.nemo_gym.toolset import NeMoGymState
gold = json.loads(Path(sys.argv[1]).read_text())
tasks = list(NeMoGymTaskset(NeMoGymConfig(dataset=Path("tasks.jsonl"))).load())
server = subprocess.Popen([sys.executable, "excise_nemo_gym.py", "--port", "0"], stdout=subprocess.PIPE, text=True)
url = server.stdout.readline().strip()

async def rollout(row, commands):
    state = NeMoGymState(resources_url=url, request_timeout=300)
    seeded = await state.post("seed_session", row)
    seeded.raise_for_status()
    state.cookies.update(seeded.cookies)
    outputs = [(await state.post("bash", {"command": command})).json() for command in commands]
    verified = await state.post("verify", row | {"response": {}})
    verified.raise_for_status()
    return [output["returncode"] for output in outputs], verified.json()["reward"]

try:
    row = next(task.data.row for task in tasks if task.data.row["instance_id"] == gold["id"])
    apply = "cat > /tmp/p <<'EOF'\\n" + gold["patch"] + "EOF\\ngit apply /tmp/p"
    found = [asyncio.run(rollout(row, commands)) for commands in (["git log --oneline", apply], [])]
    unknown = asyncio.run(NeMoGymState(resources_url=url).post("seed_session", {"instance_id": "none"})).status_code
    print(json.dumps({"tasks": len(tasks), "prompt": str(tasks[0].data.prompt), "found": found, "unknown": unknown}))
finally:
    server.terminate()
"""

OPENENV = """
import json, socket, subprocess, sys, time, urllib.request
from pathlib import Path
from openenv import GenericEnvClient
gold = json.loads(Path(sys.argv[1]).read_text())
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
url = f"http://127.0.0.1:{port}"
server = subprocess.Popen([sys.executable, "server/app.py", "--port", str(port)], stderr=subprocess.DEVNULL)

def wait():
    for _ in range(600):
        try:
            return urllib.request.urlopen(url + "/health")
        except OSError:
            time.sleep(0.2)

try:
    wait()
    openenv = str(Path(sys.executable).with_name("openenv"))
    valid = subprocess.run([openenv, "validate", "--url", url, "--timeout", "60"], capture_output=True, text=True)
    apply = "cat > /tmp/p <<'EOF'\\n" + gold["patch"] + "EOF\\ngit apply /tmp/p"
    rewards = []
    for commands in (["git log --oneline", apply],):
        with GenericEnvClient(base_url=url).sync() as client:
            first = client.reset(instance_id=gold["id"])
            codes = [client.step({"command": command}).observation["returncode"] for command in commands]
            last = client.step({"submit": True})
            rewards.append([codes, last.reward, last.done])
    print(json.dumps({"valid": json.loads(valid.stdout)["passed"], "first": first.observation, "rewards": rewards}))
finally:
    server.terminate()
"""


@pytest.fixture
def gold(stored: Any, tmp_path: Path) -> Path:
    """A file with the gold patch of a task."""
    task = next(iter(stored.taskset.tasks()))
    path = tmp_path / "gold.json"
    path.write_text(json.dumps({"id": task.instance_id, "patch": task.patch}))
    return path


def test_nemo_gym_rows_and_server(run_peer: Run, exported: Callable[[str], Path], prepared: Any, gold: Path) -> None:
    folder = exported("nemo-gym")
    done = run_peer("verifiers", "python", "-c", NEMO_GYM, gold, cwd=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["tasks"], found["unknown"]) == (8, 400)
    assert "The project is in /testbed" in found["prompt"]
    assert found["found"] == [[[0, 0], 1.0], [[], 0.0]]


def test_an_openenv_environment(
    run_peer: Run, exported: Callable[[str], Path], prepared: Any, peers: Path, gold: Path, tmp_path: Path
) -> None:
    assert (peers / "openenv").is_dir(), "OpenEnv is not installed: run scripts/peers.sh (./check does)"
    folder = exported("openenv")
    local = run_peer("openenv", "openenv", "validate", "--json", folder, cwd=tmp_path)
    report = json.loads(local.stdout)
    assert report["issues"] in ([], ["Missing uv.lock - run 'uv lock' to generate it"]), "EXPORT.md says so"
    done = run_peer("openenv", "python", "-c", OPENENV, gold, cwd=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["valid"] is True
    assert found["first"]["output"].startswith("#")
    assert found["rewards"] == [[[0, 0], 1.0, True]]
