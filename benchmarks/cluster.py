"""A run on a large cluster, simulated with measured times, and the measurements that it needs.

``python benchmarks/cluster.py simulate SET [--sources 10000] [--slots 200] [--slots-per-machine 8] [--price 0.05] …``
    Draws sources from those of a finished set, with the times of their jobs from its logs, and runs them through
    excise's own queue and order of jobs on a virtual clock. A job on a machine that lacks the layers of its source
    fetches them first, through one link of ``--relay`` MB/s (the scheduler), or with ``--store`` at 100 MB/s for each
    machine. Prints hours, cost, bytes, how busy the main process and the link are, and the number of slots at which
    each of them is full.
``python benchmarks/cluster.py scheduler [--workers 10,20,40] [--jobs 2000,6000]``
    A real scheduler: its memory for each worker, and for each job that has ended, as slopes of two measurements; CPU
    for each job, of the scheduler and of this process.
``python benchmarks/cluster.py relay [--megabytes 200] [--workers 1,3]``
    Layers through a real scheduler, in the parts that excise sends: MB/s, and CPU seconds of the scheduler and of the
    main process for each GB.
``python benchmarks/cluster.py layers CACHE``
    Packed and unpacked sizes of the layers of finished environments in a cache.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scheduling import CHAIN, Job, Source, sources_of

from excise.pipeline.cluster.artifacts import CHUNK_BYTES
from excise.pipeline.cluster.local_cluster import cluster_client
from excise.pipeline.cluster.packed_layers import pack_layer
from excise.pipeline.cluster.relay import MainProcess, ask
from excise.pipeline.cluster.worker_pool import JobResult
from excise.pipeline.run.job_queue import JobQueue
from excise.pipeline.run.priorities import max_active_sources

STORE_MB_S = 100.0
"""Rate at which one machine reads from an object store, in MB/s."""
SEED = 16


# ------------------------------------------------------------------------------------------------ simulation
@dataclass
class Link:
    """What all transfers of a run share."""

    mb_s: float
    free_at: float = 0.0
    busy_s: float = 0.0

    def transfer(self, now: float, megabytes: float) -> float:
        """Seconds until a transfer that is asked for now is done: transfers are made one after the other."""
        seconds = megabytes / self.mb_s
        self.free_at = max(self.free_at, now) + seconds
        self.busy_s += seconds
        return self.free_at - now


@dataclass
class Pool:
    """Slots on machines, on a virtual clock."""

    slots: int
    per_machine: int
    link: Link | None
    """The way through the scheduler; ``None``: each machine reads from an object store."""
    layer_mb: float
    near: bool = True
    """Whether machines get jobs whose layers they have, if there are any that should go soon."""
    has_machines: bool = True
    now: float = 0.0
    fetched_mb: float = 0.0
    stored_mb: float = 0.0
    waited_s: float = 0.0
    busy_s: float = 0.0

    def __post_init__(self) -> None:
        machines = -(-self.slots // self.per_machine)
        self.free = dict.fromkeys(range(machines), self.per_machine)
        self.free[machines - 1] = self.slots - self.per_machine * (machines - 1)
        self.idle = set(self.free)
        self.homes: dict[int, set[int]] = {}
        self.known: list[set[int]] = [set() for _ in self.free]
        self._running: list[tuple[float, int, int]] = []
        self._numbers = itertools.count()

    def num_slots(self) -> int:
        """Number of slots."""
        return self.slots

    def prefer(self, groups: Sequence[Any]) -> int:
        """As :class:`excise.pipeline.cluster.cluster_pool.ClusterPool` does."""
        if not self.near:
            return 0
        return next((n for n, source in enumerate(groups) if not self.idle.isdisjoint(self.homes.get(source, ()))), 0)

    def submit(self, function: Callable[..., Any], args: tuple[Any, ...]) -> int:  # noqa: ARG002
        """Begin a job on its source's machine if that has a slot, else on the idlest."""
        job: Job = args[0]
        source = id(job.source)
        homes = self.homes.setdefault(source, set())
        machine = max(self.idle, key=lambda one: (one in homes, self.free[one]))
        self.free[machine] -= 1
        if not self.free[machine]:
            self.idle.discard(machine)
        homes.add(machine)
        seconds = job.seconds + self._transfer(job, source, machine)
        self.busy_s += seconds
        number = next(self._numbers)
        heapq.heappush(self._running, (self.now + seconds, number, machine))
        return number

    def _transfer(self, job: Job, source: int, machine: int) -> float:
        """Seconds for layers that the machine lacks, and for those that it makes."""
        if job.stage == "fetch":
            return 0.0
        if job.stage == "environment":
            self.stored_mb += self.layer_mb
        elif source not in self.known[machine]:
            self.fetched_mb += self.layer_mb
        else:
            return 0.0
        self.known[machine].add(source)
        link = self.link
        seconds = link.transfer(self.now, self.layer_mb) if link else self.layer_mb / STORE_MB_S
        self.waited_s += seconds
        return seconds

    def wait(self) -> tuple[int, JobResult]:
        """Go on to the time at which the next job ends."""
        self.now, number, machine = heapq.heappop(self._running)
        self.free[machine] += 1
        self.idle.add(machine)
        return number, JobResult()

    def cancel(self) -> None:
        """Forget what is running."""
        self._running.clear()


