"""Decisions that several parts keep together.  Spec: gossip D6, D13, D14, D23, 5.10."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from holdfast.events import Failed, Joined
from holdfast.features.election.protocol import messages as election
from holdfast.features.gossip.protocol import messages as m
from holdfast.features.gossip.protocol.config import GossipConfig
from holdfast.features.gossip.protocol.facts import LastCall
from holdfast.features.gossip.protocol.messages import Ack, Gossip, Ping, Rumour
from holdfast.host import FANOUT_MAX, Message
from holdfast.kit import broadcast
from holdfast.lab.fake_host import FakeHost, FakeTimer
from tests.features.gossip.stand import ALIVE, DEAD, SUSPECT, Stand, life, rumour

CROWD = tuple(f"m{number:03}" for number in range(100))


def inside(kind: Any) -> Iterator[Any]:
    """Every struct that a field of this type can hold, at any depth."""
    if isinstance(kind, msgspec.inspect.StructType):
        yield kind.cls
        for field in kind.fields:
            yield from inside(field.type)
    for name in ("types", "item_types"):
        for each in getattr(kind, name, ()):
            yield from inside(each)
    for name in ("item_type", "key_type", "value_type"):
        if hasattr(kind, name):
            yield from inside(getattr(kind, name))


def carries_rumours(kind: type[Message]) -> bool:
    return Rumour in inside(msgspec.inspect.type_info(kind))


def test_questions_of_an_election_carry_no_rumours() -> None:
    """D6: they would copy the initiator's false positives into exactly the lists that it samples."""
    assert [kind for kind in election.TYPES if carries_rumours(kind)] == []
    assert {election.Query, election.Response} <= set(election.TYPES)
    assert {kind for kind in m.TYPES if carries_rumours(kind)} == {m.Ping, m.Ack, m.PingReq, m.Gossip, m.Sync}


def dead(subject: str = "b") -> tuple[Stand, int]:
    """It did not answer its probe, and was buried. With the number of that probe."""
    stand = Stand(subject)
    while stand.node.prober.probe is None:
        stand.host.pass_time(0.01)
    seq = stand.node.prober.probe.seq
    stand.host.pass_time(1.0)
    stand.bury(subject)
    stand.node.rumours.clear()
    stand.clear()
    return stand.without_probes(), seq


@pytest.mark.parametrize("times", [1, 2])
def test_a_late_ack_revives_no_member(times: int) -> None:
    """D13: nor a doubled one; ALIVE with a higher inc alone does, and an ACK with the present inc is none."""
    stand, seq = dead()
    for _ in range(times):
        stand.hear("b", Ack(seq, (rumour("b"),)))
    assert stand.status("b") is DEAD
    assert stand.names == ["a"]
    assert stand.host.events(Joined) == []


def test_a_dead_member_that_writes_is_told_so_and_refutes_itself() -> None:
    """D13: its datagram is answered as any other, its accusation is the first thing in the answer, and it speaks for itself."""
    stand, _ = dead()
    alive = Stand("a", host=FakeHost("b")).without_probes()
    stand.hear("b", Ping(7))
    ((to, answer),) = stand.host.take(Ack)
    assert (to, answer.seq) == (life("b"), 7)
    assert (answer.rumours[0].id, answer.rumours[0].status) == (life("b"), DEAD)
    assert stand.status("b") is DEAD
    alive.hear("a", answer)
    refutation = next(message for to, message in alive.host.take(Gossip) if to == life("a"))
    assert (refutation.rumours[0].id, refutation.rumours[0].status) == (life("b"), ALIVE)
    stand.hear("b", refutation)
    assert stand.status("b") is ALIVE
    assert len(stand.host.events(Joined)) == 1


class NoWall(FakeHost):
    """Its wall clock must not be read."""

    def wall(self) -> float:
        raise AssertionError("read")


def test_no_other_clock_is_read() -> None:
    """D14: only ``host.now``, from the join over suspicions, burials, tables and a pause to the goodbye."""
    stand = Stand(*"bcdef", host=NoWall("a"))
    stand.host.pass_time(60.0)
    assert len(stand.host.events(Failed)) == 5
    stand.host.pause(10.0)
    stand.say("b", rumour("b", 5))
    stand.node.leave()
    stand.host.pass_time(5.0)
    assert stand.node.left


class Turns(FakeHost):
    """Counts to how many peers a callback writes."""

    most = 0

    def at(self, due: float, callback: Callable[[], None]) -> FakeTimer:
        def turn() -> None:
            before = len(self.sent)
            callback()
            self.most = max(self.most, len({sent.to for sent in self.sent[before:]}))

        return super().at(due, turn)


def test_many_calls_and_goodbyes_leave_in_several_callbacks() -> None:
    """D23, F17: 100 last calls of one instant and the goodbyes of the next one; no callback writes to more than 64 peers."""
    host = Turns("a")
    stand = Stand(*CROWD, config=GossipConfig(gossip_fanout=16), host=host, members_max=200).without_probes()
    assert FANOUT_MAX == 64
    stand.say("m000", *(rumour(name, 0, SUSPECT, "m000", "m001", "m002", "m003") for name in CROWD))
    while not host.events(LastCall):
        stand.clear()
        host.most = 0
        host.pass_time(0.01)
    assert len(host.events(LastCall)) == len({to for to, _ in host.take(Ping)}) == 100
    assert 0 < host.most <= FANOUT_MAX
    stand.node.leave()
    assert host.sent == []  # They have callbacks of their own.
    host.most = 0
    stand.host.pass_time(0.0)
    assert len(host.take(Gossip)) == 3 * 16
    assert 0 < host.most <= FANOUT_MAX


def test_casts_have_no_path_of_their_own() -> None:
    """5.10: user messages are the kit's broadcast among those that listen; the rumours of gossip carry none."""
    stand = Stand("b", "c").without_probes()
    stand.say("b", rumour("b", 1, rows={"topic:x": b""}, rows_at=1))
    stand.host.pass_time(5.0)
    stand.clear()
    stand.node.broadcast.cast("x", b"news")
    stand.say("b", rumour("d"))
    stand.host.pass_time(5.0)
    cast = stand.host.take(broadcast.Rumour)
    assert {(to, message.payload) for to, message in cast} == {(life("b"), b"news")}
    told = stand.host.take(Gossip)
    assert told
    assert not any(b"news" in msgspec.msgpack.encode(message) for _, message in told)
