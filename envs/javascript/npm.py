"""npm: resolves the packages of an environment, and installs exactly those of a lock.

npm runs on the host, with the user's configuration, which knows the registry. It runs no code of packages
(``--ignore-scripts``), and works in folders of its own, apart from any project.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from excise.envs.sandbox.system_root import debian_packages
from excise.errors import EnvironmentFailure
from excise.system.commands import CommandTimeout, run_command

NODE_PACKAGE = "nodejs"
"""The Debian package with node."""
MISSING = "JavaScript needs node and npm: install the Debian packages nodejs and npm (apt-get install nodejs npm)."
_OPTIONS = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-progress", "--loglevel=error")
_ALIAS = "npm:"
"""Beginning of the version of a package that is installed under another name than its own."""
_CPUS = {"x86_64": "x64", "aarch64": "arm64", "armv7l": "arm", "i686": "ia32"}
"""Names of the kernel to node's."""
_ATTEMPTS = 8
"""Maximum number of packages whose versions are loosened, because no package has the wanted one."""
_NO_VERSION = re.compile(r"No matching version found for (@?[^@\s]+)@")
_NOT_THERE = re.compile(r"404 .*?'?(@?[\w.~/-]+)@")


def node_version() -> str:
    """Version of node in sandboxes: that of this machine's Debian package.

    Raises :class:`EnvironmentFailure` (``toolchain_unavailable``) if the package or npm is missing.
    """
    package = debian_packages().installed.get(NODE_PACKAGE)
    if package is None or shutil.which("npm") is None:
        raise EnvironmentFailure(MISSING, reason="toolchain_unavailable")
    return package.version.partition(":")[2].partition("-")[0] or package.version.partition("-")[0]


