"""The package index that this machine is configured to use.

pip, uv and the sources of excise use the same index. An empty URL means the tool's default index.
"""

from __future__ import annotations

import configparser
import os
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")


def index_url(environ: Mapping[str, str] = os.environ) -> str:
    """Return the URL of the simple index (PEP 503); empty if none is configured.

    The first of these that names one counts: ``UV_DEFAULT_INDEX``, ``UV_INDEX_URL``, ``PIP_INDEX_URL``, pip's
    configuration files, uv's configuration files.
    """
    for name in _VARIABLES:
        if value := environ.get(name, "").strip():
            return value.partition("=")[2] if value.split("=")[0].isidentifier() and "=" in value else value
    return next((url for url in (*_pip_files(environ), *_uv_files(environ)) if url), "")


def _pip_files(environ: Mapping[str, str]) -> Iterator[str]:
    home = Path(environ.get("HOME") or Path.home())
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    files = [Path(sys.prefix, "pip.conf"), config / "pip/pip.conf", home / ".pip/pip.conf", Path("/etc/pip.conf")]
    if chosen := environ.get("PIP_CONFIG_FILE"):
        files = [] if chosen == os.devnull else [Path(chosen), *files]
    for path in files:
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        try:
            parser.read_string(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, configparser.Error):
            continue
        for section in ("install", "global"):
            yield parser.get(section, "index-url", fallback="").strip()


def _uv_files(environ: Mapping[str, str]) -> Iterator[str]:
    home = Path(environ.get("HOME") or Path.home())
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    for path in (config / "uv/uv.toml", Path("/etc/uv/uv.toml")):
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        for index in data.get("index", []):
            if isinstance(index, dict) and index.get("default"):
                yield str(index.get("url", ""))
        yield str(data.get("index-url", ""))
