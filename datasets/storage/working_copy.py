"""Working copies of sets in object stores, in the cache of this machine."""

from __future__ import annotations

import hashlib
from pathlib import Path

from excise.datasets.storage.remote_set import MARK, Mark, RemoteSet
from excise.datasets.storage.s3_objects import S3Objects, is_url, url_of
from excise.datasets.storage.store import Store
from excise.errors import ConfigError, StoreError
from excise.system.files import replace_file
from excise.types import to_json


def local_folder(place: Path | str, cache: Path, as_of: str = "") -> Path:
    """The folder of a set: ``place`` itself, or the working copy of the set at a URL, which is brought up to date.

    ``as_of``: an earlier state that is to be fetched, too. While this machine writes the set, its working copy is as it
    was published last. Raises :class:`ConfigError` for a URL that cannot be used, :class:`StoreError` for a store that
    does not answer.
    """
    if not is_url(place):
        return Path(place)
    url = url_of(place)
    if not url.startswith("s3://"):
        raise ConfigError(f"{url}: write a folder, or s3://bucket/folder.")
    url = S3Objects(url).url
    root = cache / "sets" / hashlib.sha256(url.encode()).hexdigest()[:24]
    if not (root / MARK).exists():
        replace_file(root / MARK, to_json(Mark(url=url)))
    try:
        with Store(root).locked():
            remote = RemoteSet(root)
            remote.pull()
            remote.fetch_as_of(as_of)
    except StoreError as error:
        if error.reason != "locked":
            raise
    return root
