"""Runs in the sandbox: a virtual machine with the launcher, which the other programs send commands.

Commands and answers go through a socket that the launcher connects with before it loads anything of the project;
standard output is never read. Standard library only; Python 3.8.
"""

import base64
import os
import secrets
import select
import signal
import socket
import struct
import subprocess
import time
from contextlib import suppress

import excise_java_build as building

CREDENTIALS = struct.Struct("3i")
"""What a socket tells of the process at its other end: its id, user and group."""
MAX_BUFFER = 64 << 20
OPTIONS = (
    "-ea",
    "-Djava.awt.headless=true",
    "-Duser.language=en",
    "-Duser.country=US",
    "-Dfile.encoding=UTF-8",
    "-XX:+DisableAttachMechanism",
)
START_S = 120


class Ended(Exception):
    """The virtual machine has ended, or was stopped since it did not answer in time."""


def encoded(text):
    """A text as the launcher reads it."""
    return base64.b64encode(text.encode("utf-8", "surrogateescape")).decode()


def decoded(text):
    """A text as the launcher writes it; empty if it is no such text."""
    try:
        return base64.b64decode(text).decode("utf-8", "replace")
    except ValueError:
        return ""


class Machine:
    """One virtual machine; it runs many tests, until one ends it."""

    def __init__(self, root, covered="", options=(), classes=()):
        """``covered``: patterns of names of classes that are measured; ``classes``: (name, bytes) of those that are not
        in a folder."""
        agent = []
        if covered:
            agent = ["-javaagent:%s/agent.jar=output=none,includes=%s" % (building.OUTPUTS, covered)]
        path = "%s/%s" % (building.WORK, secrets.token_hex(8))
        command = ["java", *building.FLAGS, *OPTIONS, *options, *agent, "-cp", building.class_path(bool(covered))]
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen(1)
            self.process = subprocess.Popen(
                [*command, "excise.Launcher", path, building.project_folders(), *(["covered"] if covered else [])],
                cwd=root,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            self.connection = self.accept(listener)
        os.unlink(path)
        self.buffer = b""
        self.read_line(time.time() + START_S)
        for name, data in classes:
            self.send("class", name, base64.b64encode(data).decode())
        if classes:
            self.send("define")

    def accept(self, listener):
        """The descriptor of the launcher's connection; others are not accepted. Raises :class:`Ended`."""
        deadline = time.time() + START_S
        while time.time() < deadline and self.process.poll() is None:
            if not select.select([listener], [], [], 1.0)[0]:
                continue
            found, _ = listener.accept()
            made_by = found.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
            if CREDENTIALS.unpack(made_by)[0] == self.process.pid:
                return found.detach()
            found.close()
        self.connection = -1
        self.close()
        raise Ended("the virtual machine did not start")

    def send(self, *fields):
        """Send a command. Raises :class:`Ended`."""
        data = ("\t".join(fields) + "\n").encode()
        with suppress_pipe():
            while data:
                data = data[os.write(self.connection, data) :]

    def read_line(self, deadline):
        """The fields of the next answer. Raises :class:`Ended`, with the reason as its text."""
        while b"\n" not in self.buffer:
            left = deadline - time.time()
            if left <= 0:
                raise Ended("it did not end in time")
            if select.select([self.connection], [], [], min(left, 1.0))[0]:
                data = os.read(self.connection, 1 << 16)
                if not data or len(self.buffer) > MAX_BUFFER:
                    raise Ended("it ended the virtual machine")
                self.buffer += data
            elif self.process.poll() is not None:
                raise Ended("it ended the virtual machine")
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line.decode("utf-8", "replace").split("\t")

    def close(self):
        """End the virtual machine and whatever it has started in its session."""
        with suppress(OSError):
            os.close(self.connection)
        self.connection = -1
        for _ in range(50):
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                break
            if self.process.poll() is not None:
                break
            time.sleep(0.01)
        self.process.wait()


class suppress_pipe:
    """Turns a broken pipe into :class:`Ended`."""

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is not None and issubclass(kind, OSError):
            raise Ended("it ended the virtual machine") from value


def test_id(paths, class_name, names, parameter):
    """The id of a test from what the launcher says of it; empty if its class is in no test file."""
    top, *nested = class_name.split("$")
    path = paths.get(top)
    if path is None:
        return ""
    plain = "::".join([top.rpartition(".")[2], *nested, names])
    parameter = parameter.replace("\n", " ").replace("\t", " ").replace("\r", " ")
    return "%s::%s%s" % (path, plain, "[%s]" % parameter if parameter else "")


class KnownTests:
    """The tests that are known before any runs, by id; each may stand for several runs of one method."""

    def __init__(self, machine, paths, timeout_s=300):
        machine.send("list", building.WORK + "/tests")
        self.unique = {}
        deadline = time.time() + timeout_s
        while True:
            fields = machine.read_line(deadline)
            if fields[0] == "DONE":
                return
            if fields[0] == "TEST" and len(fields) == 5:
                test = test_id(paths, fields[2], fields[3], decoded(fields[4]))
                if test:
                    self.unique.setdefault(test, decoded(fields[1]))

    def base(self, test):
        """The known test that a test is, or is a run of; empty if there is none."""
        if test in self.unique:
            return test
        path, _, rest = test.partition("::")
        plain = "%s::%s" % (path, rest.partition("[")[0])
        return plain if plain in self.unique else ""

    def unique_id(self, test):
        """The unique id of one test; of a numbered run of a method, made from the method's. Empty if unknown."""
        base = self.base(test)
        if not base or base == test:
            return self.unique.get(base, "")
        numbers = test[len(base) + 1 : -1].split(".")
        unique = self.unique[base]
        if not all(number.isdigit() for number in numbers):
            return ""
        if "[test-template:" in unique:
            return "%s/[test-template-invocation:#%s]" % (unique, numbers[0])
        containers = "".join("/[dynamic-container:#%s]" % number for number in numbers[:-1])
        return "%s%s/[dynamic-test:#%s]" % (unique, containers, numbers[-1])
