"""Classes of environment failures: patterns that recognise them in the messages of failing tests, and advice for users.

A sandbox has a loopback interface and no other network. A refused connection therefore means that a test needs a local
server, and an unresolved name or an unreachable network that it needs the internet.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_SERVICES = (
    "redis|postgres(ql)?|mysql|mariadb|mongo(db)?|rabbitmq|amqp|kafka|memcached?|elasticsearch|opensearch|cassandra"
    "|zookeeper|etcd|consul|vault|minio|localstack|docker|celery|neo4j|couchdb|clickhouse|influxdb|nats|mqtt|ldap"
)
_SECRET = r"\w*(TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_?KEY|CREDENTIALS?|_KEY|USERNAME)\w*"

_CAUSES: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "gpu_required",
        re.compile(
            r"no cuda gpus|cuda (driver|runtime|error|is not available|unavailable|not available|initialization)"
            r"|not compiled with cuda|found no nvidia driver|lib(cuda|nvrtc|nvidia-ml|cublas\w*|cudart)\.so"
            r"|nvidia-smi|no gpu|gpu (is )?(required|not found)|cudaerror\w+|nvml\w*error|no opencl platform"
            r"|(hip|rocm) .{0,20}(not available|no device)",
            re.IGNORECASE,
        ),
    ),
    (
        "missing_system_lib",
        re.compile(
            r"lib[\w+.-]+\.so[\w.]*'?: cannot open shared object|cannot load library '?lib\S+|unable to load library"
            r"|(could not|couldn't|cannot|unable to) (find|load|locate) (the )?(shared |native )?library"
            r"|no library called|library .{1,40}not found"
            r"|no such file or directory: '(/usr/bin/|/bin/)?[a-z][\w+-]*'$"
            r"|executable '?\S+?'? (was )?not found|(command|program) not found|is it installed and in path",
            re.IGNORECASE,
        ),
    ),
    (
        "service_required",
        re.compile(
            r"connection ?refused|errno 111|econnrefused|error while fetching server api version|docker daemon"
            r"|docker\.sock|could not connect to server|server ?selection ?timeout"
            rf"|no nodes? (are )?available|nobrokersavailable|(connect|connection) .{{0,40}}\b({_SERVICES})\b"
            rf"|(name or service not known|name resolution|nodename nor servname|getaddrinfo).{{0,60}}\b({_SERVICES})\b"
            rf"|\b({_SERVICES})\b.{{0,60}}(name or service not known|name resolution|getaddrinfo)"
            rf"|host='({_SERVICES})'|can't connect to (local )?mysql|/\.s\.pgsql\.",
            re.IGNORECASE,
        ),
    ),
    (
        "network_required",
        re.compile(
            r"name or service not known|temporary failure in name resolution|nodename nor servname|getaddrinfo"
            r"|network is unreachable|no route to host|failed to (resolve|establish a new connection)|gaierror"
            r"|max retries exceeded|nameresolutionerror|errno (101|113|-2|-3)\b|urlopen error|dns (error|resolution)"
            r"|could not resolve (host|proxy)|unable to connect to .{0,40}https?|cannot connect to host"
            r"|all connection attempts failed|no (internet|network) connection|proxyerror|couldn't connect to server"
            r"|unable to access 'https?:|httpx?\d?\.connecterror|dns\.resolver\.\w+",
            re.IGNORECASE,
        ),
    ),
    (
        "credentials_required",
        re.compile(
            rf"(keyerror|environment variable|env var|missing|not set|undefined|provide|required).{{0,40}}\b{_SECRET}\b"
            rf"|\b{_SECRET}\b.{{0,40}}(not set|missing|required|undefined|must be|is not defined|environment)"
            r"|no ?credentials|unable to locate credentials|default ?credentials|credentials (were )?not found"
            r"|authentication (failed|required)|invalid api key|api key (is )?(missing|required|not)|unauthorized",
            re.IGNORECASE,
        ),
    ),
)
"""Class to the pattern of its messages, the most specific first; the first match decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """The most frequent cause of test failures: something that the sandbox lacks, not a bug of the project."""

    reason: str
    """Class of :class:`excise.errors.EnvironmentFailure`."""
    count: int
    """Number of failures with this cause."""
    examples: tuple[str, ...]
    """Up to three of these failures as ``test: message``, those with different messages first."""


def cause_of(message: str) -> str:
    """Return the class that a failure's message belongs to; empty if none matches."""
    return next((reason for reason, pattern in _CAUSES if pattern.search(message)), "")


