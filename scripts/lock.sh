#!/usr/bin/env bash
# Writes requirements-dev.txt again: every dependency and extra of pyproject.toml, pinned and with hashes.
# Pins that still satisfy pyproject.toml stay as they are; `scripts/lock.sh --upgrade` moves all of them.
set -euo pipefail
cd "$(dirname "$0")/.."

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
"${PYTHON:-python3}" -m venv "$tools"
"$tools/bin/pip" install -qq --disable-pip-version-check 'pip-tools>=7.4'

# Where packages are fetched from is a matter of the machine, never of the lock file.
CUSTOM_COMPILE_COMMAND="make lock" "$tools/bin/pip-compile" "$@" \
    --quiet --all-extras --generate-hashes --strip-extras --annotation-style=line \
    --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
    --output-file=requirements-dev.txt pyproject.toml
