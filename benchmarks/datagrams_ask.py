"""Asks as fast as it is answered; a process of its own, whose CPU time is not counted.  See `datagrams`.

One order per line (JSON) on standard input, one line out when the questions are ready to leave, one when all were answered.
Questions are sealed before the clock runs, and answers are counted, not opened: this must never be the slower side. It
waits by the clock, not by the socket: waking it would be paid for by the side that is measured, which no peer on another
machine costs. Nor does it spin, which would slow down a core that shares its caches. One at a time is a ping-pong: there
both sides wait for the socket.
"""

from __future__ import annotations

import json
import socket
import sys
from itertools import islice
from select import select
from time import monotonic, sleep

from benchmarks.echo import Question, sealer_for
from holdfast.host import NodeId
from holdfast.wire import Codec, Sealer

ME = NodeId("asker", 1)
NOTE = bytes(range(32))
ANSWER_BYTES_MAX = 2048
PAUSE = 0.0002  # seconds between two looks; a window of 64 keeps the other side busy for longer than that
SILENCE = 1.0  # seconds without an answer after which what is on its way counts as lost
GIVE_UP = 5.0  # seconds without an answer after which no peer is there


class Asker:
    """Keeps ``window`` questions on their way until ``count`` were answered."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self._socket.setblocking(False)
        self._codec = Codec([Question])

    def prepare(self, sealer: Sealer, to_life: int, count: int) -> list[bytes]:
        encode = self._codec.encode
        return [sealer.seal(encode(ME, to_life, b"", Question(number, monotonic(), NOTE))) for number in range(count)]

    def ask(self, datagrams: list[bytes], to: tuple[str, int], count: int, window: int) -> dict[str, int]:
        """Datagrams beyond ``count`` replace those that get lost: one that was sent twice would be a replay."""
        waiting = iter(datagrams)
        on_their_way = answered = lost = 0
        heard_at = monotonic()
        while answered < count and monotonic() - heard_at < GIVE_UP:
            for datagram in islice(waiting, min(window, count - answered) - on_their_way):
                self._socket.sendto(datagram, to)
                on_their_way += 1
            heard = self._drain(on_their_way)
            answered, on_their_way = answered + heard, on_their_way - heard
            if heard:
                heard_at = monotonic()
            elif monotonic() - heard_at > SILENCE:
                lost, on_their_way = lost + on_their_way, 0
            if window > 1:
                sleep(PAUSE)
            elif on_their_way:
                select([self._socket], [], [], SILENCE)
        return {"answered": answered, "lost": lost}

    def _drain(self, limit: int) -> int:
        recv = self._socket.recv
        for count in range(limit):
            try:
                recv(ANSWER_BYTES_MAX)
            except BlockingIOError:
                return count
        return limit


def main() -> None:
    asker = Asker()
    sealers: dict[str, Sealer] = {}
    for line in sys.stdin:
        order = json.loads(line)
        key, count, window = order["key"], order["count"], order["window"]
        if key not in sealers:
            sealers[key] = sealer_for(key)
        datagrams = asker.prepare(sealers[key], order["to_life"], count + window)
        print("ready", flush=True)
        print(json.dumps(asker.ask(datagrams, tuple(order["to"]), count, window)), flush=True)


if __name__ == "__main__":
    main()
