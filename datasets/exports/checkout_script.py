"""Shell text that exported tasks share: unpacking the checkout, and writing the agent's changes as a patch."""

from __future__ import annotations

import shlex

ARCHIVE, SCRIPT = ".excise-checkout.tar.gz", ".excise-checkout.sh"
"""Files that a task brings into the checkout; the script unpacks the archive and deletes both."""
WORKDIR = "/testbed"
"""The checkout."""

CHECKOUT_SCRIPT = f"""#!/bin/sh
# Lays a task's tree into {WORKDIR} (or $EXCISE_CHECKOUT), as a repository with one commit; deletes both files.
set -eu
cd "${{EXCISE_CHECKOUT:-{WORKDIR}}}"
work=$(mktemp -d) made=$(mktemp -d)
tar -xzmf {ARCHIVE} -C "$work"
mkdir -p "$work/.git/info"
# what the installation made here is no part of the repository, nor of a solution
find . \\( -type f -o -type l \\) ! -name {ARCHIVE} ! -name {SCRIPT} | sed 's/^\\.//; s/[][*?\\!# ]/\\\\&/g' \\
    >"$work/.git/info/exclude"
(
    cd "$work"
    echo '* -text -filter -ident !working-tree-encoding !diff' >.git/info/attributes
    export HOME="$work/.git" GIT_CONFIG_NOSYSTEM=1
    export GIT_AUTHOR_NAME=excise GIT_AUTHOR_EMAIL=excise@localhost GIT_AUTHOR_DATE=2000-01-01T00:00:00+0000
    export GIT_COMMITTER_NAME=excise GIT_COMMITTER_EMAIL=excise@localhost GIT_COMMITTER_DATE=2000-01-01T00:00:00+0000
    git init --quiet --initial-branch=main
    git add --all --force
    git commit --quiet --allow-empty --no-verify --message=Import
)
# where the installation made another file than the one in the repository, tests were proven with the former
find . \\( -type f -o -type l \\) ! -name {ARCHIVE} ! -name {SCRIPT} | while IFS= read -r path; do
    [ -f "$work/$path" ] && ! cmp -s "$path" "$work/$path" || continue
    mkdir -p "$made/$(dirname "$path")"
    mv "$path" "$made/$path"
done
cp -RP "$work/." .
(cd "$made" && find . -type f -o -type l) | while IFS= read -r path; do
    mv -f "$made/$path" "$path"
    git update-index --skip-worktree -- "$path"
done
rm -rf "$work" "$made" {ARCHIVE} {SCRIPT}
"""
"""Makes the commit that :func:`excise.verifiers.shipped_tree.commit` makes."""
UNPACK = f"[ ! -e {WORKDIR}/{SCRIPT} ] || sh {WORKDIR}/{SCRIPT}"
"""Command that unpacks the checkout, once."""


def diff_command(commit: str, paths: tuple[str, ...], into: str) -> str:
    """The command that writes all changes since ``commit`` to the file ``into``.

    Files that git ignores are left out, except ``paths``, where the gold patch makes changes.
    """
    added = " ".join(shlex.quote(path) for path in paths)
    return " && ".join(
        [
            f"cd {WORKDIR}",
            "git add --all",
            f'for path in {added}; do [ ! -e "$path" ] || git add --force -- "$path"; done',
            f"git diff --cached --binary --no-color --no-ext-diff --no-textconv --no-renames {commit} > {into}",
        ]
    )