def main_cause(failures: Mapping[str, str]) -> Cause | None:
    """Return the most frequent cause among classified failures; ``failures`` maps a test (or file) to its message."""
    classified = {test: reason for test, message in failures.items() if (reason := cause_of(message))}
    if not classified:
        return None
    reason, count = Counter(classified.values()).most_common(1)[0]
    lines = [f"{test}: {failures[test]}" for test in classified if classified[test] == reason]
    return Cause(reason=reason, count=count, examples=tuple(_different(lines)))


def _different(lines: Sequence[str], most: int = 3) -> list[str]:
    """At most ``most`` lines, those with different messages first."""
    first: dict[str, str] = {}
    for line in lines:
        first.setdefault(re.sub(r"\d+|0x\w+", "#", line.partition(": ")[2])[:60], line)
    return list(first.values())[:most]


def reason_of_import(detail: str) -> str:
    """Class of a failed import: a missing system library or GPU, else ``import_error``."""
    found = cause_of(detail)
    return found if found in {"missing_system_lib", "gpu_required"} else "import_error"


_LEAVE_OUT = "Leave those tests out with test_args (-m, -k, --ignore) in a sources file."

ADVICE = {
    "no_tests": "Give the project's git URL: source distributions often leave the tests out. Tests that pytest does "
    "not find by itself can be named with test_args in a sources file.",
    "python_unavailable": "Install an interpreter that the project admits (`uv python install X.Y` or `pyenv install "
    "X.Y.Z`), or choose another with --python, and run again.",
    "toolchain_unavailable": "Install the package that the message names, and run again.",
    "no_manifest": "Give the project a manifest of its language, for example a go.mod, and run again.",
    "missing_dependency": "The project uses packages that neither its sources nor this machine have: bring them along "
    "(go mod vendor), or install Debian's packages of them (golang-*-dev, librust-*-dev), and run again.",
    "workspace": "Name the folder of one crate as the source's subdirectory.",
    "proc_macro": "Such crates cannot be graded: choose another project.",
    "build_script": "Such crates cannot be graded: choose another project.",
    "resolve_conflict": "No set of releases fits. Look at the lines above: pins of another time, or releases that the "
    "index does not have. --set verdict.cutoff='' admits releases of today; --require adds or replaces a requirement.",
    "build_native": "The build itself fails. Look at the lines above; often another interpreter (--python) or another "
    "release of a requirement (--require) builds.",
    "missing_system_lib": "Install the system package that holds the named library, header or program, and run again.",
    "import_error": "The project does not import in its own environment. Is something missing from its manifests? "
    "--require adds a requirement.",
    "collect_error": "The test files cannot be loaded. Look at the lines above for what they miss; --require adds a "
    "requirement. Source distributions often leave out files that tests import: then give the project's git URL.",
    "service_required": "The tests want to talk to a server (a database, a broker, Docker) on this machine; they are "
    f"run alone. {_LEAVE_OUT}",
    "network_required": f"The tests want the internet, which they never get. {_LEAVE_OUT}",
    "credentials_required": f"The tests want keys or passwords, which they never get. {_LEAVE_OUT}",
    "gpu_required": f"The tests want a GPU. {_LEAVE_OUT}",
    "timeout": "Raise verdict.install_timeout_s or verdict.suite_timeout_s with --set, or leave slow tests out.",
    "oom": "Raise verdict.memory_mb with --set.",
    "low_pass": "Too many tests fail in a fresh environment. The failures above say why; --require, --python or "
    "--set verdict.cutoff='' may help.",
    "flaky": "The tests do not say the same twice. Leave the unsteady ones out with test_args in a sources file.",
    "unreproducible": "A second installation or run came out differently; the lines above say in what.",
    "source_modified": "The installation changed the sources, which it must not.",
    "vacuous_goals": "The model named no checks that tell an installed project from an empty environment. A model that "
    "calls tools well is needed; see docs/model.md.",
    "budget": "The model used up what one job may take. Raise model.max_tokens, model.max_cost or model.max_wall_s, or "
    "try another model; its transcript is in the cache folder.",
    "infra": "Not the project's fault: network, disk, memory or the sandbox. See `excise doctor`, and run again.",
}
"""Class of :class:`excise.errors.EnvironmentFailure` to one or two sentences for users."""


def advice_for(reason: str) -> str:
    """What the user can do about a failure; empty for a reason that is not in the table."""
    return ADVICE.get(reason, "")
