#!/bin/sh
# Makes .venv-peers, unless it is up to date: other tools that read excise's exports or check its schedules, for the tests of these.
#
# Each group of packages has an environment of its own. EXCISE_PEERS_VENV names another folder for them (several checkouts
# may share one). Harbor needs Python 3.12 or 3.13 (EXCISE_PEERS_PYTHON); uv installs one if there is none.
set -eu
cd "$(dirname "$0")/.."
. scripts/setup.sh
PEERS="${EXCISE_PEERS_VENV:-.venv-peers}"
STAMP="$PEERS/.excise-peers"
HARBOR="harbor==0.26.0"
DATA="datasets==5.2.0 huggingface-hub==2.4.0 mini-swe-agent==2.4.6 swebench==5.0.2"
VERIFIERS="verifiers==0.4.0"
OPENENV="openenv-core==0.3.0"
SCHEDULES="check-jsonschema==0.39.0 kubernetes-validate==1.37.0"
WANTED="$HARBOR $DATA $VERIFIERS $OPENENV $SCHEDULES"

exit_if_installed "$PEERS" "$STAMP" "$WANTED"

find_python || { say "No Python >= $MIN_PYTHON found."; exit 2; }
NEWER=3.12 # for uv, which finds it or installs it
for candidate in "${EXCISE_PEERS_PYTHON:-}" python3.12 python3.13 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[23].*/bin/python3; do
    [ -n "$candidate" ] || continue
    if "$candidate" -c 'import sys; sys.exit(not (3, 12) <= sys.version_info < (3, 14))' >/dev/null 2>&1; then
        NEWER=$(command -v "$candidate")
        break
    fi
done
say "Installing the tools that read exports and check schedules into $PEERS (once, a minute and about 1 GB)"
rm -rf "$PEERS"
VENV="$PEERS/uv"
make_venv
locked uv >"$VENV/.excise-uv"
"$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$VENV/.excise-uv"
share_index_settings
install() {
    name=$1 python=$2
    shift 2
    "$VENV/bin/uv" venv --quiet --seed --python "$python" "$PEERS/$name"
    "$VENV/bin/uv" pip install --quiet --python "$PEERS/$name/bin/python" "$@"
}
# shellcheck disable=SC2086  # one word per package
{
    install harbor "$NEWER" $HARBOR
    install data "$NEWER" $DATA
    install verifiers "$NEWER" $VERIFIERS
    install openenv "$NEWER" $OPENENV
    install schedules "$NEWER" $SCHEDULES
}
printf '%s' "$WANTED" >"$STAMP"
