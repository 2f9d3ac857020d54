"""Registry of sources, and the choice of the source for a specification such as a URL or a path.

To add a source, write one file with a class that implements :class:`excise.protocols.Source` and add it to
``SOURCES``. The first source that matches is taken.
"""

from __future__ import annotations

from excise.errors import SourceError
from excise.extractors.fetch.source_archive import ArchiveSource
from excise.extractors.fetch.source_crate import CrateSource
from excise.extractors.fetch.source_debian import DebianSource
from excise.extractors.fetch.source_directory import DirectorySource
from excise.extractors.fetch.source_git import GitSource
from excise.extractors.fetch.source_npm import NpmSource
from excise.extractors.fetch.source_sdist import SdistSource
from excise.protocols import Source
from excise.types import SourceSpec

SOURCES: tuple[Source, ...] = (
    SdistSource(),
    DebianSource(),
    NpmSource(),
    CrateSource(),
    DirectorySource(),
    ArchiveSource(),
    GitSource(),
)
"""All sources, in the order in which they are tried."""

_UNDERSTOOD = """\
  pypi:name, pypi:name==1.2       the source distribution on the package index
  debsrc:name, debsrc:name=1.2-3  a Debian source package: the original authors' archive
  npm:name, npm:name@1.2.3        the tarball of a package on npm's registry
  crate:name, crate:name@1.2.3    a crate on the registry that cargo is configured for
  https://host/owner/name[@rev]   a git repository (also git+…, ssh://…, git@host:owner/name)
  path/to/checkout[@rev]          a local git repository: its committed files
  path/to/folder, dir:path        a folder as it is
  path/to/name-1.2.tar.gz         an archive (tar, zip)
  any of them#subdirectory=folder the project in a folder of it"""


def resolve_source(spec: SourceSpec) -> Source:
    """The source for ``spec``.

    Raises :class:`SourceError` (``unknown_source``) with a list of the forms that a spec can have.
    """
    source = find_source(spec)
    if source is None:
        raise SourceError(
            f"{spec.spec!r} is not a source: no such file or folder, and no known form. Understood are:\n{_UNDERSTOOD}",
            reason="unknown_source",
        )
    return source


def find_source(spec: SourceSpec) -> Source | None:
    """The source for ``spec``, or ``None``. Nothing is fetched."""
    return next((source for source in SOURCES if source.matches(spec)), None)


def source_of(pinned: str) -> Source:
    """The source that pinned ``pinned``, to fetch it again."""
    return resolve_source(SourceSpec(spec=pinned))
