"""All attacks on tasks in Python. A new one is one entry in one of the files that this one imports."""

from __future__ import annotations

from excise.verifiers.attacks.python.early_exit import EARLY_EXITS
from excise.verifiers.attacks.python.fake_answers import FAKE_ANSWERS
from excise.verifiers.attacks.python.forged_reports import FORGED_REPORTS
from excise.verifiers.attacks.python.patched_runner import PATCHED_RUNNERS
from excise.verifiers.attacks.python.planted_files import PLANTED_FILES
from excise.verifiers.attacks.python.reported_values import REPORTED_VALUES

ATTACKS = (*PLANTED_FILES, *EARLY_EXITS, *PATCHED_RUNNERS, *FORGED_REPORTS, *FAKE_ANSWERS, *REPORTED_VALUES)
