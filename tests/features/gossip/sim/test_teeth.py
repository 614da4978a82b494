"""Rules taken out one by one: a schedule that harms nothing while the rule is there, and what it breaks without it.

Spec: gossip 7 (ablations), D5, D9, D16, D22. ``test_sweeps`` takes out the others, which random runs find.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from holdfast.features.gossip.lab import mutations
from holdfast.features.gossip.lab.experiments import heal, quick_and_patient
from holdfast.features.gossip.lab.experiments.heal import ACCUSE, KILL
from holdfast.features.gossip.lab.groups import LINK, GossipGroup, checkers_of, names_of
from holdfast.features.gossip.lab.measures import Opinions, datagrams
from holdfast.features.gossip.protocol import profiles
from holdfast.features.gossip.protocol.facts import LastCall
from holdfast.features.gossip.protocol.messages import Gossip, Rumour, Status
from holdfast.features.gossip.protocol.profiles import Profile
from holdfast.host import Message
from holdfast.lab.experiment import Measured
from holdfast.lab.links import Link, Uniform
from holdfast.lab.mutation import without

A, B, C = names_of(3)


def test_each_ablation_says_what_it_takes_out() -> None:
    """Gossip 7: there is a lab-only change for every rule of the list, which says whose rule it takes out."""
    rules = {"D1", "D5", "D7", "D9 reconnect", "D9 seeds", "D16 last call", "D16 hearsay", "D16 stale", "D18", "5.8"}
    assert set(mutations.ABLATIONS) == rules
    for rule, mutation in mutations.ABLATIONS.items():
        assert (mutation.__doc__ or "").startswith(rule.split()[0]), mutation


# D5.


def healed(rule: str) -> Measured:
    """One run of S6."""
    return heal.EXPERIMENT.measure({"rule": rule, "seed": 1, "members": 12, "seconds": 60.0})


def test_a_table_accuses_and_does_not_kill() -> None:
    """Gossip D5, S6: after a partition no list lacks a member of its own side."""
    found = healed(ACCUSE)
    assert (found["apart"], found["missing"]) == (True, 0)
    assert found["whole"] is not None


def test_without_d5_each_side_buries_its_own() -> None:
    """Gossip D5, G11: the table of the other side kills those that live and are listed here."""
    assert healed(KILL)["missing"] > 0


# D16, H353.


def short_partition(seed: int) -> int:
    """Sixteen members, T = 0.2 s, are cut in halves for two shortest suspicions: when the cut is healed, rumours of burials are fresh. In
    how many lists of its own side is a member missing then, at most?"""
    group = GossipGroup(seed, profiles.default(0.2), link=Link(Uniform(0.0001, 0.002)))
    names = names_of(16)
    group.form(names)
    group.run(3.0)
    sides = names[::2], names[1::2]
    group.world.network.partition("short", sides)
    group.run(1.0)
    group.world.network.heal("short")
    most = 0
    for _ in range(100):
        group.run(0.02)
        most = max(most, *(heal.missing(group, side) for side in sides))
    assert group.until(group.is_whole, 80 * 0.2)
    return most


def test_no_side_loses_one_of_its_own_by_what_the_other_says() -> None:
    """Gossip 1, D16, H353: no member is given up by one that can hear it; a burial that is told is no reason to, before it was asked."""
    assert [short_partition(seed) for seed in range(3)] == [0, 0, 0]


def test_without_the_question_hearsay_kills() -> None:
    """Gossip D4: as in SWIM, a false burial is one in all lists."""
    with without(mutations.hearsay_kills):
        assert max(short_partition(seed) for seed in range(3)) > 1


# D9.


def second_group(mutation: Callable[..., None] | None) -> bool:
    """Two joiners are cut off from the group when they come, and find each other. Are all one group when the cut is over?"""
    profile = profiles.default(1.0)
    group = GossipGroup(1, profile, seeds=[A, "n00004"])
    for name in (A, B, C):
        group.start(name)
    assert group.until(lambda: group.is_whole([A, B, C]), 10.0)
    group.world.network.partition("late", ((A, B, C), ("n00003", "n00004")))
    for name in ("n00003", "n00004"):
        group.start(name)
    group.run(20.0)
    assert group.is_whole([A, B, C])
    assert group.is_whole(["n00003", "n00004"])
    group.world.network.heal("late")
    return group.until(group.is_whole, 80.0)


def test_unlisted_seeds_are_tried_for_ever() -> None:
    """Gossip D9, G4: two groups that never shared a member find each other by their seeds."""
    assert second_group(None)


def test_without_standing_seeds_there_are_two_groups() -> None:
    """Gossip D9, G4: neither side is alone, and neither holds a tombstone of the other."""
    with without(mutations.seeds_while_alone):
        assert not second_group(mutations.seeds_while_alone)


# D16.


def hears_no_rumour() -> tuple[bool, bool]:
    """B has refuted an accusation, and no news of that came to C, which accuses it once more. Is B cleared at C, and has it raised its inc
    again?"""
    group = GossipGroup(2, profiles.default(1.0))
    group.form([A, B, C])
    group.run(5.0)
    host, node, accused = group.host(C), group.node(C), group.node(B)
    me = group.host(B).me
    former = accused.entry(B)
    assert former is not None
    old: list[str] = []

    def lost(source: str, target: str, message: Message) -> bool:
        """C hears no news of B; later from B itself, and not with what answers a probe."""
        rumours: tuple[Rumour, ...] = getattr(message, "rumours", ())
        told = any(rumour.id == me and rumour.status is Status.ALIVE for rumour in rumours)
        if target != C or (source == B and old and isinstance(message, Gossip)):
            return False
        return told or (source == B and bool(old))

    group.world.network.lose_if(lost)
    refuted = Rumour(me, former.address, former.inc, Status.SUSPECT, (A,), former.rows_at)
    group.world.step(group.host(B), lambda: accused.on_message(group.host(A).me, Gossip((refuted,))))
    group.run(3.0)
    assert (accused.inc, node.entry(B)) == (former.inc + 1, former)
    old.append("it is no news any more")
    group.world.step(host, lambda: (node.merge.accuse(former, (C, A)), None)[1])
    group.run(1.0)
    found = node.entry(B)
    assert found is not None
    return found.status is Status.ALIVE, accused.inc > former.inc + 1


def test_a_stale_accusation_is_answered() -> None:
    """Gossip D16, 5.5: who still accuses has not heard; it is told the present inc, and no new one is needed."""
    assert hears_no_rumour() == (True, False)


def test_without_the_answer_it_stays_suspected() -> None:
    """Gossip D16, 5.5: a stale accusation without an answer goes on its way to a burial."""
    with without(mutations.stale_unanswered):
        assert hears_no_rumour() == (False, False)


def hears_the_last_call_alone() -> bool:
    """Nothing reaches B from the first suspicion on until some member asks it for the last time. Is it held to be dead?"""
    group = GossipGroup(3, profiles.default(1.0))
    group.form(names_of(5))
    group.run(5.0)
    called: list[str] = []
    opinions = Opinions(group)
    group.world.listeners.append(lambda host, event: called.append(host.me.name) if isinstance(event, LastCall) else None)
    group.world.network.lose_if(lambda source, target, message: target == B and not called)
    group.run(12.0)
    assert opinions.suspected[group.host(B).me]
    return group.host(B).me in opinions.decided


def test_the_last_call_is_heard() -> None:
    """Gossip D16, 5.4: a member that heard of no accusation is asked once more, and refutes it."""
    assert not hears_the_last_call_alone()


def test_without_the_last_call_a_living_member_is_buried() -> None:
    """Gossip D16, 5.4: no member asks it again, so it does not hear that it is accused."""
    with without(mutations.no_last_call):
        assert hears_the_last_call_alone()


def dead_after_pauses(members: int, runs: int) -> int:
    """S8: how many of so many paused members were held to be dead, where answers take long."""
    cell = {"profile": "default", "delay": quick_and_patient.LONG, "members": members, "seed": 0}
    return sum(quick_and_patient._pause(cell, f"0/pause/{number}", 0.31) for number in range(runs))


def test_a_paused_member_is_asked_once_more() -> None:
    """Gossip D16, S8: none of those that stood still for 0.31 s at T = 0.1 s is buried."""
    assert dead_after_pauses(16, 12) == 0


# D22.


def test_a_formed_group_is_one_that_was_joined() -> None:
    """Gossip D22, S2: what ``form`` makes lists, sends and settles as a group whose members joined one by one."""
    formed = GossipGroup(5, profiles.default(1.0), link=LINK)
    formed.form(names_of(12))
    joined = GossipGroup(5, profiles.default(1.0), link=LINK, seeds=[A])
    for name in names_of(12):
        joined.start(name)
    for group in (formed, joined):
        group.run(60.0)
        assert group.is_whole(names_of(12))
        assert all(group.node(name).settled(group.host(other).me) for name in group.alive for other in group.alive)
    sent = [datagrams(group) for group in (formed, joined)]
    for group in (formed, joined):
        group.run(30.0)
    rates = [(datagrams(group) - before) / 30.0 / 12 for group, before in zip((formed, joined), sent, strict=True)]
    assert rates[0] == pytest.approx(rates[1], rel=0.1)


def test_formed_groups_keep_every_rule() -> None:
    """Gossip 7, D22: crashes and a partition in a formed group, all checkers looking on, with every way to choose targets."""
    for target in ("shuffle", "bag", "spatial"):
        profile = profiles.default(1.0)
        group = GossipGroup(
            4, Profile(replace(profile.config, target=target), profile.rules), link=Link(Uniform(0.001, 0.02)), checkers=checkers_of(LINK)
        )
        group.form(names_of(8))
        group.run(5.0)
        group.crash(A)
        group.run(10.0)
        group.world.network.partition("split", ((B, C), names_of(8)[3:]))
        group.run(40.0)
        group.world.network.heal("split")
        assert group.until(group.is_whole, 80.0)
