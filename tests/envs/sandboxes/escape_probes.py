"""Probes that try to escape from a sandbox; each returns plain facts for a test to check.

They run on any backend and for any user, like those of :mod:`sandbox_probes`.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable

from sandbox_probes import MB, PYTHON, facts, layer, opened, py, refused, scratch, sh

from excise.protocols import Policy

CALL = """
import ctypes, errno, os, platform
libc = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == "x86_64"
def call(x86, arm, *arguments):
    ctypes.set_errno(0)
    number = x86 if X86 else arm
    done = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments))
    return "made" if done >= 0 else errno.errorcode.get(ctypes.get_errno(), "?")
"""


def syscalls() -> dict[str, object]:
    """Calls that exploits begin with; a kernel without a filter would carry most of them out."""
    script = (
        CALL
        + """
attr = ctypes.create_string_buffer(128)
attr[4] = b"\\x80"
import struct
for name, row in {
    "unshare user": (272, 97, 0x10000000), "unshare mount": (272, 97, 0x20000), "unshare time": (272, 97, 0x80),
    "clone user": (56, 220, 0x10000000 | 17, 0, 0, 0, 0), "clone3": (435, 435, attr, 64), "setns": (308, 268, 0, 0),
    "mount": (165, 40, b"x", b"/tmp", b"tmpfs", 0, 0), "umount": (166, 39, b"/tmp", 2),
    "fsopen": (430, 430, b"tmpfs", 0), "open_tree": (428, 428, -100, b"/tmp", 1), "pivot_root": (155, 41, b"/", b"/"),
    "keyctl": (250, 219, 0, -3, 1), "add_key": (248, 217, b"user", b"x", b"y", 1, -3),
    "request_key": (249, 218, b"user", b"x", 0, -3), "bpf": (321, 280, 0, attr, 64),
    "perf_event_open": (298, 241, attr, 0, -1, -1, 0), "userfaultfd": (323, 282, 1),
    "io_uring_setup": (425, 425, 8, attr), "ptrace": (101, 117, 0, 0, 0, 0),
    "process_vm_readv": (310, 270, os.getpid(), 0, 0, 0, 0, 0), "kexec_load": (246, 104, 0, 0, 0, 0),
    "init_module": (175, 105, attr, 0, b""), "finit_module": (313, 273, 0, b"", 0),
    "delete_module": (176, 106, b"x", 0),
    "open_by_handle_at": (304, 265, -100, attr, 0), "personality": (135, 92, 0x0040000), "chroot": (161, 51, b"/"),
    "fanotify_init": (300, 262, 0x600, 0), "pidfd_getfd": (438, 438, 0, 0, 0), "kcmp": (312, 272, 1, 1, 0, 0, 0),
    "prlimit of init": (302, 261, 1, 7, attr, 0), "quotactl": (179, 60, 0, 0, 0, 0), "swapon": (167, 224, b"/tmp", 0),
    "vsock": (41, 198, 40, 1, 0), "packet": (41, 198, 17, 3, 0), "alg": (41, 198, 38, 5, 0), "raw": (41, 198, 2, 3, 1),
    "netfilter": (41, 198, 16, 3, 12), "xfrm": (41, 198, 16, 3, 6), "vsock pair": (53, 199, 40, 1, 0, attr),
    "tiocsti": (16, 29, 0, 0x5412, b"x"), "tiocsti with a high half": (16, 29, 0, 0x5412 | 1 << 32, b"x"),
}.items():
    print(name, call(*row), sep="=", flush=True)
"""
    )
    with opened() as session:
        done = facts(py(session, script + "\n"))
        lines = session.exec([PYTHON, "-I", "-c", script], timeout_s=30).stdout.decode().splitlines()
        return {"rc": done["rc"], "answers": dict(line.rpartition("=")[::2] for line in lines)}


def other_architecture() -> dict[str, object]:
    """The old calling convention of 32 bits, whose numbers the filter does not know (x86_64 only)."""
    script = """
import ctypes, mmap, platform
if platform.machine() == "x86_64":
    page = mmap.mmap(-1, 4096, prot=7)
    page.write(bytes.fromhex("b814000000" "cd80" "c3"))  # mov eax, 20 (getpid of i386); int 0x80; ret
    run = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    print("answered", run())
