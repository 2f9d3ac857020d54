#!/bin/sh
# Writes constraints.txt and constraints-train.txt from pyproject.toml: with hashes, for every supported Python, without
# the name of an index. The second has the packages that only the trainer needs, without torch, whose builds and hashes
# differ between indexes.
set -eu
cd "$(dirname "$0")/.."
compile() {
    uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --quiet \
        --no-emit-index-url --no-emit-find-links --no-annotate --no-header "$@"
}
compile --extra dev --extra agents --output-file constraints.txt "$@"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
echo "torch; sys_platform == 'never'" >"$scratch/without"
[ ! -e constraints-train.txt ] || cp constraints-train.txt "$scratch/all" # keeps locked versions
compile --extra train-cpu --constraint constraints.txt --override "$scratch/without" --output-file "$scratch/all" "$@"
awk '/^[^ ]/ { name = $0; sub(/[=; ].*/, "", name); wanted = !(name in known) && !/never/ }
     NR == FNR { known[name]; next } wanted' constraints.txt "$scratch/all" >constraints-train.txt
