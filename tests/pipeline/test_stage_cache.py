"""Finished stages: keys, atomic writing, and entries that cannot be read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from excise.config import load
from excise.errors import StoreError
from excise.pipeline.stages.error_boundary import stage
from excise.pipeline.stages.stage_cache import (
    VERSIONS,
    StageCache,
    measurement_fingerprint,
    stage_key,
    verdict_fingerprint,
)
from excise.types import Rejection, WorkerOutcome
from excise.verifiers.prove import Proof

ROW = Rejection(repo="r", stage="gate", subject="s", reason="because", detail="A sentence.")
PROOF = Proof(rejection=ROW, cpu_s=1.5)


def test_stored_answers_are_returned(tmp_path: Path) -> None:
    cache = StageCache(tmp_path)
    assert cache.get(Proof, "candidate", "k1") is None
    cache.put("candidate", "k1", PROOF)
    cache.put("baseline", "k1", ROW)
    assert cache.get(Proof, "candidate", "k1") == PROOF
    assert cache.get(Proof, "baseline", "k1") == ROW, "a refusal is remembered as one"
    assert cache.get(Proof, "candidate", "k2") is None


def test_keys_depend_on_the_input() -> None:
    keys = {
        stage_key("baseline", "env", {"a": 1}),
        stage_key("coverage", "env", {"a": 1}),
        stage_key("baseline", "other", {"a": 1}),
        stage_key("baseline", "env", {"a": 2}),
        stage_key("baseline", "env"),
    }
    assert len(keys) == 5
    assert stage_key("find", {"a": 1, "b": [2]}) == stage_key("find", {"b": [2], "a": 1})


def test_a_new_version_of_a_stage_makes_its_answers_again(monkeypatch: pytest.MonkeyPatch) -> None:
    before = stage_key("find", "x")
    monkeypatch.setitem(VERSIONS, "find", VERSIONS["find"] + 1)
    assert stage_key("find", "x") != before


def test_only_settings_that_change_a_verdict_are_in_its_fingerprint() -> None:
    usual = verdict_fingerprint(load(environ={}))
    assert verdict_fingerprint(load(environ={}, workers=7, out=Path("x"), cache=Path("y"), limit=3)) == usual
    for override in ("verdict.gold_runs=4", "verdict.memory_mb=100", "verdict.visibility=signature", "sandbox=docker"):
        assert verdict_fingerprint(load(overrides=[override], environ={})) != usual


def test_visibility_does_not_change_the_fingerprint_of_measurements() -> None:
    usual = measurement_fingerprint(load(environ={}))
    assert measurement_fingerprint(load(overrides=["verdict.visibility=tests"], environ={})) == usual
    for override in ("verdict.memory_mb=100", "sandbox=docker"):
        assert measurement_fingerprint(load(overrides=[override], environ={})) != usual


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{", b"\0\0\0\0", b"[]", b"null", b"7", b'"text"', b"{}", b'{"kind": "answer"}', b'{"body": {}}',
        b'{"kind": "answer", "body": null}', b'{"kind": "answer", "body": {"cpu_s": "many"}}', b"\xff\xfe",
        b'{"kind": "rejection", "body": {"repo": 1}}', b'{"kind": "answer", "body": {"verdicts": [{}]}}',
    ],
)  # fmt: skip
def test_broken_entries_are_made_anew(tmp_path: Path, data: bytes) -> None:
    cache = StageCache(tmp_path)
    cache.put("candidate", "key", PROOF)
    (path,) = tmp_path.rglob("key.json")
    path.write_bytes(data)
    assert cache.get(Proof, "candidate", "key") is None
    cache.put("candidate", "key", PROOF)
    assert cache.get(Proof, "candidate", "key") == PROOF


def test_a_truncated_entry_counts_as_missing(tmp_path: Path) -> None:
    cache = StageCache(tmp_path)
    cache.put("candidate", "key", PROOF)
    (path,) = tmp_path.rglob("key.json")
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert cache.get(Proof, "candidate", "key") is None


def test_a_folder_in_the_way_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "stages").write_text("a file")
    with pytest.raises(StoreError, match="EXCISE_CACHE"):
        StageCache(tmp_path).put("candidate", "key", PROOF)


def test_many_writers_and_readers_never_see_half_an_entry(tmp_path: Path) -> None:
    cache, stop, seen = StageCache(tmp_path), threading.Event(), []
    big = Proof(rejection=Rejection(repo="r", stage="gate", subject="s", reason="x", detail="y" * 200_000))
    cache.put("candidate", "key", big)

    def read() -> None:
        while not stop.is_set():
            seen.append(cache.get(Proof, "candidate", "key") == big)

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        list(pool.map(lambda _: cache.put("candidate", "key", big), range(20)))
        stop.set()
        for reader in readers:
            reader.result()
    assert all(seen)
    assert len(list(tmp_path.rglob("*"))) == 4, "no temporary file is left"


# ------------------------------------------------------------------------------------- full disks
FULL = """
import os, sys
from pathlib import Path
from excise.datasets.rows import RepoRows
from excise.datasets.storage.store import Store
from excise.datasets.taskset import TaskSet
from excise.errors import StoreError
from excise.pipeline.stages.stage_cache import StageCache
from excise.types import Rejection, RepoReport
from excise.verifiers.prove import Proof
root = Path(sys.argv[1])

