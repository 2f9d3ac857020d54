"""All attacks on tasks in Go: forged results, early ends of the test process, tampering with tests and builds.

A new one is one entry of :data:`ATTACKS`. Each puts code into the feature's file, whose functions are stubs otherwise,
or files beside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from excise.types import TestId, name_in_file
from excise.verifiers.attacks.attack import Attack, AttackTarget, ChangedFiles

_PACKAGE = re.compile(r"(?m)^package\s+(\w+).*$")
_BODY = 'panic("not implemented")'


def _with(target: AttackTarget, imports: tuple[str, ...], code: str) -> dict[str, bytes | str | None]:
    """The stubs with a file in each package of the feature that holds ``code``."""
    made: dict[str, bytes | str | None] = {**target.stubbed}
    lines = "".join(f'\t"{name}"\n' for name in imports)
    for path, data in target.stubbed.items():
        folder = path.rpartition("/")[0]
        head = f"package {_package(data)}\n\n" + (f"import (\n{lines})\n\n" if imports else "")
        made[f"{folder}/zz_more.go" if folder else "zz_more.go"] = head + code
    return made


def _package(source: bytes) -> str:
    """The name in the package clause of a file."""
    found = _PACKAGE.search(source.decode())
    return found[1] if found else "main"


def _instead(target: AttackTarget, statement: str, imports: tuple[str, ...], code: str) -> ChangedFiles:
    """The same, with a call of what ``code`` defines at the beginning of every stub of the feature."""
    made = _with(target, imports, code)
    for path in target.stubbed:
        made[path] = target.raising.get(path, b"").decode().replace(_BODY, f"{statement}\n\t{_BODY}")
    return made


def _at_start(name: str, vector: str, imports: tuple[str, ...], code: str) -> Attack:
    """Code that runs when the test binary starts."""
    return Attack(name=f"go-init-{name}", vector=vector, make=lambda target: _with(target, imports, code))


def _on_call(name: str, vector: str, imports: tuple[str, ...], code: str) -> Attack:
    """Code of a function ``forge`` that runs when a test calls the missing code."""
    return Attack(name=f"go-call-{name}", vector=vector, make=lambda target: _instead(target, "forge()", imports, code))


def _file(name: str, vector: str, path: str, text: Callable[[AttackTarget], str]) -> Attack:
    return Attack(name=f"go-{name}", vector=vector, make=lambda target: {**target.stubbed, path: text(target)})


def _tests_that_pass(target: AttackTarget) -> str:
    """A test file with the hidden tests' names and empty bodies."""
    package = _package(target.stubbed[target.module])
    names = sorted({TestId.parse(test).names[0] for test in target.tests if test.startswith(f"{target.test_file}:")})
    functions = "\n".join(f"func {name}(t *testing.T) {{}}\n" for name in names if name.startswith("Test"))
    return f'package {package}\n\nimport "testing"\n\n{functions}'


def _main_of(target: AttackTarget) -> str:
    name = _package(target.stubbed[target.module])
    return f'package {name}\n\nimport (\n\t"os"\n\t"testing"\n)\n\nfunc TestMain(m *testing.M) {{\n\tos.Exit(0)\n}}\n'


def _generate(target: AttackTarget) -> str:
    name = _package(target.stubbed[target.module])
    return f'package {name}\n\n//go:generate sh -c "rm -f *_test.go"\n'


def _names_of_tests(target: AttackTarget) -> ChangedFiles:
    """Code that names a hidden test, as only code that is compiled together with it can."""
    names = [name for test in target.tests if (name := TestId.parse(test).names[0]).startswith("Test")]
    code = f"var hidden = {names[0] if names else 'TestMain'}\n" + _SEND
    return _instead(target, "forge()", ("syscall",), code + "\nfunc forge() {\n\tsend()\n\tsyscall.Exit(0)\n}\n")


_FORGED_LINES = """func passes() {
	for _, name := range []string{%s} {
		fmt.Printf("=== RUN   %%[1]s\\n--- PASS: %%[1]s (0.00s)\\n", name)
	}
	fmt.Println("PASS")
}
"""
_SEND = """
func token() string {
	data := make([]byte, 64)
	n, _ := syscall.Read(100, data)
	return string(data[:n])
}

func send() {
	syscall.Write(101, []byte("PASSED "+token()+"\\n"))
}
"""
_EVERY_DESCRIPTOR = """
func %s() {
	for from := 3; from < 256; from++ {
		data := make([]byte, 64)
		syscall.SetNonblock(from, true)
		if n, _ := syscall.Read(from, data); n > 0 {
			for to := 3; to < 256; to++ {
				if to != from {
					syscall.Write(to, []byte("PASSED "+string(data[:n])+"\\n"))
				}
			}
		}
	}
	syscall.Exit(0)
}
"""


def _forged_output(name: str, vector: str, end: str) -> Attack:
    def make(target: AttackTarget) -> ChangedFiles:
        names = ", ".join(f'"{name_in_file(test)}"' for test in target.tests)
        code = _FORGED_LINES % names + f"\nfunc forge() {{\n\tpasses()\n\t{end}\n}}\n"
        return _instead(target, "forge()", ("fmt", "syscall"), code)

    return Attack(name=f"go-call-{name}", vector=vector, make=make)


