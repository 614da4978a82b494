"""A peer with the group's key says what cannot be: a counter for each lie, read as people read it, and nothing else.  Spec: views 10, H365.

One real agent, and a peer that this test plays. The agent is a seat for the lies that servers and clients tell to a server, and no seat
for those that a server tells to its client.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, nan
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from holdfast.features.views.calls import SurveyViews, ViewsReport, WatchViews
from holdfast.features.views.http import REFUSED
from holdfast.features.views.protocol.messages import (
    ATTACHING,
    STABLE,
    ClientPing,
    ClientPong,
    Known,
    LinkPing,
    LinkPong,
    Listed,
    Lsa,
    OvData,
    ViewMsg,
)
from holdfast.features.views.protocol.nsview import digest_of
from holdfast.host import Address, Message, NodeId, ViewId, ViewMember
from holdfast.kit.parcels import Parcel
from holdfast.wire.keys import generate
from tests.agent.live import Live
from tests.agent.raw_client import RawClient
from tests.cli.command import Run
from tests.features.views.process.liar import LOOPBACK, Liar
from tests.features.views.process.test_processes import free_ports
from tests.support.agents import until

GROUP = "live"
PEER = NodeId("s1", 1_753_000_000_000)
SOMEONE = NodeId("y", 1_753_000_000_001)
AT = Address(LOOPBACK, 9)
WATCHED = ("drop_", *(f"views_{name}" for name in REFUSED))


class Scene(NamedTuple):
    """The agent, the peer, and what ``holdfast info`` says."""

    live: Live
    liar: Liar
    holdfast: Run

    def say(self, message: Message) -> None:
        self.liar.say(self.live.agent.me, self.live.agent.host.address, message)

    def counters(self) -> dict[str, float]:
        """Of what was refused."""
        told: dict[str, float] = self.holdfast("info", "--json", "--agent", self.live.path).json["metrics"]
        return {name: count for name, count in told.items() if name.startswith(WATCHED)}

    def costs(self, *lies: Message) -> dict[str, float]:
        """What has changed when as many were counted."""
        before = self.counters()

        def grown() -> dict[str, float]:
            return {name: count - before.get(name, 0) for name, count in self.counters().items() if count != before.get(name, 0)}

        for lie in lies:
            self.say(lie)
        until(lambda: sum(grown().values()) >= len(lies), f"{len(lies)} lies are counted")
        return grown()

    def report(self) -> ViewsReport:
        with RawClient(self.live.path) as client:
            found: ViewsReport = client.ask(SurveyViews)
            return found


@pytest.fixture
def seat(tmp_path: Path, holdfast: Run) -> Iterator[Scene]:
    """The agent is the first of three seats and in a view of itself; the peer is the second one, and was heard."""
    own, other, third = free_ports(3)
    key, seats = generate(), [f"s0@{LOOPBACK}:{own}", f"s1@{LOOPBACK}:{other}", f"s2@{LOOPBACK}:{third}"]
    place: dict[str, Any] = {
        "name": "s0",
        "bind": f"{LOOPBACK}:{own}",
        "seeds": [f"{LOOPBACK}:{own}"],
        "state_dir": str(tmp_path / "state"),
    }
    with (
        Liar(key, GROUP, PEER, other) as liar,
        Live(tmp_path, key=key, seats=seats, **place) as live,
        RawClient(live.path) as client,
    ):
        scene = Scene(live, liar, holdfast)
        client.say(WatchViews)
        until(lambda: scene.report().installed_ago is not None, "a view of one")
        scene.say(LinkPong(liar.hear(LinkPing).seq, 1, ()))
        until(lambda: any(look.life == PEER for look in scene.report().seats), "the peer is known")
        yield scene


@pytest.fixture
def member(tmp_path: Path, holdfast: Run) -> Iterator[Scene]:
    """The peer is the only seat, and the agent a client that is attached to it."""
    (port,) = free_ports(1)
    key = generate()
    with (
        Liar(key, GROUP, PEER, port) as liar,
        Live(tmp_path, name="x", key=key, seats=[f"s1@{LOOPBACK}:{port}"], seeds=[f"{LOOPBACK}:{port}"]) as live,
        RawClient(live.path) as client,
    ):
        scene = Scene(live, liar, holdfast)
        client.say(WatchViews)
        answer(scene, ATTACHING)
        yield scene


def answer(scene: Scene, state: int) -> ClientPing:
    """The next ping of the agent, answered."""
    ping = scene.liar.hear(ClientPing)
    scene.say(ClientPong(ping.attach, ping.seq, state, ViewId(7, *PEER) if state == STABLE else None, 1, 0, 1.0))
    return ping


def known(**fields: Any) -> LinkPong:
    return LinkPong(1, 1, (Known(1, PEER, 1, 0.0, 1, 0.0)._replace(**fields),))


def view_of(ping: ClientPing, *members: ViewMember) -> ViewMsg:
    size = len(members)
    return ViewMsg(ping.attach, ping.seq, ViewId(7, *PEER), (PEER,), None, members, (), size, digest_of((PEER,), members), size)


def test_a_link_state_for_the_slot_of_another_one(seat: Scene) -> None:
    """Views 10: a seat speaks for its own slot alone, not for a third one's, for the reader's, or for one that there is not."""
    lies = [Lsa(slot, PEER, 99, (), ()) for slot in (2, 0, 9)]
    assert seat.costs(*lies) == {"views_foreign_lsa": 3}


def test_ages_that_cannot_be(seat: Scene) -> None:
    """Views 10: negative, or not finite; of a link state and of a number."""
    lies = [known(**{field: age}) for field in ("age", "num_age") for age in (-1.0, inf, -inf, nan)]
    assert seat.costs(*lies) == {"drop_out_of_bounds": len(lies)}


def test_a_million_members(seat: Scene) -> None:
    """Views 10: refused by the length of the stream's frame, before it is opened; a list that fits a frame, by its own bound."""
    client = Listed(SOMEONE, 1, AT)
    assert seat.costs(Lsa(1, PEER, 99, (), (client,) * 10**6)) == {"drop_oversized": 1}
    assert seat.costs(Lsa(1, PEER, 99, (), (client,) * 2001)) == {"drop_out_of_bounds": 1}