def rows(size):
    noise = "".join(chr(33 + (i * i * 7919 + i * 31) % 90) for i in range(size))
    row = Rejection(repo="r", stage="gate", subject="s", reason="x", detail=noise)
    return RepoRows(repo=None, report=RepoReport(repo="r", source="s", status=noise), rejections=(row,))

def said(action):
    try:
        action()
    except StoreError as error:
        return f"{error.reason}: {error}"

def publish(size):
    with Store(root / "set").writer() as writer:
        writer.put_repo("r", rows(size))
        writer.publish()

cache = StageCache(root)
cache.put("candidate", "small", Proof(cpu_s=1.0))
publish(10)
filler, size = os.open(root / "filler", os.O_CREAT | os.O_WRONLY), 0
try:
    while True:
        size += os.write(filler, b"x" * 4096)
except OSError:
    os.truncate(filler, size - 3 * 4096)
os.close(filler)
print(said(lambda: cache.put("candidate", "big", Proof(rejection=rows(100_000).rejections[0]))))
print(said(lambda: publish(300_000)))
print(cache.get(Proof, "candidate", "small") == Proof(cpu_s=1.0), cache.get(Proof, "candidate", "big"))
print(TaskSet.open(root / "set").manifest.number, len(TaskSet.open(root / "set").rejections()))
print(sorted(p.name for p in (root / "set" / "snapshots").iterdir()))
(root / "filler").unlink()
publish(300_000)
print(TaskSet.open(root / "set").manifest.number)
"""


def test_a_full_disk_is_reported_and_keeps_earlier_entries(tmp_path: Path) -> None:
    script = f"mount -t tmpfs -o size=1m none {tmp_path} && exec {sys.executable} -c '{FULL}' {tmp_path}"
    namespaces = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]
    done = subprocess.run([*namespaces, "sh", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    cache, store, kept, published, folders, after = done.stdout.splitlines()
    assert cache.startswith("store_error: The cache")
    assert "No space left on device" in cache
    assert store.startswith("disk_full: Cannot")
    assert "What was published before is intact" in store
    assert kept == "True None"
    assert published == "1 1"
    assert folders == "['1']"
    assert after == "2"


# ---------------------------------------------------------------------------------- errors of stages
def test_errors_of_a_stage_become_rows() -> None:
    @stage("fetch")
    def broken(settings, error: BaseException) -> str:
        raise error

    def row(error: BaseException) -> Rejection:
        answer = broken(load(environ={}), "pypi:x", error)
        assert isinstance(answer, Rejection)
        return answer

    full = row(OSError(28, "No space left on device", "/cache/x"))
    assert (full.reason, full.worker_outcome) == ("infra_error", WorkerOutcome.INFRA_ERROR)
    assert "No space left on device: /cache/x" in full.detail
    assert row(RecursionError("too deep")).detail == "too deep"
    assert row(MemoryError()).worker_outcome is WorkerOutcome.INFRA_ERROR
    assert row(StoreError("It is locked.", reason="locked")).reason == "locked"
    assert json.loads(json.dumps(row(StoreError("x")).repo)) == "pypi:x"
    unforeseen = row(ZeroDivisionError("by nothing"))
    assert unforeseen.reason == "internal_error"
    assert "ZeroDivisionError" in unforeseen.detail
    assert "pipeline/stages/error_boundary.py:" in unforeseen.detail
    with pytest.raises(KeyboardInterrupt):
        broken(load(environ={}), "pypi:x", KeyboardInterrupt())


def test_keys_change_with_what_a_stage_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("fetch", "executed", "baseline", "coverage", "find", "candidate")
    before = {name: stage_key(name, "x") for name in names}
    monkeypatch.setitem(VERSIONS, "coverage", 10_000)
    assert [name for name in names if stage_key(name, "x") != before[name]] == ["coverage", "find", "candidate"]
