#!/bin/sh
# Writes constraints.txt and constraints-train.txt anew from pyproject.toml: hashed, for every supported Python, without
# naming an index. The second has what the trainer needs beside the first, but for torch: its builds differ from index
# to index, and so do their hashes.
set -eu
cd "$(dirname "$0")/.."
compile() {
    uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --quiet \
        --no-emit-index-url --no-emit-find-links --no-annotate --no-header "$@"
}
compile --extra dev --extra view --extra agents --output-file constraints.txt "$@"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
echo "torch; sys_platform == 'never'" >"$scratch/without"
[ ! -e constraints-train.txt ] || cp constraints-train.txt "$scratch/all" # what is locked stays, unless told otherwise
compile --extra train-cpu --constraint constraints.txt --override "$scratch/without" --output-file "$scratch/all" "$@"
awk '/^[^ ]/ { name = $0; sub(/[=; ].*/, "", name); wanted = !(name in known) && !/never/ }
     NR == FNR { known[name]; next } wanted' constraints.txt "$scratch/all" >constraints-train.txt