"""
    x32 = CALL + 'print(call(0x40000000 | 39, 172)) if X86 else print("ENOSYS")'
    with opened() as session:
        return {"i386": facts(py(session, script)), "x32": facts(py(session, x32))}


def first_process() -> dict[str, object]:
    """The first process of the sandbox and all others of ours that are visible cannot be reached."""
    script = """
import os, signal
me = os.getpid()
for name in sorted(n for n in os.listdir("/proc") if n.isdigit() and int(n) not in (me, os.getppid())):
    for part in ("mem", "maps", "environ", "fd", "root", "cwd", "auxv"):
        path = f"/proc/{name}/{part}"
        try:
            if part == "mem":
                os.close(os.open(path, os.O_RDWR)); print("opened", path)
            elif part in ("fd", "root"):
                found = os.listdir(path)
                if part == "fd" or set(found) - set(os.listdir("/")): print("listed", path, found)
            elif part == "environ" and open(path, "rb").read(): print("read", path)
        except OSError:
            pass
for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGSEGV, signal.SIGCHLD, signal.SIGUSR1):
    try: os.kill(1, number)
    except OSError: pass
print(sorted(os.listdir("/proc/self/fd"))[:-1], flush=True)
"""
    with opened() as session:
        return {"tried": facts(py(session, script)), "after": facts(sh(session, "echo well"))}


def others_signalled() -> dict[str, object]:
    """``kill -1`` from inside ends only processes inside."""
    import subprocess

    bystander = subprocess.Popen(["sleep", "60"])
    try:
        with opened() as other, opened() as session:
            mine = facts(sh(session, "sleep 50 & kill -9 -1; echo survived"))
            try_all = facts(py(session, "import os\nfor pid in range(2, 40000):\n"
                                        "    if pid != os.getpid():\n        try: os.kill(pid, 9)\n"
                                        "        except OSError: pass\nprint('done')"))  # fmt: skip
            there = facts(sh(other, "echo well"))
        alive = bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()
    return {"mine": mine, "all": try_all, "other": there, "bystander": alive}


def hard_links() -> dict[str, object]:
    """No link, hard or symbolic, leads a write out of the session or into a layer."""
    secret = layer({"secret": "hidden"})
    root = layer({"a.txt": "first\n"})
    script = f"""
cd /testbed
ln /fixed/a.txt linked 2>/dev/null && echo "linked a layer"
ln /etc/passwd passwd 2>/dev/null && echo "linked the system"
ln -s {secret}/secret far; cat far 2>/dev/null
ln -s ../../../../../../../../../..{secret}/secret up; cat up 2>/dev/null
ln -s /proc/1/root{secret}/secret proc; cat proc 2>/dev/null
ln -s /proc/self/root/../../..{secret}/secret self; cat self 2>/dev/null
ln -s /excise/out/x loop; echo x >loop; ln -sf {secret}/secret /excise/out/report
ln -sf /etc/shadow /excise/out/shadow; mkfifo /excise/out/pipe
mknod /excise/out/disk b 254 0 2>/dev/null && echo device
mkdir /excise/out/..x; exit 0
"""
    with opened(root=root) as session:
        done = facts(sh(session, script))
        names = sorted(os.listdir(session.out))
        leaks = [name for name in names if (session.out / name).is_file() and not (session.out / name).is_symlink()]
        into = scratch() / "layer"
        session.snapshot("/testbed", into)
        text = (secret / "secret").read_text() + (root / "a.txt").read_text()
        kept = {p.name: p.is_symlink() for p in into.iterdir()}
    return {"done": done, "plain": leaks, "text": text, "kept": kept}


def core_dumps() -> dict[str, object]:
    """A crash makes no core file and runs no crash handler of the host."""
    with opened() as session:
        done = facts(sh(session, "cd /tmp; ulimit -c unlimited 2>/dev/null; kill -SEGV $$"))
        left = facts(sh(session, "ls -A /tmp /testbed/core* 2>/dev/null; cat /proc/self/limits | grep core"))
    return {"rc": done["rc"], "left": left["stdout"]}


def set_id() -> dict[str, object]:
    """Set-id programs give no rights, neither those of the system nor new ones."""
    script = """
