"""Which of a project's ``addopts`` still matter when excise runs its tests."""

from __future__ import annotations

from collections.abc import Sequence

_WITH_VALUE = (
    *("-m", "-k", "-W", "--pythonwarnings", "--ignore", "--ignore-glob", "--deselect", "--import-mode"),
    *("--doctest-glob", "--asyncio-mode", "--ds", "--dc", "--hypothesis-profile"),
)
"""Options that decide what is collected, how it is imported, or what a test means."""
_FLAGS = (
    *("--doctest-modules", "--doctest-ignore-import-errors", "--doctest-continue-on-failure"),
    *("--noconftest", "--keep-duplicates", "--doctest-plus", "--doctest-rst", "--collect-in-virtualenv"),
)
_DROPPED_WITH_VALUE = (
    *("-n", "--numprocesses", "--dist", "--maxfail", "--durations", "--durations-min", "--timeout", "--timeout-method"),
    *(
        "--tb",
        "--color",
        "--cov-report",
        "--cov-config",
        "--cov-fail-under",
        "--cov-context",
        "--junitxml",
        "--junit-xml",
    ),
    *("--junit-prefix", "--html", "--log-level", "--log-cli-level", "--log-file", "--log-file-level", "--show-capture"),
    *("--capture", "--basetemp", "--rootdir", "--confcutdir", "-c", "--verbosity", "-r", "--maxprocesses", "--reruns"),
    *(
        "--reruns-delay",
        "--randomly-seed",
        "--doctest-report",
        "--assert",
        "--code-highlight",
        "--report-log",
        "--cache-dir",
    ),
)
_OVERRIDES = ("python_files", "python_classes", "python_functions", "doctest_optionflags", "asyncio_mode", "pythonpath")
_PLUGINS_NOT_LOADED = (
    "cov",
    "xdist",
    "sugar",
    "randomly",
    "random",
    "benchmark",
    "timeout",
    "instafail",
    "clarity",
    "html",
)


def safe_addopts(addopts: Sequence[str]) -> tuple[str, ...]:
    """What to keep of ``addopts``.

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
            name, attached, value = option[:2], "=", option[2:]
        if name in ("-p", "-o", "--override-ini"):
            value = value if attached else (rest.pop(0) if rest else "")
            kept += _plugin(value) if name == "-p" else _override(value)
        elif name in _WITH_VALUE:
            value = value if attached else (rest.pop(0) if rest else "")
            kept += [f"{name}={value}"] if name.startswith("--") else [name, value]
        elif option in _FLAGS:
            kept.append(option)
        elif name in _DROPPED_WITH_VALUE and not attached and rest and not rest[0].startswith("-"):
            rest.pop(0)
    return tuple(kept)


def _plugin(name: str) -> list[str]:
    plain = name.removeprefix("no:").removeprefix("pytest_").removeprefix("pytest-")
    return [] if any(plain.startswith(tool) for tool in _PLUGINS_NOT_LOADED) else ["-p", name]


def _override(text: str) -> list[str]:
    return ["-o", text] if text.partition("=")[0].strip() in _OVERRIDES else []
