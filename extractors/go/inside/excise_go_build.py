"""Runs in the sandbox: finds the tests of a Go module and builds its test binaries; the other programs import it.

A run has a writable copy of the layer with build outputs, which goes with the sandbox. The layer holds outputs of other
code only. Standard library only; Python 3.8.
"""

import json
import os
import re
import shutil
import subprocess

OUTPUTS = "/excise/outputs"
"""Build outputs of everything but the project, read-only."""
WORK = "/tmp/excise-go"
"""Where this run builds."""
_FIELDS = ("Dir", "ImportPath", "GoFiles", "EmbedFiles", "TestGoFiles", "XTestGoFiles")
_TEST = re.compile(rb"(?m)^func[ \t]+((?:Test|Example)\w*)[ \t]*\(([^)]*)\)")
_PACKAGE = re.compile(rb"(?m)^package[ \t]+(\w+)")


def environment(folder):
    """The variables of go in a folder: those of the sandbox, and a cache of our own.

    go believes PWD, so that paths in test binaries end with the import path though the folder is a link.
    """
    return dict(
        os.environ,
        PWD=folder,
        GOCACHE=WORK + "/cache",
        GOTMPDIR=WORK,
        GOPATH=WORK + "/gopath",
        GOENV="off",
        GOWORK="off",
    )


def prepare():
    """Make the writable copy of the build outputs."""
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK, mode=0o700)
    if os.path.isdir(OUTPUTS):
        shutil.copytree(OUTPUTS, WORK + "/cache")
    else:
        os.mkdir(WORK + "/cache")


def go(arguments, root, timeout_s=600):
    """Run go; return (exit code, output, errors)."""
    try:
        done = subprocess.run(
            ["go", *arguments],
            cwd=root,
            env=environment(root),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 124, b"", b"go did not end"
    return done.returncode, done.stdout, done.stderr


def packages(root):
    """The packages of the module below ``root`` that have tests, and the errors of go."""
    code, output, errors = go(["list", "-e", "-json=" + ",".join(_FIELDS), "./..."], root)
    found, decoder, text = [], json.JSONDecoder(), output.decode("utf-8", "replace")
    place = 0
    while True:
        while place < len(text) and text[place].isspace():
            place += 1
        if place >= len(text):
            break
        package, place = decoder.raw_decode(text, place)
        if package.get("TestGoFiles") or package.get("XTestGoFiles"):
            found.append(package)
    return found, "" if code == 0 else errors.decode("utf-8", "replace")


def tests_in(source):
    """(name, ``None`` or an example's (expected output, whether its order counts)) of the tests in a file, in order.

    A test takes ``*testing.T``, an example nothing; an example without expected output is compiled but never run.
    """
    found = []
    for match in _TEST.finditer(source):
        name, parameters = match.group(1).decode(), match.group(2).strip()
        if name.startswith("Example"):
            example = None if parameters else output_of(source, match.end())
            if example is not None:
                found.append((name, example))
        elif re.fullmatch(rb"\w+[ \t]+\*[ \t]*\w+\.T", parameters) and is_test_name(name[4:]):
            found.append((name, None))
    return found


def is_test_name(rest):
    """Whether what follows ``Test`` does not begin with a small letter."""
    return not rest or not rest[0].islower()


def output_of(source, start):
    """(expected output, whether its order counts) of an example whose body begins after ``start``; ``None`` without."""
    end = source.find(b"\n}", start)
    lines = source[start : end if end >= 0 else len(source)].decode("utf-8", "replace").splitlines()
    comment = []
    for line in reversed(lines):
        plain = line.strip()
        if plain.startswith("//"):
            comment.insert(0, plain[2:].lstrip())
        elif plain:
            break
    for place, line in enumerate(comment):
        match = re.match(r"(?i)(unordered )?output:(.*)", line)
        if match:
            text = "\n".join([match.group(2), *comment[place + 1 :]]).strip()
            return text, not match.group(1)
    return None


def files_of(package, root):
    """(path inside the repository, source, whether it is of the package's external tests) of its test files."""
    for key in ("TestGoFiles", "XTestGoFiles"):
        for name in package.get(key) or ():
            full = os.path.join(package["Dir"], name)
            with open(full, "rb") as file:
                yield os.path.relpath(full, root), file.read(), key == "XTestGoFiles"


def package_name(source):
    """The name in the package clause of a file."""
    match = _PACKAGE.search(source)
    return match.group(1).decode() if match else ""


def problem_without_tests(package, root):
    """Why the sources of a package need its tests, empty if they do not.

    In the test binary, they could name what the tests define; and they could embed the tests' files.
    """
    embedded = [name for name in package.get("EmbedFiles") or () if name.endswith("_test.go")]
    if embedded:
        return "the sources embed %s" % ", ".join(embedded)
    if not package.get("GoFiles"):
        return ""
    code, output, errors = go(["build", "-o", os.devnull, package["ImportPath"]], root)
    return "" if code == 0 else (errors + output).decode("utf-8", "replace").strip() or "the sources do not compile"


def build(package, root, binary, cover=False):
    """Build the test binary of a package; return what the compiler says (all of it: ``-e``), empty if it succeeds."""
    flags = ["-cover", "-covermode=set", "-coverpkg=./..."] if cover else []
    code, output, errors = go(
        ["test", "-c", "-vet=off", "-gcflags=-e", *flags, "-o", binary, package["ImportPath"]], root
    )
    if code == 0 and os.path.exists(binary):
        return ""
    return (errors + output).decode("utf-8", "replace").strip() or "go built no test binary"
