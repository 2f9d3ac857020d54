"""What to do about a failed environment, by class."""

from __future__ import annotations

_LEAVE_OUT = "Leave those tests out with test_args (-m, -k, --ignore) in a sources file."

ADVICE = {
    "no_tests": "Give the project's git URL: source distributions often leave the tests out. Tests that pytest does "
    "not find by itself can be named with test_args in a sources file.",
    "python_unavailable": "Install an interpreter that the project admits (`uv python install X.Y` or `pyenv install "
    "X.Y.Z`), or choose another with --python, and run again.",
    "resolve_conflict": "No set of releases fits. Look at the lines above: pins of another time, or releases that the "
    "index does not have. --set verdict.cutoff='' admits releases of today; --require adds or replaces a requirement.",
    "build_native": "The build itself fails. Look at the lines above; often another interpreter (--python) or another "
    "release of a requirement (--require) builds.",
    "missing_system_lib": "Install the system package that holds the named library, header or program, and run again.",
    "import_error": "The project does not import in its own environment. Is something missing from its manifests? "
    "--require adds a requirement.",
    "collect_error": "The test files cannot be loaded. Look at the lines above for what they miss; --require adds a "
    "requirement.",
    "service_required": "The tests want to talk to a server (a database, a broker, Docker) on this machine; they are "
    f"run alone. {_LEAVE_OUT}",
    "network_required": f"The tests want the internet, which they never get. {_LEAVE_OUT}",
    "credentials_required": f"The tests want keys or passwords, which they never get. {_LEAVE_OUT}",
    "gpu_required": f"The tests want a GPU. {_LEAVE_OUT}",
    "timeout": "Raise verdict.install_timeout_s or verdict.suite_timeout_s with --set, or leave slow tests out.",
    "oom": "Raise verdict.memory_mb with --set.",
    "low_pass": "Too many tests fail in a fresh environment. The failures above say why; --require, --python or "
    "--set verdict.cutoff='' may help.",
    "flaky": "The tests do not say the same twice. Leave the unsteady ones out with test_args in a sources file.",
    "unreproducible": "A second installation or run came out differently; the lines above say in what.",
    "source_modified": "The installation changed the sources, which it must not.",
    "vacuous_goals": "The model named no checks that tell an installed project from an empty environment. A model that "
    "calls tools well is needed; see docs/model.md.",
    "budget": "The model used up what one job may take. Raise model.max_tokens, model.max_cost or model.max_wall_s, or "
    "try another model; its transcript is in the cache folder.",
    "infra": "Not the project's fault: network, disk, memory or the sandbox. See `excise doctor`, and run again.",
}
"""Class of :class:`excise.errors.EnvironmentFailure` to a sentence or two for people."""


def advice_for(reason: str) -> str:
    """What to do; empty for a reason that is no class of environments."""
    return ADVICE.get(reason, "")
