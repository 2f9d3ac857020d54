# Sourced by ./demo and ./check: installs everything they need, unless it is installed already.
#
# - system packages (bubblewrap, git) with apt-get, if they are missing and we have the permission; without it,
#   prints the command to run and exits with 2;
# - a virtual environment in .venv with the locked dependencies, hashes checked; for ./check, the trainer's too;
# - pip's index settings for uv, which installs the tasks' environments.
#
# POSIX sh. The caller has changed to the root of the checkout.

MIN_PYTHON="3.11"
VENV=".venv"
STAMP="$VENV/.excise-setup"

say() { printf '%s\n' "$*" >&2; }

die() {
    say "$*"
    exit 2
}

have() { command -v "$1" >/dev/null 2>&1; }

# Settings of the caller's shell that would break a virtual environment, or compile every module again in every process.
unset PYTHONHOME PYTHONPATH PIP_USER PIP_TARGET PIP_PREFIX PIP_REQUIRE_VIRTUALENV PYTHONDONTWRITEBYTECODE

suits() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    for candidate in ${EXCISE_PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11 /usr/bin/python3; do
        if suits "$candidate"; then
            PYTHON=$candidate
            return 0
        fi
    done
    return 1
}

can_make_venv() { "$PYTHON" -c 'import ensurepip, venv' >/dev/null 2>&1; }

has_pip_for_others() { "$PYTHON" -m pip --python "$PYTHON" --version >/dev/null 2>&1; }

missing_packages() {
    have bwrap || printf ' bubblewrap'
    have git || printf ' git'
    [ -e /etc/ssl/certs/ca-certificates.crt ] || [ -n "${SSL_CERT_FILE:-}" ] || [ ! -e /etc/debian_version ] ||
        printf ' ca-certificates'
    if ! find_python; then
        printf ' python3 python3-venv'
    elif ! can_make_venv && ! has_pip_for_others && ! have uv; then
        printf ' python3-venv'
    fi
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif sudo -n true 2>/dev/null; then
        sudo -n "$@"
    else
        sudo "$@"
    fi
}

may_be_root() {
    [ "$(id -u)" = 0 ] && return 0
    have sudo || return 1
    sudo -n true 2>/dev/null || { [ -t 0 ] && [ -t 2 ]; }
}

