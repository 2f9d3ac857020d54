"""Supervisor of a graded run: builds a solution's tests, runs each in a process of its own, alone reports the results.

Started as ``python -I -S excise_go_grade.py`` with the request on stdin. It is protected against inspection by other
processes. Its report is one line, written to a descriptor that no test inherits and signed (HMAC) with a key that is
read from stdin before anything of the project runs.

What a test binary prints, and how it ends, is no evidence: a solution can print any line and end the process with any
code. A test has passed if a generated harness, after the test has returned, sends the random token of this one run of
this one test. Nothing of a solution runs while its tests are compiled: cgo is off, and go has no build scripts.
Standard library only; Python 3.8.
"""

import os
import secrets
import shutil
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.append("/excise/shared")

import excise_go_build as building
import excise_test_process as process

_HARNESS = """package %(package)s

import (
	bytes%(mark)s "bytes"
	io%(mark)s "io"
	os%(mark)s "os"
	sort%(mark)s "sort"
	strings%(mark)s "strings"
	testing%(mark)s "testing"
)

var tests%(mark)s = map[string]func(*testing%(mark)s.T){%(tests)s}
var examples%(mark)s = map[string]func(){%(examples)s}
var outputs%(mark)s = map[string]string{%(outputs)s}
var unordered%(mark)s = map[string]bool{%(unordered)s}

func %(name)s(t *testing%(mark)s.T) {
	name := os%(mark)s.Getenv("EXCISE_TEST")
	status := "FAILED"
	if test, ok := tests%(mark)s[name]; ok {
		skipped := false
		passed := t.Run("tests", func(t *testing%(mark)s.T) {
			t.Run(name, func(t *testing%(mark)s.T) {
				defer func() { skipped = t.Skipped() }()
				test(t)
			})
		})
		if passed && skipped {
			status = "SKIPPED"
		} else if passed {
			status = "PASSED"
		}
	} else if example, ok := examples%(mark)s[name]; ok && shown%(mark)s(example, name) {
		status = "PASSED"
	}
	token := make([]byte, 64)
	from := os%(mark)s.NewFile(%(token)d, "token")
	n, _ := io%(mark)s.ReadFull(from, token)
	to := os%(mark)s.NewFile(%(result)d, "result")
	to.Write([]byte(status + " " + string(token[:n]) + "\\n"))
	to.Close()
}

func shown%(mark)s(example func(), name string) bool {
	read, write, err := os%(mark)s.Pipe()
	if err != nil {
		return false
	}
	before, done := os%(mark)s.Stdout, make(chan string)
	go func() {
		var all bytes%(mark)s.Buffer
		io%(mark)s.Copy(&all, read)
		done <- all.String()
	}()
	os%(mark)s.Stdout = write
	func() {
		defer func() { os%(mark)s.Stdout = before; write.Close() }()
		example()
	}()
	got, want := strings%(mark)s.TrimSpace(<-done), outputs%(mark)s[name]
	if unordered%(mark)s[name] {
		return sorted%(mark)s(got) == sorted%(mark)s(want)
	}
	return got == want
}

func sorted%(mark)s(text string) string {
	lines := strings%(mark)s.Split(text, "\\n")
	sort%(mark)s.Strings(lines)
	return strings%(mark)s.Join(lines, "\\n")
}
"""


def quoted(text):
    """A text as a string literal of Go."""
    return '"' + "".join(c if c.isalnum() else "\\U%08x" % ord(c) for c in text) + '"'


def write_harnesses(package, root, wanted):
    """Write the harness of each of a package's two kinds of tests; return id -> (name of its harness, test's name)."""
    found = {}
    kinds = {}
    for path, source, external in building.files_of(package, root):
        for name, example in building.tests_in(source):
            if (path, name) in wanted:
                kinds.setdefault((external, building.package_name(source)), []).append((path, name, example))
    for (_, package_name), tests in kinds.items():
        mark = "x" + secrets.token_hex(6)
        harness = "TestZ" + secrets.token_hex(6)
        plain = [name for _, name, expected in tests if expected is None]
        examples = [(name, expected) for _, name, expected in tests if expected is not None]
        text = _HARNESS % {
            "package": package_name,
            "mark": mark,
            "name": harness,
            "tests": ", ".join("%s: %s" % (quoted(name), name) for name in plain),
            "examples": ", ".join("%s: %s" % (quoted(name), name) for name, _ in examples),
            "outputs": ", ".join("%s: %s" % (quoted(name), quoted(text)) for name, (text, _) in examples),
            "unordered": ", ".join("%s: true" % quoted(name) for name, (_, ordered) in examples if not ordered),
            "token": process.TOKEN,
            "result": process.RESULT,
        }
        with open(os.path.join(package["Dir"], "z%s_test.go" % mark), "w") as file:
            file.write(text)
        found.update({"%s::%s" % (path, name): (harness, name) for path, name, _ in tests})
    return found


def hide_sources(root):
    """Delete the sources of all tests and everything that was built of them but the test binaries.

    In the run, a solution could otherwise read there what is expected, and whether it is what it should be.
    """
    for folder, _, names in os.walk(os.path.realpath(root)):
        for name in names:
            if name.endswith("_test.go"):
                os.unlink(os.path.join(folder, name))
    for name in ("cache", "gopath"):
        shutil.rmtree(os.path.join(building.WORK, name), ignore_errors=True)


def run(request):
    """Build and run the requested tests, and return the report."""
    root, deadline = request["root"], time.time() + request["timeout_s"]
    building.prepare()
    wanted = {tuple(test.partition("::")[::2]) for test in process.ordered(request)}
    packages, problem = building.packages(root)
    known, results = {}, []
    for number, package in enumerate(packages):
        harnesses = write_harnesses(package, root, wanted)
        if not harnesses:
            continue
        binary = "%s/tests-%d" % (building.WORK, number)
        failure = building.problem_without_tests(package, root) or building.build(package, root, binary)
        problem = failure or problem
        for test, (harness, name) in harnesses.items():
            known[test] = (binary, package["Dir"], harness, name, failure)
    hide_sources(root)
    for test in process.ordered(request):
        if test not in known or time.time() > deadline:
            continue
        binary, folder, harness, name, failure = known[test]
        result = {"id": test, "status": "FAILED", "dur": 0.0, "msg": failure[:300]}
        if not failure:
            limit = request["test_timeout_s"]
            words = [binary, "-test.run", "^%s$" % harness, "-test.paniconexit0", "-test.timeout", "%ds" % (limit + 5)]
            environment = dict(building.environment(folder), EXCISE_TEST=name)
            result.update(process.result_of(request, words, folder, environment))
        results.append(result)
    return {"results": results, "finished": time.time() <= deadline, "why": problem[:300]}


if __name__ == "__main__":
    process.supervise(run)