def test_a_stamp_of_the_future(seat: Scene) -> None:
    """Views 10: a client echoes what this server's clock does not say yet. It is not attached by it."""
    boot = seat.live.agent.me.boot
    assert seat.costs(ClientPing(1, 2, boot, 1e11, 0, address=AT)) == {"views_future": 1}
    assert seat.report().clients == 1


def test_a_view_without_its_reader(member: Scene) -> None:
    """Views 10, G2: the list of another member, from its own server. The agent has no view after it."""
    ping = answer(member, STABLE)
    assert member.costs(view_of(ping, ViewMember(SOMEONE, AT, 1, PEER))) == {"views_not_listed": 1}
    assert member.report().installed_ago is None
    ping = answer(member, STABLE)
    me = ViewMember(member.live.agent.me, member.live.agent.host.address, ping.attach, PEER)
    assert member.costs(view_of(ping, me._replace(attach=ping.attach + 1))) == {"views_not_listed": 1}
    ping = answer(member, STABLE)
    member.say(view_of(ping, me))  # the truth
    until(lambda: member.report().installed_ago is not None, "a view with its reader")


def test_an_overlay_message_inside_of_one(member: Scene) -> None:
    """Views 10, D30: what the overlay hands over is read like a datagram, for types that say that they may be carried: it is none."""
    me = member.live.agent.me
    inner = OvData(SOMEONE, 1, me, ViewId(7, *PEER), Parcel(b"", b""), 1, 1, last=True)
    outer = OvData(PEER, 1, me, ViewId(7, *PEER), Parcel(member.liar.digest, msgspec.msgpack.encode(inner)), 1, 1, last=True)
    assert member.costs(outer) == {"drop_unknown_tag": 1}
