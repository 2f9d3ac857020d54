"""Installations of tiny projects in a real sandbox. Skipped without a sandbox or a package index."""

from __future__ import annotations

import os
import socket
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from excise.envs.bubblewrap.bubblewrap_sandbox import BubblewrapSandbox
from excise.envs.index.index_relay import IndexRelay
from excise.envs.install import install as install_module
from excise.envs.install.build_from_lock import third_party_byte_code
from excise.envs.install.import_check import check_imports
from excise.envs.install.install import install
from excise.envs.install.install_attempts import first_attempt, next_attempt, relax
from excise.envs.install.install_failures import InstallFailure, classify
from excise.envs.install.install_job import Installed, InstallRequest
from excise.envs.install.install_sandbox import install_environ
from excise.envs.install.layer_contents import prune_built_layer
from excise.envs.interpreters import choose, find_interpreters
from excise.envs.plan.plan_recipe import plan_recipe
from excise.envs.sandbox.mount_points import ENV, base_env, project_mounts
from excise.errors import EnvironmentFailure
from excise.extractors.fetch.trees import git_tree_hash
from excise.protocols import Policy
from excise.types import Recipe, Repo, SourceSpec, WorkerOutcome

SANDBOX = BubblewrapSandbox()
POLICY = Policy()
needs_sandbox = pytest.mark.skipif(not SANDBOX.capabilities().available, reason=SANDBOX.capabilities().detail)
TESTS = {"tests/test_kit.py": "import kit\n\ndef test_it():\n    assert kit.x == 1\n"}


def make(root: Path, files: dict[str, str]) -> tuple[Path, Repo]:
    for name, text in (files | TESTS).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    tree = git_tree_hash(root)
    return root, Repo(repo="kit", base_commit="0" * 40, tree=tree, source="dir:kit", version="1.5")


def build(tmp_path: Path, files: dict[str, str], timeout_s: float = 300.0, **changes: object) -> Installed:
    root, repo = make(tmp_path / "src", files)
    recipe = plan_recipe(root, repo, SourceSpec(spec="dir:kit", **changes), find_interpreters(), "")  # type: ignore[arg-type]
    return install_or_skip(recipe, root, repo, tmp_path, timeout_s)


def install_or_skip(recipe: Recipe, root: Path, repo: Repo, tmp_path: Path, timeout_s: float) -> Installed:
    try:
        return install(
            InstallRequest(
                recipe=recipe,
                repo=repo,
                sources=root,
                sandbox=SANDBOX,
                policy=POLICY,
                cache=tmp_path / "cache",
                timeout_s=timeout_s,
            )
        )
    except EnvironmentFailure as failure:
        if failure.reason == "infra":
            pytest.skip(f"no package index: {failure}")
        raise


def run_tests(installed: Installed, tmp_path: Path) -> str:
    layers = [installed.built_layer, tmp_path / "src"]
    mounts = project_mounts(choose(installed.environment.recipe.python), layers, [installed.env_layer])
    with SANDBOX.open(mounts, POLICY, env=base_env({})) as session:
        done = session.exec([f"{ENV}/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider"], timeout_s=60)
    assert done.worker is WorkerOutcome.OK
    return done.stdout.decode()


EXTENSION = """
#include <Python.h>
static struct PyModuleDef d = {PyModuleDef_HEAD_INIT, "kit._c", 0, -1, 0};
PyMODINIT_FUNC PyInit__c(void) { PyObject *m = PyModule_Create(&d); PyModule_AddIntConstant(m, "x", 1); return m; }
"""


