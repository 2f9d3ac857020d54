"""Objects in an S3-compatible store, through ``s3fs``: whole objects, and conditional writes.

Endpoint, region and credentials come from where the AWS tools have them (``AWS_ENDPOINT_URL``, ``AWS_PROFILE``, …).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from excise.errors import ConfigError, StoreError

T = TypeVar("T")
_URL = re.compile(r"s3:/+([a-z0-9][a-z0-9.-]+[a-z0-9])/+([^?#]*[^/?#])/*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectFacts:
    """An object in a listing."""

    key: str
    """Key below the set's prefix."""
    bytes: int
    """Size."""
    modified: datetime
    """Time of the last write."""


class S3Objects:
    """The objects below one prefix of a bucket. Raises :class:`StoreError` where the store cannot be used."""

    def __init__(self, url: str) -> None:
        match = _URL.fullmatch(url)
        if match is None:
            raise ConfigError(f"{url}: write s3://bucket/folder.")
        try:
            import s3fs
        except ImportError:
            raise ConfigError("A set in an S3 store needs s3fs: pip install 'excise[s3]'.") from None
        self.url = f"s3://{match[1]}/{match[2]}"
        self._bucket, self._prefix = match[1], f"{match[2]}/"
        self._files = s3fs.S3FileSystem(session=_session(), use_listings_cache=False, skip_instance_cache=True)

    def read(self, key: str) -> tuple[bytes, str] | None:
        """Content and tag of an object; ``None`` if there is none."""
        from fsspec.asyn import sync

        async def get() -> tuple[bytes, str]:
            reply = await self._files._call_s3("get_object", Bucket=self._bucket, Key=self._prefix + key)
            async with reply["Body"] as body:
                return await body.read(), reply["ETag"]

        try:
            found: tuple[bytes, str] = self._checked(lambda: sync(self._files.loop, get))
        except FileNotFoundError:
            return None
        return found

    def download(self, key: str, target: Path) -> None:
        """Write an object to a file. Raises :class:`StoreError` if there is none."""
        try:
            self._checked(lambda: self._files.get_file(f"{self._bucket}/{self._prefix}{key}", str(target)))
        except FileNotFoundError:
            raise StoreError(f"{self.url}/{key} is missing. Restore it from a copy.", reason="damaged") from None

    def upload(self, source: Path, key: str) -> None:
        """Write a file as an object whose key depends on its content alone: whole or not at all."""
        self._checked(lambda: self._files.put_file(str(source), f"{self._bucket}/{self._prefix}{key}"))

    def write_if(self, key: str, data: bytes, tag: str) -> str | None:
        """Write an object if it still has this tag (empty: if there is none). Returns its new tag; ``None`` if not."""
        condition = {"IfMatch": tag} if tag else {"IfNoneMatch": "*"}
        try:
            where = {"Bucket": self._bucket, "Key": self._prefix + key}
            return str(self._files.call_s3("put_object", **where, Body=data, **condition)["ETag"])
        except OSError as error:
            if _code(error) in ("PreconditionFailed", "ConditionalRequestConflict") or isinstance(
                error, FileExistsError
            ):
                return None
            raise self._error(error) from error
        except Exception as error:
            raise self._error(error) from error

    def listing(self, folder: str) -> Iterator[ObjectFacts]:
        """All objects below a folder."""
        start = f"{self._bucket}/{self._prefix}"
        try:
            found = self._checked(lambda: self._files.find(start + folder, detail=True))
        except FileNotFoundError:
            return
        for path, facts in sorted(found.items()):
            yield ObjectFacts(key=path.removeprefix(start), bytes=facts["size"], modified=facts["LastModified"])

    def delete(self, keys: list[str]) -> None:
        """Delete objects."""
        if keys:
            self._checked(lambda: self._files.rm([f"{self._bucket}/{self._prefix}{key}" for key in keys]))

    def _checked(self, action: Callable[[], T]) -> T:
        """The result of an action; errors other than :class:`FileNotFoundError` are explained."""
        try:
            return action()
        except FileNotFoundError as error:
            if _code(error) in ("", "NoSuchKey", "404"):
                raise
            raise self._error(error) from error
        except Exception as error:  # botocore has dozens of kinds, from missing credentials to lost connections
            raise self._error(error) from error

    def _error(self, error: Exception) -> StoreError:
        advice = "Check the bucket, AWS_ENDPOINT_URL and the credentials, and run the same command again"
        return StoreError(f"{self.url}: {error}. {advice}. What was published before is intact.", reason="store_error")


def _session() -> Any:
    """A session of botocore that shares the descriptions of services, a second of parsing, with all others."""
    from aiobotocore.session import AioSession

    session = AioSession()
    session.register_component("data_loader", _loader(session.get_config_variable("data_path")))
    return session


@cache
def _loader(folders: str | None) -> Any:
    from botocore.loaders import create_loader

    return create_loader(folders)


def _code(error: Exception) -> str:
    """The code of an S3 error."""
    reply = getattr(error.__cause__, "response", None) or {}
    return str(reply.get("Error", {}).get("Code", ""))


def is_url(path: Path | str) -> bool:
    """Whether a path is a URL of an object store; ``Path`` makes one slash of two."""
    return re.match(r"[a-z][a-z0-9+.-]+:/", str(path)) is not None


def url_of(path: Path | str) -> str:
    """The URL that a path was made from."""
    scheme, _, rest = str(path).partition(":")
    return f"{scheme}://{rest.lstrip('/')}"


def data_key(sha256: str) -> str:
    """The key of a file of snapshots."""
    return f"data/{sha256[:2]}/{sha256}.parquet"
