"""Set-up on machines where programs are missing, with fake programs for apt-get, sudo and id."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .test_layout import ROOT

MAKE_PROGRAM = 'printf "#!/bin/sh\\n" > "$BIN/{0}"; chmod +x "$BIN/{0}"'


class Machine:
    """A machine with an empty HOME, whose PATH has only the programs that a test adds."""

    def __init__(self, root: Path) -> None:
        self.bin, self.log = root / "bin", root / "log"
        self.bin.mkdir()
        self.log.write_text("")
        for name in ("sh", "env", "printf", "chmod", "cat", "python3", "rm"):
            self.link(name)

    def link(self, name: str) -> None:
        (self.bin / name).symlink_to(str(shutil.which(name)))

    def program(self, name: str, body: str = "") -> None:
        (self.bin / name).unlink(missing_ok=True)
        (self.bin / name).write_text(f'#!/bin/sh\necho "{name} $*" >> "$LOG"\n{body}\n')
        (self.bin / name).chmod(0o755)

    def run(self, code: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.bin), "BIN": str(self.bin), "LOG": str(self.log), "HOME": "/nonexistent"}
        script = f"set -eu; . scripts/setup.sh; {code}"
        return subprocess.run(
            [str(self.bin / "sh"), "-c", script], cwd=ROOT, env=environment | {"SSL_CERT_FILE": "/x"},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def logged(self, program: str) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if line.startswith(f"{program} ")]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def user(machine: Machine, uid: int) -> None:
    machine.program("id", f"echo {uid}")


def apt_that_works(machine: Machine, after_update: bool = False) -> None:
    guard = '[ -e "$BIN/updated" ] || exit 100' if after_update else ":"
    install = "; ".join(MAKE_PROGRAM.format(name) for name in ("bwrap", "git"))
    machine.program("apt-get", f'case "$1" in update) printf "" > "$BIN/updated";; install) {guard}; {install};; esac')


def test_nothing_is_missing(machine: Machine) -> None:
    for name in ("bwrap", "git"):
        machine.program(name)
    machine.program("apt-get", "exit 1")
    done = machine.run("install_system_packages")
    assert (done.returncode, done.stderr, machine.logged("apt-get")) == (0, "", [])


@pytest.mark.parametrize("after_update", [False, True])
def test_root_installs_what_is_missing(machine: Machine, after_update: bool) -> None:
    user(machine, 0)
    apt_that_works(machine, after_update)
    assert machine.run("install_system_packages").returncode == 0
    assert machine.logged("apt-get")[-1] == "apt-get install -y --no-install-recommends bubblewrap git"
    assert (len(machine.logged("apt-get")) > 1) == after_update


def test_a_user_whose_sudo_asks_nothing(machine: Machine) -> None:
    user(machine, 1000)
    machine.program("sudo", 'shift; [ "$1" = true ] || exec "$@"')
    apt_that_works(machine)
    assert machine.run("install_system_packages").returncode == 0
    assert "bubblewrap git" in machine.logged("sudo")[-1]


def test_a_user_who_may_not_gets_one_command(machine: Machine) -> None:
    user(machine, 1000)
    machine.program("apt-get")
    done = machine.run("install_system_packages")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].strip() == "apt-get update && apt-get install -y bubblewrap git"
    machine.program("sudo", "exit 1")
    done = machine.run("install_system_packages")
    assert done.stderr.splitlines()[-1].strip() == "sudo apt-get update && sudo apt-get install -y bubblewrap git"
    assert machine.logged("apt-get") == []


def test_an_installation_that_fails_or_changes_nothing_is_reported(machine: Machine) -> None:
    user(machine, 0)
    for body in ("exit 100", "exit 0"):
        machine.program("apt-get", body)
        done = machine.run("install_system_packages")
        assert done.returncode == 2
        assert "That did not work" in done.stderr


def test_another_system_is_told_what_to_install(machine: Machine) -> None:
    done = machine.run("install_system_packages")
    assert done.returncode == 2
    assert "package manager: bubblewrap git" in done.stderr


PROGRAMS = 'SBIN="$BIN"; DOCKER_SOCKET="$BIN/socket"; DOCKER_HOST=""; install_programs_of_tests'
JAVA = ["openjdk-17-jdk-headless", "junit5", "junit4", "libjacoco-java"]
TOOLCHAINS = ["golang-go", "cargo", "rustc", *JAVA, "nodejs"]
"""Debian packages that sandboxes show."""
ALL_PROGRAMS = " ".join(["docker.io", "chromium", *TOOLCHAINS, "npm"])


def packages_that_are_installed(machine: Machine, *packages: str) -> None:
    cases = "".join(f"*' {package}') echo 'install ok installed';; " for package in packages)
    machine.program("dpkg-query", f'case "$*" in {cases} *) exit 1;; esac')


def test_the_programs_of_the_tests_are_installed_at_once(machine: Machine) -> None:
    user(machine, 0)
    machine.program("apt-get")
    assert machine.run(PROGRAMS).returncode == 0
    assert machine.logged("apt-get") == [f"apt-get install -y --no-install-recommends {ALL_PROGRAMS}"]


def test_what_is_installed_is_not_installed_again(machine: Machine) -> None:
    user(machine, 0)
    machine.program("apt-get")
    for name in ("dockerd", "chromium", "npm"):
        machine.program(name)
    packages_that_are_installed(machine, *TOOLCHAINS)
    assert machine.run(PROGRAMS).returncode == 0
    assert machine.logged("apt-get") == []
    packages_that_are_installed(machine, *TOOLCHAINS[1:])
    assert machine.run(PROGRAMS).returncode == 0
    assert machine.logged("apt-get") == [f"apt-get install -y --no-install-recommends {TOOLCHAINS[0]}"]


def test_node_of_another_source_is_not_in_sandboxes(machine: Machine) -> None:
    machine.program("npm")
    machine.program("node")
    packages_that_are_installed(machine)
    assert machine.run("programs_of_tests").stdout.endswith(" nodejs")


def test_who_may_not_install_is_told_what_is_missing(machine: Machine) -> None:
    user(machine, 1000)
    machine.program("apt-get")
    done = machine.run(PROGRAMS)
    assert done.returncode == 0
    assert f"as root: apt-get install -y {ALL_PROGRAMS}" in done.stderr
    assert machine.logged("apt-get") == []


def test_the_languages_of_the_demo_are_installed_and_their_crates_found(machine: Machine, tmp_path: Path) -> None:
    user(machine, 0)
    machine.program("apt-get")
    machine.program("npm")
    packages_that_are_installed(machine, *TOOLCHAINS, "librust-strsim-dev", "librust-matches-dev")
    assert machine.run("install_languages").returncode == 0
    missing = "librust-smallvec-dev librust-bincode-dev librust-arrayvec-dev"
    assert machine.logged("apt-get") == [f"apt-get install -y --no-install-recommends {missing}"]
    for name in ("strsim-0.11.1", "strsim-utils-1.0", "arrayvec-0.7.2", "itoa-1.0.1"):
        (tmp_path / name).mkdir()
    assert machine.run(f"REGISTRY={tmp_path}; crates").stdout.split() == [
        f"{tmp_path}/strsim-0.11.1", f"{tmp_path}/arrayvec-0.7.2"
    ]  # fmt: skip


def test_an_engine_that_answers_is_used(machine: Machine) -> None:
    assert "docker.io" not in machine.run("DOCKER_HOST=unix:///x; programs_of_tests").stdout


def test_an_old_python_is_skipped(machine: Machine) -> None:
    machine.program("python3", "exit 1")
    machine.program("python3.14", "exit 127")
    machine.program("python3.11", f'exec {sys.executable} "$@"')
    assert machine.run("find_python; printf '%s' $PYTHON").stdout == "python3.11"


def test_index_settings_reach_uv(machine: Machine, tmp_path: Path) -> None:
    venv = tmp_path / "venv" / "bin"
    venv.mkdir(parents=True)
    (venv / "python").write_text(
        '#!/bin/sh\n[ "$*" = "-m pip config get global.index-url" ] && echo https://mine/simple\n'
    )
    (venv / "python").chmod(0o755)
    show = f"VENV={tmp_path / 'venv'}; share_index_settings; printf '%s' \"$UV_DEFAULT_INDEX\""
    assert machine.run(show).stdout == "https://mine/simple"
    assert machine.run(f"PIP_INDEX_URL=https://env/simple; {show}").stdout == "https://env/simple"
    assert machine.run(f"UV_DEFAULT_INDEX=https://uv/simple; {show}").stdout == "https://uv/simple"


def test_what_the_trainer_needs_is_installed_once(machine: Machine, tmp_path: Path) -> None:
    """torch is installed in the locked version without hashes, all else with hashes; again if a lock changes."""
    for name in ("grep", "sed", "cksum"):
        machine.link(name)
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / ".excise-setup").write_text("stamp")
    (venv / "bin/python").write_text('#!/bin/sh\necho "python $*" >> "$LOG"\n')
    (venv / "bin/python").chmod(0o755)
    code = f"VENV={venv}; STAMP=$VENV/.excise-setup; install_trainer"
    assert machine.run(code).returncode == 0
    torch, rest = machine.logged("python")
    assert f"-c {venv}/.excise-versions torch==2.13.0" in torch
    assert "--no-deps --require-hashes -r constraints-train.txt" in rest
    versions = (venv / ".excise-versions").read_text().splitlines()
    assert all("==" in line and "\\" not in line and "--hash" not in line for line in versions)
    assert {"numpy", "transformers"} <= {line.partition("==")[0] for line in versions}
    assert machine.run(code).returncode == 0
    assert len(machine.logged("python")) == 2
    (venv / ".excise-setup").write_text("another")
    machine.run(code)
    assert len(machine.logged("python")) == 4
    (venv / "bin/python").write_text("#!/bin/sh\nexit 1\n")
    (venv / ".excise-setup").write_text("a third")
    failed = machine.run(code)
    assert failed.returncode == 2
    assert "Installing what the trainer needs failed" in failed.stderr


def test_packages_are_installed_by_uv_and_by_pip_where_uv_fails(machine: Machine, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    for name in ("uv", "python"):
        (venv / "bin" / name).write_text(f'#!/bin/sh\necho "{name} $*" >> "$LOG"\n')
        (venv / "bin" / name).chmod(0o755)
    assert machine.run(f"VENV={venv}; install_packages x==1").returncode == 0
    assert machine.logged("uv") == [f"uv pip install --quiet --python {venv}/bin/python x==1"]
    assert machine.logged("python") == []
    (venv / "bin/uv").write_text("#!/bin/sh\necho no index >&2; exit 1\n")
    assert machine.run(f"VENV={venv}; install_packages x==1").returncode == 0
    assert machine.logged("python") == ["python -m pip install --quiet --disable-pip-version-check x==1"]


def test_one_package_of_the_lock_has_all_its_hashes(machine: Machine) -> None:
    machine.link("awk")
    lines = machine.run("locked uv").stdout.splitlines()
    assert lines[0].startswith("uv==")
    assert len(lines) > 3
    assert all(line.strip().startswith("--hash=sha256:") for line in lines[1:])


def test_the_locks_do_not_overlap_and_hold_no_torch() -> None:
    names = [
        {line.partition("==")[0] for line in (ROOT / file).read_text().splitlines() if "==" in line and line[0] != " "}
        for file in ("constraints.txt", "constraints-train.txt")
    ]
    assert names[0] & names[1] == set()
    assert not {"torch", "vllm", "triton"} & (names[0] | names[1])
    assert "transformers" in names[1]


def test_a_disk_that_is_nearly_full_is_named(machine: Machine) -> None:
    machine.link("awk")
    machine.program(
        "df", 'echo Filesystem; case "$2" in .) echo "/dev/a 9 9 3145728 9% /";; *) echo "b 9 9 99999999 1% /";; esac'
    )
    done = machine.run("warn_if_disk_is_full 12")
    assert done.returncode == 0
    assert done.stderr == "Only 3 GiB are free on the disk of .; the tests and what they need take up to 12 GiB.\n"


def test_unknown_free_space_is_no_warning(machine: Machine) -> None:
    machine.link("awk")
    machine.program("df", "exit 1")
    done = machine.run("warn_if_disk_is_full 12")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.xdist_group("kept_together")
def test_groups_of_tests_reach_the_scheduler(request: pytest.FixtureRequest) -> None:
    """pytest-xdist keeps a group in one process by a suffix of the test's name; pytest 9.2 does not let it set one."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        assert request.node.nodeid.endswith("@kept_together")
