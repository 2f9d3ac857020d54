"""Writes an environment as a Dockerfile for plain ``docker build``, with all files that it needs."""

from __future__ import annotations

import base64
import gzip
import json
import re
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from excise.envs.install.install_sandbox import uv_version, version_variables
from excise.envs.install.uv_installer import PLACER
from excise.envs.install.uv_runner import lock_text
from excise.envs.install.variables import VIRTUAL_ENVIRONMENT
from excise.envs.model_driven.mock_files import MOCKS
from excise.envs.sandbox.mount_points import ENV, HOME, REPO, base_env
from excise.types import Environment, Recipe, Repo

TOOLS = ("build-essential", "git", "pkg-config")
"""System packages of every image: compilers for distributions without wheels, and git, which many tests call."""
_SHELL_OPTIONS = "set -euo pipefail\n"
_OURS = frozenset({"PATH", "HOME", "USER", "LOGNAME", "TMPDIR"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenImage:
    """Paths of the files written for one image."""

    dockerfile: Path
    """The Dockerfile; its folder is the build context."""
    lock: Path
    """Requirements with hashes."""
    project: Path
    """Archive (tar.gz) of the project's files."""
    tag: str
    """A suitable name for the image."""


def write_dockerfile(path: Path, repo: Repo, environment: Environment, sources: Path) -> WrittenImage:
    """Write ``path``, and beside it ``PATH.requirements.txt`` and ``PATH.project.tar.gz``.

    ``sources`` is the folder with the pristine files. Raises ``OSError``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    written = WrittenImage(
        dockerfile=path,
        lock=path.with_name(f"{path.name}.requirements.txt"),
        project=path.with_name(f"{path.name}.project.tar.gz"),
        tag=f"{image_name(repo)}:{environment.env_id[:12]}",
    )
    written.lock.write_text(lock_text(environment.lock, environment.hashes), encoding="utf-8")
    _pack(sources, written.project)
    text = dockerfile_text(repo, environment, lock=written.lock.name, project=written.project.name)
    path.write_text(text, encoding="utf-8")
    return written


def image_name(repo: Repo) -> str:
    """A name for images of a project."""
    return f"excise-{re.sub(r'[^a-z0-9]+', '-', repo.repo.lower()).strip('-')}"


def heading(repo: Repo) -> str:
    """The comment, on one line, that says what an image is for."""
    return f"# {' '.join(f'{repo.repo} {repo.version}: {repo.source}'.split())}"


def dockerfile_text(repo: Repo, environment: Environment, *, lock: str, project: str) -> str:
    """The text of the Dockerfile; ``lock`` and ``project`` are file names in the build context."""
    recipe = environment.recipe
    parts = [
        f"{heading(repo)}\n# Build it in the folder of this file.",
        f"FROM python:{'.'.join(recipe.python.split('.')[:2])}-slim",
        "# Package index to use instead of uv's own: --build-arg UV_DEFAULT_INDEX=URL\nARG UV_DEFAULT_INDEX",
        _system(recipe),
        f"RUN pip install --no-cache-dir ${{UV_DEFAULT_INDEX:+--index-url $UV_DEFAULT_INDEX}} uv=={uv_version()} \\\n"
        f" && uv venv {ENV} && useradd --non-unique --uid 1000 --create-home --home-dir {HOME} agent",
        variable_lines(recipe, python_variables(repo)),
        *installation_lines(repo, environment, lock=lock, project=project),
        f"RUN chown -R agent {REPO} {ENV}\nUSER agent",
        f"CMD {json.dumps(run_command(recipe))}",
    ]
    return "\n".join(parts) + "\n"


def installation_lines(repo: Repo, environment: Environment, *, lock: str, project: str) -> list[str]:
    """Return the instructions that install the lock and the project, or that run the recipe's commands."""
    recipe = environment.recipe
    added = f"ADD {project} {REPO}/\nWORKDIR {REPO}"
    copied = f"COPY {lock} /tmp/requirements.txt\n"
    if recipe.commands or recipe.mocks:
        return [added, copied + command_lines(recipe, "/tmp/requirements.txt")]
    python = f"{ENV}/bin/python"
    hashed = "--require-hashes " if environment.lock and set(environment.lock) <= environment.hashes.keys() else ""
    cutoff = f" --exclude-newer {recipe.cutoff}" if recipe.cutoff else ""
    locked = f"RUN uv pip install --python {python} --no-deps {hashed}--no-cache{cutoff} -r /tmp/requirements.txt"
    return [copied + locked, added, _project(repo, recipe, python, cutoff)]


def run_command(recipe: Recipe) -> list[str]:
    """The command that runs the tests, with the options that excise adds itself."""
    fixed = ["-p", "no:cacheprovider", "--continue-on-collection-errors", "--rootdir", REPO, "-o", "addopts="]
    return ["python", "-m", "pytest", *fixed, *recipe.test_args, *recipe.test_paths]


def project_packages(recipe: Recipe) -> list[str]:
    """The system packages that the project names, without :data:`TOOLS`."""
    return [n for n in recipe.system_packages if n not in TOOLS and re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", n)]


def _system(recipe: Recipe) -> str:
    """The instruction that installs system packages; it skips those that the distribution lacks, since names differ."""
    names = project_packages(recipe)
    lines = [f"RUN apt-get update && apt-get install -y --no-install-recommends {' '.join(TOOLS)}"]
    if names:
        lines.append(
            f" && for name in {' '.join(names)}; do apt-get install -y --no-install-recommends $name || true; done"
        )
    return " \\\n".join([*lines, " && rm -rf /var/lib/apt/lists/*"])


def python_variables(repo: Repo) -> Mapping[str, str]:
    """The variables of a virtual environment, besides those of the recipe."""
    return {**VIRTUAL_ENVIRONMENT, **version_variables(repo)}


def variable_lines(recipe: Recipe, more: Mapping[str, str]) -> str:
    """The instruction that sets the variables of build and test runs; ``more`` are those of the language."""
    inherited = {name: value for name, value in base_env(more).items() if name not in _OURS}
    settings = inherited | dict(recipe.env)
    lines = [f"PATH={ENV}/bin:$PATH", *(f"{name}={json.dumps(value)}" for name, value in settings.items())]
    return "ENV " + " \\\n    ".join(lines)


def _project(repo: Repo, recipe: Recipe, python: str, cutoff: str) -> str:
    if recipe.editable == "wheel":
        program = base64.b64encode(PLACER.read_bytes()).decode()
        return (
            f"# The wheel's compiled and generated files are laid into the checkout by a small program.\n"
            f"RUN uv build --wheel --out-dir /tmp/wheel --python {python}{cutoff} . \\\n"
            f" && echo {program} | base64 -d > /tmp/place.py \\\n"
            f" && {python} /tmp/place.py /tmp/wheel {REPO} {','.join(recipe.roots)} {','.join(recipe.packages)}"
        )
    if recipe.editable != "path":
        how = "--no-build-isolation " if recipe.editable == "legacy" else ""
        return f"RUN uv pip install --python {python} --no-deps {how}--no-cache{cutoff} -e ."
    return _on_the_path(repo, recipe, python)


def _on_the_path(repo: Repo, recipe: Recipe, python: str) -> str:
    """Write a ``.pth`` file with the import roots, and metadata from which the version can be read."""
    roots = " ".join(REPO if root == "." else f"{REPO}/{root}" for root in recipe.roots)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", repo.repo.rpartition("/")[2])
    version = re.sub(r"[^A-Za-z0-9.+!_-]+", "", repo.version) or "0.0.0"  # of a manifest, which nobody has checked
    info = f"$site/{re.sub(r'[-_.]+', '_', name)}-{version}.dist-info"
    return " \\\n".join(
        [
            f"RUN site=$({python} -c \"import sysconfig; print(sysconfig.get_path('purelib'))\")",
            f" && printf '%s\\n' {roots} > $site/excise_checkout.pth",
            f" && mkdir -p {info}",
            f" && printf '%s\\n' 'Metadata-Version: 2.1' 'Name: {name}' 'Version: {version}' > {info}/METADATA",
        ]
    )


def command_lines(recipe: Recipe, lock: str) -> str:
    """``RUN`` lines for a recipe of commands; ``lock`` is the path of the file that fixes the installed versions."""
    cutoff = f" UV_EXCLUDE_NEWER={recipe.cutoff}" if recipe.cutoff else ""
    lines = [
        f"ENV UV_CONSTRAINT={lock}{cutoff}",
        f"RUN printf '#!/bin/sh\\nexec uv pip \"$@\"\\n' > {ENV}/bin/pip && chmod +x {ENV}/bin/pip",
        *(_mock(path, content) for path, content in recipe.mocks),
    ]
    if recipe.mocks:
        site = "import sysconfig; print(sysconfig.get_path('purelib'))"
        lines.append(f'RUN echo {MOCKS} > "$({ENV}/bin/python -c "{site}")/excise_mocks.pth"')
    shell = ["/bin/bash", "-c"]
    lines += [f"RUN {json.dumps([*shell, _SHELL_OPTIONS + command])}" for command in recipe.commands]
    return "\n".join(lines)


def _mock(path: str, content: str) -> str:
    data = base64.b64encode(content.encode()).decode()
    return f'RUN mkdir -p "$(dirname "{MOCKS}/{path}")" && echo {data} | base64 -d > "{MOCKS}/{path}"'


def _pack(sources: Path, into: Path) -> None:
    with gzip.GzipFile(into, "wb", mtime=0) as compressed, tarfile.open(fileobj=compressed, mode="w") as archive:
        for path in sorted(sources.rglob("*")):
            archive.add(path, path.relative_to(sources).as_posix(), recursive=False, filter=_plain)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = 0
    entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
    return entry
