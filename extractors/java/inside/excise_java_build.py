"""Runs in the sandbox: compiles a Java project and its tests; the other programs import it.

Everything is compiled anew in each run, into a folder that goes with the sandbox. Annotation processors never run, and
javac never looks for sources by itself. Standard library only; Python 3.8.
"""

import json
import os
import re
import shutil
import subprocess

PROJECT = "/opt/env/java/project.json"
"""How the project is laid out and compiled; written when the environment was installed."""
LIBRARIES = "/opt/env/lib"
OUTPUTS = "/excise/outputs"
"""Compiled launcher, and the agent that measures coverage; read-only."""
WORK = "/tmp/excise-java"
"""Where this run compiles."""
FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx1g")
"""Options of virtual machines that live for seconds: compiled code is not worth optimising."""
TEST_FILE = re.compile(r"(?:Test[A-Z]\w*|\w+Tests?|\w+TestCase|\w+IT)\.java")
_IGNORED = frozenset({"module-info.java"})
_PACKAGE = re.compile(rb"(?m)^\s*package\s+([\w.]+)\s*;")
_TYPE = re.compile(
    rb"(?m)^(?:(?:public|final|abstract|strictfp|sealed|non-sealed)\s+)*(?:class|interface|enum|record)\s+(\w+)"
)
_ERROR = re.compile(r"(?m)^(\S[^:\n]*\.java):(\d+): error: (.*)$")


class Project:
    """The layout of a project: folders of sources, tests and resources, relative to the checkout."""

    def __init__(self, root, found=None):
        if found is None:
            with open(PROJECT) as file:
                found = json.load(file)
        self.root = os.path.realpath(root)
        self.roots, self.test_roots = found["roots"], found["test_roots"]
        modules = {_module_of(each) for each in self.test_roots}
        folder = os.path.join(self.root, *modules) if len(modules) == 1 else self.root
        self.folder = folder if os.path.isdir(folder) else self.root
        """Folder of the module, in which build tools run its tests."""
        self.resources, self.test_resources = found["resources"], found["test_resources"]
        self.options = found["options"]
        self.left_out = frozenset(found["left_out"])
        self.not_run = frozenset(found["not_run"])

    def sources(self):
        """(paths of the sources, paths of the test files), sorted."""
        main, tests = [], []
        for path in sorted(self._files(".java", [*self.roots, *self.test_roots])):
            if path.rpartition("/")[2] not in _IGNORED and path not in self.left_out:
                (tests if self.is_test(path) else main).append(path)
        return main, tests

    def is_test(self, path):
        """Whether a file belongs to the tests: by the folder that it is in, or, where both are in one, by its name."""
        main = max((len(each) for each in self.roots if _is_below(path, each)), default=-1)
        test = max((len(each) for each in self.test_roots if _is_below(path, each)), default=-1)
        return test > main or (test == main and bool(TEST_FILE.fullmatch(path.rpartition("/")[2])))

    def _files(self, suffix, folders):
        found = set()
        for base in folders:
            for folder, _, names in os.walk(os.path.join(self.root, base)):
                for name in names:
                    full = os.path.join(folder, name)
                    if name.endswith(suffix) and os.path.isfile(full) and not os.path.islink(full):
                        found.add(os.path.relpath(full, self.root))
        return found

    def link_outputs(self):
        """Let tests find what is compiled where Maven puts it: ``target/test-classes/data.txt``."""
        target = os.path.join(self.folder, "target")
        if not os.path.isfile(os.path.join(self.folder, "pom.xml")) or os.path.lexists(target):
            return
        try:
            os.mkdir(target)
            os.symlink(WORK + "/main", os.path.join(target, "classes"))
            os.symlink(WORK + "/tests", os.path.join(target, "test-classes"))
        except OSError:
            pass  # the checkout is read-only

    def copy_resources(self, folders, into):
        """Copy what is no source, as build tools do before tests."""
        for base in folders:
            top = os.path.join(self.root, base)
            for folder, _, names in os.walk(top):
                for name in names:
                    full = os.path.join(folder, name)
                    if name.endswith((".java", ".class")) or not os.path.isfile(full):
                        continue
                    target = os.path.join(into, os.path.relpath(full, top))
                    os.makedirs(os.path.dirname(target), exist_ok=True)
                    if not os.path.exists(target):
                        shutil.copyfile(full, target)


def _module_of(folder):
    """``core`` of ``core/src/test/java``."""
    parts = folder.split("/")
    last = len(parts) - parts[::-1].index("src") - 1 if "src" in parts else 0
    return "/".join(parts[:last])


def _is_below(path, folder):
    return folder == "." or path.startswith(folder + "/")


def libraries():
    """The jars of the class path, in a fixed order."""
    names = sorted(os.listdir(LIBRARIES)) if os.path.isdir(LIBRARIES) else []
    return [os.path.join(LIBRARIES, name) for name in names if name.endswith(".jar")]


def class_path(covered=False):
    """The class path of the launcher: nothing of the project, whose classes are loaded by a loader below it."""
    agent = [OUTPUTS + "/agent.jar"] if covered else []
    return ":".join([OUTPUTS + "/launcher", *agent, *libraries()])


