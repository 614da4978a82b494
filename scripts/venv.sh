#!/usr/bin/env bash
# Makes the virtualenv $1 from the lock file $2 with the interpreter $PYTHON, and says what is missing if it cannot.
set -euo pipefail
venv=$1 lock=$2
python=${PYTHON:-python3}

fail() {
    echo "holdfast: $*" >&2
    exit 1
}

command -v "$python" >/dev/null || fail "no $python here. Holdfast needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 ..."
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$python is $("$python" --version 2>&1). Holdfast needs Python 3.11 or newer: make PYTHON=python3.11 ..."

# Debian ships Python without ensurepip, in a package of its own.
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    "$(dirname "$0")/debian.sh" "$package"
    "$python" -c 'import ensurepip, venv' 2>/dev/null || fail "$python cannot make a virtualenv. On Debian: apt-get install $package"
fi

rm -rf "$venv"
"$python" -m venv "$venv"
echo "holdfast: installing $(grep -c '==' "$lock") pinned packages into $venv (about a minute) ..."
"$venv/bin/python" -m pip install -qq --disable-pip-version-check --require-hashes --requirement "$lock"
