"""Runs in the sandbox: builds the tests of a Go module and runs each in a process of its own; writes a report.

A request comes on stdin. A panic ends only the process of its own test, so that it says nothing about others. Trusted
runs only: a solution's results are those of ``excise_go_grade.py``. Standard library only; Python 3.8.
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

import excise_go_build as building
import excise_test_process as process

PASSED, SKIPPED = re.compile(rb"(?m)^ *--- PASS: "), re.compile(rb"(?m)^--- SKIP: ")
_REASON = re.compile(r"(?m)^(?:panic: .*|\s*--- FAIL: .*|\s+\S+_test\.go:\d+: .*|got:$|fatal error: .*)")
_BLOCK = re.compile(r"(.+):(\d+)\.\d+,\d+\.\d+ \d+ (\d+)")
MAX_MESSAGE = 300
MAX_ERRORS = 16000
"""Characters of what the compiler says: which definitions it misses is read from it."""


def run_one(binary, folder, name, request, profile=""):
    """Run one test in a process of its own; return (status, seconds, message)."""
    limit = request["test_timeout_s"]
    pattern = "^%s$" % name if name else "^$"
    arguments = [binary, "-test.run", pattern, "-test.v", "-test.paniconexit0", "-test.timeout", "%ds" % (limit + 5)]
    if profile:
        arguments.append("-test.coverprofile=" + profile)
    environment = building.environment(folder)
    if request.get("load_stress"):
        environment["GOMAXPROCS"] = "1"
    began = time.time()
    try:
        done = subprocess.run(
            arguments,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "FAILED", time.time() - began, "the test did not end within %g s" % limit
    seconds, output = time.time() - began, done.stdout[-65536:]
    if done.returncode != 0:
        return "FAILED", seconds, reason_of(output.decode("utf-8", "replace"), done.returncode)
    if SKIPPED.search(output):
        return "SKIPPED", seconds, ""
    if PASSED.search(output):
        return "PASSED", seconds, ""
    return "MISSING", seconds, "the test binary has no such test"


def reason_of(output, code):
    """The line of a failing test's output that says why."""
    found = [match.group(0).strip() for match in _REASON.finditer(output)]
    told = next((line for line in found if not line.startswith("--- FAIL")), found[0] if found else "")
    return (told or "the test binary ended with %d" % code)[:MAX_MESSAGE]


def places_in(profile, root, package):
    """(path, line) of the blocks that a profile says were executed."""
    prefix, folder = package["ImportPath"], os.path.relpath(package["Dir"], root)
    base = prefix[: len(prefix) - len(folder)].rstrip("/") if folder != "." else prefix
    found = []
    try:
        with open(profile) as file:
            for line in file:
                match = _BLOCK.match(line)
                if match and match.group(3) != "0" and match.group(1).startswith(base + "/"):
                    found.append((match.group(1)[len(base) + 1 :], int(match.group(2))))
    except OSError:
        pass
    return sorted(set(found))


def chosen_tests(package, request):
    """(id, name) of the tests of a package that are to be run, in the order of its files."""
    wanted = None if request.get("ids") is None else set(request["ids"])
    without, found = set(request.get("without") or ()), []
    for path, source, _ in building.files_of(package, request["root"]):
        for name, _ in building.tests_in(source):
            test = "%s::%s" % (path, name)
            if (wanted is None or test in wanted) and test not in without:
                found.append((test, name))
    return found


def run_package(package, number, request, report):
    """Build and run the tests of one package; return whether all passed."""
    root, cover = request["root"], bool(request.get("map"))
    tests = chosen_tests(package, request)
    if request.get("shuffle_seed") is not None:
        random.Random(request["shuffle_seed"]).shuffle(tests)
    if not tests:
        return True
    binary = "%s/tests-%d" % (building.WORK, number)
    problem = building.build(package, root, binary, cover)
    if problem:
        for path in sorted({test.partition("::")[0] for test, _ in tests}):
            report.add("collect_error", path=path, message=problem[:MAX_ERRORS])
        return False
    if request.get("collect_only"):
        return True
    profile = building.WORK + "/profile" if cover else ""
    always = []
    if cover:
        run_one(binary, package["Dir"], "", request, profile)
        always = places_in(profile, root, package)
        report.executed("", always)
    passed = True
    for test, name in tests:
        if cover and os.path.exists(profile):
            os.unlink(profile)
        status, seconds, message = run_one(binary, package["Dir"], name, request, profile)
        report.add("test", id=test, status=status, dur=seconds, msg=message)
        passed = passed and status in ("PASSED", "SKIPPED")
        if cover:
            report.executed(test, sorted(set(places_in(profile, root, package)) - set(always)))
    os.unlink(binary)
    return passed


def main():
    """Run the request on stdin."""
    request = json.load(sys.stdin)
    report = process.Report(request["report"])
    building.prepare()
    found, problem = building.packages(request["root"])
    if request.get("shuffle_seed") is not None:
        random.Random(request["shuffle_seed"]).shuffle(found)
    if problem and not found:
        report.add("collect_error", path="go.mod", message=problem[-2000:])
    results = [run_package(package, number, request, report) for number, package in enumerate(found)]
    times = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = resource.getrusage(resource.RUSAGE_SELF)
    cpu = times.ru_utime + times.ru_stime + own.ru_utime + own.ru_stime
    report.add("end", exit=0 if all(results) else 1, cpu=cpu)


main()
