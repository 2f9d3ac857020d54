"""Runs in the sandbox when an environment is installed: compiles the launcher, and finds out how the project compiles.

The request, a project's layout, comes on stdin; the answer is one line of JSON on standard output. Test files that do
not compile are left out one after the other. Standard library only; Python 3.8.
"""

import json
import os
import subprocess
import sys

import excise_java_build as building

ROUNDS = 12
"""Number of times that tests are compiled at most: javac does not report all errors at once."""


def compile_launcher(jars):
    """Compile the launcher against JUnit and the agent; return what the compiler says."""
    here = os.path.dirname(os.path.abspath(__file__))
    target = building.OUTPUTS + "/launcher"
    os.makedirs(target, exist_ok=True)
    path = ":".join([*jars, building.OUTPUTS + "/agent.jar"])
    files = sorted(os.path.join(here, name) for name in os.listdir(here) if name.endswith(".java"))
    command = ["javac", *["-J" + flag for flag in building.FLAGS], "-nowarn", "-proc:none", "-cp", path, "-d", target]
    done = subprocess.run([*command, *files], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return "" if done.returncode == 0 else done.stdout.decode("utf-8", "replace")


def ways(release, encoding):
    """Options of the compiler, the strictest first: without ``--release``, internal types are visible."""
    fixed = ["-encoding", encoding]
    numbers = [number for number in (8, 11, 17) if number > release]
    yield ["--release", str(release), *fixed]
    yield ["-source", str(release), "-target", str(release), *fixed]
    for number in numbers:
        yield ["--release", str(number), *fixed]


def check(request):
    """Find options and left out files; return (the layout with these, problem)."""
    found = dict(request, options=[])
    main_problem = ""
    for options in ways(request["release"], request["encoding"]):
        found["options"] = options
        project = building.Project(request["root"], found)
        building.prepare()
        main, _ = project.sources()
        _, output = building.compile_steps(project, [building.main_step(main)])
        if not output:
            break
        main_problem = main_problem or output
    else:
        return found, "the sources do not compile:\n" + main_problem
    left_out, reasons = set(found["left_out"]), {}
    for _ in range(ROUNDS):
        project = building.Project(request["root"], dict(found, left_out=sorted(left_out)))
        _, tests = project.sources()
        if not tests:
            return found, "no test compiles"
        _, output = building.compile_steps(project, [building.tests_step(tests, ())])
        if not output:
            found["left_out"] = sorted(left_out)
            found["reasons"] = reasons
            return found, ""
        errors = building.errors_by_file(output)
        reasons.update(errors)
        if not errors:
            return found, "the tests do not compile:\n" + output
        left_out.update(errors)
    return found, "the tests do not compile"


def main():
    """Answer the request on stdin."""
    request = json.load(sys.stdin)
    problem = compile_launcher(building.libraries())
    found = request
    if not problem:
        found, problem = check(request)
    print(json.dumps({"layout": found, "problem": problem[:4000]}))


main()
