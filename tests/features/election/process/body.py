"""A command of ``holdfast run`` that acts for as long as it lives: ``python -m tests.features.election.process.body STORE MEMBER``.

It is deaf to SIGTERM and looks at no deadline, so it acts for as long as it is let: what ends it is what ``holdfast run`` promises. Each
act is a write to the store of ``store.py``, behind a fence.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from tests.features.election.process.store import Actor, Writer

INTERVAL = 0.02  # seconds between two acts
LIFE_MAX = 900.0  # seconds: whatever goes wrong, nothing of a test stays


def main() -> None:
    _, path, member = sys.argv
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    writer = Writer(Path(path), int(os.environ["HOLDFAST_TOKEN"]), Actor(member, os.getpid()))
    end_at = time.monotonic() + LIFE_MAX
    while time.monotonic() < end_at:
        writer.act()
        time.sleep(INTERVAL)


if __name__ == "__main__":
    main()
