"""Rules taken out one by one: a schedule that harms nothing while the rule is there, and what it breaks without it.

Spec: views 7 (teeth), D3, D5-D7, D9, D10, D12, D17, D20, D26, D27, D29, D30. ``test_directed`` takes out the others: D8, D11, D13, D24, D25
and D28.
"""

from __future__ import annotations

from functools import partial

import msgspec
import pytest

from holdfast.config import Config
from holdfast.events import Changing, Event, ViewChanged, ViewLost
from holdfast.features.views.findings import of_views
from holdfast.features.views.lab import mutations
from holdfast.features.views.lab.checkers import UniqueId
from holdfast.features.views.lab.groups import STEP, ViewGroup
from holdfast.features.views.lab.users import Heard, LabLetter
from holdfast.features.views.protocol.config import ViewsConfig
from holdfast.features.views.protocol.facts import Delivered, Proposed
from holdfast.features.views.protocol.messages import ATTACHING, ClientPing, ClientPong, OvData, ViewMsg
from holdfast.features.views.protocol.nsview import network_view
from holdfast.features.views.protocol.views import ViewNode
from holdfast.features.views.settings import ViewsSettings
from holdfast.host import FANOUT_MAX, Message, NodeId
from holdfast.kit.parcels import Parcel
from holdfast.lab.host import LabHost
from holdfast.lab.links import Exponential, Fixed, Link
from holdfast.lab.mutation import without
from holdfast.lab.violation import Violation
from tests.features.views.sim.test_directed import CALM, QUIET, SETTLE, SOON, at_homes, formed, hear_nothing_of_s0

LONG = 10.0  # seconds: longer than ``settle``
BEAT = 0.25  # seconds: the heartbeat of ``lan``
# What is tested elsewhere, or is no rule of what runs: names of things (D1, D2, D4, D16, D18), special cases that follow from other rules
# (D19), what saves bytes (D14, D15) or is ZooKeeper's (D21 to D23), and what agents do around views (D31).
NO_RULES = {"D1", "D2", "D4", "D14", "D15", "D16", "D18", "D19", "D21", "D22", "D23", "D31"}


def test_each_decision_can_be_taken_out() -> None:
    """Views 7, teeth: there is a lab-only change for every decision, which says whose rule it takes out."""
    assert mutations.DECISIONS.keys() | NO_RULES == {f"D{number}" for number in range(1, 32)}
    for decision, mutation in mutations.DECISIONS.items():
        assert (mutation.__doc__ or "").startswith((f"{decision}:", f"{decision} ")), mutation


def losers(group: ViewGroup) -> list[str]:
    """The clients that lost their view."""
    return sorted({name for _, name, event in group.events if isinstance(event, ViewLost)})


# D3.


def delivered_by_one() -> None:
    """s0 delivers a view under a number that s1 and s2 have proposed, and they do not hear its proposal. It dies, and they go on."""
    group = formed(ViewGroup(4, 3, 6, habits=QUIET))
    group.note(Delivered)
    for server in ("s1", "s2"):
        group.hole("s0", server, "Propose")
    leaver = group.clients[0]
    group.world.step(group.world.nodes[leaver], group.node(leaver).withdraw)
    group.run(STEP)
    assert [name for _, name, _ in group.events] == ["s0"]
    group.crash("s0")
    group.run(SOON)
    assert group.is_one(group.clients[1:])


def test_another_key_gets_another_number() -> None:
    """Views D3, G1: what one server may have delivered under a number is never proposed otherwise."""
    delivered_by_one()


def test_without_d3_two_views_share_a_number() -> None:
    """Views D3, CB4: the two that are left propose their own view under the same number, and deliver it."""
    with without(mutations.same_number), pytest.raises(Violation, match="CB4 disjoint"):
        delivered_by_one()


# D5.


def out_of_date() -> list[str]:
    """Views that servers deliver and that are not what they would propose now. Proposals are held up while two clients go."""
    group = formed(ViewGroup(6, 2, 6, habits=QUIET))
    found: list[str] = []

    def look(host: LabHost, event: Event) -> None:
        server = host.node.use(ViewNode).server
        if isinstance(event, Delivered) and server is not None:
            now = network_view(host.me, server.states.fresh(), group.config.max_server_hops)
            if (now.servers, now.members) != (event.view.servers, event.view.members):
                found.append(f"{host.me} delivers {event.view.id}")

    group.world.listeners.append(look)
    for source, target in (group.servers, reversed(group.servers)):
        group.hole(source, target, "Propose", seconds=0.6)
    for name in group.clients[:2]:
        group.world.step(group.world.nodes[name], group.node(name).withdraw)
        group.run(0.3)
    group.run(3.0)
    assert group.is_one(group.clients[2:])
    return found


