"""Classes of failures by their messages, advice for each class, and system packages for missing files."""

from __future__ import annotations

import pytest

from excise.envs.install.failure_classes import ADVICE, advice_for, cause_of, main_cause, reason_of_import
from excise.envs.install.system_packages import missing_files_in, not_installed, packages_for, what_to_install

MESSAGES = {
    "service_required": [
        "ConnectionRefusedError: [Errno 111] Connection refused",
        "redis.exceptions.ConnectionError: Error 111 connecting to localhost:6379. Connection refused.",
        'psycopg2.OperationalError: could not connect to server: No such file or directory "/run/.s.PGSQL.5432"',
        "pymongo.errors.ServerSelectionTimeoutError: localhost:27017: timed out",
        "docker.errors.DockerException: Error while fetching server API version: ('Connection aborted.')",
        "socket.gaierror: [Errno -3] Temporary failure in name resolution: postgres",
        "kafka.errors.NoBrokersAvailable: NoBrokersAvailable",
    ],
    "network_required": [
        "socket.gaierror: [Errno -3] Temporary failure in name resolution",
        "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='api.invalid', port=443): Max retries exceeded",
        "OSError: [Errno 101] Network is unreachable",
        "urllib.error.URLError: <urlopen error [Errno -2] Name or service not known>",
        "httpx.ConnectError: All connection attempts failed",
        "fatal: unable to access 'https://host.invalid/x/y/': Could not resolve host: host.invalid",
    ],
    "credentials_required": [
        "KeyError: 'KIT_API_TOKEN'",
        "botocore.exceptions.NoCredentialsError: Unable to locate credentials",
        "google.auth.exceptions.DefaultCredentialsError: Your default credentials were not found.",
        "ValueError: environment variable OPENAI_API_KEY is not set",
        "AssertionError: please provide SERVICE_PASSWORD",
    ],
    "gpu_required": [
        "RuntimeError: No CUDA GPUs are available",
        "AssertionError: Torch not compiled with CUDA enabled",
        "OSError: libcuda.so.1: cannot open shared object file: No such file or directory",
        "RuntimeError: Found no NVIDIA driver on your system",
    ],
    "missing_system_lib": [
        "ImportError: libGL.so.1: cannot open shared object file: No such file or directory",
        "OSError: cannot load library 'libsndfile.so': libsndfile.so: cannot open shared object file",
        "FileNotFoundError: [Errno 2] No such file or directory: 'ffmpeg'",
        "ImportError: failed to find libmagic. Could not find library magic",
    ],
    "": [
        "AssertionError: assert 1 == 2",
        "ModuleNotFoundError: No module named 'yaml'",
        "FileNotFoundError: [Errno 2] No such file or directory: 'tests/data/some.json'",
        "FileNotFoundError: [Errno 2] No such file or directory: '/testbed/CHANGES'",
        "KeyError: 'name'",
        "TypeError: token() takes 1 positional argument",
        "AttributeError: module 'kit' has no attribute 'connection'",
    ],
}


@pytest.mark.parametrize(("reason", "message"), [(r, m) for r, messages in MESSAGES.items() for m in messages])
def test_messages_have_a_cause(reason: str, message: str) -> None:
    assert cause_of(message) == reason


def test_the_main_cause_is_the_most_common_one_with_different_examples() -> None:
    failures = {f"t{n}": f"ConnectionRefusedError: {n}" for n in range(5)}
    failures |= {"u": "docker.errors.DockerException: docker.sock", "v": "KeyError: 'X_TOKEN'", "w": "AssertionError"}
    found = main_cause(failures)
    assert found is not None
    assert (found.reason, found.count) == ("service_required", 6)
    assert found.examples == ("t0: ConnectionRefusedError: 0", "u: docker.errors.DockerException: docker.sock")
    assert main_cause({"w": "AssertionError"}) is None


def test_an_import_without_a_system_library_has_its_own_class() -> None:
    assert reason_of_import("kit: ImportError: libGL.so.1: cannot open shared object file") == "missing_system_lib"
    assert reason_of_import("kit: ModuleNotFoundError: No module named 'yaml'") == "import_error"


@pytest.mark.parametrize(
    ("output", "named", "packages"),
    [
        ("x.c:1:10: fatal error: libxml/parser.h: No such file or directory", "libxml/parser.h", "libxml2-dev"),
        ("/usr/bin/ld: cannot find -lpq: No such file", "lpq", "libpq-dev"),
        ("Error: pg_config: command not found", "pg_config", "libpq-dev"),
        ("libGL.so.1: cannot open shared object file", "libGL.so.1", "libgl1"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'ffmpeg'", "'ffmpeg'", "ffmpeg"),
        ("error: command 'gfortran' failed: No such file or directory", "gfortran", "gfortran"),
        ("cargo: command not found", "cargo", "cargo"),
        ("Package 'libgit2', required by 'virtual:world', not found", "libgit2", "libgit2-dev"),
        ("fatal error: strange.h: No such file", "strange.h", ""),
    ],
)
def test_missing_files_are_named_with_their_packages(output: str, named: str, packages: str) -> None:
    assert missing_files_in(output) == (named,)
    assert packages_for(output) == tuple(packages.split())


def test_the_command_names_what_this_machine_lacks() -> None:
    said = what_to_install("fatal error: libxml/nothing.h: No such file", ("excise-no-such-package", "dpkg"))
    assert said.startswith("Missing on this machine: libxml/nothing.h.")
    if "excise-no-such-package" in not_installed(["excise-no-such-package"]):  # a machine with dpkg
        assert said.endswith(" excise-no-such-package")
        assert " dpkg" not in said
    assert what_to_install("", ()) == ""


def test_every_class_has_advice() -> None:
    assert set(MESSAGES) - {""} <= set(ADVICE)
    assert advice_for("no_sdist") == ""
