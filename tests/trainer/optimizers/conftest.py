"""Adds this folder, with the tiny models and the program of the ranks, to the path."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