def test_no_view_is_out_of_date_when_it_is_delivered() -> None:
    """Views D5, G3: while the first change cannot end a second client goes. The view that comes has neither of them."""
    assert out_of_date() == []


def test_without_d5_views_are_out_of_date() -> None:
    """Views D5, G3: servers that bring a change to its end first deliver a view with a client that they know has gone."""
    with without(mutations.keeps_its_key):
        assert out_of_date() != []


# D6.


def test_without_d6_a_server_sees_itself_in_a_group_that_dropped_it() -> None:
    """Views D6: no link state of s0 reaches the others, which drop it. It hears their heartbeats and lists them, and with one word for a
    link it waits for them for ever: its clients have no view. With the rule all have one (``test_directed``, a hole for link states)."""
    with without(mutations.one_word):
        group = formed(ViewGroup(0, 3, 6))
        hear_nothing_of_s0(group)
        group.run(SOON)
        behind = at_homes(group, "s0")
        assert behind != []
        assert [group.leased(name) for name in behind] == [None] * len(behind)
        assert group.is_one(at_homes(group, "s1", "s2"))


# D7.


def test_without_d7_one_cut_link_makes_two_views() -> None:
    """Views D7, 5.8 case 4: with three hops at most no third server is the way round. With the rule no view changes (``test_directed``,
    case 4), and the message takes four hops."""
    with without(mutations.three_hops):
        group = formed(ViewGroup(5, 3, 6, homes=True))
        group.cut(["s0"], ["s2"])
        group.run(SETTLE)
        assert len(group.views()) > 1


# D9.


def moved(seed: int) -> list[str]:
    """The clients that lose their view when one is cut from its server, which lives on, and moves."""
    group = formed(ViewGroup(seed, 3, 6, habits=QUIET))
    group.note(ViewLost)
    name = at_homes(group, "s1")[0]
    group.cut([name], ["s1"])
    group.run(SETTLE)
    assert group.is_one()
    assert name not in at_homes(group, "s1")
    return losers(group)


def test_a_client_that_moves_keeps_its_view() -> None:
    """Views D9: the former server lists it, too. Its newest attachment counts at once."""
    assert [moved(seed) for seed in range(3)] == [[], [], []]


def test_without_d9_a_client_that_moves_loses_its_view() -> None:
    """Views D9: as long as the first place counts, the views list the attachment that the client has left."""
    with without(mutations.first_place):
        assert all(len(moved(seed)) == 1 for seed in range(3))


# D10.


def revived() -> list[str]:
    """Views that list c9 after it has left. Its server lets it in, and it does not hear so; one of its pings comes half a second later."""
    group = formed(ViewGroup(3, 1, 2, habits=QUIET))

    def unheard(source: str, target: str, message: Message) -> bool:
        return target == "c9" and (isinstance(message, ViewMsg) or (isinstance(message, ClientPong) and message.state != ATTACHING))

    group.world.network.lose_if(unheard)
    group.world.network.set_link(Link(Fixed(0.001)), "c9", "s0")
    group.clients.append("c9")
    group.start("c9")
    host, node, server = group.world.nodes["c9"], group.node("c9"), group.node("s0").server
    assert server is not None
    assert group.until(lambda: server.clients.get(host.me) is not None, 1.0)
    sent = host.endpoint.sent[ClientPing]
    group.world.network.set_link(Link(Fixed(0.5)), "c9", "s0")
    assert group.until(lambda: host.endpoint.sent[ClientPing] > sent, 2 * BEAT)
    group.world.network.set_link(Link(Fixed(0.001)), "c9", "s0")
    group.world.step(host, node.withdraw)
    group.run(STEP)
    assert server.clients.get(host.me) is None
    group.note(Delivered)
    group.run(3.0)
    return [str(event.view.id) for _, _, event in group.events if isinstance(event, Delivered) and event.view.find("c9") is not None]


