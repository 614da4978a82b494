"""The other side of `http-load`: ``python -m benchmarks.http_load_hammer KIND WHERE SECONDS CONNECTIONS [PATH]``; prints one JSON object.

    http     so many connections that ask for PATH over and over, each as soon as it was answered
    fresh    the same with a new connection for every request
    piped    the same with 64 requests sent at once on each connection
    stream   so many connections that read PATH to its end, which never comes
    local    so many connections to the local socket (WHERE is its path) that send calls as fast as the kernel takes them

It counts answers by status, and how long the slowest one took.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time
from collections import Counter
from contextlib import suppress

import msgspec

from holdfast.local import calls
from holdfast.local.frame import framed
from holdfast.net import clock

READ_BYTES = 1 << 18
PIPED = 64  # requests at once
BATCH = 2000  # calls that are encoded before they are sent
END = b"\r\n\r\n"

_encode = msgspec.msgpack.Encoder().encode


class Asker:
    """One connection over HTTP."""

    def __init__(self, where: tuple[str, int], path: str, kind: str) -> None:
        self._where, self._kind = where, kind
        close = "Connection: close\r\n" if kind == "fresh" else ""
        self._request = f"GET {path} HTTP/1.1\r\nHost: {where[0]}\r\n{close}\r\n".encode() * (PIPED if kind == "piped" else 1)
        self.counts: Counter[str] = Counter()
        self.slowest = 0.0
        self._rest = b""
        self._open()

    def fileno(self) -> int:
        return self.socket.fileno()

    def _open(self) -> None:
        self.socket = socket.create_connection(self._where, timeout=60.0)
        self._expected = 0
        self._ask()

    def _ask(self) -> None:
        self._began_at = time.monotonic()
        self._expected += PIPED if self._kind == "piped" else 1
        with suppress(OSError):  # Closed by the server: the next read says so.
            self.socket.sendall(self._request)

    def on_readable(self) -> bool:
        """True if the socket is another one now."""
        try:
            data = self.socket.recv(READ_BYTES)
        except OSError:
            data = b""
        if not data:
            if self._expected:
                self.counts["closed"] += 1
            self.socket.close()
            self._rest = b""
            self._open()
            return True
        self._rest += data
        if self._kind == "stream":
            self.counts["bytes"] += len(data)
            self._rest = b""
            return False
        while self._expected and self._answered():
            self._expected -= 1
            self.slowest = max(self.slowest, time.monotonic() - self._began_at)
        if not self._expected and self._kind != "fresh":
            self._ask()
        return False

    def _answered(self) -> bool:
        head, found, rest = self._rest.partition(END)
        if not found:
            return False
        status = head[9:12].decode("ascii", "replace")
        length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
        if len(rest) < length:
            return False
        self._rest = rest[length:]
        self.counts[status] += 1
        return True


class Sender:
    """One connection to the local socket. What it is answered it reads and does not look at."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        hello = calls.Hello(1, calls.VERSION, "hammer", clock.now())
        self.socket.sendall(framed(_encode(hello)))
        self.socket.recv(READ_BYTES)
        self.socket.setblocking(False)
        self._serial, self._left = 1, memoryview(b"")
        self.sent = self.read = 0

    def fileno(self) -> int:
        return self.socket.fileno()

    def on_ready(self, mask: int) -> None:
        if mask & selectors.EVENT_READ:
            data = self.socket.recv(READ_BYTES)
            if not data:
                raise SystemExit("the agent hung up")
            self.read += len(data)
        if mask & selectors.EVENT_WRITE:
            if not self._left:
                self._left = memoryview(b"".join(self._calls()))
            with suppress(BlockingIOError):
                self._left = self._left[self.socket.send(self._left) :]

    def _calls(self) -> list[bytes]:
        self.sent += BATCH
        serials = range(self._serial + 1, self._serial + BATCH + 1)
        self._serial += BATCH
        return [framed(_encode(calls.Owns(serial, b"key") if serial % 2 else calls.Look(serial))) for serial in serials]


def over_http(kind: str, where: str, seconds: float, connections: int, path: str) -> dict[str, object]:
    host, _, port = where.rpartition(":")
    askers = [Asker((host, int(port)), path, kind) for _ in range(connections)]
    end_at = time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        for asker in askers:
            selector.register(asker.socket, selectors.EVENT_READ, asker)
        while time.monotonic() < end_at:
            for key, _ in selector.select(0.1):
                before = key.fileobj
                if key.data.on_readable():
                    selector.unregister(before)
                    selector.register(key.data.socket, selectors.EVENT_READ, key.data)
    counts = sum((asker.counts for asker in askers), Counter[str]())
    return {"statuses": dict(sorted(counts.items())), "slowest": round(max(asker.slowest for asker in askers), 3)}


def over_local(path: str, seconds: float, connections: int) -> dict[str, object]:
    senders = [Sender(path) for _ in range(connections)]
    end_at = time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        for sender in senders:
            selector.register(sender.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, sender)
        while time.monotonic() < end_at:
            for key, mask in selector.select(0.1):
                key.data.on_ready(mask)
    return {"calls": sum(sender.sent for sender in senders), "answer_bytes": sum(sender.read for sender in senders)}


def main() -> None:
    kind, where, seconds, connections, *path = sys.argv[1:]
    if kind == "local":
        print(json.dumps(over_local(where, float(seconds), int(connections))))
    else:
        print(json.dumps(over_http(kind, where, float(seconds), int(connections), path[0])))


if __name__ == "__main__":
    main()
