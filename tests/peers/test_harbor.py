"""Harbor's own runner on exported tasks: in excise's sandboxes, in containers, with excise's grader."""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from excise.datasets.exports.harbor import content_digest

from .conftest import Run
from .slim_base import build_images

pytestmark = pytest.mark.peers
BUBBLEWRAP, DOCKER = "excise_harbor:BubblewrapEnvironment", "excise_harbor:PlainDockerEnvironment"


@pytest.fixture(scope="module")
def folder(exported: Callable[[str], Path], prepared: Any) -> Path:
    """The export; the environment of its tasks is in the cache already."""
    return exported("harbor")


def rewards(run_peer: Run, folder: Path, jobs: Path, *arguments: str, **variables: str) -> dict[str, Any]:
    """Task to what Harbor's verifier said, after ``harbor run``."""
    done = run_peer("harbor", "harbor", "run", *arguments, "--jobs-dir", jobs, "-y", cwd=folder, **variables)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    trials = [json.loads(path.read_text()) for path in jobs.glob("*/*/result.json")]
    assert [t["exception_info"] for t in trials if t["exception_info"]] == []
    return {trial["task_name"].rpartition("/")[2]: trial["verifier_result"]["rewards"] for trial in trials}


@pytest.mark.parametrize(("agent", "reward"), [("oracle", 1), ("nop", 0)])
def test_tasks_in_sandboxes(run_peer: Run, folder: Path, stored: Any, tmp_path: Path, agent: str, reward: int) -> None:
    """Every fifth task: each costs a process of Harbor's and a build of the environment."""
    chosen = stored.taskset.ids()[::5]
    names = [part for instance_id in chosen for part in ("-i", f"*{instance_id[-6:]}")]
    found = rewards(run_peer, folder, tmp_path, "-p", "tasks", *names, "-a", agent, "-e", BUBBLEWRAP, "-n", "3")
    assert found == {instance_id: {"reward": reward} for instance_id in chosen}


def test_by_name_graded_by_excise(run_peer: Run, folder: Path, stored: Any, tmp_path: Path) -> None:
    first = stored.taskset.ids()[0]
    name = json.loads((folder / "registry.json").read_text())[0]["name"]
    arguments = ["--registry-path", "registry.json", "-d", f"{name}@1.0", "-i", f"*{first[-6:]}", "-a", "oracle"]
    arguments += ["-e", BUBBLEWRAP, "--verifier", "excise_harbor:ExciseVerifier"]
    found = rewards(run_peer, folder, tmp_path, *arguments, EXCISE_SET=str(stored.out))
    assert found == {first: {"reward": 1, "reward_tests": 1}}
    patch = next(tmp_path.glob("*/*/artifacts/logs/artifacts/solution.patch")).read_text()
    gold = stored.taskset.task(first).patch
    assert added(patch) == added(gold), "the hook writes what the agent changed and nothing else"


KNOWN_KEYS = """
import sys, tomllib
from harbor.models.task import config as c
parts = {"task": c.PackageInfo, "agent": c.AgentConfig, "verifier": c.VerifierConfig}
parts["environment"] = c.EnvironmentConfig
data = tomllib.load(open(sys.argv[1], "rb"))
unknown = set(data) - set(c.TaskConfig.model_fields)
for name, model in parts.items():
    unknown |= {f"{name}.{key}" for key in set(data[name]) - set(model.model_fields)}
unknown |= set(data["environment"]["healthcheck"]) - set(c.HealthcheckConfig.model_fields)
unknown |= set(data["verifier"]["collect"][0]) - set(c.VerifierCollectConfig.model_fields)
print(sorted(unknown))
"""


def test_harbor_knows_every_key(run_peer: Run, folder: Path, stored: Any) -> None:
    """It ignores unknown ones, so that a wrong name would leave a limit out."""
    path = folder / "tasks" / stored.taskset.ids()[0] / "task.toml"
    done = run_peer("harbor", "python", "-c", KNOWN_KEYS, path, cwd=folder)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stdout + done.stderr


def added(patch: str) -> list[str]:
    """Changed files and lines of a patch, without hashes and positions."""
    return [line for line in patch.splitlines() if line.startswith(("diff ", "+", "-"))]


def test_digests_are_those_that_harbor_computes(run_peer: Run, folder: Path) -> None:
    code = (
        "import sys, pathlib; from harbor.publisher.packager import Packager\n"
        "from harbor.models.dataset.manifest import DatasetManifest\n"
        "from harbor.models.task.task import Task\n"
        "manifest = DatasetManifest.from_toml_file('dataset.toml')\n"
        "for ref in manifest.tasks:\n"
        "    task = Task(pathlib.Path('tasks') / ref.short_name)\n"
        "    assert task.name == ref.name\n"
        "    print(ref.short_name, ref.digest, Packager.compute_content_hash(task.paths.task_dir)[0])\n"
    )
    done = run_peer("harbor", "python", "-c", code, cwd=folder)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert len(rows) == 8
    for name, ours, theirs in rows:
        assert ours == f"sha256:{theirs}" == f"sha256:{content_digest(folder / 'tasks' / name)}"


@pytest.mark.docker
@pytest.mark.usefixtures("docker_host")
def test_in_containers_of_one_image(run_peer: Run, folder: Path, stored: Any, tmp_path: Path) -> None:
    task = stored.taskset.tasks()[0]
    (tmp_path / "base").mkdir()
    build_images(folder, tmp_path / "base", stored.taskset.environment(task.env_id)[0].recipe.python)
    config = tomllib.loads((folder / "tasks" / task.instance_id / "task.toml").read_text())
    image = config["environment"]["docker_image"]
    listed = subprocess.run(
        ["docker", "run", "--rm", "--network", "none", image, "find", "/testbed"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert ".py" not in listed, "the image holds no sources"
    for agent, reward in (("oracle", 1), ("nop", 0)):
        path = f"tasks/{task.instance_id}"
        found = rewards(run_peer, folder, tmp_path / agent, "-p", path, "-a", agent, "-e", DOCKER)
        assert found == {task.instance_id: {"reward": reward}}
