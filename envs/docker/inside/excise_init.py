"""First process of a sandbox container: runs commands for the worker that is attached to its standard input.

Whatever a command leaves behind becomes a child of this process, which kills all of it before it answers. When the
worker goes away, however it ended, the input closes, this process exits, and the container is gone.

A message is four bytes with the length of a JSON header, the header, and as many bytes as its ``sizes`` add up to.
Standard library only, for any Python from 3.6 on; the whole file is handed over as an argument.
"""

import ctypes
import json
import os
import resource
import selectors
import shutil
import signal
import stat
import struct
import sys
import tarfile
import time
from contextlib import suppress

LOWER = "/excise/lower"
OUT = "/excise/out"
CHUNK = 1 << 16
MAX_OPEN_FILES = 4096
WATCH_S = 0.1
PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 4, 22, 38, 2
libc = ctypes.CDLL(None, use_errno=True)


# ------------------------------------------------------------------------------------------ messages
def read_exactly(count):
    """Bytes of the input; the end of it is the end of this sandbox."""
    parts = []
    while count:
        data = os.read(0, min(count, 1 << 20))
        if not data:
            os._exit(0)
        parts.append(data)
        count -= len(data)
    return b"".join(parts)


def receive():
    header = json.loads(read_exactly(struct.unpack("!I", read_exactly(4))[0]).decode())
    return header, [read_exactly(size) for size in header.get("sizes", ())]


def write_all(data):
    view = memoryview(data)
    while view:
        view = view[os.write(1, view[: 1 << 20]) :]


def send(header, *bodies):
    header["sizes"] = [len(body) for body in bodies]
    text = json.dumps(header).encode()
    write_all(struct.pack("!I", len(text)) + text)
    for body in bodies:
        write_all(body)


# ----------------------------------------------------------------------------------------- accounting
def counter(*places):
    """First number found in files of the container's control group, by ``file`` or ``file:key``."""
    for place in places:
        name, _, key = place.partition(":")
        try:
            with open("/sys/fs/cgroup/" + name) as file:
                for line in file:
                    words = line.split()
                    if not key:
                        return int(words[0])
                    if words[0] == key:
                        return int(words[1])
        except (OSError, ValueError, IndexError):
            continue
    return 0


def ooms():
    return counter("memory.events:oom_kill", "memory/memory.oom_control:oom_kill")


def peak_bytes():
    return counter("memory.peak", "memory/memory.max_usage_in_bytes")


def cpu_s():
    nanoseconds = counter("cpuacct/cpuacct.usage", "cpu,cpuacct/cpuacct.usage")
    return nanoseconds / 1e9 if nanoseconds else counter("cpu.stat:usage_usec") / 1e6


