"""The other side of `datagrams`: a process that asks as fast as it is answered. Its CPU time is not counted.

It reads one order per line (JSON) and answers each with one line. Questions are sealed before the clock runs, and answers
are counted, not opened: it must never be the slower one.
"""

from __future__ import annotations

import json
import socket
import sys
from time import monotonic

from benchmarks.echo import Question, sealer_for
from holdfast.host import NodeId
from holdfast.wire import Codec, Key, Keyring, Sealer

ME = NodeId("load", 1)
NOTE = bytes(range(32))
ANSWER_BYTES_MAX = 2048
SILENCE = 0.2  # seconds without an answer after which what is on its way counts as lost
GIVE_UP = 5.0  # seconds without an answer after which nobody is there


class Load:
    """Keeps ``window`` questions on their way until ``count`` were answered."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self._socket.settimeout(SILENCE)
        self._codec = Codec([Question])

    def prepare(self, sealer: Sealer, to_boot: int, count: int) -> list[bytes]:
        encode = self._codec.encode
        return [sealer.seal(encode(ME, to_boot, b"", Question(number, monotonic(), NOTE))) for number in range(count)]

    def ask(self, datagrams: list[bytes], to: tuple[str, int], count: int, window: int) -> dict[str, int]:
        """Datagrams beyond ``count`` replace those that get lost: one that was sent twice would be a replay."""
        waiting = iter(datagrams)
        on_their_way = answered = lost = 0
        quiet_since = monotonic()
        while answered < count and monotonic() - quiet_since < GIVE_UP:
            while on_their_way < window and (datagram := next(waiting, None)) is not None:
                self._socket.sendto(datagram, to)
                on_their_way += 1
            try:
                self._socket.recv(ANSWER_BYTES_MAX)
            except TimeoutError:
                lost, on_their_way = lost + on_their_way, 0
                continue
            on_their_way -= 1
            answered += 1
            quiet_since = monotonic()
        return {"answered": answered, "lost": lost}


def main() -> None:
    load = Load()
    sealers: dict[str, Sealer] = {}
    for line in sys.stdin:
        order = json.loads(line)
        key = order["key"]
        if key not in sealers:
            sealers[key] = sealer_for(Keyring(Key(bytes.fromhex(key))) if key else None)
        count = order["count"]
        datagrams = load.prepare(sealers[key], order["to_boot"], count + order["window"])
        print("ready", flush=True)
        print(json.dumps(load.ask(datagrams, tuple(order["to"]), count, order["window"])), flush=True)


if __name__ == "__main__":
    main()
