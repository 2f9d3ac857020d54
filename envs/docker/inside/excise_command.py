"""Runs one command in a sandbox container, and ends all processes that it started."""

import ctypes
import os
import resource
import selectors
import signal
import time
from contextlib import suppress

from excise_messages import receive

CHUNK = 1 << 16
MAX_OPEN_FILES = 4096
DISK_POLL_S = 0.1
PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 4, 22, 38, 2
libc = ctypes.CDLL(None, use_errno=True)


class Command:
    """One running command."""

    def __init__(self, sandbox, request, stdin):
        self.sandbox = sandbox
        self.keep = request["keep"]
        self.stdin = memoryview(stdin)
        self.kept = {}
        self.killed = self.full = False
        self.most_written = max(sandbox.disk_bytes, sandbox.written())
        self.status = None
        ins, outs, errs = os.pipe(), os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            execute_command(sandbox, request, (ins[0], outs[1], errs[1]))
        for fd in (ins[0], outs[1], errs[1]):
            os.close(fd)
        self.stdin_fd, self.outputs = ins[1], (outs[0], errs[0])
        self.selector = selectors.DefaultSelector()
        self.selector.register(0, selectors.EVENT_READ)
        self.selector.register(sandbox.child_signal, selectors.EVENT_READ)
        os.set_blocking(self.stdin_fd, False)
        self.selector.register(self.stdin_fd, selectors.EVENT_WRITE)
        for fd in self.outputs:
            os.set_blocking(fd, False)
            self.kept[fd] = bytearray()
            self.selector.register(fd, selectors.EVENT_READ)

    def run(self):
        """Wait until the command and all processes that it started have ended; return stdout and stderr."""
        last = time.monotonic()
        while self.status is None:
            for key, _ in self.selector.select(DISK_POLL_S):
                self.handle(key.fd)
            if time.monotonic() - last > DISK_POLL_S:
                last = time.monotonic()
                self.check_disk()
            self.reap()
        end_everything()
        self.check_disk()  # what was written since the last check
        for fd in self.outputs:
            while fd in self.selector.get_map() and self.read(fd):
                pass
        for key in list(self.selector.get_map().values()):
            if key.fd not in (0, self.sandbox.child_signal):
                self.drop(key.fd)
        self.selector.close()
        return [bytes(self.kept[fd]) for fd in self.outputs]

    def handle(self, fd):
        if fd == 0:
            header, _ = receive()
            if "kill" in header:
                self.killed = True
                kill_everything()
        elif fd == self.sandbox.child_signal:
            os.read(fd, 4096)
        elif fd == self.stdin_fd:
            self.write()
        else:
            self.read(fd)

    def reap(self):
        """Reap processes that have ended: the command itself, or orphans of it."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.pid:
                self.status = status

    def check_disk(self):
        """Kill the command if all writable folders together hold more than the limit, and more than before it.

        A command that finds a full disk can still remove files.
        """
        if not self.killed and not self.full and self.sandbox.written() > self.most_written:
            self.full = True
            kill_everything()

    def write(self):
        try:
            self.stdin = self.stdin[os.write(self.stdin_fd, self.stdin[:CHUNK]) if self.stdin else 0 :]
        except BlockingIOError:
            return
        except OSError:
            self.stdin = self.stdin[:0]
        if not self.stdin:
            self.drop(self.stdin_fd)

    def read(self, fd):
        """Read once; return whether there may be more to read."""
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


def execute_command(sandbox, request, fds):
    """In the child: execute the command; never returns."""
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
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
    """Install the filter of system calls, in addition to the engine's own."""

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
    """Kill all other processes of the container."""
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)


def end_everything():
    """Kill and reap all other processes of the container."""
    while True:
        kill_everything()
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.001)
