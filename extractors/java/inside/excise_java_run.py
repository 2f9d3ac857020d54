"""Runs in the sandbox: compiles a Java project, runs its tests one after the other, and writes a report.

A request comes on stdin. All tests run in one virtual machine, a new one after a test that ends it or hangs. Trusted
runs only: a solution's results are those of ``excise_java_grade.py``. Standard library only; Python 3.8.
"""

import json
import os
import random
import resource
import signal
import sys
import threading
import time

import excise_java_build as building
import excise_java_jvm as jvm

MAX_MESSAGE = 300
MAX_FILES_ALONE = 0.5
"""Share of the test files up to which they are compiled without the others."""
MAX_ERRORS = 16000
"""Characters of what the compiler says of a file: which definitions it misses is read from it."""


class Report:
    """The report; each line is written at once, so that a killed run leaves what it has."""

    def __init__(self, path):
        self.file = open(path, "w")  # noqa: SIM115
        self.places = {}

    def add(self, kind, **fields):
        """Write a line."""
        self.file.write(json.dumps(dict(fields, t=kind)) + "\n")
        self.file.flush()

    def executed(self, test, places):
        """Write what a test executed; an empty id stands for what runs without any test."""
        first = len(self.places)
        new = [place for place in places if place not in self.places]
        for place in new:
            self.places[place] = len(self.places)
        numbers = sorted({self.places[place] for place in places})
        self.add("lines", id=test, first=first, new=[list(place) for place in new], places=numbers)


class Pauses(threading.Thread):
    """Stops a virtual machine for moments at random, as on a busy machine."""

    def __init__(self, machine):
        super().__init__(daemon=True)
        self.machine, self.random = machine, random.Random(0)

    def run(self):
        """Until the machine has ended."""
        while self.machine.process.poll() is None:
            time.sleep(self.random.uniform(0.05, 0.4))
            try:
                os.kill(self.machine.process.pid, signal.SIGSTOP)
                time.sleep(self.random.uniform(0.02, 0.2))
                os.kill(self.machine.process.pid, signal.SIGCONT)
            except OSError:
                return


class Runner:
    """Runs tests in a virtual machine and reports them."""

    def __init__(self, request, report, project, main, tests):
        self.request, self.report, self.project = request, report, project
        self.paths = building.paths_of_types(project, tests)
        self.sources = building.paths_by_package(project, main)
        packages = {name.rpartition("/")[0].replace("/", ".") for name in self.sources}
        patterns = sorted(package + ".*" if package else "*" for package in packages)
        self.covered = ":".join(patterns) if request.get("map") else ""
        self.machine = None
        self.passed = True
        self.reported = set()

    def start(self):
        """A virtual machine for the next tests."""
        options = ["-XX:ActiveProcessorCount=1"] if self.request.get("load_stress") else []
        self.machine = jvm.Machine(self.project.folder, self.covered, options)
        if self.request.get("load_stress"):
            Pauses(self.machine).start()

    def known(self):
        """The tests that the launcher finds."""
        self.start()
        return jvm.KnownTests(self.machine, self.paths)

    def run(self, test, unique, wanted):
        """Run one known test, or all runs of one method; report those that are ``wanted`` (``None``: all)."""
        if self.machine is None:
            self.start()
        began, places = time.time(), set()
        running = self.request["test_timeout_s"]
        try:
            self.machine.send("run", jvm.encoded(unique))
            deadline = time.time() + running
            while True:
                fields = self.machine.read_line(deadline)
                if fields[0] == "DONE":
                    return
                if fields[0] == "RAN":
                    self.machine.send("-")
                if fields[0] == "COVERED":
                    places.update(self._places(fields))
                elif fields[0] == "RESULT":
                    self._result(fields, places, wanted)
                    places, deadline = set(), time.time() + running
        except jvm.Ended as ended:
            self.machine.close()
            self.machine = None
            missing = {test} if wanted is None else wanted - self.reported
            for each in sorted(missing):
                self._add(each, "FAILED", time.time() - began, str(ended), places)

    def _places(self, fields):
        folder = fields[1].rpartition("/")[0]
        path = self.sources.get("%s/%s" % (folder, fields[2]) if folder else fields[2])
        return [(path, int(line)) for line in fields[3].split()] if path else []

    def _result(self, fields, places, wanted):
        test = jvm.test_id(self.paths, fields[2], fields[3], jvm.decoded(fields[4]))
        if test and (wanted is None or test in wanted):
            self._add(test, fields[5], float(fields[6]), jvm.decoded(fields[7]), places)

    def _add(self, test, status, seconds, message, places):
        self.reported.add(test)
        self.passed = self.passed and status in ("PASSED", "SKIPPED")
        self.report.add("test", id=test, status=status, dur=seconds, msg=message[:MAX_MESSAGE])
        if self.covered:
            self.report.executed(test, sorted(places))


def chosen(known, request, not_run):
    """(known test, ids of its runs that are wanted, or ``None`` for all) in the order of the run.

    ``not_run``: paths of test files whose tests run only where they are asked for.
    """
    without = set(request.get("without") or ())
    if request.get("ids") is None:
        found = [
            (test, None) for test in known.unique if test not in without and test.partition("::")[0] not in not_run
        ]
    else:
        groups = {}
        for test in request["ids"]:
            base = known.base(test)
            if base and test not in without:
                groups.setdefault(base, set()).add(test)
        found = list(groups.items())
    if request.get("shuffle_seed") is not None:
        random.Random(request["shuffle_seed"]).shuffle(found)
    if request.get("reverse"):
        found.reverse()
    return found


def compiled(project, request, report, files=None):
    """Compile sources and test files (all, or ``files`` with what they need); return whether it worked, and report
    what the compiler says."""
    building.prepare()
    main, tests = project.sources()
    failed, output = building.build(project, files)
    if failed:
        errors = building.messages_by_file(output) or {(tests or main or ["pom.xml"])[0]: output[-2000:]}
        for path, message in errors.items():
            report.add("collect_error", path=path, message=message[:MAX_ERRORS])
        return False
    if request.get("map"):
        building.lower_versions(building.WORK + "/main")
    return True


def run(request, report):
    """Compile and run; return whether all tests passed, ``None`` if they could not be compiled.

    A run of some tests compiles their files alone, where these have all of them: half of the time that it takes.
    """
    project = building.Project(request["root"])
    main, tests = project.sources()
    wanted = request.get("ids")
    files = sorted({test.partition("::")[0] for test in wanted or ()}.intersection(tests))
    some = files if files and len(files) <= MAX_FILES_ALONE * len(tests) else None
    if not compiled(project, request, report, some):
        return None
    runner = Runner(request, report, project, main, tests)
    known = runner.known()
    if some is not None and not all(known.base(test) for test in wanted):
        runner.machine.close()
        if not compiled(project, request, report):
            return None
        known = runner.known()
    for test, wanted in chosen(known, request, project.not_run):
        each = set(wanted or ())
        one = next(iter(each)) if len(each) == 1 else ""
        unique = known.unique_id(one) if one else known.unique[test]
        runner.run(test, unique or known.unique[test], wanted)
    if runner.machine is not None:
        runner.machine.close()
    return runner.passed


def main():
    """Run the request on stdin."""
    request = json.load(sys.stdin)
    report = Report(request["report"])
    passed = run(request, report)
    cpu = 0.0
    for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF):
        times = resource.getrusage(who)
        cpu += times.ru_utime + times.ru_stime
    report.add("end", exit=0 if passed else 1, cpu=cpu)


main()