def npm(arguments: Sequence[str], *, cwd: Path, cache: Path, timeout_s: float) -> tuple[int, str, str]:
    """Run npm; return its exit code, output and errors. Raises :class:`EnvironmentFailure` (``timeout``)."""
    try:
        done = run_command(
            ["npm", *arguments, "--cache", str(cache)], timeout_s=timeout_s, cwd=cwd, env={**os.environ, "CI": "1"}
        )
    except CommandTimeout as error:
        raise EnvironmentFailure(str(error), reason="timeout") from error
    except OSError as error:
        raise EnvironmentFailure(MISSING, reason="toolchain_unavailable") from error
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def resolve(
    packages: Mapping[str, str], folder: Path, cache: Path, timeout_s: float
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Resolve packages (name to range of versions) and return the lock: its lines, and their hashes.

    A line is ``PATH==VERSION``, with the path inside ``node_modules``, or ``PATH==npm:NAME@VERSION`` for a package that
    is installed under another name. A range that no version meets is loosened.
    Raises :class:`EnvironmentFailure` (``resolve_conflict``).
    """
    wanted = dict(packages)
    for _ in range(_ATTEMPTS):
        _write(folder / "package.json", {"name": "excise-environment", "private": True, "dependencies": wanted})
        command = ["install", "--package-lock-only", *_OPTIONS]
        code, output, errors = npm(command, cwd=folder, cache=cache, timeout_s=timeout_s)
        if code == 0:
            return _lock(folder / "package-lock.json")
        found = _NO_VERSION.search(errors) or _NOT_THERE.search(errors)
        if found is None or found[1] not in wanted or wanted[found[1]] == "*":
            break
        major = re.match(r"\D*(\d+)\.", wanted[found[1]])
        wanted[found[1]] = f"^{major[1]}" if major and not re.fullmatch(r"\^\d+", wanted[found[1]]) else "*"
    raise EnvironmentFailure(f"npm cannot install the packages: {(errors or output)[-600:]}", reason="resolve_conflict")


def _lock(file: Path) -> tuple[tuple[str, ...], dict[str, str]]:
    if not file.is_file():  # there is nothing to install
        return (), {}
    entries: Mapping[str, Mapping[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["packages"]
    hashes: dict[str, str] = {}
    for path, entry in entries.items():
        if not path or entry.get("inBundle") or not _fits(entry):
            continue
        if "integrity" not in entry or "version" not in entry:
            raise EnvironmentFailure(f"{path} is not a package of the registry.", reason="resolve_conflict")
        own = path.rpartition("node_modules/")[2]
        name = entry.get("name", own)
        version = entry["version"] if name == own else f"{_ALIAS}{name}@{entry['version']}"
        hashes[f"{path.removeprefix('node_modules/')}=={version}"] = str(entry["integrity"])
    return tuple(sorted(hashes)), hashes


def _fits(entry: Mapping[str, Any]) -> bool:
    """Whether npm installs a package of a lock here; optional ones are often for one platform only."""
    here = {"os": "linux", "cpu": _CPUS.get(platform.machine(), platform.machine()), "libc": "glibc"}
    for key, value in here.items():
        admitted = entry.get(key, ())
        named = [each for each in admitted if not each.startswith("!")]
        if f"!{value}" in admitted or (named and not {value, "any"} & set(named)):
            return False
    return True


def install_lock(lock: Sequence[str], hashes: Mapping[str, str], folder: Path, cache: Path, timeout_s: float) -> Path:
    """Install exactly the packages of a lock below ``folder``; return the folder ``node_modules``.

    What the cache has is not asked for again. Raises :class:`EnvironmentFailure` (``unreproducible``).
    """
    entries: dict[str, dict[str, Any]] = {}
    aliases: dict[str, str] = {}
    for line in lock:
        path, _, version = line.rpartition("==")
        entries[f"node_modules/{path}"] = {"version": version, "integrity": hashes[line]}
        if version.startswith(_ALIAS):
            name, _, plain = version.removeprefix(_ALIAS).rpartition("@")
            entries[f"node_modules/{path}"] |= {"name": name, "version": plain}
            aliases[f"node_modules/{path}"] = version
    root: dict[str, str] = {}
    for path, entry in entries.items():
        parent, _, name = path.rpartition("node_modules/")
        dependencies = root if not parent else entries[parent.rstrip("/")].setdefault("dependencies", {})
        dependencies[name] = aliases.get(path, entry["version"])
    manifest = {"name": "excise-environment", "version": "0.0.0", "private": True, "dependencies": root}
    _write(folder / "package.json", manifest)
    _write(
        folder / "package-lock.json",
        {"name": manifest["name"], "version": "0.0.0", "lockfileVersion": 3, "requires": True,
         "packages": {"": manifest, **entries}},
    )  # fmt: skip
    command = ["ci", *_OPTIONS]
    code, output, errors = npm([*command, "--prefer-offline"], cwd=folder, cache=cache, timeout_s=timeout_s)
    if code != 0 and _NO_VERSION.search(errors):  # the cache has an older list of the package's versions
        code, output, errors = npm(command, cwd=folder, cache=cache, timeout_s=timeout_s)
    if code != 0:
        raise EnvironmentFailure(f"npm cannot install the lock: {(errors or output)[-600:]}", reason="unreproducible")
    modules = folder / "node_modules"
    modules.mkdir(exist_ok=True)
    found, found_hashes = _lock(modules / ".package-lock.json")
    if found != tuple(sorted(lock)) or found_hashes != {line: hashes[line] for line in lock}:
        raise EnvironmentFailure("npm installed other packages than those of the lock.", reason="unreproducible")
    (modules / ".package-lock.json").unlink(missing_ok=True)
    return modules


def link_programs(modules: Path, programs: Path) -> None:
    """Links in the folder ``programs`` to the programs of the packages directly in ``modules``."""
    for manifest in sorted([*modules.glob("*/package.json"), *modules.glob("@*/*/package.json")]):
        try:
            declared = json.loads(manifest.read_text(encoding="utf-8")).get("bin", {})
        except (ValueError, OSError, AttributeError):
            continue
        named = {manifest.parent.name: declared} if isinstance(declared, str) else declared
        for name, path in named.items() if isinstance(named, dict) else ():
            target = manifest.parent / str(path)
            if re.fullmatch(r"[\w.-]+", name) and target.is_file() and target.resolve().is_relative_to(modules):
                link = programs / name
                if not link.exists() and not link.is_symlink():
                    target.chmod(0o755)
                    link.symlink_to(os.path.relpath(target, programs))


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")