# ------------------------------------------------------------------------------------------- commands
class Command:
    """One running command."""

    def __init__(self, sandbox, request, stdin):
        self.sandbox = sandbox
        self.keep = request["keep"]
        self.stdin = memoryview(stdin)
        self.kept = {}
        self.killed = self.full = False
        self.status = None
        ins, outs, errs = os.pipe(), os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            become(sandbox, request, (ins[0], outs[1], errs[1]))
        for fd in (ins[0], outs[1], errs[1]):
            os.close(fd)
        self.into, self.outputs = ins[1], (outs[0], errs[0])
        self.selector = selectors.DefaultSelector()
        self.selector.register(0, selectors.EVENT_READ)
        self.selector.register(sandbox.bell, selectors.EVENT_READ)
        os.set_blocking(self.into, False)
        self.selector.register(self.into, selectors.EVENT_WRITE)
        for fd in self.outputs:
            os.set_blocking(fd, False)
            self.kept[fd] = bytearray()
            self.selector.register(fd, selectors.EVENT_READ)

    def run(self):
        """Until it has ended, and nothing that it started is left."""
        last = time.monotonic()
        while self.status is None:
            for key, _ in self.selector.select(WATCH_S):
                self.turn(key.fd)
            if time.monotonic() - last > WATCH_S:
                last = time.monotonic()
                self.watch()
            self.look()
        end_everything()
        for fd in self.outputs:
            while fd in self.selector.get_map() and self.read(fd):
                pass
        for key in list(self.selector.get_map().values()):
            if key.fd not in (0, self.sandbox.bell):
                self.drop(key.fd)
        self.selector.close()
        return [bytes(self.kept[fd]) for fd in self.outputs]

    def turn(self, fd):
        if fd == 0:
            header, _ = receive()
            if "kill" in header:
                self.killed = True
                kill_everything()
        elif fd == self.sandbox.bell:
            os.read(fd, 4096)
        elif fd == self.into:
            self.write()
        else:
            self.read(fd)

    def look(self):
        """Collect what has ended; the command itself, or an orphan of it."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.pid:
                self.status = status

    def watch(self):
        """All places together may hold as much as one of them."""
        if not self.killed and not self.full and self.sandbox.written() > self.sandbox.disk_bytes:
            self.full = True
            kill_everything()

    def write(self):
        try:
            self.stdin = self.stdin[os.write(self.into, self.stdin[:CHUNK]) if self.stdin else 0 :]
        except BlockingIOError:
            return
        except OSError:
            self.stdin = self.stdin[:0]
        if not self.stdin:
            self.drop(self.into)

    def read(self, fd):
        """Whether there may be more."""
        try:
            data = os.read(fd, CHUNK)
        except BlockingIOError:
            return False
        self.kept[fd] += data[: max(0, self.keep - len(self.kept[fd]))]
        if not data:
            self.drop(fd)
        return bool(data)

    def drop(self, fd):
        self.selector.unregister(fd)
        os.close(fd)


def become(sandbox, request, fds):
    """In the child: become the command; never returns."""
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for wanted, fd in enumerate(fds):
            os.dup2(fd, wanted)
        os.closerange(3, MAX_OPEN_FILES)
        for number in range(1, signal.NSIG):
            if number not in (signal.SIGKILL, signal.SIGSTOP, 32, 33):
                with suppress(OSError, ValueError):
                    signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        hard = min(MAX_OPEN_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")
        install_filter(sandbox.filter)
        os.chdir(request["cwd"])
        try:
            os.execvpe(request["argv"][0], request["argv"], request["env"])
        except OSError as error:
            os.write(2, ("excise: %s: %s\n" % (request["argv"][0], os.strerror(error.errno))).encode())
            os._exit(127)
    except BaseException as error:
        os.write(2, ("excise: cannot start the command: %s\n" % error).encode())
    os._exit(125)


def install_filter(program):
    """Refuse the system calls that the filter refuses, on top of what the engine does."""

    class Prog(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]

    if not program:
        return
    code = ctypes.create_string_buffer(program, len(program))
    prog = Prog(len(program) // 8, ctypes.cast(code, ctypes.c_void_p))
    failed = libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(prog), 0, 0
    )
    if failed:
        raise OSError(ctypes.get_errno(), "the filter of system calls is refused")


def kill_everything():
    """Kill every process of the container but this one."""
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)


def end_everything():
    """Kill and collect every process of the container but this one."""
    while True:
        kill_everything()
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.001)


# ---------------------------------------------------------------------------------------------- files
class Sandbox:
    """The places that may be written, and what was there at first."""

    def __init__(self, config):
        self.mounts = config["mounts"]
        self.disk_bytes = config["disk_bytes"]
        self.filter = bytes.fromhex(config["filter"])
        self.places = [*self.mounts, "/tmp", "/home/agent", "/dev/shm"]
        self.seen = {}
        self.bell, ring = os.pipe()
        os.set_blocking(ring, False)
        os.set_blocking(self.bell, False)
        signal.set_wakeup_fd(ring)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        for target in self.mounts:
            if os.path.isdir(LOWER + target):
                fill(LOWER + target, target)
        self.brought = self.used()

    def used(self):
        found = (os.statvfs(place) for place in self.places)
        return sum((it.f_blocks - it.f_bfree) * it.f_frsize for it in found)

    def written(self):
        """Bytes that commands wrote, as far as they are still there."""
        return self.used() - self.brought

    def edit(self, path, data):
        """Write or delete a file before anything of the project has run. Follows no link."""
        mount = max((m for m in self.mounts if path.startswith(m + "/")), key=len, default=None)
        if mount is None:
            raise ValueError("%s lies in no writable mount" % path)
        *parents, last = path[len(mount) + 1 :].split("/")
        if {"", ".", ".."} & {*parents, last}:
            raise ValueError("%s is no plain path" % path)
        here = mount
        for part in parents:
            here = here + "/" + part
            if not os.path.lexists(here):
                os.mkdir(here)
                os.chmod(here, 0o777)
            if not stat.S_ISDIR(os.lstat(here).st_mode):
                raise ValueError("%s: %r is not a plain folder" % (path, part))
        where, mode = here + "/" + last, 0o666
        if os.path.lexists(where):
            found = os.lstat(where).st_mode
            mode = 0o777 if stat.S_ISREG(found) and found & 0o100 else 0o666
            os.unlink(where)
        if data is None:
            while here != mount and not os.listdir(here):
                os.rmdir(here)
                here = os.path.dirname(here)
            return
        with open(where, "xb") as file:
            file.write(data)
        os.chmod(where, mode)

    def results(self, budget):
        """New and changed plain files of the results folder, as far as they fit into the budget."""
        found = []
        for name in sorted(os.listdir(OUT)):
            try:
                fd = os.open(OUT + "/" + name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            except OSError:
                continue
            info = os.fstat(fd)
            stamp = (info.st_ino, info.st_size, info.st_mtime_ns)
            if not stat.S_ISREG(info.st_mode) or self.seen.get(name) == stamp or info.st_size > budget:
                os.close(fd)
                continue
            with os.fdopen(fd, "rb") as file:
                data = file.read(budget)
            budget -= len(data)
            self.seen[name] = stamp
            found.append((name, data))
        return found

    def snapshot(self, target):
        """Send what was written to a mount: an archive, in pieces, and what was deleted."""
        if target not in self.mounts:
            raise ValueError("%s is no writable mount" % target)
        lower = LOWER + target
        total = sum(os.lstat(os.path.join(f, n)).st_size for f, _, names in os.walk(target) for n in names)
        if total > self.disk_bytes + self.brought:
            raise ValueError("%s holds more than may be written" % target)
        pieces = Pieces()
        with tarfile.open(fileobj=pieces, mode="w|", format=tarfile.PAX_FORMAT) as archive:
            for folder, folders, files in os.walk(target):
                inside = os.path.relpath(folder, target)
                if inside != ".":
                    archive.add(folder, inside, recursive=False)
                for name in files + [n for n in folders if os.path.islink(os.path.join(folder, n))]:
                    path = os.path.join(folder, name)
                    mode = os.lstat(path).st_mode
                    plain = stat.S_ISREG(mode) or stat.S_ISLNK(mode)
                    if plain and not same(path, os.path.normpath(os.path.join(lower, inside, name))):
                        archive.inodes = {}  # hard links would need each other
                        archive.add(path, os.path.normpath(os.path.join(inside, name)), recursive=False)
        return deleted(lower, target)


class Pieces:
    """A file that sends what is written to it."""

    def write(self, data):
        if data:
            send({"piece": True}, data)
        return len(data)


def same(path, other):
    """Whether the file is as it was."""
    try:
        was, now = os.lstat(other), os.lstat(path)
    except OSError:
        return False
    if was.st_mode & 0o170111 != now.st_mode & 0o170111 or was.st_size != now.st_size:
        return False
    if stat.S_ISLNK(now.st_mode):
        return os.readlink(path) == os.readlink(other)
    if was.st_mtime_ns == now.st_mtime_ns:
        return True
    with open(path, "rb") as one, open(other, "rb") as two:
        while True:
            left, right = one.read(1 << 20), two.read(1 << 20)
            if left != right:
                return False
            if not left:
                return True


def deleted(lower, target):
    """Topmost paths of the lower folder that are gone."""
    found = []
    for folder, folders, files in os.walk(lower):
        inside = os.path.relpath(folder, lower)
        for name in files + folders:
            path = os.path.normpath(os.path.join(inside, name))
            if not os.path.lexists(os.path.join(target, path)):
                found.append(path)
        folders[:] = [n for n in folders if is_folder(os.path.join(target, inside, n))]
    return found


def is_folder(path):
    return os.path.isdir(path) and not os.path.islink(path)


def fill(source, target):
    """Copy a mount's first content into its place; times stay, since byte code is checked by them."""
    for folder, folders, files in os.walk(source):
        there = os.path.normpath(os.path.join(target, os.path.relpath(folder, source)))
        if there != target:
            os.mkdir(there)
            os.chmod(there, 0o777)
        for name in files + [n for n in folders if os.path.islink(os.path.join(folder, n))]:
            shutil.copy2(os.path.join(folder, name), os.path.join(there, name), follow_symlinks=False)
    for folder, _, _ in os.walk(source, topdown=False):
        shutil.copystat(folder, os.path.normpath(os.path.join(target, os.path.relpath(folder, source))))


