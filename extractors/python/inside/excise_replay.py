"""Makes recorded calls to the code under test and writes their outcomes. The expected outcomes stay with the host.

Started as ``python excise_replay.py PATHS`` with the calls on stdin; writes one line for each call to stdout. The first
``alone`` calls run in processes of their own, forked after the modules were imported, so that no call affects another;
the others share processes, a few each. With ``spans`` (file to first and last lines of functions), the lines of these
that a call executes are written, too. With ``--serve N``, it serves many replays (``excise_fork_server.py``), which
import the project from PATHS (JSON).
"""

import contextlib
import importlib
import json
import operator
import os
import random
import select
import signal
import sys
import time

INSIDE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [entry for entry in sys.path if entry != INSIDE]
sys.path.append(INSIDE)
import excise_clock as clock  # noqa: E402
import excise_decode as decoding  # noqa: E402
import excise_outcomes as outcomes  # noqa: E402
import excise_values as values  # noqa: E402

sys.path.pop()
MAX_ANSWER = 256 << 10
"""Maximum size of one encoded outcome in bytes."""
MAX_TRACED = 50000
"""Number of executed lines after which those of a call are not noted any more, since that takes its time."""

ELSEWHERE = {"HOME": "/usr", "LOGNAME": "elsewhere", "USER": "elsewhere"}
"""Environment variables of a replay in another time zone."""
OTHER_ARGV = ["elsewhere", "elsewhere"]
"""Its program and arguments."""
MAX_SECOND_S = 0.3
"""Seconds in which the arguments of a call can be made a second time."""
TIMEOUT = {"lost": "timeout"}
"""The outcome of a call that did not end in time."""
ENDED, TOO_LARGE = "ended", "too large"
KILLED = {"timeout", ENDED, TOO_LARGE}
"""Why a call has no outcome, and no other one is made in its process."""
MAX_SHARED = 16
"""Number of calls that share a process where they may."""
MAX_TIMEOUTS = 3
"""Timeouts of new calls to one function after which no more of them are made: they would only cost time, too."""


def outcome(call, removed):
    """The outcome of one call."""
    random.seed(0)
    del decoding.failed_steps[:]
    decoding.define(call.get("classes", {}))
    args, kwargs = passed(call["args"], call["kwargs"])
    is_unread = bool(call.get("unread"))

    def result():
        value = made(call, args, kwargs)
        return None if is_unread else value

    found = outcomes.outcome_of(result, [*args, *kwargs.values()], opaque_in(removed))
    if is_unread and "result" in found:
        found["result"] = ["unread"]  # nobody reads it
    return dict(found, uneven=True) if decoding.failed_steps else found


def passed(args, kwargs):
    """Decoded arguments."""
    return [decoding.decode(node) for node in args], {key: decoding.decode(node) for key, node in kwargs}


def made(call, args, kwargs):
    """What a call returns."""
    name = call["name"]
    if call["kind"] == "method":
        return called(name.rpartition(".")[2], args, kwargs)
    if call["kind"] == "property":
        return getattr(args[0], name.rpartition(".")[2])
    if call["kind"] == "result":
        return returned(call["made"], call["before"])(*args, **kwargs)
    return values.find(name)(*args, **kwargs)


def returned(call, before):
    """The function that a call returns, after the calls of it that the tests made before."""
    function = made(call, *passed(call["args"], call["kwargs"]))
    for args, kwargs in before:
        try:
            more, named = passed(args, kwargs)
            function(*more, **named)
        except Exception:  # as when a method raises while an object is made again
            decoding.failed_steps.append("call")
    return function


def opaque_in(removed):
    """Whether a class is a removed one, or is based on one."""
    return lambda cls: any("%s:%s" % (base.__module__, base.__qualname__) in removed for base in cls.__mro__)


def called(method, args, kwargs):
    """The result of a method.

    Special methods are called through their operators, as a solution may implement either side of an operator and
    return ``NotImplemented`` from the other.
    """
    operators = vars(operator)  # as a module, it has __repr__ and others of its own
    plain_operator = operators.get(method) if method.startswith("__") else None
    if plain_operator is not None and not kwargs and len(args) <= (3 if method == "__setitem__" else 2):
        return plain_operator(*args)
    reflected = operators.get("__" + method[3:]) if method.startswith("__r") else None
    if reflected is not None and len(args) == 2 and not kwargs:
        return reflected(args[1], args[0])
    return getattr(args[0], method)(*args[1:], **kwargs)


def traced_outcome(call, removed, spans):
    """The outcome of a call, and ``[file, line]`` of each line within the spans that it executed."""
    executed, left = set(), [MAX_TRACED]

    def in_function(frame, event, _):
        if event == "line":
            executed.add((frame.f_code.co_filename, frame.f_lineno))
            left[0] -= 1
            if not left[0]:
                sys.settrace(None)
        return in_function

    def on_call(frame, *_):
        code = frame.f_code
        inside = any(first <= code.co_firstlineno <= last for first, last in spans.get(code.co_filename, ()))
        return in_function if inside else None

    sys.settrace(on_call)
    try:
        found = outcome(call, removed)
    finally:
        sys.settrace(None)
    if random.getstate() != random.Random(0).getstate():  # it drew numbers; another solution may draw other numbers
        found = {"lost": "random"}
    if "lost" not in found:
        found.update({"kept": True} if leaves_arguments(call, found, removed) else {"given": given(call)})
    return found, sorted(executed)


