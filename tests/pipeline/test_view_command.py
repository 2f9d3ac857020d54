"""``excise view`` as a command: a server that ends when it is interrupted, and static copies."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from excise.pipeline.cli.main import app
from excise.pipeline.exit_codes import FAILED

SETS = Path(__file__).parents[1] / "sets"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    shutil.copytree(SETS / "shapes", tmp_path / "shapes", symlinks=True)
    return tmp_path / "shapes"


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_it_serves_until_it_is_interrupted(out: Path, host: str) -> None:
    command = [sys.executable, "-m", "excise.pipeline.cli", "view", "--out", str(out), "--host", host, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip().replace("0.0.0.0", "127.0.0.1")
        base, _, token = address.partition("?token=")
        assert bool(token) is (host == "0.0.0.0")
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        assert "<h1>shapes</h1>" in opener.open(address, timeout=60).read().decode()
        if token:
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(base, timeout=60)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) in {0, 130, -signal.SIGINT}


def test_a_static_copy_has_every_task(out: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["view", "--out", str(out), "--static", str(tmp_path / "site")])
    assert done.exit_code == 0, done.output
    assert re.match(r"\d+ pages written", done.output)
    assert len(list((tmp_path / "site" / "task").glob("*.html"))) == 8
    again = CliRunner().invoke(app, ["view", "--out", str(out), "--static", str(tmp_path / "site")])
    assert again.exit_code == FAILED


def test_a_folder_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["view", "--out", str(tmp_path / "none")]).exit_code == FAILED
