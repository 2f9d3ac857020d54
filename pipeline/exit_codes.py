"""Exit codes of the commands."""

from __future__ import annotations

OK, FAILED, USAGE, PARTIAL, INFRA, INTERRUPTED = 0, 1, 2, 3, 4, 130
"""What each command returns them for is in its help text."""
