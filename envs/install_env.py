"""What an installing sandbox is given: the package index, proxies and certificates of the host, uv, a cache."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from uv import find_uv_bin

from excise.envs.interpreters import Interpreter
from excise.envs.layout import base_env, open_to_all, project_mounts
from excise.package_index import index_url
from excise.protocols import Mount
from excise.types import Recipe, Repo

UV = "/excise/uv"
"""uv's path inside."""
CACHE = "/excise/cache"
"""Cache of this one installation: what a project's build writes there never reaches another project."""

_PASSED = re.compile(
    r"UV_(EXTRA_INDEX_URL|INDEX|INDEX_STRATEGY|FIND_LINKS|INSECURE_HOST|NATIVE_TLS|SYSTEM_CERTS|HTTP_TIMEOUT|KEYRING_PROVIDER)"
    r"|UV_INDEX_\w+_(USERNAME|PASSWORD)|(HTTP|HTTPS|ALL|NO)_PROXY|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE",
    re.IGNORECASE,
)
_CERTIFICATES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


@cache
def uv_version() -> str:
    """Version of the uv that installs."""
    answer = subprocess.run([find_uv_bin(), "--version"], capture_output=True, text=True, check=True, timeout=30)
    return answer.stdout.split()[1]


def install_environ(repo: Repo, recipe: Recipe, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Variables of an installing session; those of the host that concern index, proxies and certificates."""
    variables = base_env() | dict(recipe.env) | version_variables(repo)
    variables |= {name: value for name, value in environ.items() if _PASSED.fullmatch(name)}
    if index := index_url(environ):
        variables["UV_DEFAULT_INDEX"] = index
    certificates = next((environ[name] for name in _CERTIFICATES if environ.get(name)), "")
    if certificates:
        variables["SSL_CERT_FILE"] = certificates
    return variables | {
        "UV_CACHE_DIR": CACHE,
        "UV_LINK_MODE": "copy",
        "UV_NO_CONFIG": "1",
        "UV_NO_PROGRESS": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_COMPILE_BYTECODE": "1",
        "NO_COLOR": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def install_mounts(interpreter: Interpreter, source_layer: Path, environment: Path | None = None) -> list[Mount]:
    """The checkout and the environment, both writable; uv, its cache, and what a local index or certificates need."""
    open_to_all(source_layer)
    layers = [environment] if environment else []
    mounts = project_mounts(interpreter, [source_layer], layers, writable_env=True)
    mounts.append(Mount(target=UV, layers=(find_uv_bin(),)))
    mounts.append(Mount(target=CACHE, layers=(), writable=True))
    return mounts + [Mount(target=path, layers=(path,)) for path in _host_paths(os.environ)]


def _host_paths(environ: Mapping[str, str]) -> list[str]:
    """Folders and files of the host that the passed settings point to."""
    urls = [index_url(environ), *environ.get("UV_FIND_LINKS", "").split(","), *environ.get("UV_INDEX", "").split()]
    found = [unquote(urlsplit(url).path) for url in urls if url.startswith("file://")]
    found += [url for url in urls if url.startswith("/")]
    found += [environ.get(name, "") for name in _CERTIFICATES]
    outside = [p for p in found if p and Path(p).exists() and not p.startswith(("/etc/ssl", "/usr/"))]
    return list(dict.fromkeys(outside))


def version_variables(repo: Repo) -> dict[str, str]:
    """Tell the version to build tools that would ask git for it: there is no history in the sandbox."""
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
