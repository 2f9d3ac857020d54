"""Finds the system packages that an installation lacks, and the command that installs them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence

from excise.system.commands import run_command

PACKAGES = {
    r"Python\.h": "python3-dev",
    r"\bffi\.h|libffi": "libffi-dev",
    r"openssl/|libssl|libcrypto": "libssl-dev",
    r"libxml/|libxml2?\b|xml2-config": "libxml2-dev",
    r"libxslt|xslt-config": "libxslt1-dev",
    r"\bzlib\.h|\blz\b": "zlib1g-dev",
    r"\bbzlib\.h": "libbz2-dev",
    r"\blzma\.h": "liblzma-dev",
    r"\bzstd\.h|libzstd": "libzstd-dev",
    r"\blz4\.h": "liblz4-dev",
    r"snappy(-c)?\.h": "libsnappy-dev",
    r"jpeglib\.h|libjpeg|\bjpeg\b": "libjpeg-dev",
    r"\bpng\.h|libpng": "libpng-dev",
    r"ft2build\.h|freetype": "libfreetype-dev",
    r"libpq|^lpq$|pg_config": "libpq-dev",
    r"mysql_config|mysql\.h|mysqlclient|mariadb_config": "default-libmysqlclient-dev",
    r"sqlite3\.h|libsqlite3": "libsqlite3-dev",
    r"\bsql(ext)?\.h|libodbc": "unixodbc-dev",
    r"\b(lber|ldap)\.h": "libldap2-dev",
    r"\bsasl(/|\.h)": "libsasl2-dev",
    r"krb5|gssapi": "libkrb5-dev",
    r"\bgmp\.h|libgmp": "libgmp-dev",
    r"\bmpfr\.h": "libmpfr-dev",
    r"\bmpc\.h": "libmpc-dev",
    r"\bgit2\.h|libgit2": "libgit2-dev",
    r"yaml\.h|libyaml": "libyaml-dev",
    r"hdf5|\bH5\w*\.h": "libhdf5-dev",
    r"geos_c|libgeos|geos-config": "libgeos-dev",
    r"\bproj(_api)?\.h|libproj": "libproj-dev",
    r"gdal-config|libgdal|\bgdal\.h": "libgdal-dev",
    r"cairo\.h|libcairo|\bcairo\b": "libcairo2-dev",
    r"girepository|gobject-introspection": "libgirepository1.0-dev",
    r"glib-2\.0|\bglib\.h": "libglib2.0-dev",
    r"dbus-1|dbus/": "libdbus-1-dev",
    r"systemd/|libsystemd": "libsystemd-dev",
    r"cups/": "libcups2-dev",
    r"curl-config|curl/curl\.h|libcurl": "libcurl4-openssl-dev",
    r"\bzmq\.h|libzmq": "libzmq3-dev",
    r"sodium\.h|libsodium": "libsodium-dev",
    r"pcap\.h|libpcap": "libpcap-dev",
    r"portaudio": "portaudio19-dev",
    r"libsndfile|sndfile\.h": "libsndfile1",
    r"alsa/": "libasound2-dev",
    r"xmlsec": "libxmlsec1-dev",
    r"cgraph\.h|libgraphviz": "libgraphviz-dev",
    r"boost/": "libboost-dev",
    r"Eigen/": "libeigen3-dev",
    r"openblas|cblas\.h|lapack": "libopenblas-dev",
    r"libGL\b|libGL\.so": "libgl1",
    r"libgthread|libgobject-2": "libglib2.0-0",
    r"libmagic|\bmagic\b": "libmagic1",
    r"enchant": "libenchant-2-2",
    r"_tkinter|libtk\d|\btk\.h": "python3-tk",
    r"\bgcc\b|\bg\+\+|\bcc\b|\bc\+\+\b": "build-essential",
    r"\bclang\b": "clang",
    r"\bgfortran\b|fortran compiler": "gfortran",
    r"\bcargo\b|\brustc\b|rust toolchain|rust compiler": "cargo",
    r"\bcmake\b": "cmake",
    r"\bmake\b": "make",
    r"\bswig\b": "swig",
    r"'(\S*/)?dot'|graphviz": "graphviz",
    r"ffmpeg|ffprobe": "ffmpeg",
    r"'(\S*/)?git'": "git",
    r"'(\S*/)?hg'|mercurial": "mercurial",
    r"'(\S*/)?java'|javac|jvm": "default-jre-headless",
    r"'(\S*/)?node'|'npm'": "nodejs",
    r"pandoc": "pandoc",
    r"'(\S*/)?zsh'": "zsh",
    r"'(\S*/)?fish'": "fish",
    r"'(\S*/)?less'": "less",
    r"'(\S*/)?man'": "man-db",
    r"'(\S*/)?ps'": "procps",
    r"'(\S*/)?ssh(-\w+)?'": "openssh-client",
    r"'(\S*/)?rsync'": "rsync",
    r"'(\S*/)?tmux'": "tmux",
    r"'(\S*/)?vim?'": "vim",
    r"'(\S*/)?gpg2?'": "gnupg",
    r"\bpkg-config\b": "pkg-config",
}
"""Pattern of a header, library or program to the Debian package that holds it; the first match decides."""

_MISSING = re.compile(
    r"fatal error: (\S+\.h\w*)|cannot find -(l[\w+.-]+)|(lib[\w+.-]+\.so\S*): cannot open|library '?(lib\S+?)'?[:\s]"
    r"|no such file or directory: ('[^']+')|[Cc]ommand '?([\w+-]+)'? failed: no such|([\w+-]+): (?:command )?not found"
    r"|[Pp]ackage '?([\w+.-]+)'?,? (?:required by|was not found|not found)|Dependency \"?([\w+.-]+)\"? not found",
    re.IGNORECASE,
)


def missing_files_in(output: str) -> tuple[str, ...]:
    """The headers, libraries and programs that an output reports as missing, by the names it uses."""
    names = (next(filter(None, found)) for found in _MISSING.findall(output))
    return tuple(dict.fromkeys(names))


def packages_for(output: str) -> tuple[str, ...]:
    """Debian packages that hold what an output reports as missing; empty for unknown names."""
    named = missing_files_in(output)
    texts = named or [line for line in output.splitlines() if re.search(r"not found|no such|cannot find", line, re.I)]
    found = [next((p for pattern, p in PACKAGES.items() if re.search(pattern, text)), "") for text in texts]
    return tuple(filter(None, dict.fromkeys(found)))


def not_installed(packages: Sequence[str]) -> tuple[str, ...]:
    """The packages that this machine lacks; empty where it has no dpkg."""
    dpkg = shutil.which("dpkg-query")
    if dpkg is None or not packages:
        return ()
    command = [dpkg, "-W", "-f", "${Package} ${db:Status-Status}\n", *packages]
    listed = run_command(command, timeout_s=60).stdout.decode(errors="replace")
    present = {line.split()[0] for line in listed.splitlines() if line.endswith(" installed")}
    return tuple(name for name in packages if name not in present)


def what_to_install(output: str, declared: Sequence[str]) -> str:
    """Return a line for users: what is missing, and the command that installs it; empty if nothing is.

    ``declared`` are the packages that the project's CI installs; those that are installed here are left out.
    """
    packages = list(dict.fromkeys([*not_installed(packages_for(output)), *not_installed(declared)]))
    named = ", ".join(missing_files_in(output))
    missing = f"Missing on this machine: {named}. " if named else ""
    command = f"Install it and run again: apt-get install {' '.join(packages)}" if packages else ""
    return f"{missing}{command}".strip()