def project_folders():
    """The folders of the project's classes, tests first."""
    return ":".join([WORK + "/tests", WORK + "/main"])


def prepare():
    """Make the folder of this run."""
    shutil.rmtree(WORK, ignore_errors=True)
    for name in ("main", "tests", "none"):
        os.makedirs(os.path.join(WORK, name), mode=0o755)


def compile_steps(project, steps, timeout_s=900):
    """Compile (files, folder of the classes, class path, folders of further sources) in turn, in one virtual machine.

    What a file needs of the further sources is compiled with it. Returns (number of the step that failed, from 0; what
    the compiler says), or (-1, "").
    """
    listings = []
    for number, (files, into, path, more) in enumerate(steps):
        if files:
            fixed = ["-g", "-nowarn", "-proc:none", "-implicit:" + ("class" if more else "none"), "-Xmaxerrs", "10000"]
            folders = ":".join(more) or WORK + "/none"
            options = [*fixed, "-sourcepath", folders, *project.options, "-cp", ":".join(path), "-d", into]
            listings.append((number, "%s/step-%d" % (WORK, number)))
            with open(listings[-1][1], "w") as listing:
                listing.writelines(_quoted(word) for word in [*options, *files])
    if not listings:
        return -1, ""
    command = ["java", *FLAGS, "-cp", OUTPUTS + "/launcher", "excise.Compiler", *(name for _, name in listings)]
    try:
        done = subprocess.run(
            command,
            cwd=project.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 0, "the compiler did not end"
    if done.returncode == 0:
        return -1, ""
    failed = done.returncode - 10 if 10 <= done.returncode < 10 + len(listings) else 0
    output = done.stdout.decode("utf-8", "replace").strip()
    return listings[failed][0], output or "the compiler ended with %d" % done.returncode


def _quoted(word):
    """A line of a file of arguments."""
    return '"%s"\n' % word.replace("\\", "\\\\").replace('"', '\\"')


def errors_by_file(output):
    """Path to the first error in each file that the compiler complains about."""
    found = {}
    for match in _ERROR.finditer(output):
        found.setdefault(match.group(1), "line %s: %s" % (match.group(2), match.group(3)))
    return found


def messages_by_file(output):
    """Path to all that the compiler says about each file that it complains about."""
    found, end = {}, len(output)
    for match in reversed(list(_ERROR.finditer(output))):
        found.setdefault(match.group(1), []).insert(0, output[match.start() : end].rstrip())
        end = match.start()
    return {path: "\n".join(messages) for path, messages in found.items()}


def build(project, tests=None):
    """Compile sources, then tests against them; return (what failed: "sources" or "tests", output), or ("", "").

    Sources are compiled without the tests, so that they cannot name them. ``tests``: paths of the test files that are
    needed, with what these need of others; all if ``None``.
    """
    main, found = project.sources()
    steps = [main_step(main), tests_step(found, ()) if tests is None else tests_step(tests, project.test_roots)]
    failed, output = compile_steps(project, steps)
    if failed >= 0:
        return ("sources", "tests")[failed], output
    add_resources(project)
    return "", ""


def add_resources(project):
    """Put what is no source beside the classes."""
    project.copy_resources([*project.roots, *project.resources], WORK + "/main")
    project.copy_resources([*project.test_roots, *project.test_resources], WORK + "/tests")
    project.link_outputs()


def main_step(files):
    """How sources are compiled: without the tests."""
    return files, WORK + "/main", libraries(), ()


def tests_step(files, more):
    """How tests are compiled: against the classes of the sources, and with what is needed of the folders ``more``."""
    return files, WORK + "/tests", [*libraries(), WORK + "/main"], more


def paths_of_types(project, files):
    """Qualified name of each type of a file, without those nested in it, to the file's path."""
    found = {}
    for path in files:
        with open(os.path.join(project.root, path), "rb") as file:
            source = file.read()
        package = _PACKAGE.search(source)
        prefix = package.group(1).decode() + "." if package else ""
        names = [name.decode() for name in _TYPE.findall(source)]
        for name in [path.rpartition("/")[2][:-5], *names]:
            found.setdefault(prefix + name, path)
    return found


def paths_by_package(project, files):
    """``package/File.java``, as class files tell their source, to the file's path."""
    found = {}
    for path in files:
        with open(os.path.join(project.root, path), "rb") as file:
            package = _PACKAGE.search(file.read())
        folder = package.group(1).decode().replace(".", "/") + "/" if package else ""
        found.setdefault(folder + path.rpartition("/")[2], path)
    return found


def lower_versions(folder, highest=60):
    """Lower the format version of class files, for the agent that measures coverage; these do not need a higher one."""
    for where, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".class"):
                with open(os.path.join(where, name), "r+b") as file:
                    head = file.read(8)
                    if len(head) == 8 and int.from_bytes(head[6:8], "big") > highest:
                        file.seek(6)
                        file.write(highest.to_bytes(2, "big"))
