"""The log of one run: JSON lines in the run's folder, and on stderr where somebody asks for it.

Modules log through ``logging.getLogger(__name__)``: a short constant event as the message, its facts in ``extra``::

    logger.info("stage ended", extra={"source": "pypi:attrs", "stage": "baseline", "seconds": 12.5})

which becomes ``{"time": "…", "level": "info", "logger": "excise.…", "event": "stage ended", "source": …}``. Without
:func:`run_log` nothing is written: the package's logger has a handler that drops all records.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

PACKAGE = "excise"
"""The logger above all loggers of excise's modules."""
FOLDER = "logs"
"""Folder of the logs inside a run's folder; no part of a task set's snapshots."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """A record as one line of JSON: time (UTC), level, logger, event, then the facts given as ``extra``."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its line end."""
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
    """Log to ``FOLDER/logs/run-TIME-PID.jsonl`` until the block ends; ``verbose``: to stderr as well.

    Yields the file's path. A folder that cannot be written costs the file and not the run.
    """
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    path = folder / FOLDER / f"run-{now}-{os.getpid()}.jsonl"
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)] if verbose else []
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handlers.append(logging.FileHandler(path, encoding="utf-8"))
    except OSError as error:
        logging.getLogger(__name__).warning("no log file", extra={"path": str(path), "detail": str(error)})
    logger = logging.getLogger(PACKAGE)
    level, propagate = logger.level, logger.propagate
    logger.setLevel(logging.INFO)
    logger.propagate = False
    for handler in handlers:
        handler.setFormatter(JsonLines())
        logger.addHandler(handler)
    try:
        yield path
    finally:
        for handler in handlers:
            logger.removeHandler(handler)
            handler.close()
        logger.setLevel(level)
        logger.propagate = propagate
