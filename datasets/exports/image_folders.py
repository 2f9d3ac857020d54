"""The folder ``images`` of an export: a build context for each environment, and a script that builds all."""

from __future__ import annotations

import shutil
from pathlib import Path

from excise.protocols import ExportMaterials
from excise.system.files import link_or_copy, replace_file

BUILD = """#!/bin/sh
# Builds the images of all environments. Arguments go to `docker build`, for example
# --build-arg UV_DEFAULT_INDEX=URL or --build-arg BASE=IMAGE.
set -eu
cd "$(dirname "$0")"
for folder in */; do
    docker build "$@" --tag "$(cat "$folder/tag")" "$folder"
done
"""


class ImageFolders:
    """Writes the build context of each environment once."""

    def __init__(self, materials: ExportMaterials, root: Path) -> None:
        self.materials, self.root = materials, root
        self._tags: dict[str, str] = {}
        shutil.rmtree(root, ignore_errors=True)

    def write(self, env_id: str) -> str:
        """Write the build context of an environment, unless it is there; return the name of its image."""
        if env_id not in self._tags:
            image = self.materials.image(env_id)
            folder = self.root / folder_of(image.tag)
            folder.mkdir(parents=True)
            for name, content in image.files.items():
                if isinstance(content, bytes):
                    replace_file(folder / name, content)
                else:
                    link_or_copy(content, folder / name)
            replace_file(folder / "tag", f"{image.tag}\n".encode())
            self._tags[env_id] = image.tag
        return self._tags[env_id]

    def finish(self) -> None:
        """Write the script that builds all images."""
        replace_file(self.root / "build.sh", BUILD.encode())


def folder_of(tag: str) -> str:
    """Name of the folder of an image."""
    return tag.replace(":", "-").replace("/", "-")
