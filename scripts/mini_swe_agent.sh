#!/bin/sh
# Makes .venv-mini, unless it is up to date: mini-swe-agent, which `excise solve --agent mini` runs, for the tests.
#
# It has an environment of its own, since it brings a hundred packages. EXCISE_MINI_VENV names another folder for it.
set -eu
cd "$(dirname "$0")/.."
. scripts/setup.sh
MINI="${EXCISE_MINI_VENV:-.venv-mini}"
STAMP="$MINI/.excise-mini"
WANTED="mini-swe-agent==2.4.6"

up_to_date() { [ "$(cat "$STAMP" 2>/dev/null)" = "$WANTED" ]; }

! up_to_date || exit 0
exec 9>"$MINI.lock"
flock 9 # the installation of a ./check that was interrupted may still be running
! up_to_date || exit 0
find_python || die "No Python >= $MIN_PYTHON found. Install one, or set EXCISE_PYTHON to its path."

say "Installing $WANTED into $MINI (once, a minute and 0.8 GB)"
VENV=$MINI
make_venv
locked uv >"$VENV/.excise-uv"
"$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$VENV/.excise-uv"
share_index_settings
install_packages "$WANTED"
printf '%s' "$WANTED" >"$STAMP"
