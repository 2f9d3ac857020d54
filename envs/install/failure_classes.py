"""What a failing test wanted that a sandbox does not have, read from the first line of its failure.

Sandboxes have a loopback of their own and nothing else. So a refused connection was meant for a server on this machine,
and a name that cannot be resolved, or a network that cannot be reached, for the internet.
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
"""Asked in this order: what names its thing most exactly comes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why a project's tests fail here, though nothing may be wrong with the project."""

    reason: str
    """Class of :class:`excise.errors.EnvironmentFailure`."""
    count: int
    """How many failures say so."""
    examples: tuple[str, ...]
    """Some of them, the most different ones first."""


def cause_of(message: str) -> str:
    """The class that a failure's message speaks of; empty if it speaks of none."""
    return next((reason for reason, pattern in _CAUSES if pattern.search(message)), "")


def main_cause(failures: Mapping[str, str]) -> Cause | None:
    """What most of the failures that can be told lack; ``failures``: test (or file) to message."""
    told = {test: reason for test, message in failures.items() if (reason := cause_of(message))}
    if not told:
        return None
    reason, count = Counter(told.values()).most_common(1)[0]
    lines = [f"{test}: {failures[test]}" for test in told if told[test] == reason]
    return Cause(reason=reason, count=count, examples=tuple(_different(lines)))


def _different(lines: Sequence[str], most: int = 3) -> list[str]:
    """Lines with different messages before those that only repeat."""
    first: dict[str, str] = {}
    for line in lines:
        first.setdefault(re.sub(r"\d+|0x\w+", "#", line.partition(": ")[2])[:60], line)
    return list(first.values())[:most]


def reason_of_import(detail: str) -> str:
    """Class of a project that does not import: for want of a library of the system, or by itself."""
    found = cause_of(detail)
    return found if found in {"missing_system_lib", "gpu_required"} else "import_error"