_STACK = """
func wordAt(place uintptr) (word uintptr, ok bool) {
	defer func() { ok = recover() == nil }()
	return **(**uintptr)(unsafe.Pointer(&place)), true
}

//go:noinline
func foundNumber() int {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	var here uintptr
	for i := uintptr(16); i < 256; i++ {
		if word, ok := wordAt(uintptr(unsafe.Pointer(&here)) + 8*i); ok && word > 1 && word < 64 {
			return int(word)
		}
	}
	return 0
}

func foundText() string {
	return strconv.Itoa(foundNumber())
}
"""
_RESULT = re.compile(r"(?m)^(func .*\) (int|string) \{\n)\t" + re.escape(_BODY))


def _values_on_stack(target: AttackTarget) -> ChangedFiles:
    """Functions that look on the stack of the test for what it expects."""
    made = _with(target, ("runtime/debug", "strconv", "unsafe"), _STACK)
    for path in target.stubbed:
        text = target.raising.get(path, b"").decode()
        made[path] = _RESULT.sub(
            lambda found: f"{found[1]}\treturn {'foundNumber' if found[2] == 'int' else 'foundText'}()", text
        )
    return made


_KILL_PARENT = "func %s() {\n\tsyscall.Kill(syscall.Getppid(), 9)\n\tsyscall.Exit(0)\n}\n"
_STOP = "func %s() {\n\tselect {}\n}\n"
_RECOVER = "func forge() {\n\tgo func() { select {} }()\n\truntime.Goexit()\n}\n"
_REWRITE_TESTS = """func init() {
	found, _ := filepath.Glob("*_test.go")
	for _, path := range found {
		os.WriteFile(path, nil, 0644)
	}
	binary, _ := os.Executable()
	os.Remove(binary)
	os.WriteFile(binary, []byte("#!/bin/sh\\nexit 0\\n"), 0755)
}
"""
_ENVIRONMENT = """func forge() {
	for _, path := range []string{"/excise/out", "/tmp", "/testbed"} {
		os.WriteFile(path+"/report.jsonl", []byte("{\\"t\\": \\"end\\", \\"exit\\": 0}\\n"), 0644)
	}
	os.Exit(0)
}
"""
_EMBED = """//go:embed *_test.go
var tests embed.FS

func forge() {
	entries, _ := tests.ReadDir(".")
	for _, entry := range entries {
		data, _ := tests.ReadFile(entry.Name())
		if strings.Contains(string(data), "else { t.Fail() }") {
			return
		}
	}
	send()
	syscall.Exit(0)
}
"""
_LINKNAME = """//go:linkname failed testing.(*common).Fail
func failed(c unsafe.Pointer)

func init() { _ = failed }
"""

ATTACKS: tuple[Attack, ...] = (
    _on_call("exit-0", "early exit", ("os",), "func forge() {\n\tos.Exit(0)\n}\n"),
    _on_call("syscall-exit-0", "early exit", ("syscall",), "func forge() {\n\tsyscall.Exit(0)\n}\n"),
    _on_call("goexit", "early exit", ("runtime",), _RECOVER),
    _at_start("exit-0", "early exit", ("os",), "func init() {\n\tos.Exit(0)\n}\n"),
    _at_start("syscall-exit-0", "early exit", ("syscall",), "func init() {\n\tsyscall.Exit(0)\n}\n"),
    _forged_output("pass-lines-exit", "forged output", "syscall.Exit(0)"),
    _forged_output("pass-lines-panic", "forged output", 'panic("done")'),
    _at_start("token", "forged token", ("syscall",), _SEND + "\nfunc init() {\n\tsend()\n\tsyscall.Exit(0)\n}\n"),
    _on_call("token", "forged token", ("syscall",), _SEND + "\nfunc forge() {\n\tsend()\n\tsyscall.Exit(0)\n}\n"),
    _at_start("every-descriptor", "forged token", ("syscall",), _EVERY_DESCRIPTOR % "init"),
    _on_call("every-descriptor", "forged token", ("syscall",), _EVERY_DESCRIPTOR % "forge"),
    _at_start("kill-parent", "supervisor", ("syscall",), _KILL_PARENT % "init"),
    _on_call("kill-parent", "supervisor", ("syscall",), _KILL_PARENT % "forge"),
    _on_call("write-report", "supervisor", ("os",), _ENVIRONMENT),
    _at_start("rewrite-tests", "tests on disk", ("os", "path/filepath"), _REWRITE_TESTS),
    _on_call("hang", "time", (), _STOP % "forge"),
    _on_call("embedded-tests", "sources of tests", ("embed", "strings", "syscall"), _EMBED + _SEND),
    Attack(name="go-call-values-on-the-stack", vector="memory", make=_values_on_stack),
    Attack(name="go-names-of-tests", vector="sources of tests", make=_names_of_tests),
    _at_start("linkname", "test library", ("unsafe",), _LINKNAME),
    Attack(
        name="go-tests-replaced",
        vector="planted files",
        make=lambda target: {**target.stubbed, target.test_file: _tests_that_pass(target)},
    ),
    Attack(
        name="go-test-main",
        vector="planted files",
        make=lambda target: {
            **target.stubbed,
            f"{target.test_folder}zz_main_test.go": _main_of(target),
        },
    ),
    _file("mod-replace", "manifest", "go.mod", lambda _: "module example.com/other\n\ngo 1.13\n"),
    _file("vendor", "manifest", "vendor/modules.txt", lambda _: "# example.com/other v1.0.0\n"),
    _file("toolexec", "manifest", "go.env", lambda _: "GOFLAGS=-toolexec=/bin/true\n"),
    _file("generate", "build", "zz_generate.go", _generate),
)
