"""One monitor, one subject, one detector between them: arithmetic over arrival times, for what fast detection is held against.

Spec: fast-detection 8 (E3, E13), 10 (``PairDetector``).
"""

from __future__ import annotations

from math import inf
from random import Random

from msgspec import Struct

from holdfast.features.leadership.detector.detectors import PairDetector

TRAINING = 200  # heartbeats before anything counts: twice the window of the estimates


class PairRun(Struct):
    """What a detector did with one run of heartbeats of a live subject."""

    heartbeats: int
    mistakes: int  # how often trust was lost
    times: list[float]  # seconds to the detection of a crash, had there been one between this heartbeat and the next


def run_pair(
    detector: PairDetector, random: Random, *, heartbeats: int, interval: float, loss: float, delay: float, worst: bool = False
) -> PairRun:
    """Heartbeats are lost independently and take exponential delays. After each the subject might have died: at any moment before the next
    one, or (``worst``) right after one that arrives. A process that is suspected already by then is detected at once."""
    run = PairRun(0, 0, [])
    suspected_from, trusted = inf, False
    for seq in range(TRAINING + heartbeats):
        sent_at = seq * interval
        arrives_at = sent_at + random.expovariate(1 / delay)
        if random.random() >= loss or seq == 0:
            if trusted and suspected_from <= arrives_at and seq > TRAINING:
                run.mistakes += 1
            detector.arrived(seq, arrives_at)
            suspected_from = detector.deadline()
            trusted = suspected_from > arrives_at
            arrived = True
        else:
            arrived = False
        if seq >= TRAINING:
            run.heartbeats += 1
            if not worst:
                run.times.append(max(0.0, suspected_from - sent_at - random.random() * interval))
            elif arrived:
                run.times.append(suspected_from - sent_at)
    return run
