"""The wheel has every module and data file, and works after installation."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from .test_layout import MAY_IMPORT, ROOT, tracked


def run(*command: str, cwd: Path) -> str:
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with an sdist of the checkout and a wheel of the sdist, both built offline."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT), cwd=out)
    return out


def expected() -> set[str]:
    """Paths in the wheel of every module and data file of the package."""
    found = set()
    for path in tracked():
        inside = path.relative_to(ROOT)
        if inside.parts[0] in MAY_IMPORT:
            found.add(f"excise/{inside.as_posix()}")
        elif inside.parts[:2] == ("src", "excise"):
            found.add(inside.relative_to("src").as_posix())
    return found


def test_the_wheel_holds_everything_and_nothing_else(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert names == expected()
    assert "excise/py.typed" in names
    assert "excise/datasets/storage/store.py" in names


def test_the_sdist_holds_the_tests_and_the_licence(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {
        "LICENSE",
        "pyproject.toml",
        "README.md",
        "tests/packaging/test_wheel.py",
        "datasets/storage/store.py",
    } <= names


def test_the_wheel_works_where_it_is_installed(built: Path, tmp_path: Path) -> None:
    """In a new environment with this one's dependencies, outside the checkout."""
    home = tmp_path / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    python = str(home / "bin" / "python")
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip())
    run(
        sys.executable, "-m", "uv", "pip", "install", "--quiet", "--offline", "--no-deps", "--python", python,
        str(next(built.glob("*.whl"))), cwd=tmp_path,
    )  # fmt: skip
    here = [path for path in sys.path if path.endswith("site-packages")]
    (site / "borrowed.pth").write_text("".join(f"{path}\n" for path in here))
    code = "import excise, excise.datasets.storage.store as s\n"
    code += "print(excise.__version__, excise.TaskSet.__name__, s.__file__)"
    version, name, file = run(python, "-P", "-c", code, cwd=tmp_path).split()
    assert (version[0].isdigit(), name) == (True, "TaskSet")
    assert Path(file).is_relative_to(home)
    assert not (site / "datasets").exists()
