"""Runs in an agent's sandbox: lists every file that can be read there, and packs requested files.

``list``: one JSON line (path, size, modification time in nanoseconds) for each file, and copies of what running
processes show in ``/proc``. ``pack``: the files named on standard input go into one tar file. Standard library only;
Python 3.8.
"""

import json
import os
import stat
import sys
import tarfile

OUT = "/excise/out"
PSEUDO = ("/proc", "/sys", "/dev", OUT)
MAX_PROCESS_BYTES = 16 << 20


def walk():
    """Yield (path, size, modification time in nanoseconds) of every regular file that can be read."""
    for folder, folders, names in os.walk("/", onerror=None):
        if folder in PSEUDO:
            folders[:] = []
            continue
        for name in names:
            path = os.path.join(folder, name)
            try:
                status = os.lstat(path)
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode) and os.access(path, os.R_OK):
                yield path, status.st_size, status.st_mtime_ns


def processes():
    """Paths under ``/proc`` with what processes show: their arguments, environment variables and open files."""
    for pid in os.listdir("/proc"):
        if pid.isdigit():
            base = "/proc/" + pid
            yield base + "/cmdline"
            yield base + "/environ"
            try:
                opened = os.listdir(base + "/fd")
            except OSError:
                continue
            for number in opened:
                path = base + "/fd/" + number
                try:
                    if stat.S_ISREG(os.stat(path).st_mode) and not os.readlink(path).startswith(OUT):
                        yield path
                except OSError:
                    continue


def copy_processes():
    """Copy the files of :func:`processes`, up to ``MAX_PROCESS_BYTES``, into one result file."""
    left = MAX_PROCESS_BYTES
    with open(OUT + "/processes", "wb") as into:
        for path in processes():
            try:
                with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
                    data = file.read(left)
            except OSError:
                continue
            left -= len(data)
            into.write(path.encode() + b"\n" + data.replace(b"\0", b"\n") + b"\n")


def pack():
    """Write the files whose paths are JSON lines on standard input into a tar file."""
    with tarfile.open(OUT + "/files.tar", "w") as archive:
        for line in sys.stdin:
            path = json.loads(line)
            try:
                archive.add(path, recursive=False)
            except (OSError, ValueError):
                continue


if sys.argv[1] == "list":
    with open(OUT + "/listing", "w") as listing:
        for row in walk():
            listing.write(json.dumps(row) + "\n")
    copy_processes()
else:
    pack()