def drawn(sources: Sequence[Source], number: int) -> deque[Source]:
    """Sources with the times of measured ones, each drawn about equally often."""
    chance = random.Random(SEED)
    order = [sources[n % len(sources)] for n in range(number)]
    chance.shuffle(order)
    return deque(Source(s.num_bytes, s.suite_s, dict(s.stages), list(s.candidates)) for s in order)


def run_virtually(waiting: deque[Source], pool: Pool) -> tuple[list[float], float]:
    """Run all sources; return when each candidate was done, and the CPU seconds of the queue itself."""
    jobs: JobQueue[Job] = JobQueue(pool)
    done: list[float] = []
    left: dict[int, int] = {}
    began = time.process_time()

    def put(source: Source, stage: Any, seconds: float, candidates: int) -> None:
        job = Job(source, stage, seconds, candidates)
        jobs.put(job, job.rank(), print, job, group=id(source))

    def admit() -> None:
        while waiting and len(left) < max_active_sources(pool.slots):
            source = waiting.popleft()
            left[id(source)] = len(source.candidates)
            put(source, "fetch", source.stages.get("fetch", 1.0), len(source.candidates))

    admit()
    for job, _ in jobs:
        source = job.source
        if job.stage == "prove":
            done.append(pool.now)
            left[id(source)] -= 1
            if not left[id(source)]:
                del left[id(source)]
                admit()
        elif job.stage == "find":
            for number, seconds in enumerate(source.candidates):
                put(source, "prove", seconds, len(source.candidates) - number)
        else:
            following = CHAIN[CHAIN.index(job.stage) + 1]
            put(source, following, source.stages.get(following, 0.0), len(source.candidates))
    return done, time.process_time() - began


