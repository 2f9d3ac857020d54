"""Supervisor of a graded run: builds a solution's tests, runs each in a process of its own, alone reports the results.

Started as ``python -I -S excise_rust_grade.py`` with the request on stdin. It is protected against inspection by other
processes. Its report is one line, written to a descriptor that no test inherits and signed (HMAC) with a key that is
read from stdin before anything of the project runs.

What a test binary prints, and how it ends, is no evidence: a solution can print any line and end the process with any
code. A test has passed if a generated harness in the module of the test, after the test has returned, sends the random
token of this one run of this one test. Macros of the standard library in test files are called by paths that the
sources cannot define anew. Of a solution, nothing runs while its tests are compiled: manifests, build scripts and
procedural macros are the original ones. Standard library only; Python 3.8.
"""

import os
import re
import secrets
import shutil
import sys
import time
from contextlib import suppress

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.append("/excise/shared")

import excise_rust_build as building
import excise_rust_source as sources
import excise_test_process as process

MACROS = frozenset({
    "assert", "assert_eq", "assert_ne", "debug_assert", "debug_assert_eq", "debug_assert_ne", "panic", "unreachable",
    "unimplemented", "todo", "matches", "vec", "format", "write", "writeln", "print", "println", "eprint", "eprintln",
})  # fmt: skip
"""Macros of the standard library that a crate could define anew for its tests."""
UNCHANGED = frozenset({"tests", "benches", "examples", ".git"})
"""Folders of the checkout in which solutions change nothing."""
_READS = re.compile(r"include_str|include_bytes|\b(?:global_|naked_)?asm\b|\bincbin\b")
_JOINED = re.compile(_READS.pattern + r"|\[\s*<")
"""The same, where a crate is there that makes names of parts of names."""
_JOINING = re.compile(r"(?:paste|concat[-_]idents|mashup|ident[-_]?concat)-\d")
REGISTRY = "/opt/env/registry"
_PLAIN_READ = re.compile(r'(?:include_str|include_bytes)\s*!\s*[(\[{]\s*"([^"\\]*)"\s*,?\s*[)\]}]')
_HARNESS = """
mod %(mark)s {
    pub extern crate std;
    #[allow(unused_imports)]
    use self::std::prelude::v1::*;
    use self::std::io::{Read, Write};

    trait Outcome {
        fn is_good(self) -> bool;
    }

    impl Outcome for () {
        fn is_good(self) -> bool {
            true
        }
    }

    impl<T, E> Outcome for self::std::result::Result<T, E> {
        fn is_good(self) -> bool {
            self.is_ok()
        }
    }

    #[allow(dead_code)]
    fn returns<T: Outcome, F: FnOnce() -> T>(test: F) -> bool {
        match self::std::panic::catch_unwind(self::std::panic::AssertUnwindSafe(test)) {
            Ok(outcome) => outcome.is_good(),
            Err(_) => false,
        }
    }

    #[allow(dead_code)]
    fn panics<T, F: FnOnce() -> T>(test: F, expected: &str) -> bool {
        match self::std::panic::catch_unwind(self::std::panic::AssertUnwindSafe(test)) {
            Ok(_) => false,
            Err(message) => match message.downcast_ref::<&str>() {
                Some(text) => text.contains(expected),
                None => match message.downcast_ref::<String>() {
                    Some(text) => text.contains(expected),
                    None => expected.is_empty(),
                },
            },
        }
    }

    #[test]
    fn harness() {
        let name = self::std::env::var("EXCISE_TEST").unwrap_or_default();
        let passed = match name.as_str() {
%(tests)s
            _ => false,
        };
        let mut token = [0u8; 64];
        let from = self::std::fs::File::open("/proc/self/fd/%(token)d");
        let read = from.and_then(|mut from| from.read_exact(&mut token));
        let mut answer = if passed && read.is_ok() { b"PASSED ".to_vec() } else { b"FAILED ".to_vec() };
        answer.extend_from_slice(&token);
        answer.push(10);
        let to = self::std::fs::OpenOptions::new().write(true).open("/proc/self/fd/%(result)d");
        let _ = to.and_then(|mut to| to.write_all(&answer));
    }
}
"""


