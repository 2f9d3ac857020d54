"""A filter of system calls for every sandboxed program, as a small BPF program.

An exploit of the kernel begins with a system call; the fewer there are, the less there is to attack. The filter is a
list of refusals: what is not named goes through, so ordinary test suites (threads, pools, asyncio, subprocesses) notice
nothing. Where a program has another way, it is told so: ``clone3``, whose flags a filter cannot see, does not exist,
and glibc then calls ``clone``; address families that are not for tests are not supported.

The instructions are those of ``linux/bpf_common.h``, the answers those of ``linux/seccomp.h``.
"""

from __future__ import annotations

import errno
import platform
import struct
from functools import cache

from excise.envs.sandbox.syscalls import AUDIT_ARCH, DENIED, LOOKED_AT

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
"""``AF_NETLINK`` and its one protocol that resolvers and process tools ask for interfaces."""
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
"""Requests that type into somebody's terminal."""
_PERSONALITIES = (0x0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)
"""Plain Linux, its 32-bit name, and the question which one it is."""
_INIT = 1
"""The sandbox's first process: a program must not take its limits away."""


class _Program:
    """Instructions of classic BPF, one after the other."""

    def __init__(self) -> None:
        self.code = b""

    def add(self, code: int, value: int, yes: int = 0, no: int = 0) -> None:
        self.code += struct.pack("=HBBI", code, yes, no, value)

    def load(self, offset: int) -> None:
        self.add(_LOAD, offset)

    def answer(self, value: int) -> None:
        self.add(_RETURN, value)

    def deny(self, error: int = errno.EPERM) -> None:
        self.answer(_ERRNO | error)

    def deny_number(self, number: int, error: int = errno.EPERM) -> None:
        """Refuse a call whatever its arguments are."""
        self.add(_JUMP_EQUAL, number, 0, 1)
        self.deny(error)


def _rule(arguments: list[tuple[int, int, int]], otherwise: int) -> bytes:
    """Judge one call: ``(argument, jump, value)`` rows, the first that is true decides.

    A positive jump refuses with ``EPERM``, a negative one lets through; ``otherwise`` is the answer where none is true.
    """
    body = _Program()
    for argument, jump, value in arguments:
        body.load(16 + 8 * argument)  # the lower half: what the kernel itself looks at in an int
        body.add(abs(jump), value, 0, 1)
        body.answer(_ERRNO | errno.EPERM if jump > 0 else _ALLOW)
    body.answer(otherwise)
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
    """The end of the rule for sockets: netlink, but only to ask about routes and interfaces."""
    body = _Program()
    body.load(16)
    body.add(_JUMP_EQUAL, _NETLINK, 0, 3)
    body.load(16 + 8 * 2)
    body.add(_JUMP_EQUAL, _ROUTE, 0, 1)
    body.answer(_ALLOW)
    body.answer(otherwise)
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
    program.answer(_KILL)
    program.load(_NUMBER)
    if machine == "x86_64":
        program.add(_JUMP_AT_LEAST, _X32, 0, 1)
        program.deny(errno.ENOSYS)
    for number in sorted(DENIED[machine].values()):
        program.deny_number(number)
    for name, body in _rules().items():
        program.add(_JUMP_EQUAL, LOOKED_AT[machine][name], 0, len(body) // 8)
        program.code += body
    program.answer(_ALLOW)
    return program.code
