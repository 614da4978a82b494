"""Outbox: what one callback asks for leaves in callbacks of at most 64 sends.  Foundation F17."""

from __future__ import annotations

import pytest

from holdfast.host import FANOUT_MAX, Address, Member, Message, NodeId
from holdfast.kit import outbox as module
from holdfast.kit.outbox import Outbox
from tests.support.fake_host import FakeHost


class Note(Message, frozen=True, tag=9101):
    """A message of these tests."""

    number: int


def test_in_order_and_in_turns() -> None:
    """F17: first in, first out; nothing leaves in the callback that asked."""
    host = FakeHost()
    outbox = Outbox(host)
    for number in range(FANOUT_MAX + 10):
        outbox.put(Address(f"n{number}", 1), Note(number))
    assert host.sent == []
    host.pass_time(0)
    assert [message for _, message in host.sent] == [Note(number) for number in range(FANOUT_MAX + 10)]
    assert len(outbox) == 0
    assert host.timers == 0


def test_a_full_queue_refuses_and_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """F17: a limit, and a counter for what it refused."""
    monkeypatch.setattr(module, "OUTBOX_MAX", 3)
    host = FakeHost()
    outbox = Outbox(host)
    for number in range(5):
        outbox.put(NodeId("a", 1), Note(number))
    host.pass_time(0)
    assert [message for _, message in host.sent] == [Note(0), Note(1), Note(2)]
    assert outbox.refused == 2
    outbox.put(NodeId("a", 1), Note(9))
    host.pass_time(0)
    assert host.sent[-1].message == Note(9)


def test_clearing_ends_it() -> None:
    """A machine that stops sends nothing more."""
    host = FakeHost()
    outbox = Outbox(host)
    outbox.put_member(Member(NodeId("b", 1), Address("b", 1), {}), Note(1))
    outbox.clear()
    host.pass_time(1)
    assert host.sent == []
    assert host.met == {NodeId("b", 1): Address("b", 1)}
