"""The writable folders of a sandbox container: initial content, edits, results, snapshots."""

import os
import shutil
import signal
import stat
import tarfile

from excise_messages import send

LOWER = "/excise/lower"
OUT = "/excise/out"


class Sandbox:
    """The writable folders of the container, with their initial content."""

    def __init__(self, config):
        self.mounts = config["mounts"]
        self.disk_bytes = config["disk_bytes"]
        self.filter = bytes.fromhex(config["filter"])
        self.folders = [*self.mounts, "/tmp", "/home/agent", "/dev/shm"]
        self.sent = {}
        self.child_signal, wakeup = os.pipe()
        os.set_blocking(wakeup, False)
        os.set_blocking(self.child_signal, False)
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        for target in self.mounts:
            if os.path.isdir(LOWER + target):
                fill(LOWER + target, target)
        self.initial_bytes = self.used()

    def used(self):
        found = (os.statvfs(folder) for folder in self.folders)
        return sum((it.f_blocks - it.f_bfree) * it.f_frsize for it in found)

    def written(self):
        """Bytes in the writable folders, beyond the initial content."""
        return self.used() - self.initial_bytes

    def edit(self, path, data):
        """Write a file, or delete it if ``data`` is None, before any code of the project runs. Follows no link."""
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
        """New and changed plain files of the results folder, up to ``budget`` bytes."""
        found = []
        for name in sorted(os.listdir(OUT)):
            try:
                fd = os.open(OUT + "/" + name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            except OSError:
                continue
            info = os.fstat(fd)
            stamp = (info.st_ino, info.st_size, info.st_mtime_ns)
            if not stat.S_ISREG(info.st_mode) or self.sent.get(name) == stamp or info.st_size > budget:
                os.close(fd)
                continue
            with os.fdopen(fd, "rb") as file:
                data = file.read(budget)
            budget -= len(data)
            self.sent[name] = stamp
            found.append((name, data))
        return found

    def snapshot(self, target):
        """Send the changes in a mount as chunks of an archive; return the deleted paths."""
        if target not in self.mounts:
            raise ValueError("%s is no writable mount" % target)
        lower = LOWER + target
        total = sum(os.lstat(os.path.join(f, n)).st_size for f, _, names in os.walk(target) for n in names)
        if total > self.disk_bytes + self.initial_bytes:
            raise ValueError("%s holds more than may be written" % target)
        chunks = ChunkSender()
        with tarfile.open(fileobj=chunks, mode="w|", format=tarfile.PAX_FORMAT) as archive:
            for folder, folders, files in os.walk(target):
                inside = os.path.relpath(folder, target)
                if inside != ".":
                    archive.add(folder, inside, recursive=False)
                for name in files + [n for n in folders if os.path.islink(os.path.join(folder, n))]:
                    path = os.path.join(folder, name)
                    mode = os.lstat(path).st_mode
                    plain = stat.S_ISREG(mode) or stat.S_ISLNK(mode)
                    if plain and not same(path, os.path.normpath(os.path.join(lower, inside, name))):
                        archive.inodes = {}  # hard links would refer to each other
                        archive.add(path, os.path.normpath(os.path.join(inside, name)), recursive=False)
        return deleted(lower, target)


class ChunkSender:
    """A file-like object that sends each chunk written to it as a message."""

    def write(self, data):
        if data:
            send({"piece": True}, data)
        return len(data)


def same(path, other):
    """Whether a file is unchanged."""
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
    """Topmost paths of the lower folder that no longer exist."""
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
    """Copy a mount's initial content; times are kept, since byte code files refer to them."""
    for folder, folders, files in os.walk(source):
        there = os.path.normpath(os.path.join(target, os.path.relpath(folder, source)))
        if there != target:
            os.mkdir(there)
            os.chmod(there, 0o777)
        for name in files + [n for n in folders if os.path.islink(os.path.join(folder, n))]:
            shutil.copy2(os.path.join(folder, name), os.path.join(there, name), follow_symlinks=False)
    for folder, _, _ in os.walk(source, topdown=False):
        there = os.path.normpath(os.path.join(target, os.path.relpath(folder, source)))
        if os.stat(there).st_uid == os.getuid():  # podman's folders belong to root
            shutil.copystat(folder, there)
