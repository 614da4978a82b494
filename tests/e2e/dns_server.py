"""A name server for a test: answers questions for IPv4 addresses from a JSON file that the test rewrites.

python -m tests.e2e.dns_server 10.77.0.9 names.json
"""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

PORT = 53
A, IN = 1, 1
FLAGS, NO_SUCH_NAME = 0x8580, 3  # an answer, authoritative, recursion available; and the code beside it
TTL = 1


def answer(query: bytes, names: dict[str, str]) -> bytes:
    """What the server says to one question. A name that is known and has no address of the kind asked for gets an empty answer."""
    labels, end = [], 12
    while query[end]:
        labels.append(query[end + 1 : end + 1 + query[end]].decode())
        end += 1 + query[end]
    question = query[12 : end + 5]
    kind = int.from_bytes(query[end + 1 : end + 3], "big")
    address = names.get(".".join(labels).lower())
    found = address is not None and kind == A
    code = 0 if address is not None else NO_SUCH_NAME
    header = query[:2] + (FLAGS | code).to_bytes(2, "big") + bytes([0, 1, 0, int(found), 0, 0, 0, 0])
    if not found:
        return header + question
    assert address is not None
    record = b"\xc0\x0c" + A.to_bytes(2, "big") + IN.to_bytes(2, "big") + TTL.to_bytes(4, "big") + b"\x00\x04" + socket.inet_aton(address)
    return header + question + record


def main(host: str, file: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((host, PORT))
        while True:
            query, source = server.recvfrom(512)
            server.sendto(answer(query, json.loads(Path(file).read_text())), source)


if __name__ == "__main__":
    main(*sys.argv[1:])
