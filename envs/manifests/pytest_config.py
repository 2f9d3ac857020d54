"""Reader of pytest's configuration, with pytest's own precedence of files."""

from __future__ import annotations

import configparser
import re
import shlex
from pathlib import Path

from excise.envs.manifests.manifest import Manifest, table, words
from excise.envs.manifests.pyproject import load_pyproject


def read_pytest(root: Path) -> Manifest:
    """Read the configuration that pytest would use: its own files, pyproject.toml, tox.ini, setup.cfg."""
    for source, settings in _configurations(root):
        if settings is not None:
            return _manifest(source, settings)
    return Manifest()


def _configurations(root: Path) -> list[tuple[str, dict[str, object] | None]]:
    pyproject = load_pyproject(root)
    tool = table(pyproject, "tool")
    native = {k: v for k, v in table(tool, "pytest").items() if k != "ini_options"}
    return [
        ("pytest.ini", _ini(root / "pytest.ini", "pytest", always=True)),
        (".pytest.ini", _ini(root / ".pytest.ini", "pytest", always=True)),
        ("pyproject.toml", native or (table(tool, "pytest", "ini_options") if "pytest" in tool else None)),
        ("tox.ini", _ini(root / "tox.ini", "pytest")),
        ("setup.cfg", _ini(root / "setup.cfg", "tool:pytest")),
    ]


def _ini(path: Path, section: str, *, always: bool = False) -> dict[str, object] | None:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    except configparser.Error:
        return {} if always else None
    if parser.has_section(section):
        return dict(parser[section])
    return {} if always else None


def _manifest(source: str, settings: dict[str, object]) -> Manifest:
    addopts = _split(settings.get("addopts"))
    testpaths = _split(settings.get("testpaths"))
    filters = words(settings.get("filterwarnings"))
    shown = {"testpaths": testpaths, "addopts": addopts}
    return Manifest(
        addopts=addopts,
        testpaths=testpaths,
        python_files=_split(settings.get("python_files")),
        pytest_keys=tuple(settings),
        required_plugins=_split(settings.get("required_plugins")),
        strict_warnings=any(f.split(":")[0].strip() == "error" for f in filters),
        evidence=tuple(f"{source}: {key} = {' '.join(value)}" for key, value in shown.items() if value),
    )


def _split(value: object) -> tuple[str, ...]:
    if isinstance(value, list):
        return words(value)
    if not isinstance(value, str):
        return ()
    text = re.sub(r"(?m)(^|\s)#.*$", "", value)
    try:
        return tuple(shlex.split(text))
    except ValueError:
        return tuple(text.split())