def quoted(text):
    """A text as a string literal of Rust."""
    return '"' + "".join(c if c.isalnum() and c.isascii() else "\\u{%x}" % ord(c) for c in text) + '"'


class Known:
    """Where a requested test is: its binary, and the names that its harness knows it by."""

    def __init__(self, root_file, harness, name):
        self.root_file = root_file
        self.harness = harness
        self.name = name
        self.binary = None
        self.problem = "its target was not built"


def harness_of(mark, tests):
    """The text of a module with the harness of ``tests``, functions of the module around it."""
    arms = []
    for test, function in tests:
        called = "super::%s" % test[-1]
        panic = function.expected_panic if function is not None else None
        run = "returns(|| %s())" % called if panic is None else "panics(|| { %s(); }, %s)" % (called, panic)
        arms.append("            %s => %s," % (quoted("::".join(test)), run))
    return _HARNESS % {"mark": mark, "tests": "\n".join(arms), "token": process.TOKEN, "result": process.RESULT}


def write_file(path, file, module, wanted):
    """Write a test file with the harnesses of the ``wanted`` tests in it; return test -> name of its harness.

    Macros of the standard library are called by the path of the harness's module, which the sources cannot define anew.
    """
    mark, found = "z" + secrets.token_hex(6), {}
    groups = {(): []}
    functions = {(*test.modules, test.name): test for test in file.tests}
    for test in wanted:
        groups.setdefault(test[:-1], []).append((test, functions.get(test)))
    places = []
    for inner, tests in groups.items():
        if inner in file.ends:
            places.append((file.ends[inner], harness_of(mark, tests)))
            found.update({test: "::".join((*module, *inner, mark, "harness")) for test, _ in tests})
    edits = [(place, place, text) for place, text in places]
    name = "crate::%s::std::" % "::".join((*module, mark))
    edits += [(token.start, token.start, name) for token in file.calls_of(MACROS)]
    text, at, parts = file.source, 0, []
    for start, end, more in sorted(edits):
        parts += [text[at:start], more]
        at = end
    parts.append(text[at:])
    with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as out:
        out.write("".join(parts))
    return found


def attach(path, canaries, root):
    """Make files of canaries modules of a test file."""
    with open(path, "a", encoding="utf-8") as out:
        for canary in canaries:
            stem = os.path.splitext(os.path.basename(canary))[0]
            out.write('\n#[path = "%s"]\nmod %s;\n' % (os.path.join(root, canary), stem))


def write_harnesses(root, targets, ids, canaries):
    """Put harnesses into all test files that are modules of a target, and the same module into their helpers.

    Return id -> :class:`Known`, and the files.
    """
    known, files = {}, {}
    by_path = {}
    for test in ids:
        by_path.setdefault(os.path.normpath(os.path.join(root, test.partition("::")[0])), []).append(test)
    extra = sorted({test.partition("::")[0] for test in canaries})
    extra = [path for path in extra if os.path.isfile(os.path.join(root, path))]
    for _, _, root_file in targets:
        modules = sources.module_files(root_file)
        if extra:
            own = {os.path.normpath(os.path.join(root, path)) for path in extra}
            host = next((path for path, _ in modules.values() if path in by_path and path not in own), None)
            if host is not None:
                attach(host, extra, root)
                extra = []
                modules = sources.module_files(root_file)
        testing = [module for module, (path, _) in modules.items() if path in by_path]
        for module, (path, file) in sorted(modules.items()):
            helps = path.startswith(root + "/tests/") or any(module[: len(each)] == each for each in testing)
            if path in files or not helps:
                continue
            wanted = {tuple(test.split("::")[1:]): test for test in by_path.get(path, ())}
            files[path] = write_file(path, file, module, list(wanted))
            for test, harness in files[path].items():
                known[wanted[test]] = Known(root_file, harness, "::".join(test))
    return known, set(files)


