"""Runs in the sandbox: builds the test binaries of a Rust crate; the other programs import it.

A run has a writable copy of the layer with build outputs, which goes with the sandbox. The layer holds outputs of other
crates only. Standard library only; Python 3.8.
"""

import json
import os
import shutil
import subprocess

OUTPUTS = "/excise/outputs"
"""Build outputs of everything but the project, read-only."""
WORK = "/tmp/excise-rust"
"""Where this run builds."""
CARGO = "/usr/bin/cargo"
_TESTED = ("lib", "rlib", "bin", "test")


class Binary:
    """A test binary: all tests of one target of the crate."""

    def __init__(self, path, root, name, kind):
        self.path = path
        self.root = root
        """Path of the root file of its crate."""
        self.name = name
        self.kind = kind


def environment(root):
    """The variables of cargo: those of the sandbox, and folders of our own."""
    return dict(os.environ, PWD=root, CARGO_TARGET_DIR=WORK + "/target")


def prepare():
    """Make the writable copy of the build outputs; times of files tell cargo that they are fresh."""
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK, mode=0o700)
    if os.path.isdir(OUTPUTS):
        shutil.copytree(OUTPUTS, WORK + "/target", symlinks=True)


def cargo(arguments, root, wrapper="", timeout_s=900):
    """Run cargo; return (exit code, output, errors). ``wrapper`` runs the compiler for the project's own crates."""
    variables = environment(root)
    if wrapper:
        variables["RUSTC_WORKSPACE_WRAPPER"] = wrapper
    try:
        done = subprocess.run(
            [CARGO, *arguments],
            cwd=root,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 124, b"", b"cargo did not end"
    return done.returncode, done.stdout, done.stderr


def targets(root):
    """(kind, name, path of the root file) of the targets that have tests, and what cargo says if it fails."""
    code, output, errors = cargo(["metadata", "--offline", "--no-deps", "--format-version", "1"], root)
    if code != 0:
        return [], errors.decode("utf-8", "replace")
    found = []
    for package in json.loads(output)["packages"]:
        for target in package["targets"]:
            kind = next((kind for kind in target["kind"] if kind in _TESTED), None)
            if kind and target.get("test", True):
                found.append((kind, target["name"], os.path.normpath(target["src_path"])))
    return found, ""


def build(root, chosen=None, wrapper=""):
    """Build test binaries; return (binaries, target -> what the compiler says). All targets, or ``chosen``.

    One that does not compile ends cargo, so the others are then built one by one.
    """
    known, problem = targets(root)
    if chosen is not None:
        known = [each for each in known if each[2] in chosen]
    if problem or not known:
        return [], {"Cargo.toml": problem} if problem else {}
    flags = [flag for kind, name, _ in known for flag in flags_of(kind, name)]
    binaries, said = build_targets(flags, root, wrapper)
    if not said:
        return binaries, {}
    if len(known) == 1:
        return [], {known[0][2]: said}
    binaries, problems = [], {}
    for kind, name, path in known:
        made, said = build_targets(flags_of(kind, name), root, wrapper)
        binaries += made
        if said:
            problems[path] = said
    return binaries, problems


def flags_of(kind, name):
    """The options that choose a target."""
    return {"test": ["--test", name], "bin": ["--bin", name]}.get(kind, ["--lib"])


def build_targets(flags, root, wrapper):
    """Build the targets that the options choose; return (binaries, what the compiler says if it fails)."""
    command = ["test", "--offline", "--no-run", "--message-format", "json", *flags]
    code, output, errors = cargo(command, root, wrapper)
    made, told = [], []
    for line in output.decode("utf-8", "replace").splitlines():
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if message.get("reason") == "compiler-message" and message["message"].get("level") == "error":
            told.append(message["message"].get("rendered") or "")
        target = message.get("target") or {}
        if message.get("executable") and (message.get("profile") or {}).get("test"):
            made.append(Binary(message["executable"], target["src_path"], target["name"], target["kind"][0]))
    if code == 0:
        return made, ""
    return [], "\n".join(told) or errors.decode("utf-8", "replace") or "cargo failed"