def given(call):
    """The arguments as they were passed; ``None`` for the receiver of a method, which a call may be there to change."""
    nodes = [*call["args"], *(node for _, node in call["kwargs"])]
    return [None, *nodes[1:]] if call["kind"] in ("method", "property") else nodes


def leaves_arguments(call, found, removed):
    """Whether the arguments after a call are what they are without it, as far as others can see.

    For that, they are made a second time, which may take a while, or never end.
    """
    nodes = [*call["args"], *(node for _, node in call["kwargs"])]
    if found["after"] == nodes:
        return True

    def stop(*_):
        raise TimeoutError

    try:
        before = signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, MAX_SECOND_S)
        try:
            return found["after"] == outcomes.after([decoding.decode(node) for node in nodes], opaque_in(removed))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
    except BaseException:
        return False


def answers_in_fork(calls, removed, spans, limits_s):
    """The outcomes of calls in one forked process, in order, or the reason why one has none (``lost``); and executed
    lines. The last one ends the process: then there are fewer answers than calls."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        try:
            os.setsid()
            for call in calls:
                write(write_end, answer_line(call, removed, spans))
        finally:
            os._exit(0)
    os.close(write_end)
    buffer, found = b"", []
    for limit_s in limits_s:
        line, buffer = read_line(read_end, buffer, limit_s)
        found.append(line)
        if "lost" in line["outcome"] and line["outcome"]["lost"] in KILLED:
            break
    os.close(read_end)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return found


def answer_line(call, removed, spans):
    """The answer to one call as a line."""
    lines = []
    try:
        found, lines = traced_outcome(call, removed, spans) if spans else (outcome(call, removed), [])
    except values.Unserialisable as error:
        found = {"lost": "unserialisable: %s" % error}
    except BaseException as error:
        found = {"lost": "%s" % type(error).__name__}
    return json.dumps({"outcome": found, "lines": lines}).encode() + b"\n"


def write(fd, data):
    while data:
        data = data[os.write(fd, data) :]


def read_line(fd, buffer, limit_s):
    """The next answer that a process writes, and what it wrote behind it."""
    deadline = time.monotonic() + limit_s
    while b"\n" not in buffer:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([fd], [], [], left)[0]:
            return {"outcome": TIMEOUT}, b""
        more = os.read(fd, 65536)
        if not more:
            return {"outcome": {"lost": ENDED}}, b""
        buffer += more
        if len(buffer) > MAX_ANSWER:
            return {"outcome": {"lost": TOO_LARGE}}, b""
    line, _, rest = buffer.partition(b"\n")
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    is_answer = isinstance(found, dict) and isinstance(found.get("outcome"), dict)
    is_answer = is_answer and isinstance(found["outcome"].get("lost", ""), str)
    return (found, rest) if is_answer else ({"outcome": {"lost": ENDED}}, b"")


def main():
    request = json.load(sys.stdin)
    out = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    if request["zone"]:
        os.environ["TZ"] = request["zone"]
        time.tzset()
    if request["later_s"]:
        clock.move(request["later_s"])
    sys.path[:0] = [os.path.abspath(folder) for folder in request["path"]]  # as excise_run finds their modules
    sys.path += [folder for folder in request["folders"] if folder not in sys.path]
    for module in request["modules"]:
        try:
            importlib.import_module(module)
        except BaseException:  # the module's calls will fail
            continue
    if request["zone"]:  # after the imports, which could fail there
        os.environ.update(ELSEWHERE)
        sys.argv[:] = OTHER_ARGV
    removed = set(request["removed"])
    deadline = time.monotonic() + request["timeout_s"]
    first_new, timeouts = len(request["calls"]) - request["new"], {}
    calls, number = request["calls"], 0
    while number < len(calls):
        most = MAX_SHARED if number >= request["alone"] else 1
        chosen = range(number, min(number + most, len(calls)))
        others = (n for n in chosen if timeouts.get(calls[n]["name"], 0) >= MAX_TIMEOUTS)
        chosen = range(number, max(number + 1, next(others, chosen.stop)))
        if time.monotonic() >= deadline or timeouts.get(calls[number]["name"], 0) >= MAX_TIMEOUTS:
            found = [{"outcome": TIMEOUT}]
        else:
            limits_s = [request["new_timeout_s" if n >= first_new else "call_timeout_s"] for n in chosen]
            found = answers_in_fork([calls[n] for n in chosen], removed, request["spans"], limits_s)
            last = number + len(found) - 1
            if last >= first_new and found[-1]["outcome"] == TIMEOUT:
                name = calls[last]["name"]
                timeouts[name] = timeouts.get(name, 0) + 1
        for each in found:
            write(out, json.dumps(dict(each, n=number)).encode() + b"\n")
            number += 1
    os._exit(0)


def serve_replays(number, folders):
    """Serve replays on the socket with this number; returns in every child."""
    sys.path.append(INSIDE)
    import excise_fork_server

    sys.path.remove(INSIDE)
    root = os.getcwd()
    excise_fork_server.serve_importers(number, root, [root, *folders])


if __name__ == "__main__":
    if sys.argv[2:3] == ["--serve"]:
        serve_replays(int(sys.argv[3]), json.loads(sys.argv[1]))
    del sys.argv[1:]
    main()
