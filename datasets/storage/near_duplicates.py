"""An index of the gold patches of all nights, which says of each new task whether an earlier one is almost the same.

::

    DIR/near-duplicates/<hash>.parquet      one row per task that was ever published; each run adds a file

It is not part of a snapshot, and rows of tasks that are gone stay: a task that comes back a little changed is found.
The similarity of two patches is the share of their token triples that both have (Jaccard), estimated by MinHash (Broder
1997) from 64 minima; tasks are compared if they agree in one of 16 bands of 4 minima. The standard error is 0.05.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from excise.datasets.rows import Row
from excise.datasets.schema import Table, columns_of, empty_view, sql_pattern
from excise.datasets.storage.snapshot import Snapshot
from excise.errors import StoreError
from excise.system.files import replacement, store_errors
from excise.types import content_id

FOLDER = "near-duplicates"
"""Name of the folder in the folder of a task set."""
SIMILARITY = 0.8
"""Estimated share of common token triples from which a task is a near-duplicate."""
MIN_TRIPLES = 10
"""Distinct token triples below which a patch says too little to be compared."""
NUM_HASHES = 64
"""Minima of a signature."""
BANDS = 16
"""Groups of minima; tasks that agree in one are compared."""
MAX_FILES = 64
"""Files above which they are joined."""
_TOKEN = re.compile(r"\w+|[^\w\s]")
_COLUMNS = ["instance_id", "repo", "feature_id", "patch"]
_STREAM_SHARE = 0.2
"""Share of new tasks from which all patches are read in order, and not those of single projects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NearDuplicate:
    """A task whose gold patch is almost that of an earlier one."""

    instance_id: str
    """The task."""
    near_duplicate_of: str
    """The earlier task, which the set may no longer have."""
    similarity: float
    """Estimated share of common token triples."""
    snapshot: int
    """Snapshot in which the task was seen first."""


NEAR_DUPLICATES = Table(
    name="near_duplicates",
    comment="A task whose gold patch is almost that of a task of this or an earlier night. Not part of a snapshot.",
    columns=tuple(columns_of(NearDuplicate)),
    sort_by=("instance_id",),
)


def near_duplicates_view(store: Path) -> str:
    """``CREATE VIEW near_duplicates`` of a task set; a view without rows if it has no index."""
    if not any((store / FOLDER).glob("*.parquet")):
        return empty_view(NEAR_DUPLICATES)
    pattern = sql_pattern(store, f"{FOLDER}/*.parquet")
    return f"""\
CREATE OR REPLACE VIEW near_duplicates AS
SELECT DISTINCT instance_id, near_duplicate_of, similarity, snapshot FROM read_parquet({pattern})
WHERE near_duplicate_of IS NOT NULL;
"""


def update(store: Path) -> tuple[NearDuplicate, ...]:
    """Add the tasks of the current snapshot to the index; return the near-duplicates among those that are new.

    The caller must hold the set's lock. Tasks of one feature are not compared. Raises :class:`StoreError`.
    """
    snapshot = Snapshot.current(store)
    if snapshot is None:
        return ()
    known = _read(store, ["instance_id"]).column("instance_id").to_pylist()
    new = set(snapshot.index.ids()) - set(known)
    if not new:
        return ()
    rows = _signed_rows(snapshot, new)
    found = _matches(store, rows)
    number = snapshot.manifest.number
    _add_file(store, rows, found, number)
    return tuple(
        NearDuplicate(instance_id=i, near_duplicate_of=other, similarity=similarity, snapshot=number)
        for i, (other, similarity) in sorted(found.items())
    )


def signature(patch: str) -> Any:
    """The minima of a patch's token triples (``uint32``); ``None`` for patches with few of them.

    Only added lines count, without white space and comments of whole lines.
    """
    import numpy as np

    lines = (line[1:].strip() for line in patch.splitlines() if line.startswith("+") and not line.startswith("+++"))
    tokens = [token for line in lines if not line.startswith("#") for token in _TOKEN.findall(line)]
    triples = {zlib.crc32("\0".join(tokens[i : i + 3]).encode()) for i in range(len(tokens) - 2)}
    if len(triples) < MIN_TRIPLES:
        return None
    factors, offsets = _hash_functions()
    values = np.fromiter(triples, np.uint64, len(triples))
    hashed = (factors[:, None] * values[None, :] + offsets[:, None]) >> np.uint64(32)
    return hashed.min(axis=1).astype(np.uint32)