@needs_sandbox
def test_a_compiled_project_is_installed_in_place(tmp_path: Path) -> None:
    files = {
        "setup.py": "from setuptools import setup, Extension\n"
        "setup(name='kit', version='1.5', packages=['kit'], ext_modules=[Extension('kit._c', ['kit/c.c'])])\n",
        "kit/__init__.py": "from kit._c import x\n",
        "kit/c.c": EXTENSION,
    }
    before = build(tmp_path, files)
    environment = before.environment
    assert any(name.startswith("kit/_c.") and name.endswith(".so") for name in environment.built_files)
    assert not [name for name in environment.built_files if name.endswith((".o", ".pyc")) or name.startswith("build/")]
    assert git_tree_hash(tmp_path / "src") == environment.tree
    assert any(line.startswith("pytest==") for line in environment.lock)
    assert not any(line.startswith("kit") for line in environment.lock)
    assert "1 passed" in run_tests(before, tmp_path)
    stamp = before.env_layer.stat().st_mtime_ns
    again = build(tmp_path, files)
    assert again == before
    assert again.env_layer.stat().st_mtime_ns == stamp
    made = [p.name for p in (tmp_path / "cache/envs").iterdir() if p.is_dir()]
    assert sorted(made) == sorted([before.env_layer.parent.name, f"shared-{environment.shared_id}"])
    assert set(environment.hashes) == set(environment.lock)
    assert all(word.startswith("sha256:") for hashes in environment.hashes.values() for word in hashes.split())


WHEEL_ONLY = """
import zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = "kit-1.5-py3-none-any.whl"
    with zipfile.ZipFile(folder + "/" + name, "w") as wheel:
        wheel.write("src/kit/__init__.py", "kit/__init__.py")
        wheel.writestr("kit/_made.py", "x = 1\\n")
        wheel.writestr("kit-1.5.dist-info/METADATA", "Metadata-Version: 2.1\\nName: kit\\nVersion: 1.5\\n")
        wheel.writestr("kit-1.5.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("kit-1.5.dist-info/RECORD", "")
    return name
"""


@needs_sandbox
def test_a_backend_without_editable_installs_is_built_as_a_wheel(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": '[project]\nname = "kit"\nversion = "1.5"\n'
        '[build-system]\nrequires = []\nbuild-backend = "maker"\nbackend-path = ["."]\n',
        "maker.py": WHEEL_ONLY,
        "src/kit/__init__.py": "from importlib.metadata import version\nfrom kit._made import x\n"
        "assert version('kit') == '1.5'\n",
    }
    installed = build(tmp_path, files)
    assert installed.environment.recipe.editable == "wheel"
    assert installed.environment.built_files == ("src/kit/_made.py",)
    assert "1 passed" in run_tests(installed, tmp_path)


CURIOUS = """
import os, socket
from setuptools import setup
def reach(port):
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
        return "reached"
    except OSError as error:
        return type(error).__name__
with open("src/kit/found.txt", "w") as file:
    file.write(reach(%d) + " " + str(any("secret" in value for value in os.environ.values())))
setup(name="kit", version="1.5", package_dir={"": "src"}, packages=["kit"])
"""


@needs_sandbox
def test_a_build_reaches_neither_the_host_nor_a_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_INDEX_OWN_PASSWORD", "secret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        files = {"setup.py": CURIOUS % server.getsockname()[1], "src/kit/__init__.py": "x = 1\n"}
        installed = build(tmp_path, files)
    assert not installed.environment.recipe.build_network
    assert (installed.built_layer / "src/kit/found.txt").read_text() == "ConnectionRefusedError False"


DOWNLOADING = """
import urllib.request
from setuptools import setup
with open("src/kit/data.txt", "wb") as file:
    file.write(urllib.request.urlopen("http://127.0.0.1:%d/").read())
setup(name="kit", version="1.5", package_dir={"": "src"}, packages=["kit"])
"""


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"hi")

    def log_message(self, *_: object) -> None:
        pass


@needs_sandbox
@pytest.mark.slow
def test_a_build_that_downloads_is_let_onto_the_network_and_the_recipe_says_so(tmp_path: Path) -> None:
    with HTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        files = {"setup.py": DOWNLOADING % server.server_port, "src/kit/__init__.py": "x = 1\n"}
        installed = build(tmp_path, files)
        server.shutdown()
    assert installed.environment.recipe.build_network
    assert any("downloads by itself" in line for line in installed.environment.recipe.evidence)
    assert (installed.built_layer / "src/kit/data.txt").read_bytes() == b"hi"
    with pytest.raises(EnvironmentFailure) as caught:
        build(tmp_path / "again", files)
    assert caught.value.reason == "network_required"


