"""Layers that travel between machines: packing, fetching once, damage, lost layers, eviction; places for artifacts."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.datasets.crashes import s3_server

from excise.errors import ConfigError, StoreError
from excise.pipeline.cluster import layer_names
from excise.pipeline.cluster.artifacts import FolderArtifacts, S3Artifacts, artifacts_of, check_setting
from excise.pipeline.cluster.layer_names import LayerNames, evict_copies
from excise.pipeline.cluster.packed_layers import compress, decompress, pack_layer, unpack_layer
from excise.pipeline.stages.run_files import KeptLayer
from excise.system.files import file_sha256


def make_layer(folder: Path, text: str = "one") -> Path:
    (folder / "package" / "empty").mkdir(parents=True)
    (folder / "package" / "module.py").write_text(text)
    (folder / "tool").write_bytes(b"\0" * 5000)
    (folder / "tool").chmod(0o755)
    (folder / "python").symlink_to("/opt/python/bin/python3")
    (folder / "folder").symlink_to("package")
    (folder / "ünï code ").touch()
    for number, path in enumerate(sorted(folder.rglob("*"))):
        os.utime(path, ns=(1, 1_234_567_890_123_456_789 + number), follow_symlinks=False)
    return folder


def facts(folder: Path) -> dict[str, tuple[object, ...]]:
    """What a layer consists of."""
    return {
        path.relative_to(folder).as_posix(): (
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
            os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None,
        )
        for path in (folder, *folder.rglob("*"))
    }


def test_a_layer_arrives_as_it_was_and_equal_layers_have_equal_names(tmp_path: Path) -> None:
    first, second = make_layer(tmp_path / "first"), make_layer(tmp_path / "second")
    os.utime(second, ns=(0, first.stat().st_mtime_ns))
    digest = pack_layer(first, tmp_path / "packed")
    assert digest == pack_layer(second, tmp_path / "again") == file_sha256(tmp_path / "packed")
    (tmp_path / "unpacked").mkdir()
    unpack_layer(tmp_path / "packed", tmp_path / "unpacked")
    assert facts(tmp_path / "unpacked") == facts(first)
    (second / "tool").chmod(0o644)
    assert pack_layer(second, tmp_path / "again") != digest


def test_records_are_compressed_as_they_are(tmp_path: Path) -> None:
    data = os.urandom(1000) + b"x" * 100_000
    assert compress(data, tmp_path / "packed") == file_sha256(tmp_path / "packed")
    assert decompress(tmp_path / "packed") == data
    assert (tmp_path / "packed").stat().st_size < 10_000


class Counting(FolderArtifacts):
    """Counts what is fetched."""

    fetched = 0

    def get(self, digest: str, target: Path) -> None:
        self.fetched += 1
        super().get(digest, target)


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[tuple[LayerNames, LayerNames, Counting]]:
    """Two machines with a cache each, and what they can both reach."""
    between = Counting(tmp_path / "between")
    yield LayerNames(tmp_path / "one", between), LayerNames(tmp_path / "two", between), between
    layer_names._leases.clear()


def test_a_machine_fetches_a_layer_once(tmp_path: Path, machines: tuple[LayerNames, LayerNames, Counting]) -> None:
    one, two, between = machines
    made = KeptLayer(path=str(make_layer(tmp_path / "one" / "envs" / "made")))
    sent = one.leave(made)
    assert sent.path.startswith("layer:")
    assert one.arrive(sent) == made, "the machine that has made a layer has it"
    got: list[KeptLayer | None] = []
    threads = [threading.Thread(target=lambda: got.append(two.arrive(sent))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (arrived,) = set(got)
    assert arrived is not None
    assert Path(arrived.path).is_relative_to(tmp_path / "two")
    assert facts(Path(arrived.path)) == facts(Path(made.path))
    assert between.fetched == 1
    assert two.leave(arrived) == sent, "a copy has the name of the original"


def test_damaged_and_lost_layers_are_noticed(tmp_path: Path, machines: tuple[LayerNames, LayerNames, Counting]) -> None:
    one, two, between = machines
    sent = one.leave(KeptLayer(path=str(make_layer(tmp_path / "made"))))
    stored = between.path(sent.path.removeprefix("layer:"))
    whole = stored.read_bytes()
    stored.write_bytes(whole[:-1] + b"?")
    with pytest.raises(StoreError, match="damaged on its way"):
        two.arrive(sent)
    assert not list((tmp_path / "two").glob("envs/copy-*/layer"))
    stored.unlink()
    assert two.arrive(sent) is None
    stored.write_bytes(whole)
    assert two.arrive(sent) is not None


def test_a_replaced_layer_gets_another_name(tmp_path: Path, machines: tuple[LayerNames, LayerNames, Counting]) -> None:
    one, *_ = machines
    folder = make_layer(tmp_path / "made")
    first = one.leave(KeptLayer(path=str(folder)))
    folder.rename(tmp_path / "old")
    make_layer(folder, "two")
    assert one.leave(KeptLayer(path=str(folder))) != first


def test_copies_that_nobody_uses_make_room(tmp_path: Path, machines: tuple[LayerNames, LayerNames, Counting]) -> None:
    one, two, _ = machines
    names = [one.leave(KeptLayer(path=str(make_layer(tmp_path / text, text)))) for text in ("a", "b")]
    copies = [Path(found.path) for name in names if (found := two.arrive(name))]
    everything = 1 << 62
    assert evict_copies(tmp_path / "two", everything) == 0, "this process uses both"
    del layer_names._leases[copies[0].parent]
    assert evict_copies(tmp_path / "two", 0) == 0, "there is room"
    assert evict_copies(tmp_path / "two", everything) == 1
    assert [copy.exists() for copy in copies] == [False, True]
    assert two.arrive(names[0]) == KeptLayer(path=str(copies[0])), "it is fetched again"


def test_parts_of_an_upload_are_checked(tmp_path: Path) -> None:
    folder, data = FolderArtifacts(tmp_path / "artifacts"), os.urandom(3000)
    (tmp_path / "file").write_bytes(data)
    digest = file_sha256(tmp_path / "file")
    folder.write(digest, "first", 0, data[:1000], last=False)
    folder.write(digest, "second", 0, data[:2000], last=False)
    with pytest.raises(StoreError, match="damaged"):
        folder.write(digest, "first", 1000, data[:2000], last=True)
    assert not folder.has(digest)
    folder.write(digest, "second", 2000, data[2000:], last=True)
    assert folder.read(digest, 0) == data
    assert folder.read(digest, 3000) == b""


def test_an_object_store_holds_artifacts(tmp_path: Path) -> None:
    with s3_server():
        store = artifacts_of("s3://bucket/layers")
        assert isinstance(store, S3Artifacts)
        (tmp_path / "file").write_bytes(b"content")
        digest = file_sha256(tmp_path / "file")
        assert not store.has(digest)
        store.put(digest, tmp_path / "file")
        assert store.has(digest)
        store.get(digest, tmp_path / "copy")
        assert (tmp_path / "copy").read_bytes() == b"content"
        with pytest.raises(StoreError) as caught:
            store.get("0" * 64, tmp_path / "copy")
        assert caught.value.reason == "unknown_artifact"


def test_the_setting_names_a_place(tmp_path: Path) -> None:
    for good in ("main", "shared", "s3://bucket/folder", f"file://{tmp_path}"):
        check_setting(good)
    assert isinstance(artifacts_of(f"file://{tmp_path}"), FolderArtifacts)
    for bad in ("", "scheduler", "file://folder", "https://host/folder"):
        with pytest.raises(ConfigError, match="write main, shared"):
            check_setting(bad)
