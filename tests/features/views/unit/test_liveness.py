"""Liveness of the clients of one server.  Spec: views 5.5, D9-D11, D24."""

from __future__ import annotations

import pytest

from holdfast.features.views.protocol import liveness
from holdfast.features.views.protocol.config import TOMB_SECONDS
from holdfast.features.views.protocol.facts import ClientAttached, ClientRemoved
from holdfast.features.views.protocol.liveness import Client, Clients
from holdfast.features.views.protocol.messages import ClientPing, Listed
from holdfast.host import NodeId
from tests.features.views.stand import CONFIG, HB, S0, A, B, C, at
from tests.support.fake_host import FakeHost


class Stand:
    """The clients of s0."""

    def __init__(self) -> None:
        self.host = FakeHost(*S0)
        self.clients = Clients(self.host, CONFIG)

    def attach(self, life: NodeId, attach: int = 1, stamp: float | None = None) -> Client:
        ping = ClientPing(attach, 2, S0.boot, self.host.now if stamp is None else stamp, 0)
        return self.clients.attach(life, ping, at(life))

    @property
    def names(self) -> list[str]:
        return [life.name for life, *_ in self.clients.listed()]


@pytest.fixture
def stand() -> Stand:
    return Stand()


def test_who_is_attached_is_listed(stand: Stand) -> None:
    """Views 3 (Lsa): lives, attach numbers and addresses, in an order that is always the same."""
    stand.attach(B, 3)
    stand.attach(A)
    assert stand.clients.listed() == (Listed(A, 1, at(A)), Listed(B, 3, at(B)))
    assert stand.host.events(ClientAttached) == [ClientAttached(B, 3), ClientAttached(A, 1)]
    assert stand.clients.get(NodeId(A.name, 2)) is None


def test_a_new_attachment_replaces_the_former_one(stand: Stand) -> None:
    """Views 5.5, D9: of one name there is one client, and the former one is a change of its own."""
    stand.attach(A)
    stand.clients.listed()
    stand.attach(A, 2)
    assert stand.clients.left
    assert stand.clients.joined
    assert stand.clients.listed() == (Listed(A, 2, at(A)),)
    assert stand.host.events(ClientRemoved) == [ClientRemoved(A, 1, "attached anew")]


def test_silence_is_counted_from_what_was_echoed(stand: Stand) -> None:
    """Views 5.5 (removal), D24: from the reading of this clock that the client echoed, not from when its ping arrived."""
    echoed = stand.host.now - 1.0
    stand.attach(A, stamp=echoed)
    stand.attach(B)
    stand.host.clock = echoed + CONFIG.client_timeout
    stand.clients.remove_silent()
    assert stand.names == [A.name, B.name]
    stand.host.clock += 0.01
    stand.clients.remove_silent()
    assert stand.names == [B.name]
    assert stand.host.events(ClientRemoved) == [ClientRemoved(A, 1, "silent")]


def test_the_short_cut_for_silence_misses_no_client(stand: Stand) -> None:
    """Views 5.5: clients join and echo in any order; each is removed at the first look after its time."""
    ends: dict[str, float] = {}
    for i in range(200):
        life = NodeId(f"c{i:03}", 1)
        client = stand.attach(life, stamp=stand.host.now - (i * 7 % 5) * 0.2)
        if i % 3 == 0:
            client.alive_at = stand.host.now
        ends[life.name] = client.alive_at + CONFIG.client_timeout
        stand.host.clock += 0.05
        stand.clients.remove_silent()
        assert {name for name, end in ends.items() if end >= stand.host.now} == set(stand.clients.all)


def test_the_last_identity_is_remembered(stand: Stand) -> None:
    """Views 2 (tomb), D10: a late ping cannot revive it; ten minutes later no ping is under way."""
    stand.clients.remove(stand.attach(A, 4), "left")
    assert stand.clients.last_of(A.name) == (A.boot, 4)
    assert stand.clients.last_of(B.name) == (0, -1)
    stand.host.clock += TOMB_SECONDS + 1
    stand.clients.forget_old()
    assert stand.clients.last_of(A.name) == (0, -1)


def test_tombs_have_a_limit(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Views 2 (tomb): the oldest goes."""
    monkeypatch.setattr(liveness, "TOMBS_MAX", 2)
    for life in (A, B, A, C):
        stand.clients.remove(stand.attach(life), "left")
    assert [stand.clients.last_of(life.name) != (0, -1) for life in (A, B, C)] == [True, False, True]


def test_a_client_that_a_message_did_not_reach_stays_out(stand: Stand) -> None:
    """Views 2 (cquar), 5.7, D13: heartbeats that still pass must not undo it."""
    stand.clients.fail(stand.attach(A), "a message did not reach it")
    assert stand.clients.get(A) is None
    assert stand.clients.is_quarantined(A)
    assert not stand.clients.is_quarantined(NodeId(A.name, A.boot + 1))  # no message has failed to reach its next life
    assert stand.clients.quarantined == 1
    stand.host.clock += CONFIG.quarantine - 0.01
    assert stand.clients.is_quarantined(A)
    stand.host.clock += 0.02
    assert stand.clients.quarantined == 0
    assert not stand.clients.is_quarantined(A)


def test_quarantine_of_a_client_doubles(stand: Stand) -> None:
    """Views 4 (quarantine): while it fails again within five minutes."""
    for i, seconds in enumerate((8 * HB, 16 * HB, 32 * HB)):
        stand.clients.fail(stand.attach(A, i + 1), "a message did not reach it")
        stand.host.clock += seconds - 0.01
        assert stand.clients.is_quarantined(A)
        stand.host.clock += 0.02
        stand.clients.forget_old()
        assert not stand.clients.is_quarantined(A)
