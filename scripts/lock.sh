#!/bin/sh
# Writes constraints.txt anew from pyproject.toml: hashed, for every supported Python, without naming an index.
set -eu
cd "$(dirname "$0")/.."
exec uv pip compile pyproject.toml --extra dev --extra view --extra agents \
    --universal --python-version 3.11 --generate-hashes --quiet "$@" \
    --no-emit-index-url --no-emit-find-links --no-annotate --no-header --output-file constraints.txt
