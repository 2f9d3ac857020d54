"""Plain grader of an exported task. Standard library only; runs in the environment of the project.

Usage: ``python plain_grader.py FILES SOLUTION WORK SECONDS``. ``FILES`` is the folder with ``request.json``,
``kept.tar.gz`` and the program that runs tests, ``SOLUTION`` the diff to grade, ``WORK`` a folder for temporary files.
In the checkout, which is the current folder, the solution is applied, tests and their settings are put back, and
FAIL_TO_PASS and PASS_TO_PASS tests are run. Prints a report as JSON; exit code 0 if every test passed, 1 if not, 2 if
the solution does not apply. With ``-`` as ``SOLUTION`` the checkout has the solution already, and a line with status
and id of each test is printed instead, with white space in ids as ``%20``.

The tests run in the solution's process, so a solution can forge their report. excise's own grader is not deceived so.
"""

import contextlib
import fnmatch
import json
import os
import subprocess
import sys
import tarfile


def apply_solution(path):
    """Apply the diff with git; return an error message, empty if it was applied."""
    if not os.path.exists(path) or os.path.getsize(path) == 0:
        return ""
    done = subprocess.run(
        ["git", "apply", "--whitespace=nowarn", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    return done.stdout.decode(errors="replace") if done.returncode else ""


def put_back(archive, before, settings):
    """Write the kept files over those of the solution, and remove settings of tests that it added."""
    with tarfile.open(archive) as kept:
        names = set(kept.getnames())
        for path in all_files() - before - names:
            if any(fnmatch.fnmatch(name, each) for each in settings for name in (path, os.path.basename(path))):
                os.unlink(path)
        for member in kept:
            if os.path.lexists(member.name):
                os.unlink(member.name)
            kept.extract(member)


def all_files():
    found = set()
    for folder, folders, names in os.walk("."):
        folders[:] = [name for name in folders if name != ".git"]
        found.update(os.path.relpath(os.path.join(folder, name), ".") for name in names)
    return found


def committed_files():
    """The files of the checkout's first commit, which is what the agent got."""
    first = ["git", "rev-list", "--max-parents=0", "HEAD"]
    commit = subprocess.run(first, stdout=subprocess.PIPE, check=True).stdout.split()[-1]
    names = subprocess.run(
        ["git", "ls-tree", "-r", "-z", "--name-only", commit.decode()], stdout=subprocess.PIPE, check=True
    ).stdout
    return set(os.fsdecode(names).split("\0"))


def run_tests(files, request, work, timeout_s):
    """Run the tests; return the status of each that was reported."""
    report = os.path.join(work, "report.jsonl")
    if os.path.exists(report):
        os.unlink(report)
    root = request["root"] if os.path.realpath(request["root"]) == os.getcwd() else os.getcwd()
    environment = dict(os.environ, PYTHONPYCACHEPREFIX=os.path.join(work, "pyc"))
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(
            [sys.executable, os.path.join(files, request["program"])],
            input=json.dumps(dict(request, report=report, root=root)).encode(),
            env=environment,
            timeout=timeout_s,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    statuses = {}
    if os.path.exists(report):
        with open(report) as lines:
            for line in lines:
                entry = json.loads(line)
                if entry.get("t") == "test":
                    statuses[entry["id"]] = entry["status"]
    return {test: statuses.get(test, "MISSING") for test in request["ids"]}


def main(files, solution, work, timeout_s=None):
    applied = solution == "-"
    before = committed_files() if applied else all_files()
    error = "" if applied else apply_solution(os.path.abspath(solution))
    if error:
        print(json.dumps({"reward": 0, "error": error}))
        return 2
    with open(os.path.join(files, "request.json")) as file:
        request = json.load(file)
    put_back(os.path.join(files, "kept.tar.gz"), before, request["settings"])
    statuses = run_tests(files, request, work, timeout_s and float(timeout_s))
    failed = {test: status for test, status in statuses.items() if status != "PASSED"}
    if applied:
        for test, status in statuses.items():
            print({"MISSING": "FAILED", "SKIPPED": "FAILED"}.get(status, status), "%20".join(test.split()))
        return 1 if failed else 0
    print(json.dumps({"reward": int(not failed), "num_tests": len(statuses), "not_passed": failed}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
