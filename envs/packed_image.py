"""The image of an environment whose layers are packed into it: of languages whose toolchain is a system package.

All else that tests need (packages of npm, crates, jars, modules) was copied or installed by a lock when the environment
was built. The image has these files and Debian's packages; building it needs no other package index.
"""

from __future__ import annotations

import io
import lzma
import platform
import re
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from excise.envs.dockerfile import heading, variable_lines
from excise.envs.sandbox.mount_points import ENV, HOME, REPO
from excise.envs.task_image import PROJECT, RECORD, ImageRecord, image_tag
from excise.protocols import TaskImage
from excise.types import Environment, Repo, to_json

LAYERS = "layers.tar.xz"
"""File with everything that was installed, by its places in the image."""
TOOLS = ("git", "python3")
"""System packages of every image: what graders and checkouts call."""
_COMPRESSION = 2
"""Preset of xz: higher ones take many times as long, for a fifth less."""
_INTERPRETER = f"{ENV}/bin/python"
"""A link to an interpreter of the machine where the environment was installed; the image has one to its own."""
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+")


def packed_image(repo: Repo, environment: Environment, sources: Path, layers: Mapping[str, Path]) -> TaskImage:
    """The image of an environment; ``sources`` is the archive of the untouched sources.

    ``layers`` are folders by their places in the image.
    """
    files: dict[str, bytes | Path] = {
        "Dockerfile": _text(repo, environment).encode(),
        LAYERS: _packed(layers),
        PROJECT: sources,
        RECORD: to_json(ImageRecord(repo=repo, environment=environment), indent=1) + b"\n",
    }
    return TaskImage(tag=image_tag(repo, environment), files=files)


def _text(repo: Repo, environment: Environment) -> str:
    """The text of the Dockerfile."""
    named = [name for name in environment.recipe.system_packages if _PACKAGE.fullmatch(name)]
    packages = " ".join(dict.fromkeys([*TOOLS, *named]))
    parts = [
        heading(repo),
        "# The environment of the project's tasks. It holds no sources: each task brings its own checkout.",
        f"# Made with {', '.join(environment.recipe.requirements[:1]) or 'the toolchain'} of {_distribution()}.",
        f"ARG BASE={_distribution()}-slim",
        "FROM ${BASE}",
        '# Debian packages; --build-arg SYSTEM_PACKAGES="" for a base that has them.',
        f'ARG SYSTEM_PACKAGES="{packages}"',
        'RUN if [ -n "$SYSTEM_PACKAGES" ]; then apt-get update && '
        "apt-get install -y --no-install-recommends $SYSTEM_PACKAGES && rm -rf /var/lib/apt/lists/*; fi",
        "RUN grep -q ^agent: /etc/passwd || echo agent:x:1000:1000::" + HOME + ":/bin/sh >>/etc/passwd; \\\n"
        f"    mkdir -p {HOME} && chown 1000:1000 {HOME}",
        variable_lines(environment.recipe, {}),
        f"ADD {LAYERS} /",
        f"RUN ln -s $(PATH=/usr/bin:/bin command -v python3) {_INTERPRETER} && mkdir -p {REPO} \\\n"
        f" && chown -R 1000:1000 {REPO} && mkdir -p /logs /tests /solution && chmod 777 /logs /tests /solution",
        f"WORKDIR {REPO}",
        "USER 1000:1000",
    ]
    return "\n".join(parts) + "\n"


def _distribution() -> str:
    """The distribution of this machine, whose packages the environment was built with, as the name of an image."""
    try:
        found = platform.freedesktop_os_release()
    except OSError:
        found = {}
    name = found.get("ID", "debian")
    version = found.get("VERSION_ID" if name == "ubuntu" else "VERSION_CODENAME", "stable")
    return f"{name}:{version}"


def _packed(layers: Mapping[str, Path]) -> bytes:
    """The files of the layers as a reproducible tar.xz."""
    out = io.BytesIO()
    with lzma.open(out, "wb", preset=_COMPRESSION) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for target, folder in sorted(layers.items()):
            for path, member in _members(target.strip("/"), folder):
                if member.isreg():
                    with path.open("rb") as file:
                        archive.addfile(member, file)
                else:
                    archive.addfile(member)
    return out.getvalue()


def _members(target: str, folder: Path) -> Iterator[tuple[Path, tarfile.TarInfo]]:
    """(path, entry of the archive) of the folders, files and links of a layer, folders first."""
    for path in sorted(folder.rglob("*")):
        member = tarfile.TarInfo(f"{target}/{path.relative_to(folder).as_posix()}")
        if f"/{member.name}" == _INTERPRETER:
            continue
        status = path.lstat()
        member.mode = 0o755 if path.is_dir() or status.st_mode & 0o100 else 0o644
        if path.is_symlink():
            member.type, member.linkname, member.mode = tarfile.SYMTYPE, str(path.readlink()), 0o777
        elif path.is_dir():
            member.type = tarfile.DIRTYPE
        else:
            member.size = status.st_size
        yield path, member
