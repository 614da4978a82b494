"""What ``doctor`` says about limits.  Spec: limits 5.7, 5.9-5.11, 9; docs/operations.md has one entry for each code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from holdfast.agent.observe.findings import error, note, warning

if TYPE_CHECKING:
    from holdfast.events import SpecConflict
    from holdfast.features.limits.protocol.limiter import Limiter
    from holdfast.features.limits.protocol.survey import LimitLook
    from holdfast.local.calls import Finding

PANIC_AFTER = 2.0  # seconds; a view that changes takes less


def of_limits(limiter: Limiter, conflicts: Mapping[str, SpecConflict], name: str, now: float) -> Iterator[Finding]:
    """Of an agent that takes part. ``conflicts``: the last one of each limit."""
    from holdfast.features.limits.protocol.survey import limits_of, member_of

    member, limits = member_of(limiter, now), limits_of(limiter)
    for look in limits:
        conflict = conflicts.get(look.name)
        if conflict is not None and conflict.refused != look.set_rate:
            yield _conflict(look, conflict)
        yield from _fleet(look, member.size)
        if look.starved:
            yield warning(
                "limit_starved",
                f"limit {look.name}", f"Callers wait, and this agent may use {look.used:.3g} of {look.rate:.3g} a second.",
                "See `holdfast limit show` at the members: raise the rate, or look for a process that asks for more than its part.",
            )  # fmt: skip
    if member.panic_for is not None and member.panic_for > PANIC_AFTER and limits:
        most = max(limits, key=lambda look: look.single)
        part = f"; of {most.name} that is {most.single:.3g} per second" if most.fleet else ""
        why = "others see another member list" if member.apart else "this agent is in no view"
        yield error(
            "limit_panic", name, f"For {member.panic_for:.0f} s {why}: each limit is used with 1/n of its rate at most here{part}.",
            "Mend the way to the seats, or between the members: `holdfast views` and `holdfast members` say what this agent sees.",
        )  # fmt: skip
    for peer in member.black:
        yield warning(
            "limit_blacklist", str(peer),
            "No direct message passes between this agent and this member: what limits say goes round by servers.",
            "Look for a firewall, a route or a cable between the two. Limits stay right meanwhile, and settle more slowly.",
        )  # fmt: skip
    if member.choke:
        side = ", ".join(map(str, member.choke))
        yield warning(
            "limit_choke", side, "Few direct links are left between these members and the others of the view.",
            "Look at the network between the two parts: if the last links break, each part goes on with its part of every limit.",
        )  # fmt: skip
    if limits and not member.agreed:
        yield note(
            "limit_members", name,
            "Limits stand on the member list here. Members may see it differently for a while, and use too much.",
            "Name seats (seats = ...) if that must not be: policies strict and exact stand on agreed views.",
        )  # fmt: skip


def _conflict(look: LimitLook, conflict: SpecConflict) -> Finding:
    return warning(
        "limit_conflict", f"limit {look.name}",
        f"Programs name two rates for it: {look.set_rate:g}, set by {look.by}, counts; {conflict.refused:g} does not.",
        "Give all programs the same rate, or none: `holdfast limit set` and `set_rate` change it for all members.",
    )  # fmt: skip


def _fleet(look: LimitLook, size: int) -> Iterator[Finding]:
    about = f"limit {look.name}"
    if not look.auto and size > look.fleet:
        yield warning(
            "limit_fleet", about, f"There are {size} members, and the limit is divided for {look.fleet}.",
            f"Say `holdfast limit set NAME --fleet {size}`, or more. With policy exact the members above the number get nothing.",
        )  # fmt: skip
    elif look.auto and 0 < size < look.fleet:
        yield note(
            "limit_fleet", about,
            f"{size} of the {look.fleet} members of the last ten minutes are here: the limit is used with that part of its rate.",
            "If the others have left for good, the whole rate is used after ten minutes. If the group is cut, set the fleet to a number.",
        )  # fmt: skip
