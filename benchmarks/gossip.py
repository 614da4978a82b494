"""`gossip`: what membership by gossip costs in groups of 16 to 1000 real members, and of 10,000 in the lab.

    flat_1000          the largest of datagrams, bytes and CPU per member and second at 1000 over the same at 16; real sockets, T = 1 s
    flat_10000_lab     the larger of datagrams and handler calls per member at 10,000 over the same at 16, in the lab
    entry_bytes        what an agent keeps of each member that it lists: identity, address, entry, places in list and rounds
    heard_bytes        the same of one that was written to and heard: with addresses in node, socket and codec, cipher and replay windows
    lab_events_per_s   events per CPU second of a calm group of 256 in the lab; best round
    lab_events_over_ring   the same / of a calm ring of 256
    sync_equal_bytes   sealed bytes of a comparison of two equal lists, both ways together
    turns_per_probe    turns of the event loop of a member of 16 for each of its probes: its own and those that it answers
    form_..._s         members that begin to join at once, until each lists all
    crash_..., crashes_..._last_s   until the last one holds a member that crashed for dead, or the tenth part of all that crashed at once
    cut_..._s, heal_..._s   until each half lists itself alone, and until each lists all again

Real members are ``GossipNode`` on real sockets, sealed, many in each of four processes of a group; every list is full. Groups of all
sizes are there at the same time, and idle at the same time. Their costs while something happens, and memory, are in ``raw``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from benchmarks.gossip_lab import Lab
from benchmarks.gossip_real import Real
from benchmarks.gossip_side import apart
from benchmarks.harness import ROOT, Report, at_most, show_progress
from benchmarks.leadership import Lateness
from benchmarks.ring_fleet import NeverHappened

GOALS = {
    "flat_1000": at_most(1.25),
    "flat_10000_lab": at_most(1.15),
    "entry_bytes": at_most(500),
    "heard_bytes": at_most(1536),
    "sync_equal_bytes": at_most(600),
}
FLAT = ("datagrams", "bytes", "cpu")
FLAT_LAB = ("datagrams", "calls")
ASKED = (16, 1000)  # sizes of which flat_1000 is
ROUNDS = 4  # of the events in the lab

Found = Mapping[str, Any]


class Size(NamedTuple):
    """How much of it."""

    real: Real = Real()
    lab: Lab = Lab()
    kept: int = 1000  # members of which memory is counted


SIZE = Size()
QUICK = Size(
    real=Real(sizes=(16, 48), idle_seconds=10.0, within=120.0, cuts=(16,)),
    lab=Lab(sizes=(16, 1000), periods=5, members=64, seconds=60.0),
    kept=300,
)


def run(rounds: int = ROUNDS, size: Size = SIZE) -> Report:
    problems: list[str] = []
    kept = {what: _said_by(*words, str(size.kept)) for what, words in KEPT.items()}
    lab = measured("lab", size.lab._replace(rounds=rounds), problems)
    with Lateness() as lateness:
        real = measured("real", size.real, problems)
    problems += real.get("problems", [])
    if size.real.sizes[-1] != ASKED[1]:
        problems.append(f"flat_1000: measured at {size.real.sizes[-1]} members")
    if size.lab.sizes[-1] != Lab().sizes[-1]:
        problems.append(f"flat_10000_lab: measured at {size.lab.sizes[-1]} members")
    ratios = {**of_real(real.get("sizes", {})), **of_lab(lab), **of_kept(kept)}
    raw = {
        "size": size._asdict(),
        "cores": os.cpu_count(),
        "load_average": os.getloadavg()[0],
        "lateness_ms": lateness.found(),
        "kept": kept,
        "lab": lab,
        "real": real.get("sizes", {}),
    }
    return Report("gossip", GOALS, ratios, raw, problems)


KEPT = {
    "listed": ("benchmarks.gossip_kept", "listed"),
    "met": ("benchmarks.gossip_kept", "met"),
    "heard": ("benchmarks.heard", "heard"),
}


def measured(part: str, size: Any, problems: list[str]) -> Found:
    """Nothing if it broke off; the others may be good all the same."""
    show_progress(part)
    try:
        return apart(part, size)
    except NeverHappened as error:
        problems.append(str(error))
        return {}


def of_real(found: Mapping[str, Found]) -> dict[str, float | None]:
    sizes = sorted(found, key=int)
    idle = {size: found[size].get("idle", {}) for size in sizes}
    small, large = (idle[sizes[0]], idle[sizes[-1]]) if sizes else ({}, {})
    flat = [large[what] / small[what] for what in FLAT if small.get(what) and what in large]
    numbers: dict[str, float | None] = {
        "flat_1000": max(flat) if len(flat) == len(FLAT) else None,
        "turns_per_probe": small.get("turns_per_probe"),
    }
    for size in sizes:
        of = found[size]
        numbers[f"form_{size}_s"] = of.get("form", {}).get("seconds")
        numbers |= {f"{what}_{size}_last_s": of.get(what, {}).get("last") for what in ("crash", "crashes")}
        numbers |= {f"{what}_{size}_s": of.get(what, {}).get("seconds") for what in ("cut", "heal")}
    return numbers


def of_lab(found: Found) -> dict[str, float | None]:
    flat = found.get("flat", {})
    rates = {name: max(each) for name, each in found.get("events_per_s", {}).items()}
    return {
        "flat_10000_lab": max((flat[what] for what in FLAT_LAB), default=None) if flat else None,
        "lab_events_per_s": rates.get("gossip"),
        "lab_events_over_ring": rates["gossip"] / rates["ring"] if rates else None,
        "sync_equal_bytes": found.get("sync", {}).get("bytes"),
    }


def of_kept(kept: Mapping[str, float]) -> dict[str, float | None]:
    return {"entry_bytes": kept["listed"], "heard_bytes": kept["met"] + kept["heard"]}


def _said_by(*words: str) -> Any:
    command = [sys.executable, "-m", *words]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout)
