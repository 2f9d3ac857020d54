"""System calls for mounts and namespaces that Python's library lacks. Standard library only: the zygote imports it."""

from __future__ import annotations

import ctypes
import os

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE, MS_SHARED, MNT_DETACH = 4096, 16384, 1 << 18, 1 << 20, 2
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
_SYS_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE = 442, -100, 0x8000
_ATTRIBUTES = MS_RDONLY | MS_NOSUID | MS_NODEV
"""``MOUNT_ATTR_RDONLY``, ``NOSUID``, ``NODEV`` and ``NOEXEC`` have the same numbers as the mount flags."""

libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> None:
    """Raise ``OSError`` with the current ``errno`` if a C call failed."""
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """mount(2)."""
    done = libc.mount(
        os.fsencode(source), os.fsencode(target), kind.encode() or None, flags, os.fsencode(options) or None
    )
    check(done, f"mount {kind or 'bind'} {source} on {target}")


def umount(target: str) -> None:
    """Detach a mount and all mounts below it, even if they are in use."""
    libc.umount2(os.fsencode(target), MNT_DETACH)


def bind(source: str, target: str, *, read_only: bool = True) -> None:
    """Bind-mount a file, or a folder with all mounts below it, with ``nodev`` and ``nosuid``."""
    mount(source, target, flags=MS_BIND | MS_REC)
    protect(target, _ATTRIBUTES if read_only else MS_NOSUID | MS_NODEV)


def protect(target: str, attributes: int = _ATTRIBUTES) -> None:
    """Set attributes on a mount and all mounts below it: mount_setattr(2), or remounts before Linux 5.12."""
    request = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)
    done = libc.syscall(
        _SYS_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(target), _AT_RECURSIVE, ctypes.byref(request), ctypes.sizeof(request)
    )
    if done != 0:
        for point in mounts_below(target):
            kept = os.statvfs(point).f_flag & ~(os.ST_MANDLOCK | os.ST_SYNCHRONOUS)
            mount("none", point, flags=MS_BIND | MS_REMOUNT | attributes | (kept & 0xC0F))


def mounts_below(target: str) -> list[str]:
    """Mount points at and below ``target`` in this mount namespace."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
        points = [line.split()[4].replace("\\040", " ") for line in lines]
    return [point for point in dict.fromkeys(points) if point == target or point.startswith(target + "/")]


def enter_private_namespace(*, privileged: bool) -> None:
    """Enter a new private mount namespace; an ordinary user also enters a user namespace that maps only that user."""
    uid, gid = os.getuid(), os.getgid()
    check(libc.unshare(CLONE_NEWNS if privileged else CLONE_NEWNS | CLONE_NEWUSER), "unshare")
    if not privileged:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    mount("none", "/", flags=MS_REC | MS_PRIVATE)


def enter_copied_namespace() -> None:
    """Enter a new mount namespace, a copy of the current one with the same propagation."""
    check(libc.unshare(CLONE_NEWNS), "unshare")
