"""Two commits with equal manifests share one lock and one copy of third-party packages."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from excise.config import Settings
from excise.envs.bubblewrap.bubblewrap_sandbox import BubblewrapSandbox
from excise.envs.install.layer_contents import compose, missing_files
from excise.envs.install.uv_runner import lock_text, read_hashes
from excise.envs.manifests.read_manifest import manifest_digest
from excise.envs.sandbox.host_identity import host_state, rootfs_identity
from excise.errors import EnvironmentFailure
from excise.pipeline.stages import stage_cache
from excise.pipeline.stages.environment_stage import environment_stage, install_recipe
from excise.pipeline.stages.fetch_stage import FetchedSources, fetch
from excise.pipeline.stages.stage_cache import StageCache
from excise.types import Baseline, Rejection, SourceSpec
from excise.verifiers.workbench import Prepared

CAPABLE = BubblewrapSandbox().capabilities()
PYPROJECT = """
[project]
name = "kit"
version = "1.0"
[project.optional-dependencies]
test = ["pytest", "sortedcontainers"]
[build-system]
requires = ["setuptools>=64"]
build-backend = "setuptools.build_meta"
[tool.setuptools]
packages = ["kit"]
"""


def commit(repo: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        path = repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git = ["git", "-C", str(repo), "-c", "user.name=t", "-c", "user.email=t@t.invalid"]
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "x", "--date=2026-01-01T00:00:00Z"], check=True)
    return subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()


def installed(settings: Settings, repo: Path, rev: str) -> Prepared:
    spec = SourceSpec(spec=f"{repo}@{rev}")
    prepared = environment_stage(settings, spec.spec, spec, fetch(settings, spec, keep_archive=False))
    if isinstance(prepared, Rejection) and prepared.reason == "infra":
        pytest.skip(f"no package index: {prepared.detail}")
    assert not isinstance(prepared, Rejection), prepared
    return prepared


OFFLINE_ONLY = """
with open("/proc/net/dev") as devices:
    found = [line.split(":")[0].strip() for line in devices if ":" in line]
if found != ["lo"]:
    raise SystemExit(f"imported with the host's network: {found}")
