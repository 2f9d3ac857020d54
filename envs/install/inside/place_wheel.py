"""Copies the files of a wheel that a checkout lacks (compiled extensions, generated modules) into the checkout.

``python place_wheel.py FOLDER REPO ROOTS PACKAGES`` reads the only wheel in FOLDER. Its metadata goes to site-packages,
with a ``.pth`` file that puts ROOTS on the path. ROOTS and PACKAGES are separated by commas. Standard library only.
"""

import os
import sys
import sysconfig
import zipfile


def home_of(repo, roots, name):
    """The import root of the checkout that holds the top-level name; the first root if none does."""
    for root in roots:
        folder = os.path.normpath(os.path.join(repo, root))
        if os.path.isdir(os.path.join(folder, name)) or os.path.exists(os.path.join(folder, name + ".py")):
            return folder
    return os.path.normpath(os.path.join(repo, roots[0]))


def target_of(entry, repo, roots, packages, site):
    """The path for an entry of the wheel; None for an entry that is not copied."""
    top = entry.split("/")[0]
    if top.endswith(".dist-info"):
        return None if top.endswith(".data") or entry.endswith("/RECORD") else os.path.join(site, entry)
    name = top.split(".")[0]
    if name in packages or (top == entry and entry.endswith((".so", ".pyd"))):
        return os.path.join(home_of(repo, roots, name), entry)
    return None


def main():
    """Copy the files."""
    folder, repo, roots = sys.argv[1], sys.argv[2], sys.argv[3].split(",")
    packages = [name.split(".")[0] for name in sys.argv[4].split(",")]
    site = sysconfig.get_path("purelib")
    (name,) = [n for n in os.listdir(folder) if n.endswith(".whl")]
    with zipfile.ZipFile(os.path.join(folder, name)) as wheel:
        for info in wheel.infolist():
            target = target_of(info.filename, repo, roots, packages, site)
            if target is None or info.is_dir() or os.path.lexists(target):
                continue
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb") as file:
                file.write(wheel.read(info))
            os.chmod(target, 0o755 if (info.external_attr >> 16) & 0o100 else 0o644)
    with open(os.path.join(site, "excise_checkout.pth"), "w") as file:
        file.write("".join(os.path.normpath(os.path.join(repo, root)) + "\n" for root in roots))


if __name__ == "__main__":
    main()
