"""A real pause: SIGSTOP and SIGCONT of a process with a real host.  Spec: foundation F10."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from holdfast.host import NodeId
from tests.net.machines import Blob, Ping, envelope

ROOT = Path(__file__).parents[2]
PEER = NodeId("peer", 5)
PAUSE = 0.7  # seconds; well above the threshold and above every hiccup of a busy machine that the test tolerates
TICK = 0.05  # the child's timer, see tests/net/sleeper.py
DATAGRAMS = 20


def test_datagrams_that_waited_come_before_late_timers() -> None:
    """F10: after SIGCONT on_away first, with a lower bound of the pause, then what waited in the socket, then the late timers."""
    with (
        subprocess.Popen([sys.executable, "-m", "tests.net.sleeper"], cwd=ROOT, stdout=subprocess.PIPE, text=True) as child,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock,
    ):
        assert child.stdout is not None
        port = int(child.stdout.readline())
        began_at = time.monotonic()
        child.send_signal(signal.SIGSTOP)
        os.waitpid(child.pid, os.WUNTRACED)
        stopped_at = time.monotonic()
        for serial in range(DATAGRAMS):
            sock.sendto(envelope(PEER, NodeId("sleeper", 1), Ping(serial)), ("127.0.0.1", port))
        time.sleep(PAUSE)
        paused_for = time.monotonic() - stopped_at
        child.send_signal(signal.SIGCONT)
        sock.sendto(envelope(PEER, NodeId("sleeper", 1), Blob(b"enough")), ("127.0.0.1", port))
        diary = [(what, number) for what, number in json.loads(child.stdout.read())]
        ended_at = time.monotonic()
    at = next(i for i, (what, number) in enumerate(diary) if what == "away" and number > PAUSE / 2)
    seconds = diary[at][1]
    # The earliest unserved timer was due within one tick after the stop.
    assert paused_for - TICK - 0.01 <= seconds <= ended_at - began_at
    assert [what for what, _ in diary[at + 1 : at + 1 + DATAGRAMS]] == ["Ping"] * DATAGRAMS
    assert all(late == 0.0 for what, late in diary if what == "Ping")
    after = [(what, late) for what, late in diary[at + 1 + DATAGRAMS :] if what == "tick"]
    assert after[0][1] >= seconds
