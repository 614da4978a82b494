#!/usr/bin/env bash
# healthcheck.sh [PATH]: exits 0 if the agent of this container answers PATH (/healthz unless told otherwise) with 200, else 1 with its answer.
# Bash alone: the image has neither curl nor wget, and a start of Python every ten seconds would cost more than the agent itself.
path=${1:-/healthz}
if [[ -z $HOLDFAST_HTTP ]]; then # It serves no HTTP, so only its local socket can be asked.
    exec holdfast info --json >/dev/null
fi
host=${HOLDFAST_HTTP%:*} port=${HOLDFAST_HTTP##*:}
host=${host#[} host=${host%]}
case $host in # A server on all addresses is asked on loopback.
    0.0.0.0) host=127.0.0.1 ;;
    ::) host=::1 ;;
esac
name=$host
[[ $host == *:* ]] && name="[$host]"
exec 3<>"/dev/tcp/$host/$port" || exit 1
printf 'GET %s HTTP/1.1\r\nHost: %s:%s\r\nConnection: close\r\n\r\n' "$path" "$name" "$port" >&3
IFS= read -r -t 4 status <&3 || exit 1
[[ $status == "HTTP/1.1 200"* ]] && exit 0
while IFS= read -r -t 1 line <&3 && [[ $line != $'\r' ]]; do :; done
echo "${status%$'\r'}: $(timeout 1 cat <&3)"
exit 1