x = 1
"""


@pytest.mark.skipif(not CAPABLE.available, reason=CAPABLE.detail)
def test_no_step_imports_the_project_with_a_network(tmp_path: Path) -> None:
    repo = tmp_path / "kit"
    repo.mkdir()
    subprocess.run(["git", "init", "-q", str(repo)], check=True)
    tests = "import kit\n\ndef test_it():\n    assert kit.x\n"
    rev = commit(repo, {"pyproject.toml": PYPROJECT, "kit/__init__.py": OFFLINE_ONLY, "tests/test_kit.py": tests})
    prepared = installed(Settings(cache=tmp_path / "cache", out=tmp_path / "out"), repo, rev)
    assert prepared.environment.recipe.packages == ("kit",)


@pytest.mark.slow
@pytest.mark.skipif(not CAPABLE.available, reason=CAPABLE.detail)
def test_a_second_commit_shares_the_environment_and_needs_no_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo, cache = tmp_path / "kit", tmp_path / "cache"
    repo.mkdir()
    subprocess.run(["git", "init", "-q", str(repo)], check=True)
    tests = "import kit\nimport sortedcontainers\n\ndef test_it():\n    assert kit.x\n"
    first = commit(repo, {"pyproject.toml": PYPROJECT, "kit/__init__.py": "x = 1\n", "tests/test_kit.py": tests})
    second = commit(repo, {"kit/__init__.py": "x = 2\n"})
    settings = Settings(cache=cache, out=tmp_path / "out")
    one = installed(settings, repo, first)
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # from here on nothing can be downloaded
    two = installed(settings, repo, second)

    assert one.environment.tree != two.environment.tree
    assert one.environment.env_id != two.environment.env_id
    assert one.environment.shared_id == two.environment.shared_id
    assert one.environment.lock == two.environment.lock
    assert len(list((cache / "envs").glob("shared-*/env"))) == 1
    assert len(list((cache / "envs").glob("solution-*.json"))) == 1
    files = [Path(p.layers.env) / "bin/pytest" for p in (one, two)]
    assert files[0].stat().st_ino == files[1].stat().st_ino, "the same file on disk"
    assert two.environment.install_s < one.environment.install_s


@pytest.mark.skipif(not CAPABLE.available, reason=CAPABLE.detail)
def test_a_lock_of_other_files_is_refused(tmp_path: Path, shapes, prepared: Prepared) -> None:
    """The hash decides, not the name: a lock that names another file cannot be installed."""
    from dataclasses import replace

    made = prepared.environment
    line = next(iter(made.hashes))
    forged = replace(made, hashes=made.hashes | {line: f"sha256:{'0' * 64}"})
    sourced = FetchedSources(repo=prepared.repo, layer=prepared.layers.sources)
    with pytest.raises(EnvironmentFailure) as caught:
        install_recipe(shapes.settings, made.recipe, sourced, previous=forged)
    assert "ash" in str(caught.value)
    assert caught.value.reason != "infra"


def test_equal_manifests_have_equal_digests(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "requirements").mkdir(parents=True)
        (tmp_path / name / "setup.py").write_text("setup()")
        (tmp_path / name / "requirements/test.txt").write_text("pytest")
        (tmp_path / name / "code.py").write_text(name)
    assert manifest_digest(tmp_path / "a") == manifest_digest(tmp_path / "b")
    (tmp_path / "b/requirements/test.txt").write_text("pytest<9")
    assert manifest_digest(tmp_path / "a") != manifest_digest(tmp_path / "b")


def test_two_layers_become_one_folder(tmp_path: Path) -> None:
    lower, upper, both = tmp_path / "lower", tmp_path / "upper", tmp_path / "both"
    for layer, path in ((lower, "lib/a.py"), (lower, "lib/b.py"), (upper, "lib/b.py"), (upper, "bin/new")):
        (layer / path).parent.mkdir(parents=True, exist_ok=True)
        (layer / path).write_text(f"{layer.name}")
    (lower / "lib/link").symlink_to("a.py")
    compose(lower, upper, both)
    assert {p.relative_to(both).as_posix(): p.read_text() for p in both.rglob("*") if p.is_file()} == {
        "lib/a.py": "lower", "lib/link": "lower", "lib/b.py": "upper", "bin/new": "upper",
    }  # fmt: skip
    assert (both / "lib/link").is_symlink()
    assert (both / "lib/a.py").stat().st_ino == (lower / "lib/a.py").stat().st_ino
    assert (lower / "lib/b.py").read_text() == "lower"
    assert missing_files(both, lower) == ["bin/new"]
    (both / "lib/__pycache__").mkdir()
    (both / "lib/__pycache__/a.pyc").write_text("")
    assert missing_files(both, lower) == ["bin/new"]


def test_a_lock_is_a_requirements_file_with_hashes() -> None:
    one, two, three = (f"sha256:{letter * 64}" for letter in "abc")
    compiled = f"a==1 \\\n    --hash={one} \\\n    --hash={two}\nb-c==2.0+x --hash={three}\n"
    hashes = read_hashes(compiled)
    assert hashes == {"a==1": f"{one} {two}", "b-c==2.0+x": three}
    assert read_hashes(lock_text(("a==1", "b-c==2.0+x"), hashes)) == hashes
    assert lock_text(("a==1",), {}) == "a==1\n"


def test_the_state_of_the_host_changes_when_something_is_installed(tmp_path: Path) -> None:
    database = tmp_path / "status"
    before = host_state([str(database)], [])
    database.write_text("libx")
    assert host_state([str(database)], []) != before
    assert host_state([str(database)], []) == host_state([str(database)], [])
    assert rootfs_identity().count("-") >= 3


@pytest.mark.parametrize(
    ("reason", "kept_here", "kept_elsewhere"),
    [("low_pass", True, True), ("missing_system_lib", True, False), ("python_unavailable", True, False),
     ("infra", False, False)],
)  # fmt: skip
def test_failures_are_cached_while_they_apply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str, kept_here: bool, kept_elsewhere: bool
) -> None:
    cache = StageCache(tmp_path)
    cache.put_failure("baseline", "key", "kit", EnvironmentFailure("why", reason=reason))

    assert _is_kept(cache, reason) == kept_here
    monkeypatch.setattr(stage_cache, "host_state", lambda: "another state")
    assert _is_kept(cache, reason) == kept_elsewhere


def _is_kept(cache: StageCache, reason: str) -> bool:
    try:
        return cache.get_or_raise(Baseline, "baseline", "key") is not None
    except EnvironmentFailure as failure:
        return (failure.reason, str(failure)) == (reason, "why")
