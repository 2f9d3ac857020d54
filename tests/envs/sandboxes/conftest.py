"""The hosts on which sandboxes are probed; removes what the probes leave."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import excise.envs.bubblewrap.bubblewrap_sandbox as bubblewrap
from excise.envs.bubblewrap.forked_sessions import close_idle

sys.path.insert(0, str(Path(__file__).parent))
import escape_probes
import fork_probes
import sandbox_probes
from ordinary_user import ordinary_command

Probe = Callable[[str], dict]
HOSTS = [
    "bubblewrap",
    "bubblewrap without groups",
    "bubblewrap as an ordinary user",
    pytest.param("docker", marks=pytest.mark.docker),
]


@pytest.fixture(scope="session")
def ordinary() -> Iterator[list[str]]:
    base = Path("/tmp") / f"excise-ordinary.{os.getpid()}"
    yield ordinary_command(base)
    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture(params=HOSTS)
def host(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def probe(host: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Probe:
    """Runs a probe on one of the hosts, by its name."""
    if host == "bubblewrap as an ordinary user":
        ordinary = request.getfixturevalue("ordinary")

        def run(name: str) -> dict:
            done = subprocess.run([*ordinary, "bubblewrap", name], capture_output=True, cwd="/", check=False)
            assert done.returncode == 0, done.stderr.decode()
            return json.loads(done.stdout)

        return run
    if host == "docker":
        request.getfixturevalue("docker_host")
        monkeypatch.setitem(sandbox_probes.SELECTED, "backend", "docker")
    if host == "bubblewrap without groups":
        monkeypatch.setattr(bubblewrap, "writable_groups", dict)
    probes = sandbox_probes.PROBES | escape_probes.ESCAPES | fork_probes.FORKS
    return lambda name: json.loads(json.dumps(probes[name]()))


@pytest.fixture(scope="session", autouse=True)
def nothing_left() -> Iterator[None]:
    """Close the sandboxes that wait for a session, and remove the folders of the probes."""
    yield
    close_idle()
    sandbox_probes.remove_scratch()
