"""Runs in the sandbox: lifted tests, which report values and contain nothing of what they expect.

Whether a solution reports them honestly is not checked: it does not know which ones are right. Only the files of these
tests are compiled, with what they need of other ones. Standard library only; Python 3.8.
"""

import os
import secrets
import time

import excise_java_build as building
import excise_java_jvm as jvm

MAX_VALUES = 1 << 20
"""Characters that are read of what one test reports."""
ROUNDS = 4
"""Number of times that files are compiled at most: one that is wrong costs its own tests only."""


def compile_tests(project, files, ids):
    """Compile the sources, and those files of lifted tests that can be; return why there are none."""
    main, _ = project.sources()
    wanted = sorted({test.partition("::")[0] for test in ids} & set(files))
    steps, output = [building.main_step(main)], "there is no such test"
    for _ in range(ROUNDS):
        if not wanted:
            break
        paths, into, libraries, more = building.tests_step(wanted, project.test_roots)
        tests = (paths, into, [*libraries, building.OUTPUTS + "/launcher"], more)
        failed, output = building.compile_steps(project, [*steps, tests])
        if failed < 0:
            building.add_resources(project)
            return ""
        wrong = set(building.errors_by_file(output))
        if (steps and failed == 0) or not wrong.intersection(wanted):
            break
        for path in wrong.intersection(wanted):
            os.unlink(os.path.join(project.root, path))
        wanted, steps = [path for path in wanted if path not in wrong], []
    return output or "it cannot be compiled"


def observe(project, paths, classes, request, deadline):
    """Run lifted tests as often as the request says, in a virtual machine each time; return what each one reports.

    Those that report something else when the tests run in another order, or values without a text, are left out.
    """
    ids, found = list(request["ids"]), []
    for number in range(request["times_observed"]):
        order = ids[::-1] if number else ids
        found.append(_observe_once(project, paths, classes, order, request["test_timeout_s"], deadline))
    return {
        test: found[0][test] for test in ids if found[0].get(test) and all(f.get(test) == found[0][test] for f in found)
    }


def _observe_once(project, paths, classes, ids, limit_s, deadline):
    found, machine, known = {}, None, None
    for test in ids:
        if time.time() > deadline:
            break
        try:
            if machine is None:
                machine = jvm.Machine(project.folder, classes=classes)
                machine.send("hash", str(secrets.randbelow(1000)))
                known = known or jvm.KnownTests(machine, paths)
            unique = known.unique_id(test)
            if unique:
                found[test] = _reported(machine, unique, time.time() + limit_s)
        except jvm.Ended:
            if machine is not None:
                machine.close()
            if known is None:
                break
            machine = None
    if machine is not None:
        machine.close()
    return found


def _reported(machine, unique, end):
    """What one test reports; ``None`` if some of it has no text. Raises :class:`jvm.Ended`."""
    machine.send("run", jvm.encoded(unique))
    values, size, is_plain = [], 0, True
    while True:
        fields = machine.read_line(end)
        if fields[0] == "VALUE" and len(fields) == 3:
            values.append([fields[1][:9], "", jvm.decoded(fields[2])])
            size += len(fields[2]) + 32
            if size > MAX_VALUES:
                raise jvm.Ended("it reports too much")
        elif fields[0] == "OPAQUE":
            is_plain = False
        elif fields[0] == "RAN":
            machine.send("")
        elif fields[0] == "DONE":
            return {"returned": fields[-1] == "PASSED", "values": values} if is_plain else None
