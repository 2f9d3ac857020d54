"""A thousand tasks from projects that were not chosen by what works.

Run: ``python benchmarks/thousand.py OUT [PROJECTS] [KILLS]``. Draws PROJECTS (60) names from ``projects.txt``, a list
of well-known names that was written down before any of them was tried: those whose SHA-256 is smallest. Runs
``excise generate`` on them, kills all of its processes with SIGKILL KILLS (3) times on the way, and runs the same
command again. Prints the funnel by reason, and the CPU seconds and bytes of each task.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from excise.datasets.storage.snapshot import Snapshot

NAMES = Path(__file__).resolve().parent / "projects.txt"
EXCISE = str(Path(sys.executable).with_name("excise"))
WANTED = 1000
"""Number of tasks."""
QUERIES = {
    "What came of each project?": "SELECT repo, status, num_passing, num_candidates, num_tasks FROM funnel",
    "Why were candidates refused?": "SELECT reason, count(*) AS num FROM rejections GROUP BY ALL ORDER BY num DESC",
    "What does a task cost?": """
        SELECT count(*) AS tasks, round((SELECT sum(cpu_s) FROM costs) / count(*), 1) AS cpu_s_per_task,
            round((SELECT sum(written_bytes) FROM (SELECT DISTINCT run, pid, job, written_bytes FROM costs))
                / count(*) / 1000) AS kb_written_per_task
        FROM tasks""",
}


def drawn(number: int) -> list[str]:
    """The names whose hashes are smallest."""
    names = NAMES.read_text(encoding="utf-8").split()
    return sorted(sorted(names, key=lambda name: hashlib.sha256(name.encode()).hexdigest())[:number])


def num_tasks(out: Path) -> int:
    """Number of published tasks of a set."""
    snapshot = Snapshot.current(out)
    return snapshot.manifest.num_tasks if snapshot else 0


def run_and_kill(command: list[str], out: Path, kill_at: int | None) -> bool:
    """Run the command; kill its session when the set has ``kill_at`` tasks. Return whether it ended by itself."""
    running = subprocess.Popen(command, start_new_session=True)
    while running.poll() is None:
        time.sleep(5 + random.random())
        if kill_at is not None and num_tasks(out) >= kill_at:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
            print(f"killed with SIGKILL at {num_tasks(out)} tasks", flush=True)
            return False
    return True


def main() -> None:
    """Make the tasks, with kills on the way, and print what came of it."""
    out = Path(sys.argv[1])
    projects = drawn(int(sys.argv[2]) if len(sys.argv) > 2 else 60)
    kills = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    limit = -(-3 * WANTED // len(projects))
    command = [EXCISE, "generate", "--out", str(out), "--limit", str(limit), "--total", str(WANTED)]
    command += ["--workers", str((os.cpu_count() or 1) + 3)]  # some suites sleep most of the time
    command += [f"pypi:{name}" for name in projects]
    print(f"{len(projects)} projects, at most {limit} tasks each: {' '.join(projects)}", flush=True)
    began = time.monotonic()
    for number in range(kills):
        if run_and_kill(command, out, (number + 1) * WANTED // (kills + 1)):
            break
    run_and_kill(command, out, None)
    print(f"{num_tasks(out)} tasks in {(time.monotonic() - began) / 3600:.1f} hours")
    for title, query in QUERIES.items():
        print(f"\n{title}", flush=True)
        subprocess.run([EXCISE, "query", "--out", str(out), query], check=False)


if __name__ == "__main__":
    main()