@needs_sandbox
def test_a_project_that_does_not_build_is_put_on_the_path(tmp_path: Path) -> None:
    files = {"setup.py": "raise SystemExit('no')\n", "kit/__init__.py": "x = 1\n"}
    installed = build(tmp_path, files)
    assert installed.environment.recipe.editable == "path"
    assert any("put on the path" in line for line in installed.environment.recipe.evidence)
    assert "1 passed" in run_tests(installed, tmp_path)


PLAIN = {"pyproject.toml": "[project]\nname = 'kit'\nversion = '1.5'\n", "kit/__init__.py": "x = 1\n"}


@needs_sandbox
def test_a_plain_project_is_resolved_and_installed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def tried(*_: object) -> None:
        raise AssertionError("an installation was tried before there was a lock")

    monkeypatch.setattr(install_module, "find_lock", tried)
    installed = build(tmp_path, PLAIN, requirements=("pytest",))
    assert "1 passed" in run_tests(installed, tmp_path)
    environment = installed.environment
    assert any(line.startswith("pytest==") for line in environment.lock)
    assert set(environment.hashes) == set(environment.lock)
    byte_code = third_party_byte_code(tmp_path / "cache/envs", environment.shared_id)
    compiled = [path.relative_to(byte_code).as_posix() for path in byte_code.rglob("*.pyc")]
    assert any("/site-packages/_pytest/" in path for path in compiled)
    assert any("/json/decoder." in path for path in compiled), "so is what they import of the standard library"
    assert not any("kit" in path.split("/") for path in compiled), "no project has run"


@pytest.mark.slow
@needs_sandbox
def test_byte_code_of_a_wheel_is_compiled_once_for_all_locks(tmp_path: Path) -> None:
    """What the first environment imports is compiled without it for the second one, and linked into the third."""
    inodes: list[dict[str, int]] = []
    for number, more in enumerate(((), ("inflection",), ("sortedcontainers",))):
        root, repo = make(tmp_path / f"src{number}", PLAIN)
        spec = SourceSpec(spec="dir:kit", requirements=("pytest", *more))
        recipe = plan_recipe(root, repo, spec, find_interpreters(), "")
        environment = install_or_skip(recipe, root, repo, tmp_path, 300.0).environment
        layer = third_party_byte_code(tmp_path / "cache/envs", environment.shared_id)
        found = {path.relative_to(layer).as_posix(): path.stat().st_ino for path in layer.rglob("*.pyc")}
        inodes.append({path: inode for path, inode in found.items() if "/_pytest/" in path or "/json/" in path})
    first, second, third = inodes
    assert second == third
    assert len(second) > 50
    assert not set(first.values()) & set(second.values()), "that of a process in which packages ran is not shared"


@needs_sandbox
def test_requirements_that_do_not_exist_are_dropped_and_missing_modules_added(tmp_path: Path) -> None:
    files = {"kit/__init__.py": "import sortedcontainers\nx = 1\n"}
    installed = build(tmp_path, files, requirements=("excise-no-such-distribution-0",))
    recipe = installed.environment.recipe
    assert not [r for r in recipe.requirements if "no-such" in r]
    assert "sortedcontainers" in recipe.requirements
    assert any("sortedcontainers missing" in line for line in recipe.evidence)


@needs_sandbox
@pytest.mark.parametrize("resolved", [True, False])
def test_a_copy_elsewhere_is_not_taken_for_the_checkout(tmp_path: Path, resolved: bool) -> None:
    """The index has a distribution of the project's own name: exactly that wheel would hide the checkout."""
    files = {"setup.cfg": "[metadata]\nname = inflection\n", "inflection.py": "x = 1\n", "kit.py": "x = 1\n"}
    root, repo = make(tmp_path / "src", files)
    python = find_interpreters()[-1].version
    wanted = ("pytest", "inflection", *(() if resolved else ("excise-no-such-distribution-0",)))
    recipe = Recipe(python=python, requirements=wanted, packages=("inflection",), editable="path")
    installed = install_or_skip(recipe, root, repo, tmp_path, 300.0)
    layers = [installed.built_layer, root]
    found = check_imports(SANDBOX, POLICY, choose(python), installed.environment.recipe, layers, installed.env_layer)
    assert not found.elsewhere
    assert not found.errors
    assert not any(line.startswith("inflection==") for line in installed.environment.lock)
    assert any("hid the checkout" in line for line in installed.environment.recipe.evidence) is not resolved