def problem_of_sources(root, restored):
    """Why the sources could look up what tests expect, since they read files into the program; empty if they do not.

    ``restored``: files of tests that are the original ones. What a solution declares as their helper may be its own.
    """
    crates = os.listdir(REGISTRY) if os.path.isdir(REGISTRY) else []
    reads = _JOINED if any(map(_JOINING.match, crates)) else _READS
    for folder, folders, names in os.walk(root):
        if folder == root:
            folders[:] = [name for name in folders if name not in UNCHANGED]
        for name in names:
            path = os.path.join(folder, name)
            if not name.endswith(".rs") or path in restored or os.path.islink(path):
                continue
            text = sources.read_text(path)
            plain = {match.start() for match in _PLAIN_READ.finditer(text) if is_harmless(folder, match.group(1), root)}
            for match in reads.finditer(text):
                if match.start() not in plain:
                    return "%s: %s may read the tests" % (os.path.relpath(path, root), match.group(0))
    return ""


def is_harmless(folder, name, root):
    """Whether a file that is read into the program is data or a document of the project."""
    path = os.path.normpath(os.path.join(folder, name))
    inside = path.startswith(root + "/") and not path.startswith(root + "/tests/")
    return inside and not path.endswith(".rs") and os.path.realpath(path) == path


def hide_sources(root, tests, binaries):
    """Delete the sources of all tests and everything that was built of them but the test binaries.

    In the run, a solution could otherwise read there what is expected, and whether it is what it should be.
    """
    below = os.walk(os.path.join(root, "tests"))
    more = {os.path.join(folder, name) for folder, _, names in below for name in names if name.endswith(".rs")}
    for path in tests | more:
        with suppress(OSError):
            os.unlink(path)
    for number, binary in enumerate(binaries):
        hidden = "%s/tests-%d" % (building.WORK, number)
        os.rename(binary.path, hidden)
        binary.path = hidden
    shutil.rmtree(os.path.join(building.WORK, "target"), ignore_errors=True)


def build_all(root, request, ids):
    """Build what the tests need; return (id -> :class:`Known`, what went wrong)."""
    targets, problem = building.targets(root)
    known, tests = write_harnesses(root, targets, ids, request["canaries"])
    restored = {os.path.normpath(os.path.join(root, test.partition("::")[0])) for test in ids}
    tests |= restored
    chosen = {each.root_file for each in known.values()}
    refused = problem_of_sources(root, restored)
    binaries, problems = ([], {}) if refused else building.build(root, chosen)
    hide_sources(root, tests, binaries)
    by_root = {binary.root: binary.path for binary in binaries}
    for each in known.values():
        each.binary = by_root.get(each.root_file)
        each.problem = refused or problems.get(each.root_file, each.problem)
    return known, refused or problem or next(iter(problems.values()), "")


def run(request):
    """Build and run the requested tests, and return the report."""
    root, deadline = os.path.realpath(request["root"]), time.time() + request["timeout_s"]
    building.prepare()
    ids = process.ordered(request)
    known, problem = build_all(root, request, ids)
    results = []
    for test in ids:
        if test not in known or time.time() > deadline:
            continue
        each = known[test]
        result = {"id": test, "status": "FAILED", "dur": 0.0, "msg": each.problem[:300]}
        if each.binary:
            words = [each.binary, "--exact", each.harness, "--test-threads=1"]
            environment = dict(building.environment(root), CARGO_MANIFEST_DIR=root, EXCISE_TEST=each.name)
            result.update(process.result_of(request, words, root, environment))
        results.append(result)
    return {"results": results, "finished": time.time() <= deadline, "why": problem[:300]}


if __name__ == "__main__":
    process.supervise(run)
