"""The search for interpreters skips folders that this user may not read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

AS_NOBODY = """
import os
from excise.envs import interpreters
if os.geteuid() == 0:
    os.seteuid(65534)
print(len(list(interpreters._candidates())))
"""


def test_a_folder_that_may_not_be_read_holds_no_interpreters(tmp_path: Path) -> None:
    locked = tmp_path / "pyenv"
    (locked / "versions" / "3.11.9" / "bin").mkdir(parents=True)
    locked.chmod(0)
    environ = os.environ | {"PYENV_ROOT": str(locked / "versions"), "UV_PYTHON_INSTALL_DIR": str(locked / "versions")}
    try:
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY], env=environ, capture_output=True, text=True, check=False
        )
    finally:
        locked.chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0