# ----------------------------------------------------------------------------------------------- loop
def execute(sandbox, request, stdin):
    before, began = ooms(), cpu_s()
    times = os.times()
    command = Command(sandbox, request, stdin)
    out, err = command.run()
    now = os.times()
    spent = now.children_user + now.children_system - times.children_user - times.children_system
    status = command.status
    rc = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    results = sandbox.results(request["results"])
    reply = {
        "rc": rc if rc <= 128 or rc > 192 else -(rc - 128),
        "killed": command.killed,
        "oom": command.full or (ooms() > before and rc != 0),
        "cpu_s": max(spent, cpu_s() - began),
        "peak_bytes": peak_bytes() or resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024,
        "results": [name for name, _ in results],
    }
    send(reply, out, err, *(data for _, data in results))


def answer(sandbox, header, bodies):
    if "exec" in header:
        execute(sandbox, header["exec"], bodies[0])
    elif "edit" in header:
        sandbox.edit(header["edit"], bodies[0] if bodies else None)
    elif "edited" in header:
        send({})
    elif "snapshot" in header:
        send({"deleted": sandbox.snapshot(header["snapshot"])})


def main():
    """Serve until the input closes."""
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # nobody of the same uid reads or writes our memory
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    os.umask(0)
    config, _ = receive()
    sandbox = Sandbox(config)
    os.umask(0o022)
    send({"ready": True})
    while True:
        header, bodies = receive()
        try:
            answer(sandbox, header, bodies)
        except (OSError, ValueError) as error:
            send({"error": str(error)})


if __name__ == "__main__":
    main()
    sys.exit(0)
