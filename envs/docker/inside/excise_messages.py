"""Messages between the worker and a sandbox container's first process, and the container's resource counters.

A message is the length of a JSON header (four bytes, big endian), the header, and one body for each of its ``sizes``.
"""

import json
import os
import struct


def read_exactly(count):
    """Read from the input; exit when it is closed."""
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


# ------------------------------------------------------------------------------------------- counters
def counter(*names):
    """The first number found in files of the container's control group; a name is ``file`` or ``file:key``."""
    for entry in names:
        name, _, key = entry.partition(":")
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