@cache
def _hash_functions() -> tuple[Any, Any]:
    """Multiply-shift hash functions (Dietzfelbinger 1996) from 32 to 32 bits, the same in every release."""
    import numpy as np

    draw = np.random.Generator(np.random.PCG64(20_240_229)).integers(0, 2**63, (2, NUM_HASHES), dtype=np.uint64)
    return draw[0] * np.uint64(2) + np.uint64(1), draw[1]


class _Signed:
    """Signatures and bands of new tasks, in order of their ids."""

    def __init__(self, rows: Sequence[tuple[str, str, str, Any]]) -> None:
        import numpy as np

        self.ids, self.repos, self.features = ([row[i] for row in rows] for i in range(3))
        empty = np.zeros(NUM_HASHES, np.uint32)
        self.has_signature = np.array([row[3] is not None for row in rows], bool)
        self.signatures = np.array([empty if row[3] is None else row[3] for row in rows], np.uint32)
        self.signatures = self.signatures.reshape(len(rows), NUM_HASHES)

    def band(self, number: int) -> Any:
        """A hash of one band of each task; 0 for tasks without signature."""
        import numpy as np

        width = NUM_HASHES // BANDS
        mixed = np.zeros(len(self.ids), np.uint64)
        for column in range(number * width, (number + 1) * width):
            mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + self.signatures[:, column].astype(np.uint64)
            mixed ^= mixed >> np.uint64(29)
        return np.where(self.has_signature, (mixed >> np.uint64(32)).astype(np.uint32) | np.uint32(1), np.uint32(0))


def _signed_rows(snapshot: Snapshot, new: set[str]) -> _Signed:
    signed = [
        (str(row["instance_id"]), str(row["repo"]), str(row["feature_id"]), signature(row["patch"]))
        for rows in _patches(snapshot, new)
        for row in rows
        if row["instance_id"] in new
    ]
    return _Signed(sorted(signed, key=lambda row: row[0]))


def _patches(snapshot: Snapshot, new: set[str]) -> Iterator[list[Row]]:
    if len(new) > _STREAM_SHARE * snapshot.manifest.num_tasks:
        yield from snapshot.batches("tasks", _COLUMNS, size=1024)
        return
    owners = {owner for instance_id in new if (owner := snapshot.index.owner(instance_id)) is not None}
    for owner in sorted(owners):
        yield snapshot.rows("tasks", owner, _COLUMNS)


def _matches(store: Path, rows: _Signed) -> dict[str, tuple[str, float]]:
    """Each new near-duplicate with the task that it repeats: of those before it, the most similar one."""
    import numpy as np

    num_known = _read(store, ["instance_id"]).num_rows
    first, second = [], []
    for number in range(BANDS):
        known = _read(store, [_band(number)]).column(0).to_numpy()
        band = np.concatenate([known, rows.band(number)])
        _, representative, place = np.unique(band, return_index=True, return_inverse=True)
        earlier = representative[place[num_known:]]
        mine = np.arange(len(rows.ids))
        is_pair = rows.has_signature & (earlier < mine + num_known)
        first.append(mine[is_pair])
        second.append(earlier[is_pair])
    pairs = np.unique(np.stack([np.concatenate(first), np.concatenate(second)], axis=1), axis=0)
    return _most_similar(store, rows, pairs, num_known)


