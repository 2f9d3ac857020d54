"""A program that makes training runs which a test kills: each in a process forked from this one.

This process has loaded torch already, so that runs begin at once. A line of input is ``FOLDER STEPS [--resume]``.
Answers: ``pid N``, ``step N`` as each step begins, ``done DIGEST``, and ``ended N`` with the exit code, negative for a
signal.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

TRAINER_TESTS = Path(__file__).parents[1]


def import_tiny_run() -> Any:
    """``tests/trainer/tiny_run.py``, which has relative imports: as a member of a package that is made here."""
    spec = importlib.util.spec_from_loader("trainer_tests", loader=None, is_package=True)
    assert spec is not None
    package = importlib.util.module_from_spec(spec)
    package.__path__ = [str(TRAINER_TESTS)]
    sys.modules["trainer_tests"] = package
    return importlib.import_module("trainer_tests.tiny_run")


def run(tiny: Any, folder: str, steps: str, *resume: str) -> None:
    """Make one run, and print each step as it begins."""
    run = tiny.TinyRun(Path(folder), replace(tiny.QUICK, steps=int(steps), checkpoint_every=3))
    step = run.learner.step

    def announced_step(groups: Any, version: int) -> Any:
        print(f"step {version + 1}", flush=True)
        return step(groups, version)

    run.learner.step = announced_step
    run.run(resume="--resume" in resume)
    digest = hashlib.sha256(b"".join(t.numpy().tobytes() for t in run.weights().values())).hexdigest()
    print(f"done {digest}", flush=True)


def main() -> None:
    """Make a run for each line of input."""
    tiny = import_tiny_run()
    importlib.import_module("transformers.models.qwen3.modeling_qwen3")
    importlib.import_module("torch.distributed.checkpoint")
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            print(f"pid {os.getpid()}", flush=True)
            try:
                run(tiny, *line.split())
            except BaseException as error:
                print(f"failed {error!r}", flush=True)
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        print(f"ended {os.waitstatus_to_exitcode(status)}", flush=True)


if __name__ == "__main__":
    main()