def simulate(options: argparse.Namespace) -> None:
    """Simulate a run, and say what is full first."""
    measured = sources_of(Path(options.set))
    sources = drawn(measured, options.sources)
    work = sum(sum(s.stages.values()) + sum(s.candidates) for s in sources)
    longest = max(sum(s.stages.values()) + max(s.candidates) for s in sources)
    candidates = sum(len(s.candidates) for s in sources)
    print(
        f"{len(measured)} measured sources; drawn: {len(sources)}, {candidates} candidates, {work / 3600:.0f} h of work"
    )
    print(f"of it: {shares(sources, work)}")
    link = None if options.store else Link(options.relay)
    pool = Pool(options.slots, options.slots_per_machine, link, options.layer_mb, near=not options.far)
    done, queue_s = run_virtually(sources, pool)
    end, best = pool.now, max(work / options.slots, longest)
    main_s = candidates * options.main_ms / 1000 + queue_s
    jobs = candidates + 5 * options.sources
    scheduler_s = jobs * options.scheduler_ms / 1000
    remembered = min(jobs, options.jobs_remembered) * options.job_kb / 1024
    scheduler_mb = options.scheduler_mb + options.slots * options.worker_mb + remembered
    machine_hours = len(pool.free) * options.slots_per_machine * end / 3600
    half, waiting_s = done[len(done) // 2] / 3600, pool.waited_s
    print(f"end {end / 3600:.2f} h, {end / best:.2f} of the best possible; half of the candidates after {half:.2f} h")
    print(f"slots busy {100 * pool.busy_s / (options.slots * end):.1f} %", end=", ")
    print(f"of it waiting for layers {100 * waiting_s / pool.busy_s:.1f} %")
    cost = machine_hours * options.price
    print(f"cost {cost:.0f} at {options.price} for a core hour, {machine_hours:.0f} core hours")
    print(f"layers: {pool.stored_mb / 1e3:.0f} GB stored, {pool.fetched_mb / 1e3:.0f} GB fetched")
    print(f"queue {1e6 * queue_s / jobs:.0f} µs a job; scheduler memory {scheduler_mb:.0f} MB")
    loads = {"main process": main_s / end, "scheduler CPU": scheduler_s / end}
    if link:
        loads["link"] = link.busy_s / end
    for name, load in sorted(loads.items(), key=lambda entry: -entry[1]):
        print(f"{name}: {100 * load:.1f} % busy, full at about {options.slots / load:.0f} slots")


def shares(sources: Sequence[Source], work: float) -> str:
    """The share of each stage in all work."""
    parts = {stage: sum(s.stages.get(stage, 0.0) for s in sources) for stage in CHAIN}
    parts["prove"] = sum(sum(s.candidates) for s in sources)
    return ", ".join(f"{stage} {100 * seconds / work:.1f} %" for stage, seconds in parts.items())


# ------------------------------------------------------------------------------------------------ measurements
@contextmanager
def scheduler(folder: Path) -> Iterator[tuple[str, int]]:
    """The address and the pid of a scheduler in a process of its own."""
    facts = folder / f"scheduler-{time.monotonic_ns()}.json"
    command = [sys.executable, "-m", "dask", "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    process = subprocess.Popen([*command, "--scheduler-file", str(facts)], stderr=subprocess.DEVNULL)
    try:
        while not facts.exists() or not facts.read_text():
            time.sleep(0.2)
        yield json.loads(facts.read_text())["address"], process.pid
    finally:
        process.kill()
        process.wait()


@contextmanager
def workers(address: str, number: int) -> Iterator[None]:
    """Workers of one thread each, all in one other process, to save memory."""
    program = (
        "import asyncio, sys\nfrom distributed import Worker\n"
        "async def main():\n"
        "    all = [await Worker(sys.argv[1], nthreads=1, dashboard=False) for _ in range(int(sys.argv[2]))]\n"
        "    await asyncio.gather(*(worker.finished() for worker in all))\n"
        "asyncio.run(main())\n"
    )
    command = [sys.executable, "-c", program, address, str(number)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=tempfile.gettempdir())
    try:
        yield
    finally:
        process.kill()
        process.wait()


def usage(pid: int) -> tuple[float, float]:
    """Resident megabytes and CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resident / (1 << 20), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def nothing(number: int) -> int:
    """A job."""
    return number


def measure_scheduler(options: argparse.Namespace) -> None:
    """Memory and CPU of a scheduler, for workers and for jobs; as many jobs are in flight as there are workers."""
    from distributed import as_completed

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for number in map(int, options.workers.split(",")):
            with (
                scheduler(Path(folder)) as (address, pid),
                cluster_client(address, 0) as client,
                workers(address, number),
            ):
                client.wait_for_workers(number, timeout=300)
                time.sleep(3)
                resident, _ = usage(pid)
                row = [float(number), resident]
                for jobs in map(int, options.jobs.split(",")):
                    before, own = usage(pid), time.process_time()
                    numbers = iter(range(jobs))
                    flying = as_completed(
                        [client.submit(nothing, n, pure=False) for n in itertools.islice(numbers, number)]
                    )
                    for future in flying:
                        future.release()
                        for n in itertools.islice(numbers, 1):
                            flying.add(client.submit(nothing, n, pure=False))
                    after = usage(pid)
                    row += [
                        jobs,
                        after[0],
                        1e3 * (after[1] - before[1]) / jobs,
                        1e3 * (time.process_time() - own) / jobs,
                    ]
                rows.append(row)
                print(
                    "workers, MB, then for each number of jobs: jobs, MB after, scheduler ms, client ms a job:", end=" "
                )
                print(" ".join(f"{value:.2f}" for value in row), flush=True)
    first, last = rows[0], rows[-1]
    if last[0] > first[0]:
        print(f"{1024 * (last[1] - first[1]) / (last[0] - first[0]):.0f} kB for each worker")
    print(f"{1024 * (last[-3] - last[3]) / last[-4]:.2f} kB for each job of the last round")


def fetch(run: str, total: int) -> float:
    """Fetch bytes as a worker does; runs on one. Returns seconds."""
    began, start = time.monotonic(), 0
    while start < total:
        start += len(ask(run, "read artifact", digest="", start=start))
    return time.monotonic() - began


def measure_relay(options: argparse.Namespace) -> None:
    """Layers through the scheduler."""
    data = os.urandom(CHUNK_BYTES)
    total = options.megabytes << 20
    with tempfile.TemporaryDirectory() as folder:
        for number in map(int, options.workers.split(",")):
            with (
                scheduler(Path(folder)) as (address, pid),
                cluster_client(address, 0) as client,
                workers(address, number),
            ):
                client.wait_for_workers(number, timeout=300)
                main = MainProcess(client, "bench", lambda *_: data)
                before, own, began = usage(pid), time.process_time(), time.monotonic()
                done = [client.submit(fetch, "bench", total // number, pure=False) for _ in range(number)]
                client.gather(done)
                seconds, after = time.monotonic() - began, usage(pid)
                main.close()
            gigabytes = total / 1e9
            there, here = (after[1] - before[1]) / gigabytes, (time.process_time() - own) / gigabytes
            print(f"{number} workers: {total / 1e6 / seconds:.0f} MB/s", end="; ")
            print(f"CPU s for each GB: scheduler {there:.1f}, main process {here:.1f}", end="; ")
            print(f"scheduler {before[0]:.0f} -> {after[0]:.0f} MB", flush=True)


def measure_layers(options: argparse.Namespace) -> None:
    """Sizes of what a machine fetches for one source: environment, byte code, built files."""
    packed, plain = [], []
    for record in sorted(Path(options.cache).glob("envs/*/environment.json"))[: options.most]:
        sums = [0, 0]
        for layer in (record.with_name(name) for name in ("env", "pyc", "built")):
            if layer.is_dir():
                with tempfile.TemporaryDirectory() as folder:
                    pack_layer(layer, Path(folder, "packed"))
                    sums[0] += Path(folder, "packed").stat().st_size
                sums[1] += sum(path.lstat().st_size for path in layer.rglob("*") if path.is_file())
        packed.append(sums[0] / 1e6)
        plain.append(sums[1] / 1e6)
    for name, sizes in (("packed", packed), ("plain", plain)):
        middle, most = statistics.median(sizes), max(sizes)
        mean = statistics.mean(sizes)
        print(f"{name}: {len(sizes)} environments, MB: median {middle:.1f}, mean {mean:.1f}, most {most:.1f}")


def main() -> None:
    """Measure or simulate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("simulate")
    one.add_argument("set")
    one.add_argument("--sources", type=int, default=10_000)
    one.add_argument("--slots", type=int, default=200)
    one.add_argument("--slots-per-machine", type=int, default=8)
    one.add_argument("--price", type=float, default=0.05, help="price of a core hour")
    one.add_argument("--store", action="store_true", help="layers travel through an object store")
    one.add_argument("--far", action="store_true", help="machines get jobs wherever their layers are")
    one.add_argument("--relay", type=float, default=60.0, help="MB/s through the scheduler")
    one.add_argument("--layer-mb", type=float, default=12.0, help="packed layers of one source")
    one.add_argument("--main-ms", type=float, default=20.0, help="CPU of the main process for each candidate")
    one.add_argument("--scheduler-ms", type=float, default=1.0, help="CPU of the scheduler for each job")
    one.add_argument("--scheduler-mb", type=float, default=90.0, help="memory of an idle scheduler")
    one.add_argument("--worker-mb", type=float, default=0.5, help="memory of the scheduler for each worker")
    one.add_argument("--job-kb", type=float, default=4.3, help="memory of the scheduler for each job that has ended")
    one.add_argument("--jobs-remembered", type=int, default=100_000, help="jobs after which it forgets the oldest")
    one.set_defaults(command=simulate)
    two = commands.add_parser("scheduler")
    two.add_argument("--workers", default="10,20,40")
    two.add_argument("--jobs", default="2000,6000")
    two.set_defaults(command=measure_scheduler)
    three = commands.add_parser("relay")
    three.add_argument("--megabytes", type=int, default=200)
    three.add_argument("--workers", default="1,3")
    three.set_defaults(command=measure_relay)
    four = commands.add_parser("layers")
    four.add_argument("cache")
    four.add_argument("--most", type=int, default=40)
    four.set_defaults(command=measure_layers)
    options = parser.parse_args()
    options.command(options)


if __name__ == "__main__":
    main()