def test_a_late_ping_revives_no_client() -> None:
    """Views D10: what a client said before it left comes after that, with a stamp that is young enough. It stays out."""
    assert revived() == []


def test_without_d10_a_late_ping_revives_a_client() -> None:
    """Views D10: a server that does not remember whom it removed puts a client that has left into the next view."""
    with without(mutations.forgets_the_removed):
        assert len(revived()) == 1


# D12.


def held_up() -> None:
    """One client is stopped, and another one leaves at once. The others have the next view within milliseconds."""
    group = formed(ViewGroup(5, 3, 6, habits=QUIET))
    group.world.stop("c0")
    group.world.step(group.world.nodes["c1"], group.node("c1").withdraw)
    group.run(SETTLE)
    assert group.is_one(group.clients[2:])


def test_a_settled_view_is_the_only_one() -> None:
    """Views D12, CB6: when a view has been there for ``settle``, leases on the former one are over."""
    held_up()


def test_without_d12_a_settled_view_is_not_the_only_one() -> None:
    """Views D12, CB6 (a): the others count on their view after 0.3 s, while the one that is stopped still has a lease on the former."""
    with without(mutations.short_settle), pytest.raises(Violation, match=r"CB6 one-group: .*installed .* after it"):
        held_up()


# D17.


def resume_together() -> None:
    """One server, and a client on the same machine, are stopped for longer than ``settle``. c1 runs on and attaches anew again and again.
    c0 runs a moment before its server does, so its question is there when the server goes on."""
    group = formed(ViewGroup(8, 1, 2, habits=QUIET))
    for name in ("c0", "s0"):
        group.world.stop(name)
    group.run(LONG)
    group.world.resume("c0")
    group.run(0.05)
    group.world.resume("s0")
    group.run(3.0)
    assert group.is_one()


def test_a_server_looks_at_the_clock_before_it_answers() -> None:
    """Views D17, CB6: after the pause the server finds that both clients have been silent for too long, and vouches for no view of them."""
    resume_together()


def test_without_d17_a_lease_begins_on_a_view_that_is_over() -> None:
    """Views D17, CB6 (c): an answer without a look renews the lease of c0 on a view whose other member left it long ago."""
    with without(mutations.answers_blindly), pytest.raises(Violation, match=r"CB6 one-group: .*c1#\d+ left attachment"):
        resume_together()


# D20.


def crossed_over() -> bool:
    """Two servers are cut from each other, and views change often on one side. A client of that side moves to the other one; has it a view
    there?"""
    group = formed(ViewGroup(3, 2, 8, habits=QUIET))
    group.cut(["s0"], ["s1"])
    group.run(SETTLE)
    busy = at_homes(group, "s0")
    mover, restless = busy[0], busy[1:3]
    for _ in range(4):
        for name in restless:
            group.crash(name)
            group.run(2.0)
            group.start(name)
            group.run(0.5)
    (high,), (low,) = ({view.number for name in at_homes(group, each) if (view := group.leased(name))} for each in group.servers)
    assert high > low + 5
    group.cut([mover], ["s0"])
    group.run(SETTLE)
    assert mover in at_homes(group, "s1")
    view = group.leased(mover)
    assert view is None or view.number > high
    return view is not None


def test_a_client_from_a_higher_number_has_a_view() -> None:
    """Views D20, G2: it brings its number along, and the next view of its new server is above it."""
    assert crossed_over()


def test_without_d20_a_client_from_a_higher_number_has_none() -> None:
    """Views D20, G2: the views of its new server are below what it has installed, so it cannot install them."""
    with without(mutations.no_floor):
        assert not crossed_over()


# D26.


def told_after() -> float:
    """Seconds from when s1 goes on to another number until all clients of s0 know that the view is over or changing. Link states of s1 do
    not reach s0; heartbeats and proposals do."""
    group = formed(ViewGroup(2, 2, 6, habits=QUIET))
    group.note(Proposed, Changing, ViewChanged, ViewLost)
    group.hole("s1", "s0", "Lsa")
    group.crash(at_homes(group, "s1")[0])
    waiting, heard = at_homes(group, "s0"), (Changing, ViewChanged, ViewLost)
    assert group.until(lambda: any(isinstance(event, Proposed) and name == "s1" for _, name, event in group.events), 3.0)
    began = next(at for at, name, event in group.events if isinstance(event, Proposed) and name == "s1")
    group.run(SETTLE)
    first = [next(at for at, name, event in group.events if name == each and isinstance(event, heard)) for each in waiting]
    return max(first) - began


