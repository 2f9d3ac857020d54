"""Exit codes of the commands."""

from __future__ import annotations

OK, FAILED, USAGE, PARTIAL, INFRA, INTERRUPTED = 0, 1, 2, 3, 4, 130
"""Each command's help text says when it returns which code."""
