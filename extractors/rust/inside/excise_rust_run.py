"""Runs in the sandbox: builds the tests of a Rust crate and runs each in a process of its own; writes a report.

A request comes on stdin. Trusted runs only: a solution's results are those of ``excise_rust_grade.py``. Standard
library only; Python 3.8.
"""

import json
import os
import random
import re
import resource
import subprocess
import sys
import time

sys.path.append("/excise/shared")

import excise_rust_build as building
import excise_rust_coverage as coverage
import excise_rust_source as sources
import excise_test_process as process

_RESULT = re.compile(rb"(?m)^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored")
_PANIC = re.compile(r"(?m)^thread '[^\n]*' panicked at (?:'(.*?)', \S+|.*)$", re.S)
_ERROR = re.compile(r"(?m)^(?:Error: .*|note: .*|fatal .*)$")
MAX_MESSAGE = 300
MAX_ERRORS = 16000
"""Characters of what the compiler says of a target: which definitions it misses is read from it."""


def run_one(binary, name, request, profile=""):
    """Run one test in a process of its own; return (status, seconds, message)."""
    limit, root = request["test_timeout_s"], request["root"]
    variables = dict(building.environment(root), CARGO_MANIFEST_DIR=root, **{coverage.VARIABLE: profile})
    if not profile:
        del variables[coverage.VARIABLE]
    slow = (lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})) if request.get("load_stress") else None
    began = time.time()
    try:
        done = subprocess.run(
            [binary, "--exact", name, "--test-threads=1"],
            cwd=root,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=limit,
            check=False,
            preexec_fn=slow,
        )
    except subprocess.TimeoutExpired:
        return "FAILED", time.time() - began, "the test did not end within %g s" % limit
    seconds, output = time.time() - began, done.stdout[-65536:]
    found = _RESULT.findall(output)
    passed, failed, ignored = map(int, found[-1]) if found else (0, 0, 0)
    if done.returncode != 0 or failed:
        return "FAILED", seconds, reason_of(output.decode("utf-8", "replace"), done.returncode)
    if passed:
        return "PASSED", seconds, ""
    return ("SKIPPED", seconds, "") if ignored else ("MISSING", seconds, "the test binary has no such test")


def reason_of(output, code):
    """The line of a failing test's output that says why."""
    found = _PANIC.search(output)
    text = " ".join((found.group(1) or found.group(0)).split()) if found else ""
    other = _ERROR.search(output)
    return (text or (other.group(0) if other else "the test binary ended with %d" % code))[:MAX_MESSAGE]


def names_in(binary, root):
    """Names of the tests of a binary, in its order; none if it does not tell."""
    try:
        done = subprocess.run(
            [binary, "--list", "--format", "terse"],
            cwd=root,
            env=building.environment(root),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return []
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    return [line[: -len(": test")] for line in lines if line.endswith(": test")]


def tests_of(binary, request):
    """(id, name) of the tests of a binary that are to be run."""
    wanted = None if request.get("ids") is None else set(request["ids"])
    without, root, found = set(request.get("without") or ()), request["root"], []
    files = sources.module_files(binary.root)
    for name in names_in(binary.path, root):
        where = sources.split_name(name, files)
        if where is None:
            continue
        test = "::".join([os.path.relpath(where[0], root), *where[1]])
        if (wanted is None or test in wanted) and test not in without:
            found.append((test, name))
    return found


def needed_targets(request):
    """Root files of the targets that hold the requested tests; ``None`` for all."""
    if request.get("ids") is None:
        return None
    root = request["root"]
    paths = {os.path.normpath(os.path.join(root, test.partition("::")[0])) for test in request["ids"]}
    known, _ = building.targets(root)
    return {path for _, _, path in known if paths & {file for file, _ in sources.module_files(path).values()}}


def run_binary(binary, request, report, taken):
    """Run the tests of one binary that no other had; return whether all passed."""
    root, tests = request["root"], tests_of(binary, request)
    tests = [(test, name) for test, name in tests if test not in taken]
    taken.update(test for test, _ in tests)
    if request.get("shuffle_seed") is not None:
        random.Random(request["shuffle_seed"]).shuffle(tests)
    places, profile = {}, ""
    if request.get("map"):
        places, profile = coverage.places_of_functions(binary.path), building.WORK + "/profile"
        report.executed("", [])
    passed = True
    for test, name in tests:
        if profile and os.path.exists(profile):
            os.unlink(profile)
        status, seconds, message = run_one(binary.path, name, request, profile)
        report.add("test", id=test, status=status, dur=seconds, msg=message)
        passed = passed and status in ("PASSED", "SKIPPED")
        if profile:
            found = coverage.executed(profile, places)
            inside = ((path, line) for path, line in found if path.startswith(root + "/"))
            report.executed(test, sorted((os.path.relpath(path, root), line) for path, line in inside))
    return passed


def main():
    """Run the request on stdin."""
    request = json.load(sys.stdin)
    report = process.Report(request["report"])
    building.prepare()
    wrapper = coverage.make_wrapper(building.WORK) if request.get("map") else ""
    binaries, problems = building.build(request["root"], needed_targets(request), wrapper)
    for path, message in problems.items():
        report.add("collect_error", path=os.path.relpath(path, request["root"]), message=message[:MAX_ERRORS])
    if request.get("shuffle_seed") is not None:
        random.Random(request["shuffle_seed"]).shuffle(binaries)
    taken = set()
    results = [run_binary(binary, request, report, taken) for binary in binaries]
    times = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = resource.getrusage(resource.RUSAGE_SELF)
    cpu = times.ru_utime + times.ru_stime + own.ru_utime + own.ru_stime
    report.add("end", exit=0 if all(results) and not problems else 1, cpu=cpu)


main()
