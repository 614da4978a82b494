"""`views`: what agreed views cost, how fast they are, and letters by the overlay beside letters by ZooKeeper.

    join_ms                  a client asks for views, until it reads of a leased and stable view that lists its agent;
                             the other members have views already, and this agent had them before
    join_first_ms            the same for the first time in the life of the agent, which imports what views need
    join_all_ms              as join_ms, until the client of every member has read of that view
    crash_s                  kill -9 of a member's agent, until the clients of all others have read of a view without it
    seat_crash_lost_leases   of the clients of a killed seat, the share that was told ``ViewLost`` before there was a
                             view without that seat
    seat_crash_s             kill -9 of a seat, until the clients of all members have read of that view
    seat_crash_least_spare_s what the former lease of a client of that seat still had then, as the client knew it; the
                             least of all
    carry_p50_ratio          a letter while the direct way is cut, by the overlay / the same letter directly; from the
                             call of ``group.send`` until it returns
    zookeeper_times          the same letter by the mailboxes in ZooKeeper, while the direct way is cut / by the overlay
    ..._until_arrival        both until the receiver's program has the letter
    idle_packets_s           UDP packets per second, sent and received, that views add to an idle member
    core_share               CPU seconds per second that views add to an idle member
    seat_..., crowded_...    the same of a seat with some clients, and with 64
    view_bytes_per_client    of messages that one crash causes, per client, in the lab; the larger of a group of 182 and
                             one of 2,000
    machine_late_p999_ms     how late this machine woke up a process while agents were killed

All agents are processes of their own with a key and state directories, at the preset ``lan`` (a heartbeat of views of
0.25 s). A number that could not be measured is null, and a goal without a number is missed; the problems say why (H241).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from benchmarks.agent_fleet import compile_package
from benchmarks.harness import Report, at_least, at_most, show_progress
from benchmarks.leadership import Lateness
from benchmarks.ring_fleet import NeverHappened
from benchmarks.views_idle import Idle
from benchmarks.views_letters import DIRECT, RATIOS, Letters
from benchmarks.views_lives import Lives
from benchmarks.views_side import apart
from holdfast.features.views.lab.experiments import scale

GOALS = {
    "seat_crash_lost_leases": at_most(0.02),
    "carry_p50_ratio": at_most(4),
    "zookeeper_times": at_least(5),
    "idle_packets_s": at_most(10),
    "core_share": at_most(0.0025),
    "view_bytes_per_client": at_most(1000),
}
ROUNDS = 100  # kills of seats
STRAYS_MAX = 0.02  # of the letters of a round: so many may take another way than the one that is measured


class Size(NamedTuple):
    """How much of it."""

    idle: Idle = Idle()
    lives: Lives = Lives()
    letters: Letters = Letters()
    clients: tuple[int, ...] = (182, 2000)  # in the lab


SIZE = Size()
QUICK = Size(
    Idle(members=4, crowd=16, turns=1, settle_seconds=4.0, seconds=8.0),
    Lives(members=6, joins=3, crashes=2),
    Letters(rounds=2, letters=30, warm_at_first=30),
    (182,),
)


def run(rounds: int = ROUNDS, size: Size = SIZE) -> Report:
    compile_package()
    size = size._replace(lives=size.lives._replace(kills=rounds))
    problems: list[str] = []
    idle = measured("idle", size.idle, problems)
    with Lateness() as lateness:
        lives = measured("lives", size.lives, problems)
    late = lateness.found()
    letters = measured("letters", size.letters, problems)
    show_progress("one crash in the lab")
    crashes = [scale.EXPERIMENT.measure({"clients": clients, "views": scale.DELTAS, "seed": 0}) for clients in size.clients]
    problems += [each["violation"] for each in crashes if each["violation"]]
    problems += strays(letters)
    ratios = {**of_lives(lives), **of_letters(letters), **of_idle(idle), **of_crashes(crashes)}
    ratios["machine_late_p999_ms"] = late["p99.9"]
    raw: dict[str, Any] = {"rounds": rounds, "size": size._asdict(), "idle": idle, "lives": lives, "lateness_ms": late, "letters": letters}
    raw["lab"] = {f"{each['clients']} clients": each for each in crashes}
    return Report("views", GOALS, ratios, raw, problems)


def measured(part: str, size: Any, problems: list[str]) -> Mapping[str, Any]:
    """Nothing if it broke off; the others may be good all the same."""
    show_progress(part)
    try:
        return apart(part, size)
    except NeverHappened as error:
        problems.append(str(error))
        return {}


def strays(letters: Mapping[str, Any]) -> list[str]:
    """Why a number of the letters is missing, or does not mean what it should."""
    told = [letters["missing"]] if letters.get("missing") else []
    for way, share in letters.get("carried_share", {}).items():
        if abs(share - (way != DIRECT)) > STRAYS_MAX:
            told.append(f"letters, {way}: {share:.0%} of them went by the overlay")
    return told


def of_lives(found: Mapping[str, Any]) -> dict[str, float | None]:
    joins, kills = found.get("joins", []), found.get("kills", [])
    clients = sum(kill["clients"] for kill in kills)
    return {
        "join_ms": _median([join["own"] * 1e3 for join in joins]),
        "join_first_ms": _median([join["own"] * 1e3 for join in found.get("first_joins", [])]),
        "join_all_ms": _median([join["all"] * 1e3 for join in joins]),
        "crash_s": _median(found.get("crashes", [])),
        "seat_crash_lost_leases": sum(kill["lost"] for kill in kills) / clients if clients else None,
        "seat_crash_s": _median([kill["seconds"] for kill in kills]),
        "seat_crash_least_spare_s": min((kill["spare"] for kill in kills), default=None),
    }


def of_letters(found: Mapping[str, Any]) -> dict[str, float | None]:
    ratios, arrivals = found.get("ratios", {}), found.get("arrival_ratios", {})
    return {**{name: ratios.get(name) for name in RATIOS}, **{f"{name}_until_arrival": arrivals.get(name) for name in RATIOS}}


def of_idle(found: Mapping[str, Any]) -> dict[str, float | None]:
    seat, crowded = found.get("seat", {}), found.get("crowded_seat", {})
    return {
        "idle_packets_s": found.get("packets_s"),
        "core_share": found.get("core_share"),
        "seat_packets_s": seat.get("packets"),
        "seat_core_share": seat.get("core_share"),
        "crowded_seat_packets_s": crowded.get("packets"),
        "crowded_seat_core_share": crowded.get("core_share"),
    }


def of_crashes(rows: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    of_each = {
        f"view_bytes_per_client_{row['clients']}": float(sum(row["bytes"].values()) / row["clients"]) for row in rows if "bytes" in row
    }
    whole = len(of_each) == len(rows)
    return {"view_bytes_per_client": max(of_each.values()) if whole else None, **of_each}


def _median(values: Sequence[float]) -> float | None:
    return median(values) if values else None