def test_a_server_that_went_on_takes_its_word_along() -> None:
    """Views D26: s0 hears the number with the answer to its next question or with a proposal, and says so with its next answers: a
    heartbeat for either, and what the messages take."""
    assert told_after() < 2.5 * BEAT


def test_without_d26_its_former_peers_stay_in_the_old_view() -> None:
    """Views D26: they go on until what they hold of s1 has expired, ``lsa_max_age`` later. Without D25 as well that is for ever
    (``test_directed``)."""
    with without(mutations.vouches_blindly):
        assert told_after() > ViewsConfig().lsa_max_age - BEAT


# D27.


def advice(preset: str) -> tuple[list[str], int]:
    """In a network with a long tail: what ``doctor`` says on a server, and how often views changed or were lost in half a minute."""
    settings = ViewsSettings.of(Config(preset=preset))
    group = ViewGroup(9, 3, 6, config=settings.views_config(), habits=QUIET, link=Link(Exponential(0.15)))
    group.run(CALM * settings.view_heartbeat / BEAT)
    group.note(ViewChanged, ViewLost)
    group.run(30.0)
    found = of_views(group.node("s0"), settings, "s0", serves=False)
    return [each.advice for each in found if each.code == "view_rtt"], len(group.events)


def test_a_network_that_is_too_slow_is_told_of() -> None:
    """Views D27: with numbers that are too short for the network, views are lost and change without any fault; doctor says so and names a
    preset. With that preset no view changes, and doctor says nothing."""
    (said,), disturbed = advice("lan")
    assert disturbed > 0
    assert 'preset = "wan"' in said
    assert advice("wan") == ([], 0)


def test_without_d27_it_is_not() -> None:
    """Views D27: every second round trip is short enough, so what is in the middle says nothing of why views are lost."""
    with without(mutations.median_round_trip):
        said, disturbed = advice("lan")
        assert (said, disturbed > 0) == ([], True)


# D29.


def many_clients() -> ViewGroup:
    """More clients of one server than one callback may reach."""
    group = ViewGroup(1, 1, FANOUT_MAX + 16, habits=QUIET, checkers=[UniqueId()])
    group.run(CALM)
    return group


def test_notices_leave_in_portions() -> None:
    """Views D29, F17: all of 80 clients are in one view, and no callback reached more than 64 of them."""
    assert many_clients().is_one()


def test_without_d29_a_callback_reaches_too_many() -> None:
    """Views D29, F17: a server that tells all of them at once holds up what else waits."""
    with without(mutations.one_portion), pytest.raises(Violation, match=r"F17: a callback of s0#\d+ sent to \d+ peers; accepted are 64"):
        many_clients()


# D30.


def nested() -> list[NodeId]:
    """Of whom c0 hears: c1 puts an overlay message that names another sender into one of its own."""
    group = formed(ViewGroup(1, 2, 2, both=True, habits=QUIET))
    group.note(Heard)
    s0, s1, c0 = (group.world.nodes[name] for name in ("s0", "s1", "c0"))
    view = group.leased("c0")
    assert view is not None
    letter = Parcel(b"", msgspec.msgpack.encode(LabLetter(7, b"")))
    forged = OvData(NodeId("c1", 99), 7, c0.me, view.id, letter, 2, 1, last=True)
    digest = s0.node.digests.get(OvData, b"")
    outer = OvData(s1.me, 8, c0.me, view.id, Parcel(digest, msgspec.msgpack.encode(forged)), 2, 2, last=True)
    group.world.step(s1, partial(s1.send, c0.me, outer))
    group.run(1.0)
    return [event.sender for _, name, event in group.events if name == "c0" and isinstance(event, Heard)]


def test_an_overlay_message_carries_no_overlay_message() -> None:
    """Views D30: what is in it has a sender, and is of a type that is declared for the overlay; another overlay message is a counted
    drop, so no sender speaks for another one."""
    assert nested() == []


def test_without_d30_a_sender_speaks_for_another_one() -> None:
    """Views D30: the message inside names its own sender, and is believed."""
    with without(mutations.message_in_message):
        assert nested() == [NodeId("c1", 99)]