find / -xdev -perm -4000 -type f 2>/dev/null | head -3 >/tmp/found
cp /usr/bin/id /tmp/id; chmod 6755 /tmp/id; /tmp/id -u
for f in $(cat /tmp/found); do echo | timeout 2 $f -c 'id -u' 2>/dev/null | grep -x 0; done
chown 0:0 /tmp/id 2>/dev/null && echo owned
python3 -c 'import os; os.setuid(0)' 2>/dev/null && echo root
exit 0
"""
    with opened() as session:
        return facts(sh(session, script))


def sockets_of_the_host() -> dict[str, object]:
    """Services of the host are out of reach: on its loopback, as abstract sockets, as files."""
    name = f"excise-{os.getpid()}"
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind("\0" + name)
    abstract.listen()
    tcp = socket.create_server(("127.0.0.1", 0))
    path = f"{scratch()}/socket"
    file = socket.socket(socket.AF_UNIX)
    file.bind(path)
    file.listen()
    os.chmod(path, 0o777)
    script = f"""
import socket
for family, address in ((1, "\\0{name}"), (1, "{path}"), (1, "/run/dbus/system_bus_socket"),
                        (1, "/var/run/docker.sock"), (2, ("127.0.0.1", {tcp.getsockname()[1]})),
                        (2, ("169.254.169.254", 80)), (2, ("172.17.0.1", 22)), (10, ("::1", 22))):
    try:
        one = socket.socket(family); one.settimeout(2); one.connect(address); print("reached", address)
    except OSError: pass
try:
    one = socket.socket(2, 2); one.sendto(b"x", ("10.255.255.1", 53)); print("sent")
except OSError: pass
"""
    try:
        with opened() as session:
            return facts(py(session, script))
    finally:
        for it in (abstract, tcp, file):
            it.close()
        os.unlink(path)
        os.rmdir(os.path.dirname(path))


def sparse_files() -> dict[str, object]:
    """A sparse file of a terabyte does not fill the disk of the host when it is copied out."""
    into = scratch() / "layer"
    with opened(Policy(disk_bytes=32 * MB)) as session:
        made = facts(sh(session, "truncate -s 1T /testbed/huge && truncate -s 1T /excise/out/huge && echo made"))
        said = refused(lambda: session.snapshot("/testbed", into))
        report = facts(sh(session, "rm /testbed/huge; echo x >/testbed/small; echo y >/excise/out/report"))
        session.snapshot("/testbed", into.with_name("again"))
        seen = (session.out / "report").read_text()
    blocks = sum(p.lstat().st_blocks for p in into.rglob("*")) if into.exists() else 0
    return {"made": made, "refused": said, "report": report, "blocks": blocks, "seen": seen}


def flood_of_input() -> dict[str, object]:
    """A command that never reads, one that closes its streams, and one that hands them to a daemon."""
    big = bytes(8 * MB)
    with opened() as session:
        deaf = facts(session.exec(["/bin/sh", "-c", "exec sleep 0.3"], timeout_s=20, stdin=big))
        shut = facts(sh(session, "exec >&- 2>&- <&-; sleep 0.3; exit 7"))
        handed = facts(sh(session, "setsid sleep 40 & exit 5"))
        after = facts(sh(session, "cat", timeout_s=20))
    return {"deaf": deaf, "shut": shut, "handed": handed, "after": after}


def many_at_once() -> dict[str, object]:
    """A bomb of threads, of open files and of pipes leaves the session as it was."""
    threads = """
import threading, time
try:
    while True: threading.Thread(target=time.sleep, args=(9,), daemon=True).start()
except RuntimeError: print(threading.active_count())
"""
    files = """
import os
held = []
try:
    while True: held.append(os.pipe())