apt_install() {
    # Package lists are updated only if installing fails without: that is faster, and works offline.
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" >&2 ||
        { as_root apt-get update >&2 &&
            as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" >&2; }
}

install_system_packages() {
    packages=$(missing_packages)
    packages=${packages# }
    [ -n "$packages" ] || return 0
    have apt-get || die "These programs are missing; install them with your system's package manager: $packages"
    sudo=""
    ! have sudo || [ "$(id -u)" = 0 ] || sudo="sudo "
    by_hand="${sudo}apt-get update && ${sudo}apt-get install -y $packages"
    may_be_root || die "System packages are missing and cannot be installed from here. Run this once, as root:
    $by_hand"
    say "Installing system packages: $packages"
    # shellcheck disable=SC2086  # one word per package
    apt_install $packages && [ -z "$(missing_packages)" ] ||
        die "That did not work. Run this once, as root, and then the same command again:
    $by_hand"
}

is_installed() {
    case "$(dpkg-query -W -f '${Status}' "$1" 2>/dev/null)" in *' installed') return 0 ;; esac
    return 1
}

not_installed() {
    for package in "$@"; do
        is_installed "$package" || printf ' %s' "$package"
    done
}

# Debian packages that are missing of the toolchains of other languages, which sandboxes show.
toolchains() {
    not_installed golang-go cargo rustc openjdk-17-jdk-headless junit5 junit4 libjacoco-java nodejs
    have npm || printf ' npm'
}

# The Rust crates of `./demo --languages`, and the packages that have them and what their tests need.
CRATES="strsim smallvec arrayvec"
crate_packages() {
    not_installed librust-strsim-dev librust-smallvec-dev librust-bincode-dev librust-arrayvec-dev librust-matches-dev
}

# Their folders.
crates() {
    for crate in $CRATES; do
        for folder in "${REGISTRY:-/usr/share/cargo/registry}/$crate"-[0-9]*; do
            [ ! -d "$folder" ] || printf '%s ' "$folder"
        done
    done
}

# Installs the packages $3, which are $1, if that is allowed; else says what happens ($2) and which command installs them.
install_or_tell() {
    packages=${3# }
    [ -n "$packages" ] || return 0
    if have apt-get && may_be_root; then
        say "Installing $1: $packages"
        # shellcheck disable=SC2086  # one word per package
        apt_install $packages && return 0
    fi
    say "$2. To have them, run this once, as root: apt-get install -y $packages"
}

# Called by `./demo --languages` only.
install_languages() {
    install_or_tell "toolchains and crates" "Toolchains or crates are missing: their projects will be refused" \
        "$(toolchains)$(crate_packages)"
}

# Debian packages with the programs that the tests need and that are missing: a Docker engine, which the tests start if none
# answers; a browser for the viewer; the toolchains of other languages.
programs_of_tests() {
    [ -n "${DOCKER_HOST:-}" ] || [ -S "${DOCKER_SOCKET:-/var/run/docker.sock}" ] || have dockerd ||
        [ -x "${SBIN:-/usr/sbin}/dockerd" ] || printf ' docker.io'
    have chromium || have chromium-browser || have google-chrome || printf ' chromium'
    toolchains
}

# Called by ./check only; ./demo needs none of them.
install_programs_of_tests() {
    install_or_tell "programs for the tests" "Programs for some tests are missing" "$(programs_of_tests)"
}

# Called by ./check only: on a full disk tests fail without saying why.
warn_if_disk_is_full() {
    for folder in . "${TMPDIR:-/tmp}"; do
        free=$(df -Pk "$folder" 2>/dev/null | awk 'NR == 2 { print int($4 / 1048576) }') || free=""
        [ "${free:-$1}" -ge "$1" ] ||
            say "Only $free GiB are free on the disk of $folder; the tests and what they need take up to $1 GiB."
    done
}

make_venv() {
    rm -rf "$VENV"
    if can_make_venv; then
        "$PYTHON" -m venv "$VENV"
    elif has_pip_for_others; then
        # No ensurepip (Debian without python3-venv): the system's pip installs pip.
        "$PYTHON" -m venv --without-pip "$VENV" &&
            "$PYTHON" -m pip --python "$VENV/bin/python" install --quiet pip
    else
        uv venv --quiet --seed --python "$PYTHON" "$VENV"
    fi || die "Cannot make a virtual environment in $VENV with $PYTHON."
}

pip_setting() { "$VENV/bin/python" -m pip config get "global.$1" 2>/dev/null || true; }

# uv does not read pip's configuration: pass its settings on, unless uv has its own.
share_index_settings() {
    if [ -z "${UV_DEFAULT_INDEX:-}${UV_INDEX_URL:-}" ]; then
        index=${PIP_INDEX_URL:-$(pip_setting index-url)}
        [ -z "$index" ] || export UV_DEFAULT_INDEX="$index"
    fi
    if [ -z "${SSL_CERT_FILE:-}" ]; then
        bundle=${PIP_CERT:-$(pip_setting cert)}
        [ -z "$bundle" ] || export SSL_CERT_FILE="$bundle"
    fi
}

stamp() {
    "$VENV/bin/python" - "$PWD" <<'PY'
import hashlib, pathlib, sys
files = ("constraints.txt", "pyproject.toml")
text = b"\0".join(pathlib.Path(name).read_bytes() for name in files)
print(hashlib.sha256(text).hexdigest(), sys.version.split()[0], sys.argv[1])
PY
}

up_to_date() { [ -f "$STAMP" ] && [ "$(stamp 2>/dev/null)" = "$(cat "$STAMP")" ]; }

# uv takes a tenth of pip's CPU time. Where it fails (an index setting that only pip knows), pip installs the same files.
install_packages() {
    "$VENV/bin/uv" pip install --quiet --python "$VENV/bin/python" "$@" 2>"$VENV/.excise-uv.log" ||
        "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}

# The lines of one package in the constraints, with their hashes.
locked() { awk -v name="$1" '/^[^ #]/ { found = index($0, name "==") == 1 } found' constraints.txt; }

install_python_packages() {
    "$VENV/bin/python" -m pip --version >/dev/null 2>&1 || make_venv
    say "Installing the locked Python packages into $VENV (hashes checked)"
    locked uv >"$VENV/.excise-uv"
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$VENV/.excise-uv" &&
        share_index_settings &&
        install_packages --require-hashes -r constraints.txt &&
        install_packages --no-deps --no-build-isolation -e . ||
        die "Installing failed; see the messages above. Behind a proxy or a private index, set it in pip's configuration."
    stamp >"$STAMP"
}

trainer_stamp() { cat "$STAMP" constraints-train.txt | cksum; }

# Called by ./check only: the tests of the trainer, and mypy, need the packages for training. torch has builds for the CPU
# and for GPUs with different hashes, of which the index has one: it alone is installed without a hash.
install_trainer() {
    [ "$(cat "$VENV/.excise-trainer" 2>/dev/null)" != "$(trainer_stamp)" ] || return 0
    say "Installing torch and the trainer's locked packages into $VENV (once, some minutes)"
    versions="$VENV/.excise-versions"
    grep -h '^[^ #].*==' constraints.txt constraints-train.txt | sed 's/ *\\$//' >"$versions"
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check -c "$versions" torch==2.13.0 &&
        install_packages --no-deps --require-hashes -r constraints-train.txt ||
        die "Installing what the trainer needs failed; see the messages above."
    trainer_stamp >"$VENV/.excise-trainer"
}

setup() {
    install_system_packages
    find_python || die "No Python >= $MIN_PYTHON found. Install one, or set EXCISE_PYTHON to its path."
    up_to_date || install_python_packages
    share_index_settings
    PATH="$PWD/$VENV/bin:$PATH"
    export PATH
}

# Ends the script if the file $2 says that $3 is installed; else holds a lock beside the folder $1 until the script ends.
# The installation of a ./check that was interrupted may still be running.
exit_if_installed() {
    [ "$(cat "$2" 2>/dev/null)" != "$3" ] || exit 0
    exec 9>"$1.lock"
    flock 9
    [ "$(cat "$2" 2>/dev/null)" != "$3" ] || exit 0
}
