"""Serves many runs of one program from a process that has already imported what they share. Standard library only.

The program calls :func:`serve` instead of beginning its work. From then on this process forks a child for each request;
in the child, :func:`serve` returns, and the program goes on as if it had just been started. The protocol is that of
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

MAX_RUNS = 1000
"""Runs after which a server asks to be replaced."""
VICTIM = "500"
"""Value of ``oom_score_adj`` of the children: where memory runs out, the kernel kills these, not the server."""
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


def serve(number, root):
    """Serve requests on the socket with this number; returns in every child, in the directory of its request.

    ``root`` is the checkout, of which nothing may have been imported yet: its files differ from run to run.
    """
    requests = Requests(number)
    os.chdir("/")  # else the checkout could not be unmounted
    loaded = loaded_from(root)
    reason = "%s is imported from the checkout" % loaded if loaded else shadowing_module(root)
    requests.send(ready=not reason, reason=reason)
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # which process 1 ignores: the children are in its process group
    attributes = attributes_of_process()
    for run in range(MAX_RUNS):
        request, streams = requests.receive()
        reason = shadowing_module(root)
        if reason:
            requests.send(refused=reason)
            continue
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        child = os.fork()
        if child == 0:
            requests.socket.close()
            take_over(request, streams, root)
            return
        for stream in streams:
            os.close(stream)
        status = wait_and_kill_rest(child)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        requests.send(status=status, cpu_s=cpu_s, reusable=run + 1 < MAX_RUNS and not left_traces(attributes))
    os._exit(0)


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
    for name in ("sysvipc/shm", "sysvipc/sem", "sysvipc/msg", "net/tcp", "net/tcp6"):
        try:
            with open("/proc/" + name) as lines:
                if len(lines.readlines()) > 1:
                    return True
        except FileNotFoundError:  # a kernel without it
            pass
    return False


def take_over(request, streams, root):
    """In a child: take the streams, variables and directory of the request, and forget the checkout's old folders."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for stream in streams:
        if stream >= _STREAMS:
            os.close(stream)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    for path in list(sys.path_importer_cache):
        if is_below(path, root):
            del sys.path_importer_cache[path]
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write(VICTIM)


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


def shadowing_module(root):
    """Says which imported module a fresh process may find in the checkout instead; empty if there is none.

    A folder or file of its name in the checkout's part of ``sys.path`` counts.
    """
    known = {name.partition(".")[0] for name in sys.modules}
    for place in sys.path:
        if is_below(place, root):
            try:
                found = os.listdir(place)
            except OSError:
                continue
            for name in found:
                if name.partition(".")[0] in known:
                    return "the checkout has its own %s" % name
    return ""
