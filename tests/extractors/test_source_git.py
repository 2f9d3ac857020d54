"""Git sources, with repositories that the tests make with git."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from excise.errors import SourceError
from excise.extractors.fetch import git_mirror, snapshot_records
from excise.extractors.fetch.source_git import GitSpec, name_in_words, parse_git_spec, repository_name
from excise.extractors.fetch.trees import git_tree_hash
from excise.extractors.sources import resolve_source
from excise.protocols import Fetched
from excise.types import Repo, SourceSpec


def git(where: Path, *argv: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false"]
    env = {**os.environ, "GIT_COMMITTER_DATE": "2021-03-04T05:06:07Z", "GIT_AUTHOR_DATE": "2021-03-04T05:06:07Z"}
    return subprocess.run(
        ["git", *identity, *argv], cwd=where, env=env, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    root = tmp_path / "owner" / "project"
    (root / "pkg").mkdir(parents=True)
    git(root, "init", "-q", "-b", "main")
    (root / "pkg" / "mod.py").write_bytes(b"x = 1\r\n")
    (root / "run.sh").write_text("echo\n")
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("pkg/mod.py")
    (root / ".gitattributes").write_text("*.py text eol=lf filter=evil export-subst\nrun.sh export-ignore\n")
    git(root, "config", "filter.evil.smudge", f"touch {tmp_path}/smudged; cat")
    git(root, "config", "filter.evil.clean", "cat")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    git(root, "tag", "-a", "v1.2.0", "-m", "release")
    (root / "later.txt").write_text("later\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "two")
    (root / "dirty.txt").write_text("not committed\n")
    return root


def fetch(spec: str, tmp_path: Path, subdir: str = "") -> Fetched:
    given = SourceSpec(spec=spec, subdir=subdir)
    source = resolve_source(given)
    return source.fetch(source.resolve(given, tmp_path / "cache"), tmp_path / "cache", tmp_path / "into")


def test_a_git_that_hangs_while_files_are_read_is_killed(
    upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = git_mirror.Mirror(str(upstream), tmp_path / "cache")
    mirror.ensure(git(upstream, "rev-parse", "HEAD"))
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\ncase "$*" in *--batch) exec sleep 60;; *) exec {shutil.which("git")} "$@";; esac\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(git_mirror, "NETWORK_TIMEOUT_S", 1.0)
    (tmp_path / "into").mkdir()
    began = time.monotonic()
    with pytest.raises(SourceError, match="did not end within"):
        mirror.export(git(upstream, "rev-parse", "HEAD"), tmp_path / "into")
    assert time.monotonic() - began < 30


def test_head_of_a_path_is_exported_exactly(upstream: Path, tmp_path: Path) -> None:
    fetched = fetch(str(upstream), tmp_path)
    commit = git(upstream, "rev-parse", "HEAD")
    assert fetched.repo.base_commit == commit
    assert fetched.repo.source == f"git+{upstream}@{commit}"
    assert fetched.repo.tree == git(upstream, "rev-parse", "HEAD^{tree}") == git_tree_hash(fetched.root)
    assert fetched.repo.created_at == "2021-03-04T05:06:07Z"
    assert fetched.repo.version == "1.2.0"
    assert fetched.repo.repo == "project"
    assert not (fetched.root / "dirty.txt").exists()
    assert not (fetched.root / ".git").exists()


def test_attributes_and_filters_of_the_repository_do_nothing(upstream: Path, tmp_path: Path) -> None:
    fetched = fetch(f"file://{upstream}", tmp_path)
    blob = git(upstream, "rev-parse", "HEAD:pkg/mod.py")
    stored = subprocess.run(["git", "cat-file", "blob", blob], cwd=upstream, check=True, capture_output=True).stdout
    assert (fetched.root / "pkg/mod.py").read_bytes() == stored
    assert os.access(fetched.root / "run.sh", os.X_OK)
    assert not (tmp_path / "smudged").exists()


def test_no_hook_of_the_upstream_or_of_a_template_runs(upstream: Path, tmp_path: Path) -> None:
    for name in ("post-checkout", "reference-transaction", "pre-receive", "post-update"):
        hook = upstream / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hooked\n")
        hook.chmod(0o755)
    fetch(str(upstream), tmp_path)
    assert not (tmp_path / "hooked").exists()


@pytest.mark.parametrize("rev", ["v1.2.0", "short", "full"])
def test_a_revision_is_pinned_to_its_commit(upstream: Path, tmp_path: Path, rev: str) -> None:
    commit = git(upstream, "rev-parse", "v1.2.0^{commit}")
    wanted = {"v1.2.0": rev, "short": commit[:9], "full": commit}[rev]
    fetched = fetch(f"git+{upstream}@{wanted}", tmp_path)
    assert fetched.repo.base_commit == commit
    assert not (fetched.root / "later.txt").exists()


def test_a_new_commit_changes_the_pin_and_the_old_pin_stays_fetchable(upstream: Path, tmp_path: Path) -> None:
    spec, cache = SourceSpec(spec=str(upstream)), tmp_path / "cache"
    source = resolve_source(spec)
    first = source.resolve(spec, cache)
    source.fetch(first, cache, tmp_path / "first")
    assert source.resolve(spec, cache) == first
    git(upstream, "reset", "-q", "--hard", "HEAD^")
    (upstream / "other.txt").write_text("other\n")
    git(upstream, "add", ".")
    git(upstream, "commit", "-qm", "three")
    second = source.resolve(spec, cache)
    assert second != first
    assert (source.fetch(second, cache, tmp_path / "second").root / "other.txt").exists()
    assert (source.fetch(first, cache, tmp_path / "again").root / "later.txt").exists()


def test_partial_clone_where_the_server_filters(upstream: Path, tmp_path: Path) -> None:
    git(upstream, "config", "uploadpack.allowFilter", "true")
    fetched = fetch(f"file://{upstream}@v1.2.0", tmp_path)
    assert (fetched.root / "link").is_symlink()
    mirror = next(p for p in (tmp_path / "cache/mirrors").iterdir() if p.is_dir())
    missing = git(mirror, "rev-list", "--objects", "--all", "--missing=print").splitlines()
    assert [line for line in missing if line.startswith("?")], "the file of the later commit was never needed"


@pytest.mark.parametrize("filters", ["true", "false"])
def test_a_shallow_clone_is_a_source(upstream: Path, tmp_path: Path, filters: str) -> None:
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{upstream}", str(shallow))
    git(shallow, "config", "uploadpack.allowFilter", filters)
    first = fetch(str(shallow), tmp_path)
    assert first.repo.base_commit == git(upstream, "rev-parse", "HEAD")
    assert (first.root / "later.txt").is_file()
    (upstream / "more.txt").write_text("more\n")
    git(upstream, "add", ".")
    git(upstream, "commit", "-qm", "three")
    git(shallow, "fetch", "-q", "--depth", "1")
    git(shallow, "reset", "-q", "--hard", "origin/main")
    shutil.rmtree(first.root)
    assert (fetch(f"file://{shallow}", tmp_path).root / "more.txt").is_file()
    shutil.rmtree(first.root)
    assert (fetch(str(shallow), tmp_path).root / "more.txt").is_file(), "in the mirror that was made before"
    with pytest.raises(SourceError, match="has no commit"):
        fetch(f"git+{shallow}@{git(upstream, 'rev-parse', 'v1.2.0^{commit}')}", tmp_path)


def test_subfolder_of_a_repository(upstream: Path, tmp_path: Path) -> None:
    fetched = fetch(str(upstream), tmp_path, subdir="pkg")
    assert fetched.repo.source.endswith("#subdirectory=pkg")
    assert [p.name for p in fetched.root.iterdir()] == ["mod.py"]
    with pytest.raises(SourceError, match="no folder"):
        resolve_source(SourceSpec(spec=fetched.repo.source)).fetch(
            fetched.repo.source.replace("pkg", "gone"), tmp_path / "cache", tmp_path / "gone"
        )


def test_links_out_of_a_subfolder_become_files(upstream: Path, tmp_path: Path) -> None:
    """Their targets are not in it; others stay links, however they are broken."""
    (upstream / "LICENSE").write_text("MIT\n")
    links = {"LICENSE": "../LICENSE", "own": "mod.py", "gone": "../gone", "loop": "loop", "folder": ".."}
    for name, target in links.items():
        (upstream / "pkg" / name).symlink_to(target)
    git(upstream, "add", ".")
    git(upstream, "commit", "-qm", "links")
    root = fetch(str(upstream), tmp_path, subdir="pkg").root
    assert not (root / "LICENSE").is_symlink()
    assert (root / "LICENSE").read_text() == "MIT\n"
    assert (root / "own").is_symlink()
    assert not (root / "gone").exists()


def test_many_links_out_of_a_subfolder_do_not_fill_the_disk(
    upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_records, "MAX_LINKED", 25)
    (upstream / "large").write_bytes(b"0123456789")
    for number in range(4):
        (upstream / "pkg" / f"link{number}").symlink_to("../large")
    git(upstream, "add", ".")
    git(upstream, "commit", "-qm", "links")
    root = fetch(str(upstream), tmp_path, subdir="pkg").root
    assert [(root / f"link{number}").is_symlink() for number in range(4)] == [False, False, True, True]


def test_links_to_files_outside_are_left_out(upstream: Path, tmp_path: Path) -> None:
    (upstream / "passwd").symlink_to("/etc/passwd")
    (upstream / "up").symlink_to("../../other")
    git(upstream, "add", ".")
    git(upstream, "commit", "-qm", "links")
    root = fetch(str(upstream), tmp_path).root
    assert not (root / "passwd").is_symlink()
    assert not (root / "up").is_symlink()
    assert (root / "link").is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_local_repository_of_another_user_is_read(upstream: Path, tmp_path: Path) -> None:
    subprocess.run(["chown", "-R", "65534:65534", str(upstream)], check=True)
    assert fetch(str(upstream), tmp_path).repo.num_files == 5


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("git+ext::sh -c touch% /tmp/x", "bad_source"),
        ("git+{upstream}@--upload-pack=touch", "bad_source"),
        ("https://user:secret@example.invalid/o/n", "bad_source"),
        ("https://token@example.invalid/o/n", "bad_source"),
        ("git+{upstream}@nosuchbranch", "no_such_revision"),
        ("git+{upstream}@" + "1" * 40, "no_such_revision"),
        ("git+file:///nonexistent/repository", "source_unavailable"),
    ],
)
def test_missing_revisions_and_repositories_are_refused_with_a_reason(
    upstream: Path, tmp_path: Path, spec: str, reason: str
) -> None:
    with pytest.raises(SourceError) as caught:
        fetch(spec.format(upstream=upstream), tmp_path)
    assert caught.value.reason == reason
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://example.invalid/o/n.git@v1", GitSpec("https://example.invalid/o/n.git", "v1")),
        ("git+https://example.invalid/o/n", GitSpec("https://example.invalid/o/n", "")),
        ("git@example.invalid:o/n.git", GitSpec("git@example.invalid:o/n.git", "")),
        ("git@example.invalid:o/n@main", GitSpec("git@example.invalid:o/n", "main")),
        ("ssh://git@example.invalid/o/n@main", GitSpec("ssh://git@example.invalid/o/n", "main")),
        ("nothing/here", None),
    ],
)
def test_spec_forms(text: str, expected: GitSpec | None) -> None:
    assert parse_git_spec(text) == expected


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://example.invalid/owner/name.git", "owner/name"),
        ("git@example.invalid:owner/name.git", "owner/name"),
        ("/srv/git/name.git", "name"),
    ],
)
def test_repository_names(url: str, name: str) -> None:
    assert repository_name(url) == name


@pytest.mark.parametrize(
    ("source", "manifest", "name"),
    [
        ("git+/mirrors/owner+box/repo@abc", "module example.com/owner/box\n", "owner/box"),
        ("git+file:///mirrors/repo@abc", "module github.com/owner/box\n", "owner/box"),
        ("git+/mirrors/repo@abc", "", "repo"),
        ("git+https://github.com/owner/other@abc", "module github.com/owner/box\n", "repo"),
        ("pypi:repo==1.0", "module github.com/owner/box\n", "repo"),
    ],
)
def test_projects_on_this_machine_have_the_names_of_their_manifests(
    tmp_path: Path, source: str, manifest: str, name: str
) -> None:
    (tmp_path / "go.mod").write_text(manifest)
    (tmp_path / "box.go").write_text("package box\n")
    assert name_in_words(Repo(repo="repo", base_commit="a", tree=source + manifest, source=source), tmp_path) == name
