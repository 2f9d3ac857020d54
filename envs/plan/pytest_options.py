"""Selects the ``addopts`` of a project that apply when excise runs its tests."""

from __future__ import annotations

from collections.abc import Sequence

_KEPT_WITH_VALUE = frozenset({
    "--asyncio-mode", "--dc", "--deselect", "--doctest-glob", "--ds", "--hypothesis-profile", "--ignore",
    "--ignore-glob", "--import-mode", "--pythonwarnings", "-W", "-k", "-m",
})  # fmt: skip
"""Options with a value that are kept: they select tests, or change how tests are imported or run."""
_KEPT_FLAGS = frozenset({
    "--collect-in-virtualenv", "--doctest-continue-on-failure", "--doctest-ignore-import-errors",
    "--doctest-modules", "--doctest-plus", "--doctest-rst", "--keep-duplicates", "--noconftest",
})  # fmt: skip
"""Options without a value that are kept."""
_DROPPED_WITH_VALUE = frozenset({
    "--assert", "--basetemp", "--cache-dir", "--capture", "--code-highlight", "--color", "--confcutdir",
    "--cov-config", "--cov-context", "--cov-fail-under", "--cov-report", "--dist", "--doctest-report",
    "--durations", "--durations-min", "--html", "--junit-prefix", "--junit-xml", "--junitxml", "--log-cli-level",
    "--log-file", "--log-file-level", "--log-level", "--maxfail", "--maxprocesses", "--numprocesses",
    "--randomly-seed", "--report-log", "--reruns", "--reruns-delay", "--rootdir", "--show-capture", "--tb",
    "--timeout", "--timeout-method", "--verbosity", "-c", "-n", "-r",
})  # fmt: skip
"""Options whose value, as a separate word, is dropped with them."""
_KEPT_OVERRIDES = frozenset({
    "asyncio_mode", "doctest_optionflags", "python_classes", "python_files", "python_functions", "pythonpath",
})  # fmt: skip
"""Settings that ``-o`` may override."""
_PLUGINS_NOT_LOADED = (
    "cov", "xdist", "sugar", "randomly", "random", "benchmark", "timeout", "instafail", "clarity", "html",
)  # fmt: skip
"""Beginnings of the names of plugins that are not installed."""


def safe_addopts(addopts: Sequence[str]) -> tuple[str, ...]:
    """The part of ``addopts`` that is kept.

    Kept: selection, import mode, doctests, plugins by ``-p``. Dropped: coverage, parallel runs, stopping early,
    reports, verbosity, colour, time limits, reruns, paths, options of unknown plugins, and strictness about
    marks and settings (they may belong to a plugin that is not installed).
    """
    kept: list[str] = []
    rest = list(addopts)
    while rest:
        option = rest.pop(0)
        name, attached, value = option.partition("=")
        if not option.startswith("--") and len(option) > 2 and option[:2] in ("-m", "-k", "-W", "-p", "-o"):
            name, attached, value = option[:2], "=", option[2:].removeprefix("=")
        if name in ("-p", "-o", "--override-ini"):
            value = value if attached else (rest.pop(0) if rest else "")
            kept += _plugin(value) if name == "-p" else _override(value)
        elif name in _KEPT_WITH_VALUE:
            value = value if attached else (rest.pop(0) if rest else "")
            kept += [f"{name}={value}"] if name.startswith("--") else [name, value]
        elif option in _KEPT_FLAGS:
            kept.append(option)
        elif name in _DROPPED_WITH_VALUE and not attached and rest and not rest[0].startswith("-"):
            rest.pop(0)
    return tuple(kept)


def _plugin(name: str) -> list[str]:
    plain = name.removeprefix("no:").removeprefix("pytest_").removeprefix("pytest-")
    return [] if any(plain.startswith(tool) for tool in _PLUGINS_NOT_LOADED) else ["-p", name]


def _override(text: str) -> list[str]:
    return ["-o", text] if text.partition("=")[0].strip() in _KEPT_OVERRIDES else []
