"""Serves many runs of one program from a process that has already imported what they share. Standard library only.

The program calls :func:`serve` when it has prepared what its runs share. From then on this process forks a child for
each request; in the child, :func:`serve` returns, and the program goes on. The protocol is that of
:class:`excise.protocols.ForkServer`. The server is process 1 of its sandbox, so that all orphans become its children.
"""

import array
import gc
import json
import os
import resource
import signal
import socket
import sys
import time

MAX_RUNS = 1000
"""Runs after which a server asks to be replaced."""
MAX_AGE_S = 900.0
"""Wall seconds after which a server asks to be replaced: what it has imported may know the time."""
VICTIM = "500"
"""Value of ``oom_score_adj`` of the children: where memory runs out, the kernel kills these, not the server."""
FIRST_CHOSEN_PORT = 32768
"""First of the ports that Linux chooses where a program names none."""
_STREAMS = 3


class Requests:
    """The socket to the supervisor: JSON lines, requests with three descriptors each."""

    def __init__(self, number):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=number)

    def receive(self):
        """The next request and its descriptors. Ends the process when the supervisor has closed the socket."""
        data, descriptors = b"", array.array("i")
        while not data.endswith(b"\n"):
            more, extra, _, _ = self.socket.recvmsg(1 << 20, socket.CMSG_SPACE(_STREAMS * descriptors.itemsize))
            if not more:
                os._exit(0)
            data += more
            for level, kind, content in extra:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    descriptors.frombytes(content)
        return json.loads(data.decode()), list(descriptors)

    def send(self, **message):
        """Send an answer."""
        self.socket.sendall(json.dumps(message).encode() + b"\n")


def serve(number, why_not, why_not_run):
    """Serve requests on the socket with this number; returns the request in every child, which has its streams.

    ``why_not`` says why this process cannot serve at all, and ``why_not_run(request)`` why it cannot serve one run;
    both are empty if it can.
    """
    requests = Requests(number)
    os.chdir("/")  # else the checkout could not be unmounted
    requests.send(ready=not why_not, reason=why_not)
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # which process 1 ignores: the children are in its process group
    attributes, began = attributes_of_process(), time.monotonic()
    for run in range(MAX_RUNS):
        request, streams = requests.receive()
        reason = why_not_run(request)
        if reason:
            requests.send(refused=reason)
            continue
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        child = os.fork()
        if child == 0:
            requests.socket.close()
            take_over(streams)
            return request
        for stream in streams:
            os.close(stream)
        status = wait_and_kill_rest(child)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        fresh = run + 1 < MAX_RUNS and time.monotonic() - began < MAX_AGE_S
        requests.send(status=status, cpu_s=cpu_s, reusable=fresh and not left_traces(attributes))
    os._exit(0)


def serve_importers(number, root, folders=()):
    """Serve runs that import the checkout ``root`` themselves; returns in every child, which has all of its request.

    Nothing may have been imported from the checkout yet: its files differ from run to run. ``folders``: places in it
    that runs put on ``sys.path``.
    """
    loaded = loaded_from(root)
    why_not = "%s is imported from the checkout" % loaded if loaded else shadowing_module(root, folders)
    request = serve(number, why_not, lambda request: shadowing_module(root, folders))
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    forget_folders(root)


def wait_and_kill_rest(child):
    """Wait until a child ends, kill every other process of the sandbox, and return the child's wait status."""
    while True:
        pid, status = os.wait()
        if pid == child:
            break
    try:
        while True:
            os.kill(-1, signal.SIGKILL)
            os.wait()
    except (ProcessLookupError, ChildProcessError):
        pass
    return status


def attributes_of_process():
    """What other processes can change of this one, and its children inherit."""
    with open("/proc/self/oom_score_adj") as file:
        score = file.read()
    return score, os.getpriority(os.PRIO_PROCESS, 0), os.sched_getaffinity(0), os.sched_getscheduler(0)


def left_traces(attributes):
    """Whether something outlived the processes of a run.

    Shared memory segments, message queues, connections that are still closing, or changed attributes of this process.
    """
    if attributes_of_process() != attributes or os.listdir("/dev/mqueue"):
        return True
    if any(lines_of("sysvipc/" + name)[1:] for name in ("shm", "sem", "msg")):
        return True
    if not any(number for line in lines_of("net/sockstat") + lines_of("net/sockstat6") for number in sockets_in(line)):
        return False  # the lists of connections take milliseconds
    return any(blocks_a_port(line) for name in ("tcp", "tcp6") for line in lines_of("net/" + name)[1:])


def lines_of(name):
    """The lines of a file of ``/proc``; none if this kernel has no such file."""
    try:
        with open("/proc/" + name) as lines:
            return lines.readlines()
    except FileNotFoundError:
        return []


def sockets_in(line):
    """Numbers of TCP sockets in a line of ``/proc/net/sockstat``: in use, and waiting for the end."""
    words = line.split()
    if words[:1] not in (["TCP:"], ["TCP6:"]):
        return []
    return [int(words[place + 1]) for place, word in enumerate(words) if word in ("inuse", "tw")]


def blocks_a_port(line):
    """Whether a connection in a line of ``/proc/net/tcp`` may stand in the way of a later run.

    One that only waits for the end (state 6) does not, if the kernel has chosen both of its ports.
    """
    _, local, remote, state = line.split()[:4]
    ports = [int(address.rpartition(":")[2], 16) for address in (local, remote)]
    return state != "06" or min(ports) < FIRST_CHOSEN_PORT


def take_over(streams):
    """In a child: take the streams of the request, and the place of a process that the server started."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for stream in streams:
        if stream >= _STREAMS:
            os.close(stream)
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write(VICTIM)


def forget_folders(root):
    """Forget what the checkout's folders held when modules were last searched for in them."""
    for path in list(sys.path_importer_cache):
        if is_below(path, root):
            del sys.path_importer_cache[path]


def is_below(path, root):
    """Whether a path is the folder ``root`` or in it."""
    return isinstance(path, str) and (path == root or path.startswith(root + "/"))


def loaded_from(root):
    """Name of a module that was imported from the checkout; empty if there is none."""
    for name, module in list(sys.modules.items()):
        places = [getattr(module, "__file__", None)]
        try:
            places += list(getattr(module, "__path__", None) or ())
        except Exception:
            return name
        if any(is_below(place, root) for place in places):
            return name
    return ""


def shadowing_module(root, folders=()):
    """Says which imported module a fresh process may find in the checkout instead; empty if there is none.

    A folder or file of its name in the checkout's part of ``sys.path``, or in ``folders``, counts.
    """
    known = {name.partition(".")[0] for name in sys.modules}
    for place in [*sys.path, *folders]:
        if is_below(place, root):
            try:
                found = os.listdir(place)
            except OSError:
                continue
            for name in found:
                if name.partition(".")[0] in known:
                    return "the checkout has its own %s" % name
    return ""
