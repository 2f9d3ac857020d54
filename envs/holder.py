"""The process that holds one sandbox's mounts; run as a script, standard library only.

The parent (:mod:`excise.envs.bubblewrap`) starts it with one end of a socket. It makes a private mount
namespace (for ordinary users inside a user namespace of its own), builds the mounts on a sized tmpfs,
and starts bubblewrap once per command. When the socket closes, however the parent ended, it kills
what runs, and all mounts vanish with the namespace.

Requests are JSON lines: ``exec`` (with three file descriptors), ``kill``, ``snapshot``, ``close``.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import resource
import select
import shutil
import signal
import socket
import stat
import sys
import time
from typing import Any

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE, MNT_DETACH = 1, 2, 4, 4096, 16384, 1 << 18, 2
SLOT_UID_BASE = 1 << 30
"""Host uids of sandboxes start here; the holder's pid is added, so live sandboxes never share one."""

libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> None:
    """Raise ``OSError`` for a failed C call."""
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """mount(2)."""
    done = libc.mount(source.encode(), target.encode(), kind.encode() or None, flags, options.encode() or None)
    check(done, f"mount {kind or 'bind'} {source} on {target}")


class Holder:
    """One sandbox: its namespace, its mounts, its control groups."""

    def __init__(self, config: dict[str, Any], control: socket.socket) -> None:
        self.config = config
        self.control = control
        self.privileged = os.geteuid() == 0
        self.uid = SLOT_UID_BASE + os.getpid() if self.privileged else os.getuid()
        self.stage: str = config["stage"]
        self.uppers: dict[str, str] = {}
        self.binds: list[str] = []
        self.groups: list[str] = []
        self.child = 0

    # ------------------------------------------------------------------------------- preparation
    def prepare(self) -> None:
        """Namespaces, mounts, edits, control groups."""
        self.unshare()
        policy = self.config["policy"]
        mount("none", "/", flags=MS_REC | MS_PRIVATE)
        mount("excise", self.stage, "tmpfs", MS_NOSUID | MS_NODEV, f"size={policy['disk_bytes']},mode=0711")
        for number, entry in enumerate(self.config["mounts"]):
            self.add_mount(number, entry)
        for name in ("tmp", "home", "shm"):
            self.make_open_dir(f"{self.stage}/{name}")
        for path, edit in self.config["edits"].items():
            self.edit(path, edit)
        self.make_groups(policy)

    def unshare(self) -> None:
        uid, gid = os.getuid(), os.getgid()
        if self.privileged:
            check(libc.unshare(CLONE_NEWNS), "unshare")
            return
        check(libc.unshare(CLONE_NEWNS | CLONE_NEWUSER), "unshare (user namespace)")
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)

    def make_open_dir(self, path: str) -> str:
        os.makedirs(path, exist_ok=True)
        os.chmod(path, 0o777)
        return path

    def add_mount(self, number: int, entry: dict[str, Any]) -> None:
        base, target, layers = f"{self.stage}/m{number}", entry["target"], entry["layers"]
        merged = f"{base}/merged"
        os.makedirs(base)
        if len(layers) == 1 and not entry["writable"]:
            if os.path.isdir(layers[0]):
                os.mkdir(merged)
            else:
                os.close(os.open(merged, os.O_CREAT | os.O_WRONLY))
            mount(layers[0], merged, flags=MS_BIND)
        elif not layers:
            self.make_open_dir(merged)
            self.uppers[target] = merged
        else:
            os.mkdir(merged)
            self.overlay(base, merged, entry)
        self.binds += ["--bind" if entry["writable"] else "--ro-bind", merged, target]

    def overlay(self, base: str, merged: str, entry: dict[str, Any]) -> None:
        lower = ":".join(layer.replace("\\", "\\\\").replace(":", "\\:") for layer in entry["layers"])
        options = [f"lowerdir={lower}"]
        if entry["writable"]:
            upper = self.uppers[entry["target"]] = self.make_open_dir(f"{base}/upper")
            os.mkdir(f"{base}/work")
            options += [f"upperdir={upper}", f"workdir={base}/work"]
        if not self.privileged:
            options.append("userxattr")
        mount("overlay", merged, "overlay", MS_NOSUID | MS_NODEV, ",".join(options))

    def inside(self, path: str) -> str:
        """Where a path of the sandbox lies in this namespace. Follows no link."""
        best = max(
            (t for t in self.config["mounts"] if path.startswith(t["target"] + "/")),
            key=lambda t: len(t["target"]),
            default=None,
        )
        if best is None:
            raise ValueError(f"{path} lies in no mount")
        number = self.config["mounts"].index(best)
        here = f"{self.stage}/m{number}/merged"
        *parents, last = path.removeprefix(best["target"] + "/").split("/")
        for part in parents:
            here = f"{here}/{part}"
            if not os.path.lexists(here):
                self.make_open_dir(here)
            if part in ("", ".", "..") or not stat.S_ISDIR(os.lstat(here).st_mode):
                raise ValueError(f"{path}: {part!r} is not a plain folder")
        return f"{here}/{last}"

    def edit(self, path: str, edit: dict[str, Any]) -> None:
        """Write, or delete, one file before anything of the project has run."""
        where = self.inside(path)
        mode = 0o666
        if os.path.lexists(where):
            mode = stat.S_IMODE(os.lstat(where).st_mode) | 0o666
            os.unlink(where)
        if edit.get("delete"):
            self.remove_empty_parents(where)
            return
        descriptor = os.open(where, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o666)
        with os.fdopen(descriptor, "wb") as file, open(edit["file"], "rb") as content:
            shutil.copyfileobj(content, file)
        os.chmod(where, mode)

    def remove_empty_parents(self, where: str) -> None:
        parent = os.path.dirname(where)
        while not parent.endswith("/merged"):
            try:
                os.rmdir(parent)
            except OSError:
                return
            parent = os.path.dirname(parent)

    # ---------------------------------------------------------------------------- control groups
    def make_groups(self, policy: dict[str, Any]) -> None:
        """One control group per needed controller, under those that the parent found writable."""
        for name, root in self.config["cgroups"].items():
            group = f"{root}/excise-{os.getpid()}"
            os.makedirs(group, exist_ok=True)
            if group not in self.groups:
                self.groups.append(group)
            if name == "memory":
                limits = {
                    "memory.max": policy["memory_bytes"],
                    "memory.swap.max": 0,
                    "memory.limit_in_bytes": policy["memory_bytes"],
                    "memory.memsw.limit_in_bytes": policy["memory_bytes"],
                }
            elif name == "cpuacct":
                limits = {}
            else:
                limits = {"pids.max": policy["pids"] + 3}
            for file, value in limits.items():
                if os.path.exists(f"{group}/{file}"):
                    with contextlib.suppress(OSError), open(f"{group}/{file}", "w") as handle:
                        handle.write(str(value))

    def kill_groups(self) -> None:
        """Kill every process of the control groups, and wait until they are gone."""
        for group in self.groups:
            deadline = time.monotonic() + 5
            while time.monotonic() < deadline:
                try:
                    with open(f"{group}/cgroup.procs") as file:
                        pids = [int(line) for line in file if line.strip()]
                except OSError:
                    break
                if not pids:
                    break
                for pid in pids:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                time.sleep(0.005)

    def counter(self, *names: str) -> int:
        """First number found in the groups' files, by ``file`` or ``file:key``."""
        for group in self.groups:
            for name in names:
                file, _, key = name.partition(":")
                with contextlib.suppress(OSError, ValueError), open(f"{group}/{file}") as handle:
                    for line in handle:
                        words = line.split()
                        if not key:
                            return int(words[0])
                        if words[0] == key:
                            return int(words[1])
        return 0

    # ------------------------------------------------------------------------------------- exec
    def command(self, request: dict[str, Any]) -> list[str]:
        """bubblewrap's whole command line."""
        policy = self.config["policy"]
        line = [self.config["bwrap"], "--unshare-all", "--unshare-user", "--disable-userns"]
        if policy["network"]:
            line.append("--share-net")
        line += ["--uid", "1000", "--gid", "1000", "--hostname", "sandbox", "--die-with-parent", "--new-session"]
        line += ["--cap-drop", "ALL", "--clearenv"]
        for name, value in {**self.config["env"], **request.get("env", {})}.items():
            line += ["--setenv", name, value]
        line += self.config["rootfs"]
        line += ["--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", "--dev", "/dev"]
        line += ["--bind", f"{self.stage}/shm", "/dev/shm", "--bind", f"{self.stage}/tmp", "/tmp"]
        line += ["--bind", f"{self.stage}/home", "/home/agent", *self.binds, "--bind", self.config["out"], "/excise/out"]
        line += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", request.get("cwd") or self.config["cwd"], "--"]
        if not self.groups:
            line += [self.config["prlimit"], f"--nproc={policy['pids']}", f"--as={policy['memory_bytes']}", "--"]
        return line + list(request["argv"])

    def start(self, request: dict[str, Any], fds: list[int]) -> None:
        line = self.command(request)
        self.child = os.fork()
        if self.child:
            for fd in fds:
                os.close(fd)
            return
        try:
            for group in self.groups:
                with open(f"{group}/cgroup.procs", "w") as file:
                    file.write("0")
            for wanted, fd in enumerate(fds):
                os.dup2(fd, wanted)
            os.closerange(3, 256)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)  # ignored signals would stay ignored in what is started
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if self.privileged:
                os.setgroups([])
                os.setresgid(self.uid, self.uid, self.uid)
                os.setresuid(self.uid, self.uid, self.uid)
            os.execv(line[0], line)
        except BaseException as error:
            os.write(2, f"excise: cannot start the sandbox: {error}\n".encode())
        os._exit(127)

    def run(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Run one command to its end, or until the parent says ``kill`` or goes away."""
        ooms = self.counter("memory.events:oom_kill", "memory.oom_control:oom_kill")
        began = self.cpu_used()
        self.start(request, fds)
        pidfd = os.pidfd_open(self.child)
        killed = over = gone = False
        while not select.select([pidfd], [], [], 0)[0]:
            ready = select.select([pidfd, self.control] if not gone else [pidfd], [], [], None if self.groups else 0.05)[0]
            if self.control in ready:
                message = self.control.recv(65536)
                gone, killed = not message, True
                self.kill()
            elif not ready and self.used_memory() > self.config["policy"]["memory_bytes"]:
                over = True
                self.kill()
        os.close(pidfd)
        _, status, usage = os.wait4(self.child, 0)
        self.child = 0
        self.kill_groups()
        if gone:
            raise EOFError
        rc = os.waitstatus_to_exitcode(status)
        ooms = self.counter("memory.events:oom_kill", "memory.oom_control:oom_kill") - ooms
        return {
            "rc": rc if rc <= 128 or rc > 192 else -(rc - 128),
            "killed": killed,
            "oom": over or (ooms > 0 and rc != 0),
            "cpu_s": max(usage.ru_utime + usage.ru_stime, self.cpu_used() - began),
            "peak_bytes": self.counter("memory.peak", "memory.max_usage_in_bytes") or usage.ru_maxrss * 1024,
        }

    def cpu_used(self) -> float:
        """CPU seconds of everything that ever ran in the control groups (bubblewrap's init reaps unseen)."""
        nanoseconds = self.counter("cpuacct.usage")
        return nanoseconds / 1e9 if nanoseconds else self.counter("cpu.stat:usage_usec") / 1e6

    def kill(self) -> None:
        """Kill the command: bubblewrap's process namespace dies with it."""
        if self.child:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.child, signal.SIGKILL)
        self.kill_groups()

    def used_memory(self) -> int:
        """Resident bytes of all descendants; used where there is no control group."""
        parents: dict[int, int] = {}
        for name in os.listdir("/proc"):
            if name.isdigit():
                with contextlib.suppress(OSError, IndexError), open(f"/proc/{name}/stat") as file:
                    parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
        total, mine = 0, {self.child}
        for pid in sorted(parents):
            if parents[pid] in mine:
                mine.add(pid)
        for pid in mine:
            with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/statm") as file:
                total += int(file.read().split()[1]) * resource.getpagesize()
        return total

    # --------------------------------------------------------------------------------- snapshot
    def snapshot(self, target: str, into: str) -> None:
        """Copy what was written to a mount, whiteouts included, owned by us and open to all."""
        source = self.uppers[target]
        for folder, folders, files in os.walk(source):
            there = os.path.join(into, os.path.relpath(folder, source))
            os.makedirs(there, exist_ok=True)
            os.chmod(there, 0o777)
            for name in os.listxattr(folder, follow_symlinks=False):
                if name.endswith("overlay.opaque"):
                    os.setxattr(there, name, os.getxattr(folder, name))
            for name in files + [d for d in folders if os.path.islink(os.path.join(folder, d))]:
                self.copy(os.path.join(folder, name), os.path.join(there, name))

    def copy(self, source: str, there: str) -> None:
        found = os.lstat(source)
        if stat.S_ISLNK(found.st_mode):
            os.symlink(os.readlink(source), there)
        elif stat.S_ISCHR(found.st_mode) and found.st_rdev == 0:
            os.mknod(there, stat.S_IFCHR | 0o600, 0)
        elif stat.S_ISREG(found.st_mode):
            shutil.copyfile(source, there, follow_symlinks=False)
            os.chmod(there, stat.S_IMODE(found.st_mode) | 0o666)
            os.utime(there, ns=(found.st_mtime_ns, found.st_mtime_ns))

    # ------------------------------------------------------------------------------------- loop
    def serve(self) -> None:
        """Answer requests until the socket closes."""
        while True:
            data, fds, _, _ = socket.recv_fds(self.control, 1 << 20, 3)
            if not data:
                return
            while not data.endswith(b"\n"):
                more = self.control.recv(1 << 20)
                if not more:
                    return
                data += more
            request = json.loads(data)
            if "exec" in request:
                reply = self.run(request["exec"], list(fds))
            elif "snapshot" in request:
                self.snapshot(request["snapshot"], request["into"])
                reply = {}
            elif "close" in request:
                return
            else:
                continue
            self.control.sendall(json.dumps(reply).encode() + b"\n")

    def cleanup(self) -> None:
        """Leave nothing: no process, no mount, no control group, no folder."""
        self.kill()
        for group in self.groups:
            for _ in range(200):
                try:
                    os.rmdir(group)
                    break
                except FileNotFoundError:
                    break
                except OSError as error:
                    if error.errno != errno.EBUSY:
                        break
                    time.sleep(0.01)
        libc.umount2(self.stage.encode(), MNT_DETACH)
        for folder in (self.stage, self.config["edits_dir"]):
            shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Serve one sandbox over the socket whose number is the first argument."""
    control = socket.socket(fileno=int(sys.argv[1]))
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    with control.makefile("rb") as lines:
        config = json.loads(lines.readline())
    holder = Holder(config, control)
    try:
        holder.prepare()
    except (OSError, ValueError, KeyError) as error:
        control.sendall(json.dumps({"error": str(error)}).encode() + b"\n")
        holder.cleanup()
        return
    control.sendall(json.dumps({"ready": holder.uid, "groups": holder.groups}).encode() + b"\n")
    with contextlib.suppress(EOFError, ConnectionError):
        try:
            holder.serve()
        except (OSError, ValueError, KeyError) as error:
            control.sendall(json.dumps({"error": str(error)}).encode() + b"\n")
    holder.cleanup()


if __name__ == "__main__":
    main()