@needs_sandbox
@pytest.mark.parametrize(
    ("init", "reason"),
    [("import does_not_exist_anywhere\n", "import_error"), ("import os\nos._exit(3)\n", "import_error")],
)
def test_a_project_that_does_not_import_is_refused(tmp_path: Path, init: str, reason: str) -> None:
    with pytest.raises(EnvironmentFailure) as caught:
        build(tmp_path, {"kit/__init__.py": init})
    assert caught.value.reason == reason
    assert not list((tmp_path / "cache/envs").glob("*/environment.json"))


@needs_sandbox
def test_an_installation_times_out(tmp_path: Path) -> None:
    files = {"setup.py": "import time\ntime.sleep(600)\n", "kit/__init__.py": "x = 1\n"}
    with pytest.raises(EnvironmentFailure) as caught:
        build(tmp_path, files, timeout_s=5.0)
    assert caught.value.reason == "timeout"
    assert not [p for p in (tmp_path / "cache/envs").iterdir() if p.is_dir()]


# ------------------------------------------------------------------------------ without a sandbox
def test_nothing_of_the_host_gets_into_an_installation(tmp_path: Path) -> None:
    host = {
        "UV_DEFAULT_INDEX": "https://user:secret@index.invalid/simple",
        "UV_INDEX": "own=https://own.invalid/simple",
        "UV_INDEX_OWN_PASSWORD": "secret",
        "https_proxy": "http://proxy.invalid:1",
        "HTTP_PROXY": "http://user:secret@proxy.invalid:1",
        "PIP_CERT": "/etc/ssl/own.pem",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "HOME": str(tmp_path),
        "PATH": "/elsewhere",
    }
    repo = Repo(repo="a/kit-x", base_commit="", tree="", source="", version="1.5")
    recipe = Recipe(python="3.12.1")
    with IndexRelay(tmp_path, host) as relay:
        given = install_environ(repo, recipe, relay, host)
        online = install_environ(repo, replace(recipe, build_network=True), relay, host)
        assert relay.settings.indexes == (
            "https://user:secret@index.invalid/simple",
            "https://:secret@own.invalid/simple",
        )
    assert given["UV_DEFAULT_INDEX"] == given["PIP_INDEX_URL"] == "http://127.0.0.1:8640/i0/"
    assert given["UV_INDEX"] == "own=http://127.0.0.1:8640/i1/"
    assert given["SETUPTOOLS_SCM_PRETEND_VERSION_FOR_KIT_X"] == "1.5"
    assert given["PATH"] != "/elsewhere"
    assert not [v for v in {**given, **online}.values() if "secret" in v]
    assert not {"https_proxy", "SSL_CERT_FILE"} & given.keys()
    assert (online["https_proxy"], online["SSL_CERT_FILE"]) == ("http://proxy.invalid:1", "/etc/ssl/own.pem")
    assert "HTTP_PROXY" not in online


@pytest.mark.parametrize(
    ("output", "reason", "of_project"),
    [
        (
            "\u00d7 Failed to build `kit @ file:///testbed`\n- error: command 'gcc' failed: No such file",
            "missing_system_lib",
            True,
        ),
        ("\u00d7 Failed to build `kit @ file:///testbed`\n  SyntaxError: print 1", "build_native", True),
        (
            "\u00d7 Failed to build `lxml==4.0`\n  fatal error: libxml/x.h: No such file or directory",
            "missing_system_lib",
            False,
        ),
        ("\u00d7 No solution found when resolving dependencies:\n- Because a<1 and b>2 …", "resolve_conflict", False),
        ("error: Failed to fetch: `https://x`\n  Caused by: dns error", "infra", False),
        ("error: Failed to fetch\n  cause: HTTP status client error (429 Too Many Requests) for url", "infra", False),
        ("error: Failed to fetch\n  cause: HTTP status server error (500 Internal Server Error)", "infra", False),
        ("error: Failed to download distribution due to network timeout. Try increasing", "infra", False),
        ("error: request failed\n  cause: tls handshake eof", "infra", False),
    ],
)
def test_failures_have_a_class(output: str, reason: str, of_project: bool) -> None:
    failure = classify(output, index_failed=True)
    assert (failure.reason, failure.of_project) == (reason, of_project)
    assert failure.detail
    builds_own = "network_required" if reason == "infra" else reason
    assert classify(output, index_failed=False).reason == builds_own


