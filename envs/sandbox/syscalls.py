"""Numbers of the system calls that the sandboxes' filter refuses or inspects.

Refused are calls that test suites do not need and that sandbox escapes often start with: new namespaces, mounts, other
processes' memory, kernel keys, programs and modules, and interfaces of the kernel with many past vulnerabilities.
Sources: the kernel's tables ``arch/x86/entry/syscalls/syscall_64.tbl``, and ``scripts/syscall.tbl`` for aarch64. From
424 on the numbers are the same on all architectures.
"""

from __future__ import annotations

_COMMON = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "pidfd_getfd": 438,
    "process_madvise": 440,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "open_tree_attr": 467,
}
_X86_64 = {
    "ptrace": 101,
    "syslog": 103,
    "uselib": 134,
    "ustat": 136,
    "sysfs": 139,
    "vhangup": 153,
    "modify_ldt": 154,
    "pivot_root": 155,
    "_sysctl": 156,
    "chroot": 161,
    "acct": 163,
    "settimeofday": 164,
    "mount": 165,
    "umount2": 166,
    "swapon": 167,
    "swapoff": 168,
    "reboot": 169,
    "iopl": 172,
    "ioperm": 173,
    "create_module": 174,
    "init_module": 175,
    "delete_module": 176,
    "quotactl": 179,
    "nfsservctl": 180,
    "lookup_dcookie": 212,
    "clock_settime": 227,
    "kexec_load": 246,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "migrate_pages": 256,
    "move_pages": 279,
    "perf_event_open": 298,
    "fanotify_init": 300,
    "open_by_handle_at": 304,
    "setns": 308,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "kcmp": 312,
    "finit_module": 313,
    "kexec_file_load": 320,
    "bpf": 321,
    "userfaultfd": 323,
}
_AARCH64 = {
    "lookup_dcookie": 18,
    "umount2": 39,
    "mount": 40,
    "pivot_root": 41,
    "nfsservctl": 42,
    "chroot": 51,
    "vhangup": 58,
    "quotactl": 60,
    "acct": 89,
    "kexec_load": 104,
    "init_module": 105,
    "delete_module": 106,
    "clock_settime": 112,
    "syslog": 116,
    "ptrace": 117,
    "reboot": 142,
    "settimeofday": 170,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
    "swapon": 224,
    "swapoff": 225,
    "migrate_pages": 238,
    "move_pages": 239,
    "perf_event_open": 241,
    "fanotify_init": 262,
    "open_by_handle_at": 265,
    "setns": 268,
    "process_vm_readv": 270,
    "process_vm_writev": 271,
    "kcmp": 272,
    "finit_module": 273,
    "bpf": 280,
    "userfaultfd": 282,
    "kexec_file_load": 294,
}
DENIED = {"x86_64": {**_X86_64, **_COMMON}, "aarch64": {**_AARCH64, **_COMMON}}
"""Machine to the calls that always fail with ``EPERM``."""

INSPECTED = {
    "x86_64": {
        "ioctl": 16,
        "socket": 41,
        "socketpair": 53,
        "clone": 56,
        "personality": 135,
        "unshare": 272,
        "prlimit64": 302,
        "clone3": 435,
    },
    "aarch64": {
        "ioctl": 29,
        "personality": 92,
        "unshare": 97,
        "socket": 198,
        "socketpair": 199,
        "clone": 220,
        "prlimit64": 261,
        "clone3": 435,
    },
}
"""Calls that :mod:`excise.envs.sandbox.seccomp` allows or denies by their arguments."""

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""Machine to the kernel's number for its native system call ABI (``linux/audit.h``)."""
