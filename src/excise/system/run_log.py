"""The log of one run: JSON lines in the run's folder, and also on stderr if requested.

Modules log through ``logging.getLogger(__name__)``. The message is a short constant, the event; its facts are in
``extra``::

    logger.info("stage ended", extra={"source": "pypi:attrs", "stage": "baseline", "seconds": 12.5})

which becomes ``{"time": "…", "level": "info", "logger": "excise.…", "event": "stage ended", "source": …}``. Without
:func:`run_log` nothing is written: the package's logger has a handler that drops all records. Worker processes of the
run on the same machine call :func:`join_run_log` and log to files of their own in the same folder.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

PACKAGE = "excise"
"""The logger above all loggers of excise's modules."""
FOLDER = "logs"
"""Folder of the logs inside a run's folder; it is not part of a task set's snapshots."""

_VARIABLE = "EXCISE_RUN_LOG"
"""Environment variable by which worker processes of a run find the path of its log file."""
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """Formats a log record as a line of JSON: time (UTC), level, logger, event, then the facts from ``extra``."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its line end."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


@contextmanager
def run_log(folder: Path, *, verbose: bool = False) -> Iterator[Path]:
    """Log to ``FOLDER/logs/run-TIME-PID.jsonl`` until the block ends, and with ``verbose`` also to stderr.

    Yields the file's path. If the folder cannot be written, the run continues without a log file.
    """
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    path = folder / FOLDER / f"run-{now}-{os.getpid()}.jsonl"
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)] if verbose else []
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handlers.append(logging.FileHandler(path, encoding="utf-8"))
        os.environ[_VARIABLE] = str(path.absolute())
    except OSError as error:
        logging.getLogger(__name__).warning("no log file", extra={"path": str(path), "detail": str(error)})
    logger = logging.getLogger(PACKAGE)
    level, propagate = logger.level, logger.propagate
    _attach(handlers)
    try:
        yield path
    finally:
        os.environ.pop(_VARIABLE, None)
        for handler in handlers:
            logger.removeHandler(handler)
            handler.close()
        logger.setLevel(level)
        logger.propagate = propagate


def join_run_log() -> None:
    """Log to ``run-TIME-PID-worker-PID.jsonl`` beside the file of the run that started this process.

    Does nothing in a process that no run has started. The file is made when the first event is logged.
    """
    if run_file := os.environ.get(_VARIABLE):
        path = Path(run_file)
        own_file = path.with_name(f"{path.stem}-worker-{os.getpid()}.jsonl")
        _attach([logging.FileHandler(own_file, encoding="utf-8", delay=True)])


def add_worker_lines(lines: Sequence[str]) -> None:
    """Add what a job on another machine has logged to the log of this process's run, in a file of that worker's own.

    ``lines`` are formatted by :class:`JsonLines`; the first part of the file's name is a number made from the worker's
    name, since pids of different machines may be equal.
    """
    if run_file := os.environ.get(_VARIABLE):
        path = Path(run_file)
        worker, *events = lines
        number = int.from_bytes(hashlib.sha256(worker.encode()).digest()[:6], "big")
        with path.with_name(f"{path.stem}-worker-{number}.jsonl").open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in events)


def _attach(handlers: Sequence[logging.Handler]) -> None:
    """Send the events of all modules of excise, from level INFO on, to the handlers and to no others."""
    logger = logging.getLogger(PACKAGE)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    for handler in handlers:
        handler.setFormatter(JsonLines())
        logger.addHandler(handler)