def test_a_full_disk_is_an_infrastructure_failure() -> None:
    assert classify("failed to write: No space left on device", index_failed=False).reason == "infra"


def test_each_attempt_drops_one_thing() -> None:
    attempt = first_attempt(Recipe(python="3.12.1", requirements=("pytest<7", "gone"), cutoff="2023-01-01"))
    seen = []
    for failure in (
        InstallFailure(reason="resolve_conflict", missing=("gone",), detail="x"),
        InstallFailure(reason="build_native", of_project=True, detail="x"),
        InstallFailure(reason="build_native", of_project=True, detail="x"),
        InstallFailure(reason="resolve_conflict", detail="x"),
        InstallFailure(reason="resolve_conflict", detail="x"),
    ):
        following = next_attempt(attempt, failure)
        assert following is not None
        attempt = following
        seen.append((attempt.requirements, attempt.mode, attempt.cutoff))
    assert seen == [
        (("pytest<7",), "editable", "2023-01-01"),
        (("pytest<7",), "legacy", "2023-01-01"),
        (("pytest<7",), "path", "2023-01-01"),
        (("pytest<7",), "path", ""),
        (("pytest",), "path", ""),
    ]
    assert next_attempt(attempt, InstallFailure(reason="resolve_conflict")) is None
    assert len(attempt.evidence) == len(seen)


def test_a_requirement_of_the_tests_that_cannot_be_built_is_dropped_last() -> None:
    output = "  \u00d7 Failed to build `Gone==1.0`\n  \u251c\u2500 The build backend returned an error"
    failure = classify(output, index_failed=False)
    assert (failure.reason, failure.of_project, failure.unbuilt) == ("build_native", False, ("Gone",))
    recipe = Recipe(python="3.12.1", requirements=("pytest", "gone==1.0"), constraints=("six==1",), cutoff="2023-01-01")
    attempt, said = first_attempt(recipe), []
    while (following := next_attempt(attempt, failure)) is not None:
        attempt = following
        said.append((attempt.constraints, attempt.cutoff, attempt.requirements))
    pinned, loose = ("pytest", "gone==1.0"), ("pytest", "gone")
    assert said == [
        ((), "2023-01-01", pinned), ((), "", pinned), ((), "", loose), ((), "", ("pytest",)),
    ]  # fmt: skip


def test_a_backend_that_does_not_build_in_place_builds_a_wheel() -> None:
    failure = InstallFailure(reason="build_native", of_project=True, detail="x")
    attempt = next_attempt(first_attempt(Recipe(python="3.12.1")), failure, setuptools=False)
    assert attempt is not None
    assert attempt.mode == "wheel"
    following = next_attempt(attempt, failure, setuptools=False)
    assert following is not None
    assert following.mode == "path"


def test_relaxed_requirements_keep_lower_bounds_extras_and_markers() -> None:
    given = ("a[x]==1.0", "b>=2,<3", "c<4; python_version < '3.9'", "d~=1.2")
    assert relax(given) == ("a[x]", "b>=2", 'c ; python_version < "3.9"', "d")


def test_built_layer_keeps_new_results_only(tmp_path: Path) -> None:
    sources, built = tmp_path / "sources", tmp_path / "built"
    for name in ("kit/__init__.py", "kit/changed.py"):
        (sources / name).parent.mkdir(parents=True, exist_ok=True)
        (sources / name).write_text("pristine")
    for name in (
        *("kit/changed.py", "kit/_c.abi3.so", "kit/_version.py", "kit/__pycache__/x.pyc", "build/lib/x.py"),
        *("kit.egg-info/PKG-INFO", "kit/c.o"),
    ):
        (built / name).parent.mkdir(parents=True, exist_ok=True)
        (built / name).write_text("built")
    if os.geteuid() == 0:
        os.mknod(built / "kit/__init__.py", 0o600 | 0o020000, 0)  # overlayfs: deleted
    assert prune_built_layer(built, sources) == ("kit.egg-info/PKG-INFO", "kit/_c.abi3.so", "kit/_version.py")
    assert not (built / "build").exists()