def _most_similar(store: Path, rows: _Signed, pairs: Any, num_known: int) -> dict[str, tuple[str, float]]:
    import numpy as np

    wanted = np.unique(pairs[pairs[:, 1] < num_known, 1])
    known = _read(store, ["instance_id", "feature_id", "signature"]).take(wanted)
    ids, features = known.column("instance_id").to_pylist(), known.column("feature_id").to_pylist()
    data = b"".join(known.column("signature").to_pylist())
    signatures = np.frombuffer(data, np.uint32).reshape(len(ids), NUM_HASHES)
    places = {int(place): number for number, place in enumerate(wanted)}
    found: dict[str, tuple[str, float]] = {}
    for mine, earlier in pairs.tolist():
        if earlier < num_known:
            other, feature, theirs = ids[places[earlier]], features[places[earlier]], signatures[places[earlier]]
        else:
            number = earlier - num_known
            other, feature, theirs = rows.ids[number], rows.features[number], rows.signatures[number]
        similarity = float((rows.signatures[mine] == theirs).mean())
        is_other = feature != rows.features[mine]
        if is_other and similarity >= max(SIMILARITY, found.get(rows.ids[mine], ("", 0.0))[1] + 1e-9):
            found[rows.ids[mine]] = other, similarity
    return found


def _add_file(store: Path, rows: _Signed, found: dict[str, tuple[str, float]], number: int) -> None:
    import pyarrow as pa

    data = rows.signatures.tobytes()
    width = 4 * NUM_HASHES
    columns = {
        "instance_id": pa.array(rows.ids, pa.string()),
        "repo": pa.array(rows.repos, pa.string()),
        "feature_id": pa.array(rows.features, pa.string()),
        "snapshot": pa.array([number] * len(rows.ids), pa.int64()),
        "near_duplicate_of": pa.array([found.get(i, (None,))[0] for i in rows.ids], pa.string()),
        "similarity": pa.array([found[i][1] if i in found else None for i in rows.ids], pa.float64()),
        **{_band(n): pa.array(rows.band(n), pa.uint32()) for n in range(BANDS)},
        "signature": pa.array([data[i : i + width] for i in range(0, len(data), width)], pa.binary(width)),
    }
    _write(store, pa.table(columns), rows.ids)
    if len(_files(store)) > MAX_FILES:
        _join_files(store)


def _join_files(store: Path) -> None:
    """Write all rows into one file. After a crash, rows may be in two files; readers and the next call allow for it."""
    files, rows = _files(store), _read(store, None)
    ids = rows.column("instance_id").to_pylist()
    first = {instance_id: place for place, instance_id in reversed(list(enumerate(ids)))}
    kept = _write(store, rows.take(sorted(first.values())), first)
    for file in files:
        if file != kept:
            file.unlink()


def _write(store: Path, table: Any, ids: Iterable[str]) -> Path:
    import pyarrow.parquet as pq

    target = store / FOLDER / f"{content_id('near-duplicates', list(ids))}.parquet"
    with store_errors("write the index of near-duplicates"), replacement(target) as file:
        pq.write_table(table, file, compression="zstd", row_group_size=16_384)
    return target


def _files(store: Path) -> list[Path]:
    return sorted((store / FOLDER).glob("*.parquet"))


def _read(store: Path, columns: list[str] | None) -> Any:
    """The index, one row per task; files are read in the order of their names."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = []
    for path in _files(store):
        with store_errors("read the index of near-duplicates"):
            try:
                tables.append(pq.read_table(path, columns=columns, partitioning=None))
            except (pa.ArrowInvalid, pa.ArrowException) as error:
                advice = f"Delete {path.parent}; the next run indexes the tasks that the set has then."
                raise StoreError(f"{path} is damaged ({error}). {advice}", reason="damaged") from error
    return pa.concat_tables([_schema(columns).empty_table(), *tables])


def _schema(columns: list[str] | None) -> Any:
    import pyarrow as pa

    fields = [
        pa.field("instance_id", pa.string()),
        pa.field("repo", pa.string()),
        pa.field("feature_id", pa.string()),
        pa.field("snapshot", pa.int64()),
        pa.field("near_duplicate_of", pa.string()),
        pa.field("similarity", pa.float64()),
        *(pa.field(_band(number), pa.uint32()) for number in range(BANDS)),
        pa.field("signature", pa.binary(4 * NUM_HASHES)),
    ]
    return pa.schema([field for field in fields if columns is None or field.name in columns])


def _band(number: int) -> str:
    return f"band_{number:02}"
