"""What ``doctor`` says about elections.  Spec: election 10, D6, D13, D23; docs/operations.md has one entry for each code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from holdfast.agent.observe.findings import error, note, warning
from holdfast.errors import shown
from holdfast.features.election.protocol.ranks import decode, row_of

if TYPE_CHECKING:
    from holdfast.agent.grants.ways import Taken, Ways
    from holdfast.features.election.protocol.elections import Elections
    from holdfast.features.election.protocol.facts import CBoundUnusable, RankViolation
    from holdfast.host import Host, Lists
    from holdfast.local.calls import Finding

VIOLATIONS_FOR = 3600.0  # seconds for which a worse leader is told
UNSETTLED_FOR = 15.0  # seconds: a member that gossips is settled sooner, unless the group does not hear of it
SMALL = 4  # members; in a smaller group c+1 answers are never to be had beside f dead ones


class Examined(Protocol):
    """What doctor looks at: ``running.Examined``."""

    by: str
    lists: Lists
    elections: Elections
    ways: Ways

    @property
    def host(self) -> Host: ...
    @property
    def violations(self) -> Sequence[tuple[float, RankViolation]]: ...
    @property
    def unusable_c(self) -> Mapping[str, CBoundUnusable]: ...
    def standing_since(self) -> Mapping[str, float]: ...
    def taken(self, name: str) -> Taken | None: ...
    def highest(self, name: str) -> int: ...


def of_elections(agent: Examined) -> Iterator[Finding]:
    """Of all names that this agent knows."""
    for name in agent.elections.names():
        yield from _two_ways(agent, name)
        yield from _rank_mismatch(agent, name)
    for name, since in agent.standing_since().items():
        if not agent.elections.candidates(name) and agent.host.now - since >= UNSETTLED_FOR:
            yield warning(
                "no_candidate_settled", name,
                f"A client of this agent has asked to lead {shown(name)} for {agent.host.now - since:.0f} s, and no candidate is settled.",
                "A candidate settles when the others have heard of it; look at the findings about its seeds and its network.",
            )  # fmt: skip
    yield from _unusable(agent)
    yield from _violations(agent)


def _two_ways(agent: Examined, name: str) -> Iterator[Finding]:
    own, other = agent.taken(name), agent.ways.other(name, agent)
    if own is not None and other is not None:
        by, taken = other
        yield error(
            "two_ways", name, f"{own.life} {own.does} by election, and {taken.life} {taken.does} by {by}.",
            f"Let all who lead {shown(name)} ask for it one way, and restart those that ask for it the other way.",
        )  # fmt: skip


def _rank_mismatch(agent: Examined, name: str) -> Iterator[Finding]:
    ours, row = agent.elections.manner(name), row_of(name)
    for member in agent.lists.members():
        value = member.rows.get(row)
        post = decode(value) if value else None
        if post is not None and ours is not None and post.manner != ours:
            words, theirs = ours.words(), post.manner.words()
            field = next(field for field in words if words[field] != theirs[field])
            yield error(
                "rank_mismatch", member.id.name,
                f"It stands for {shown(name)} with {field} {shown(theirs[field])}, and this agent counts with {shown(words[field])}.",
                "Give variant, voters, rank and health alike to all who lead this name; until then neither counts the other.",
            )  # fmt: skip


def _unusable(agent: Examined) -> Iterator[Finding]:
    members = len(agent.lists.members())
    for name, fact in sorted(agent.unusable_c.items()):
        if members < SMALL:
            yield note(
                "c_unusable", name, f"The group has {members} members, too few to find the best-ranked candidate of {shown(name)} surely.",
                "One leader is elected all the same; with four members or more the best-ranked one is.",
            )  # fmt: skip
        else:
            yield warning(
                "c_unusable", name,
                f"{fact.want} lists may lack a live member, and an election of {shown(name)} can allow for {fact.most} at most.",
                "One leader is elected all the same, perhaps not the best-ranked one. Look for links that lose messages (`turbulent`).",
            )  # fmt: skip


def _violations(agent: Examined) -> Iterator[Finding]:
    since = agent.host.now - VIOLATIONS_FOR
    recent = [fact for at, fact in agent.violations if at >= since]
    for name in sorted({fact.name for fact in recent}):
        found = [fact for fact in recent if fact.name == name]
        yield warning(
            "rank_violation", name,
            f"In the last hour {len(found)} elected candidates ranked behind this agent; the last one was {found[-1].leader}.",
            "There was one leader all the same. Lists differed by more than was measured; look for links that lose messages (`turbulent`).",
        )  # fmt: skip
