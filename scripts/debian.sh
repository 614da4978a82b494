#!/usr/bin/env bash
# Installs Debian packages that are missing, given as package or package:command. It never fails: a check that needs one of
# them looks for it and skips, or stops, with its own reason.
set -uo pipefail
PATH=$PATH:/usr/sbin:/sbin

missing=()
for entry in "$@"; do
    package=${entry%%:*} command=${entry#*:}
    if [ "$command" != "$package" ]; then
        command -v "$command" >/dev/null && continue
    elif dpkg-query --show --showformat='${Status}' "$package" 2>/dev/null | grep -q 'ok installed'; then
        continue
    fi
    missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

install() {
    DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends -o=Dpkg::Use-Pty=0 "${missing[@]}" >/dev/null 2>&1
}

if ! command -v apt-get >/dev/null; then
    echo "holdfast: missing ${missing[*]} (names of Debian packages); what needs them is skipped."
elif [ "$(id -u)" -ne 0 ]; then
    echo "holdfast: missing ${missing[*]}; what needs them is skipped. To have them: sudo apt-get install ${missing[*]}"
else
    echo "holdfast: installing ${missing[*]} with apt-get ..."
    install || { apt-get update -qq >/dev/null 2>&1 && install; } ||
        echo "holdfast: apt-get could not install ${missing[*]}; what needs them is skipped."
fi
exit 0