except OSError: print(len(held) * 2)
"""
    with opened(Policy(pids=60)) as session:
        return {
            "threads": facts(py(session, threads)),
            "files": facts(py(session, files)),
            "after": facts(sh(session, "echo well")),
        }


def bomb_at_the_end() -> dict[str, object]:
    """A fork bomb is dead within a second of its timeout."""
    import time

    with opened(Policy(pids=128)) as session:
        began = time.monotonic()
        bomb = "import os\nwhile True:\n    try: os.fork() or os.setsid()\n    except OSError: pass"
        done = facts(py(session, bomb, timeout_s=1.0))
        seconds = time.monotonic() - began
        after = facts(sh(session, "ls /proc | grep -c '^[0-9]'"))
    return {"done": done, "seconds": seconds, "after": after}


def everyday() -> dict[str, object]:
    """Calls of ordinary test suites, none of which may fail."""
    script = r"""
import asyncio, concurrent.futures, ctypes, multiprocessing, os, pty, resource, select, signal, socket, ssl, subprocess
import sys, tempfile, threading, time
def square(x): return x * x
def main():
    done = []
    with concurrent.futures.ThreadPoolExecutor(8) as pool: done.append(sum(pool.map(square, range(10))) == 285)
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(2) as pool: done.append(pool.map(square, [1, 2, 3]) == [1, 4, 9])
    from multiprocessing import shared_memory
    block = shared_memory.SharedMemory(create=True, size=4096); block.buf[0] = 7; block.close(); block.unlink()
    async def work():
        process = await asyncio.create_subprocess_exec("echo", "hi", stdout=-1)
        server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.close(); server.close()
        return (await process.communicate())[0] == b"hi\n"
    done.append(asyncio.run(work()))
    done.append(subprocess.run(["sh", "-c", "exit 3"], start_new_session=True).returncode == 3)
    a, b = socket.socketpair(); a.send(b"x"); done.append(b.recv(1) == b"x")
    done.append(bool(socket.getaddrinfo("localhost", 80)) and socket.gethostbyname("localhost") == "127.0.0.1")
    done.append({socket.getaddrinfo("localhost", 80, family)[0][4][0] for family in (socket.AF_INET, socket.AF_INET6)}
                == {"127.0.0.1", "::1"})
    done.append([name for _, name in socket.if_nameindex()] == ["lo"])
    six = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); six.bind(("127.0.0.1", 0)); six.close()
    controller, terminal = pty.openpty(); os.write(terminal, b"x\n"); done.append(os.read(controller, 9) == b"x\r\n")
    poll = select.epoll(); poll.close()
    os.close(os.memfd_create("x")); os.close(os.pidfd_open(os.getpid()))
    signal.signal(signal.SIGALRM, lambda *_: done.append(True)); signal.setitimer(signal.ITIMER_REAL, 0.05)
    time.sleep(0.2)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    resource.prlimit(os.getpid(), resource.RLIMIT_NOFILE)
    libc = ctypes.CDLL(None, use_errno=True); fd = libc.inotify_init(); done.append(fd >= 0)
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o700); open(folder + "/f", "w").close(); os.link(folder + "/f", folder + "/g")
        os.mkfifo(folder + "/p")
        os.utime(folder + "/f", (1, 1)); os.symlink("f", folder + "/s")
        done.append(os.stat(folder + "/s").st_mtime == 1)
    done.append(os.path.exists("/dev/null") and len(os.urandom(4)) == 4 and os.cpu_count() >= 1)
    done.append(ssl.create_default_context() is not None and time.tzname[0] == "UTC")
    print(all(done), len(done))
if __name__ == "__main__": main()
"""
    with opened(edits={"/testbed/everyday.py": script.encode()}) as session:
        return facts(session.exec([PYTHON, "/testbed/everyday.py"], timeout_s=60))


def closed_twice() -> dict[str, object]:
    """Sessions that are opened in threads, closed twice, and closed while they run."""
    session = opened()
    runner = threading.Thread(target=lambda: refused(lambda: sh(session, "sleep 30")))
    runner.start()
    threading.Event().wait(0.5)
    session.close()
    session.close()
    runner.join(20)
    return {"ended": not runner.is_alive(), "closed": refused(lambda: sh(session, "true"))}


ESCAPES: dict[str, Callable[[], dict[str, object]]] = {
    function.__name__: function
    for function in (
        syscalls, other_architecture, first_process, others_signalled, hard_links, core_dumps, set_id,
        sockets_of_the_host, sparse_files, flood_of_input, many_at_once, bomb_at_the_end, everyday, closed_twice,
    )
}  # fmt: skip
