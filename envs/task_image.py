"""The image of an environment that all tasks of a project share: everything that is installed, but no sources.

Tasks bring their trees, since each lacks another feature. The image is built in two stages. The first has the sources
and installs the project; the second takes the environment from it, and the files that the installation made in the
checkout.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from excise.envs.dockerfile import (
    TOOLS,
    heading,
    image_name,
    installation_lines,
    project_packages,
    python_variables,
    run_command,
    variable_lines,
)
from excise.envs.install.install_sandbox import uv_version
from excise.envs.install.uv_runner import lock_text
from excise.envs.sandbox.mount_points import ENV, HOME, REPO
from excise.types import Environment, Repo, from_json, to_json

RECORD = "environment.json"
"""File that holds the :class:`ImageRecord`."""
PROJECT = "project.tar.xz"
"""File with the untouched sources."""
LOCK = "requirements.txt"
"""File with the locked distributions and their hashes."""
BUILT = "built-files.txt"
"""File with the names of the files that the installation makes in the checkout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRecord:
    """What excise rebuilds the environment from, for its own sandboxes."""

    repo: Repo
    """The sources."""
    environment: Environment
    """The environment."""


def read_record(folder: Path) -> ImageRecord:
    """The record in the folder of an image. Raises ``OSError`` and ``pydantic.ValidationError``."""
    return from_json(ImageRecord, (folder / RECORD).read_bytes())


def image_tag(repo: Repo, environment: Environment) -> str:
    """A name for the image, different for each environment."""
    return f"{image_name(repo)}-env:{environment.env_id[:12]}"


def task_image_files(repo: Repo, environment: Environment, sources: Path) -> Mapping[str, bytes | Path]:
    """File name to content of the build context; ``sources`` is the archive of the untouched sources."""
    built = "".join(f"./{path}\n" for path in environment.built_files)
    return {
        "Dockerfile": task_image_text(repo, environment).encode(),
        LOCK: lock_text(environment.lock, environment.hashes).encode(),
        BUILT: built.encode(),
        PROJECT: sources,
        RECORD: to_json(ImageRecord(repo=repo, environment=environment), indent=1) + b"\n",
    }


def task_image_text(repo: Repo, environment: Environment) -> str:
    """The text of the Dockerfile."""
    recipe = environment.recipe
    python = ".".join(recipe.python.split(".")[:2])
    packages = " ".join([*TOOLS, *project_packages(recipe)])
    parts = [
        heading(repo),
        "# The environment of the project's tasks. It holds no sources: each task brings its own checkout.",
        f"ARG BASE=python:{python}-slim",
        "FROM ${BASE} AS base",
        '# Debian packages; --build-arg SYSTEM_PACKAGES="" for a base that has them.',
        f'ARG SYSTEM_PACKAGES="{packages}"',
        'RUN if [ -n "$SYSTEM_PACKAGES" ]; then apt-get update; for name in $SYSTEM_PACKAGES; do \\\n'
        "    apt-get install -y --no-install-recommends $name || echo no package $name; done; \\\n"
        "    rm -rf /var/lib/apt/lists/*; fi",
        "RUN grep -q ^agent: /etc/passwd || echo agent:x:1000:1000::" + HOME + ":/bin/sh >>/etc/passwd; \\\n"
        f"    mkdir -p {HOME} && chown 1000:1000 {HOME}",
        variable_lines(recipe, python_variables(repo)),
        "FROM base AS build",
        "# Package index and certificates to use instead of uv's own: --build-arg UV_DEFAULT_INDEX=URL\n"
        "ARG UV_DEFAULT_INDEX\nARG SSL_CERT_FILE\nARG PIP_CERT",
        "RUN python3 -m venv /opt/uv && /opt/uv/bin/pip install --no-cache-dir "
        f"${{UV_DEFAULT_INDEX:+--index-url $UV_DEFAULT_INDEX}} uv=={uv_version()} \\\n"
        f" && ln -s /opt/uv/bin/uv /usr/local/bin/uv && uv venv --python {python} --no-python-downloads {ENV}",
        *installation_lines(repo, environment, lock=LOCK, project=PROJECT),
        f"COPY {BUILT} /tmp/{BUILT}",
        f"RUN mkdir /built && tar -cf - --ignore-failed-read -T /tmp/{BUILT} | tar -xf - -C /built",
        "FROM base",
        f"COPY --from=build {ENV} {ENV}",
        f"COPY --from=build /built {REPO}",
        f"RUN chown -R 1000:1000 {REPO} {ENV} && mkdir -p /logs /tests /solution && chmod 777 /logs /tests /solution",
        f"WORKDIR {REPO}",
        "USER 1000:1000",
        f"CMD {json.dumps(run_command(recipe))}",
    ]
    return "\n".join(parts) + "\n"
