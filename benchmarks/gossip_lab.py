"""What `gossip` measures in the lab: what a member of 10,000 sends and is called for, the time of an event, two equal lists."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness import show_progress, take_turns
from benchmarks.ring_lab import calm_world, per_event
from holdfast.features.gossip.lab.experiments.load_by_size import EXPERIMENT
from holdfast.features.gossip.lab.groups import GossipGroup, names_of
from holdfast.features.gossip.protocol import profiles
from holdfast.lab.accounting import count_bytes, total

PERIOD = 1.0
SEED = 1
CALM_SECONDS = 5.0  # per round
COMPARED = "SyncDigest"
TABLES = ("Sync", "Want", "Rows")  # what follows a comparison of lists that differ


class Lab(NamedTuple):
    """How much of it."""

    sizes: tuple[int, ...] = (16, 10_000)
    periods: int = 20
    members: int = 256  # of the group and the ring whose events are timed
    rounds: int = 4
    seconds: float = 120.0  # in which equal lists are compared


def measure(lab: Lab, folder: Path) -> dict[str, Any]:
    del folder
    cells = []
    for members in lab.sizes:
        show_progress(f"{members} members in the lab")
        cells.append(EXPERIMENT.measure({"members": members, "periods": lab.periods, "seed": SEED}))
    small, large = cells[0], cells[-1]
    return {
        "cells": cells,
        "flat": {what: large[what] / small[what] for what in ("datagrams", "bytes", "calls")},
        "events_per_s": _events(lab),
        "sync": _equal(lab.seconds),
    }


def _events(lab: Lab) -> dict[str, Sequence[float]]:
    """Events per CPU second of a calm group and of a calm ring, in turns; each round."""
    group = GossipGroup(SEED, profiles.default(PERIOD))
    group.form(names_of(lab.members))
    group.run(CALM_SECONDS)
    ring = calm_world(SEED, lab.members)
    ring.run(CALM_SECONDS)
    contestants = {"gossip": partial(per_event, group.world, CALM_SECONDS), "ring": partial(per_event, ring, CALM_SECONDS)}
    return {name: [1 / each for each in seconds] for name, seconds in take_turns(contestants, lab.rounds).items()}


def _equal(seconds: float) -> dict[str, float]:
    """Sealed bytes of both ways of a comparison of two lists that are equal, and what else was sent for it."""
    group = GossipGroup(SEED, profiles.default(PERIOD))
    group.form(names_of(32))
    count_bytes(group.world)
    before = total(group.world)
    group.run(seconds)
    after = total(group.world)
    sent = {name: each.messages - (before[name].messages if name in before else 0) for name, each in after.items()}
    messages = sent[COMPARED]
    return {
        "bytes": 2 * after[COMPARED].size / messages,
        "comparisons": messages / 2,
        "tables": float(sum(sent.get(name, 0) for name in TABLES)),
        "per_member_s": messages / 2 / 32 / seconds,
    }
