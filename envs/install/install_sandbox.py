"""Mounts and environment variables of an installing sandbox: uv, a cache, and access to the package indexes."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from uv import find_uv_bin

from excise.envs.index.index_relay import IndexRelay
from excise.envs.install.variables import VIRTUAL_ENVIRONMENT
from excise.envs.interpreters import Interpreter
from excise.envs.sandbox.mount_points import OUTPUTS, base_env, project_mounts
from excise.protocols import Mount
from excise.system.commands import run_command
from excise.types import Recipe, Repo

UV = "/excise/uv"
"""Path of uv inside the sandbox."""
CACHE = "/excise/cache"
"""uv's cache, private to one installation, so that no build of a project can write to the cache of another."""

_CERTIFICATES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_PROXIES = re.compile(r"(HTTP|HTTPS|ALL|NO)_PROXY", re.IGNORECASE)


@cache
def uv_version() -> str:
    """Version of the uv that installs; part of cache keys."""
    return run_command([find_uv_bin(), "--version"], timeout_s=30).stdout.decode().split()[1]


def install_environ(
    repo: Repo, recipe: Recipe, relay: IndexRelay, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Environment variables of an installing session: none of the host's, and the relayed package indexes.

    A recipe whose build needs the network also gets the host's proxies and certificates, except proxies with a
    password in their URL.
    """
    variables = base_env(VIRTUAL_ENVIRONMENT) | dict(recipe.env) | version_variables(repo) | relay.variables()
    if recipe.build_network:
        variables |= {n: v for n, v in environ.items() if _PROXIES.fullmatch(n) and "@" not in v}
        if certificates := _certificates(environ):
            variables["SSL_CERT_FILE"] = certificates[0]
    return variables | {
        "UV_CACHE_DIR": CACHE,
        "UV_LINK_MODE": "copy",
        "UV_NO_CONFIG": "1",
        "UV_NO_PROGRESS": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_HTTP_RETRIES": "1",
        "NO_COLOR": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def install_mounts(
    interpreter: Interpreter,
    source_layers: Sequence[Path],
    relay: IndexRelay,
    recipe: Recipe,
    environment: Sequence[Path] = (),
    byte_code: Path | None = None,
) -> list[Mount]:
    """Mounts of an installing session.

    The checkout and the environment (both writable), uv, its cache, byte code, the index relay, and folders of local
    indexes.
    """
    mounts = project_mounts(interpreter, source_layers, environment, writable_env=True)
    mounts.append(Mount(target=UV, layers=(find_uv_bin(),)))
    mounts.append(Mount(target=CACHE, layers=(), writable=True))
    mounts.append(Mount(target=OUTPUTS, layers=(str(byte_code),) if byte_code else (), writable=True))
    paths = [*relay.settings.local, *(_certificates(os.environ) if recipe.build_network else ())]
    outside = [p for p in dict.fromkeys(paths) if Path(p).exists() and not p.startswith(("/etc/ssl", "/usr/"))]
    return [*mounts, *relay.mounts(), *(Mount(target=path, layers=(path,)) for path in outside)]


def _certificates(environ: Mapping[str, str]) -> list[str]:
    return [environ[name] for name in _CERTIFICATES if environ.get(name)]


def version_variables(repo: Repo) -> dict[str, str]:
    """Return variables that pass the version to build tools that read it from git, which the sandbox has not."""
    version = repo.version if re.fullmatch(r"\d[\w.!+-]*", repo.version) else "0.0.0"
    name = re.sub(r"[-_.]+", "_", repo.repo.rpartition("/")[2]).upper()
    return {
        "SETUPTOOLS_SCM_PRETEND_VERSION": version,
        f"SETUPTOOLS_SCM_PRETEND_VERSION_FOR_{name}": version,
        "PBR_VERSION": version,
        "PDM_BUILD_SCM_VERSION": version,
        "POETRY_DYNAMIC_VERSIONING_BYPASS": version,
        "UV_DYNAMIC_VERSIONING_BYPASS": version,
    }
