"""A seccomp filter of system calls for every sandboxed program, as a BPF program.

It reduces the part of the kernel that code in a sandbox can attack. The filter is a deny list: all other calls are
allowed, so that ordinary test suites (threads, pools, asyncio, subprocesses) are not affected. Error codes are chosen
so that programs use their fallbacks: ``clone3``, whose flags a filter cannot read, fails with ``ENOSYS``, after which
glibc calls ``clone``; sockets of other address families fail with ``EAFNOSUPPORT``.

The instruction codes are those of ``linux/bpf_common.h``, the return values those of ``linux/seccomp.h``.
"""

from __future__ import annotations

import errno
import platform
import struct
from functools import cache

from excise.envs.sandbox.syscalls import AUDIT_ARCH, DENIED, INSPECTED

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER, _ARCH = 0, 4
_X32 = 0x40000000

_NEW_NAMESPACES = 0x7E020000
"""``CLONE_NEWNS``, ``NEWCGROUP``, ``NEWUTS``, ``NEWIPC``, ``NEWUSER``, ``NEWPID``, ``NEWNET``."""
_NEW_TIME = 0x80
"""``CLONE_NEWTIME``: a flag of ``unshare`` only; in ``clone`` that bit belongs to the exit signal."""
_FAMILIES = (1, 2, 10)
"""``AF_UNIX``, ``AF_INET``, ``AF_INET6``."""
_NETLINK, _ROUTE = 16, 0
"""``AF_NETLINK``, and its only allowed protocol, by which resolvers and process tools query interfaces."""
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
"""``ioctl`` requests that inject input into a terminal."""
_PERSONALITIES = (0x0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)
"""``PER_LINUX`` and ``PER_LINUX32``, with and without ``UNAME26``, and the query of the current one."""
_INIT = 1
"""Pid of the sandbox's first process, whose limits a program must not change."""


class _Program:
    """A sequence of classic BPF instructions."""

    def __init__(self) -> None:
        self.code = b""

    def add(self, code: int, value: int, yes: int = 0, no: int = 0) -> None:
        self.code += struct.pack("=HBBI", code, yes, no, value)

    def load(self, offset: int) -> None:
        self.add(_LOAD, offset)

    def ret(self, value: int) -> None:
        self.add(_RETURN, value)

    def deny(self, error: int = errno.EPERM) -> None:
        self.ret(_ERRNO | error)

    def deny_number(self, number: int, error: int = errno.EPERM) -> None:
        """Deny a call regardless of its arguments."""
        self.add(_JUMP_EQUAL, number, 0, 1)
        self.deny(error)


def _rule(arguments: list[tuple[int, int, int]], otherwise: int) -> bytes:
    """The rule for one call: ``(argument index, jump, value)`` rows, of which the first that holds decides.

    A positive jump denies the call with ``EPERM``, a negative one allows it. ``otherwise`` applies if no row holds.
    """
    body = _Program()
    for argument, jump, value in arguments:
        body.load(16 + 8 * argument)  # the lower half: what the kernel itself looks at in an int
        body.add(abs(jump), value, 0, 1)
        body.ret(_ERRNO | errno.EPERM if jump > 0 else _ALLOW)
    body.ret(otherwise)
    return body.code


def _rules() -> dict[str, bytes]:
    unsupported = _ERRNO | errno.EAFNOSUPPORT
    families = [(0, -_JUMP_EQUAL, family) for family in _FAMILIES]
    return {
        "clone": _rule([(0, _JUMP_SET, _NEW_NAMESPACES)], _ALLOW),
        "unshare": _rule([(0, _JUMP_SET, _NEW_NAMESPACES | _NEW_TIME)], _ALLOW),
        "clone3": _rule([], _ERRNO | errno.ENOSYS),
        "ioctl": _rule([(1, _JUMP_EQUAL, request) for request in (_TIOCSTI, _TIOCLINUX)], _ALLOW),
        "personality": _rule([(0, -_JUMP_EQUAL, value) for value in _PERSONALITIES], _ERRNO | errno.EPERM),
        "prlimit64": _rule([(0, _JUMP_EQUAL, _INIT)], _ALLOW),
        "socketpair": _rule(families[:1], unsupported),
        "socket": _rule(families, 0)[:-8] + _netlink(unsupported),
    }


def _netlink(otherwise: int) -> bytes:
    """The end of the rule for ``socket``: netlink is allowed for queries of routes and interfaces only."""
    body = _Program()
    body.load(16)
    body.add(_JUMP_EQUAL, _NETLINK, 0, 3)
    body.load(16 + 8 * 2)
    body.add(_JUMP_EQUAL, _ROUTE, 0, 1)
    body.ret(_ALLOW)
    body.ret(otherwise)
    return body.code


@cache
def filter_program(machine: str = "") -> bytes:
    """The filter as an array of ``struct sock_filter`` for a machine (this one if none is named).

    Empty for a machine whose system calls excise does not know.
    """
    machine = machine or platform.machine()
    if machine not in DENIED:
        return b""
    program = _Program()
    program.load(_ARCH)
    program.add(_JUMP_EQUAL, AUDIT_ARCH[machine], 1, 0)
    program.ret(_KILL)
    program.load(_NUMBER)
    if machine == "x86_64":
        program.add(_JUMP_AT_LEAST, _X32, 0, 1)
        program.deny(errno.ENOSYS)
    for number in sorted(DENIED[machine].values()):
        program.deny_number(number)
    for name, body in _rules().items():
        program.add(_JUMP_EQUAL, INSPECTED[machine][name], 0, len(body) // 8)
        program.code += body
    program.ret(_ALLOW)
    return program.code
