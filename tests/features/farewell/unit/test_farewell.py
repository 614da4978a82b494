"""Farewell on fake hosts: an agent is asked to leave and does it itself.  Spec: foundation F14, F15."""

from __future__ import annotations

import pytest

from holdfast.features.farewell.protocol.farewell import ASKED_MAX, Farewell, Parting
from holdfast.features.farewell.protocol.messages import LeaveAnswer, LeaveAsk
from holdfast.host import Address, NodeId
from tests.support.fake_host import FakeHost
from tests.support.fake_members import FakeMembers

A, B = NodeId("a", 1), NodeId("b", 1)


class Stand:
    """One agent, and how often it was made to leave."""

    def __init__(self, *, sealed: bool = True) -> None:
        self.host = FakeHost("a")
        self.left = 0
        self.ends: list[Parting] = []
        self.farewell = Farewell(self.host, FakeMembers(A, B), self._leave, sealed=sealed)

    def _leave(self) -> None:
        self.left += 1


def test_the_asked_one_agrees_and_leaves() -> None:
    """F14: it drains by itself; asked again, it agrees again and leaves once."""
    stand = Stand()
    for _ in range(3):
        stand.farewell.on_message(B, LeaveAsk(4))
    assert stand.host.take(LeaveAnswer) == [(B, LeaveAnswer(4))] * 3
    assert stand.left == 1


def test_the_asker_hears_that_it_agreed() -> None:
    """Asked again until answered; the answer ends it, from that life alone."""
    stand = Stand()
    stand.farewell.ask("b", 5.0, stand.ends.append)
    stand.host.pass_time(1.0)
    asked = stand.host.take(LeaveAsk)
    assert [to for to, _ in asked] == [B, B, B]
    assert stand.host.met[B] == Address("b", 1)
    stand.farewell.on_message(NodeId("b", 2), LeaveAnswer(asked[0][1].serial))
    assert stand.ends == []
    stand.farewell.on_message(B, LeaveAnswer(asked[0][1].serial))
    assert stand.ends == [Parting.AGREED]
    assert stand.host.timers == 0


def test_silence_is_told_and_removes_nobody() -> None:
    """F15: an operator's word takes nobody out of a group."""
    stand = Stand()
    stand.farewell.ask("b", 1.2, stand.ends.append)
    stand.host.pass_time(1.1)
    assert stand.ends == []
    stand.host.pass_time(0.2)
    assert stand.ends == [Parting.SILENT]


def test_who_is_not_there_cannot_be_asked() -> None:
    """Bad input: named at once."""
    stand = Stand()
    stand.farewell.ask("z", 1.0, stand.ends.append)
    assert stand.ends == [Parting.NOT_A_MEMBER]


def test_oneself() -> None:
    """An operator may name the agent that it talks to."""
    stand = Stand()
    stand.farewell.ask("a", 1.0, stand.ends.append)
    assert (stand.ends, stand.left) == ([Parting.AGREED], 1)


def test_without_a_key_nobody_asks_and_nobody_obeys() -> None:
    """Sealed messages only: on an open network anybody could write one."""
    stand = Stand(sealed=False)
    stand.farewell.ask("b", 1.0, stand.ends.append)
    stand.farewell.on_message(B, LeaveAsk(1))
    assert (stand.ends, stand.left, stand.host.sent) == ([Parting.UNSEALED], 0, [])
    assert stand.farewell.counts["unsealed"] == 1


def test_questions_are_limited() -> None:
    """F17: a constant, and the overflow is told."""
    stand = Stand()
    for _ in range(ASKED_MAX + 1):
        stand.farewell.ask("b", 9.0, stand.ends.append)
    assert stand.ends == [Parting.BUSY]


@pytest.mark.parametrize("serial", [-1, 0, 1, 1 << 63])
def test_answers_that_nobody_waits_for(serial: int) -> None:
    """Foundation 2: counted and forgotten."""
    stand = Stand()
    stand.farewell.on_message(B, LeaveAnswer(serial))
    stand.farewell.stop()
    assert stand.ends == []
