"""Mocks: replacements for modules and files that a sandbox cannot have, such as services; last on the import path.

Tests that use a mock are recorded in the environment, and no task is made from them. A test uses a mock if a function
of the mock is called or one of its files is opened while the test runs, or if the test's own file imports it. Use in a
subprocess of the test is detected only by the last of these.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from excise.envs.interpreters import Interpreter
from excise.envs.model_driven.goals import output_of
from excise.envs.model_driven.install_context import InstallContext
from excise.envs.sandbox.mount_points import ENV
from excise.errors import EnvironmentFailure
from excise.protocols import Mount, Session
from excise.types import WorkerOutcome, path_of

MOCKS = f"{ENV}/excise-mocks"
"""Folder of the mocks inside the sandbox; it is last on ``sys.path``."""
MAX_BYTES = 200_000
"""Maximum size of one mock."""
_PROBE = "/excise/touch"
_PROGRAM = Path(__file__).resolve().parent / "inside"
_NOT_MOCKABLE = frozenset(
    {"pytest", "_pytest", "pluggy", "coverage", "conftest", "sitecustomize", "usercustomize", "excise"}
)


def path_violation(path: str, packages: Iterable[str]) -> str:
    """Why a mock may not have this path inside the folder of mocks; empty if it is allowed."""
    parts = PurePosixPath(path).parts
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)*", path) or {"..", "."} & set(path.split("/")):
        return "write a path inside the folder of mocks, for example redis/__init__.py"
    top = parts[0].removesuffix(".py")
    if top in {name.partition(".")[0] for name in packages}:
        return f"{top} is the package under test and is never mocked"
    if top in _NOT_MOCKABLE or re.search(r"\.(dist-info|egg-info|pth|egg-link)$", parts[0]):
        return f"{parts[0]} would steer the tests instead of standing in for something"
    return ""


def put_mocks(session: Session, interpreter: Interpreter, mocks: Sequence[tuple[str, str]]) -> None:
    """Write mocks into the environment, and the ``.pth`` line that puts them last on the import path."""
    if not mocks:
        return
    major, minor = interpreter.minor
    session.put(f"{ENV}/lib/python{major}.{minor}/site-packages/excise_mocks.pth", f"{MOCKS}\n".encode())
    for path, content in mocks:
        session.put(f"{MOCKS}/{path}", content.encode())


def tests_using_mocks(
    context: InstallContext,
    env: Sequence[Path],
    built: Sequence[Path],
    tests: Sequence[str],
    names: Iterable[str],
    timeout_s: float,
) -> tuple[str, ...]:
    """Ids among ``tests`` that use a mock; ``names`` are the paths of the mocks.

    Runs the tests once in a fresh sandbox, with a plugin that records the use of mocks. Raises
    :class:`EnvironmentFailure` (``timeout``, ``unreproducible``) if that run does not finish.
    """
    modules = {PurePosixPath(name).parts[0].removesuffix(".py") for name in names}
    used = _record_mock_use(context, env, built, timeout_s)
    named = {path for path in {_file(test) for test in tests} if _imports(context.sources / path, modules)}
    return tuple(sorted(test for test in tests if used.get(test) or _file(test) in named))


def _record_mock_use(
    context: InstallContext, env: Sequence[Path], built: Sequence[Path], timeout_s: float
) -> Mapping[str, object]:
    probe = [Mount(target=_PROBE, layers=(str(_PROGRAM),))]
    arguments = ["-p", "excise_touch", "-p", "no:cacheprovider", "-q", "--rootdir", "/testbed", "-o", "addopts="]
    arguments += ["--continue-on-collection-errors", *context.recipe.test_args, *context.recipe.test_paths]
    with context.open_checking(env, built, probe) as session:
        done = session.exec(
            [f"{ENV}/bin/python", "-m", "pytest", *arguments],
            timeout_s=timeout_s,
            env={"PYTHONPATH": _PROBE, "EXCISE_MOCKS": MOCKS, "EXCISE_TOUCHED": "/excise/out/touched.json"},
        )
        if done.worker is WorkerOutcome.TIMEOUT:
            raise EnvironmentFailure(
                f"{context.repo.repo}: the tests, watched for mocks, took too long", reason="timeout"
            )
        try:
            used = json.loads(session.get("/excise/out/touched.json"))
        except (FileNotFoundError, ValueError):
            detail = output_of(done).strip()[-500:]
            raise EnvironmentFailure(
                f"{context.repo.repo}: which tests touch a mock cannot be found out: {detail}", reason="unreproducible"
            ) from None
    return used if isinstance(used, dict) else {}


def _file(test: str) -> str:
    return path_of(test)


def _imports(path: Path, modules: Iterable[str]) -> bool:
    """Whether a test file imports one of the modules."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    lines = [line for line in text.splitlines() if re.match(r"\s*(import|from)\b|.*import_module|.*importorskip", line)]
    return any(re.search(rf"\b{re.escape(name)}\b", line) for name in modules for line in lines)
