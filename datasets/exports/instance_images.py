"""The folder ``instances`` of an export: an image for each task, one layer over that of its environment."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from excise.datasets.exports.checkout_script import ARCHIVE, CHECKOUT_SCRIPT, SCRIPT, WORKDIR
from excise.protocols import Checkout
from excise.system.files import replace_file

CHECKOUT_LAYER = f"""FROM {{image}}
COPY --chown=1000:1000 checkout.tar.gz {WORKDIR}/{ARCHIVE}
COPY --chown=1000:1000 checkout.sh {WORKDIR}/{SCRIPT}
RUN sh {WORKDIR}/{SCRIPT}
USER root
"""
"""Beginning of the Dockerfiles: the checkout over the environment's ``image``."""
BUILD = """#!/bin/sh
# Builds the image of each instance, one layer over that of its environment; first run images/build.sh.
set -eu
cd "$(dirname "$0")"
for folder in */; do
    docker build --tag "$(cat "$folder/tag")" "$folder"
done
"""


class InstanceImages:
    """Writes the build context of each task's image."""

    def __init__(self, root: Path) -> None:
        self.root = root
        shutil.rmtree(root, ignore_errors=True)

    def write(
        self, instance_id: str, shipped: Checkout, *, tag: str, dockerfile: str, more: Mapping[str, str] | None = None
    ) -> None:
        """Write the context of a task's image with the name ``tag``; ``more``: name to text of further files."""
        folder = self.root / instance_id
        files = {"Dockerfile": dockerfile, "checkout.sh": CHECKOUT_SCRIPT, "tag": f"{tag}\n", **(more or {})}
        for name, text in files.items():
            replace_file(folder / name, text.encode())
        replace_file(folder / "checkout.tar.gz", shipped.archive)

    def finish(self) -> None:
        """Write the script that builds all images."""
        replace_file(self.root / "build.sh", BUILD.encode())
