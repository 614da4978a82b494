"""A node's part in views, as a server, as a client, as both, and as none.  Spec: views 1, 2, 9, 10, D17, D19, D31; foundation F9, F11."""

from __future__ import annotations

from math import inf

import pytest

from holdfast.events import ViewChanged, ViewEvent, ViewLost, ViewRestored, ViewTripped
from holdfast.features.views.protocol.config import views_fingerprint
from holdfast.features.views.protocol.facts import Carried as CarriedFact
from holdfast.features.views.protocol.facts import Proposed, ServerRetired
from holdfast.features.views.protocol.messages import (
    ATTACHING,
    TYPES,
    ClientPing,
    ClientPong,
    HopAck,
    LinkPing,
    LinkPong,
    Lsa,
    OvData,
    OvResult,
    StartChange,
    ViewMsg,
)
from holdfast.features.views.protocol.survey import LinkLook
from holdfast.features.views.protocol.views import RETIRE_HEARTBEATS
from holdfast.host import Carried, NodeId, ViewId, Views, ViewState
from tests.features.views.stand import CONFIG, HB, S0, S1, S2, A, B, NodeStand, Note, at, slots_of


@pytest.fixture
def alone() -> NodeStand:
    """The only seat, which takes part itself, with a view of one."""
    stand = NodeStand()
    stand.node.start()
    stand.node.take_part()
    stand.run(2)
    assert stand.node.state is ViewState.STABLE
    return stand


@pytest.fixture
def client() -> NodeStand:
    """An agent that is no seat, of three."""
    stand = NodeStand(3, None, A)
    stand.node.start()
    stand.node.take_part()
    return stand


def serve(stand: NodeStand, state: int = ATTACHING) -> None:
    """The server that was asked last answers."""
    to, ping = stand.host.take(ClientPing)[-1]
    server = next(life for life in (S0, S1, S2) if at(life) == to)
    stand.node.on_message(server, ClientPong(ping.attach, ping.seq, state, None, 0, 0, stand.host.now))


def test_it_is_what_users_of_views_ask_for(alone: NodeStand) -> None:
    """Foundation H5, views 10: the interface of host.py, and the machine that owns all messages of this folder."""
    assert isinstance(alone.node, Views)
    assert alone.node.handles == TYPES
    assert [kind.__struct_config__.tag for kind in TYPES] == list(range(128, 140))


def test_one_server_and_its_own_client(alone: NodeStand) -> None:
    """Views D19: both roles in one node, by the local loop: nothing of it leaves the process. The first client is a view of one."""
    view = alone.node.view
    assert view is not None
    assert (view.servers, [member.id for member in view.members]) == ((S0,), [S0])
    assert alone.host.sent == []
    alone.run(40)
    assert alone.node.view is view
    assert not alone.node.settled or alone.host.now >= alone.node.settled_at
    assert alone.node.settled
    assert alone.node.leased_until > alone.host.now


def test_a_message_to_itself_goes_through_its_server(alone: NodeStand) -> None:
    """Views 5.7, D19: every member of a view can be reached, this one too."""
    outcomes: list[Carried] = []
    alone.node.carry(S0, Note(5), outcomes.append)
    assert outcomes == []
    alone.run(0)
    assert outcomes == [Carried.DELIVERED]
    assert alone.router.handed == [(S0, Note(5))]
    assert alone.node.metrics()["overlay_hops_2"] == 1


def test_a_handler_never_runs_inside_another_one(alone: NodeStand) -> None:
    """Views: what a node says to itself goes round by a timer. Tried: a direct call, which ends in the middle of an attachment."""
    depth: list[int] = [0]
    handle = alone.node.on_message

    def watched(source: NodeId, message: object) -> None:
        assert depth[0] == 0
        depth[0] += 1
        handle(source, message)  # type: ignore[arg-type]
        depth[0] -= 1

    alone.node.on_message = watched  # type: ignore[method-assign]
    alone.node.trip("why")
    alone.run(20)
    assert alone.node.state is ViewState.STABLE


def test_who_takes_no_part_any_more_has_left(alone: NodeStand) -> None:
    """Views 5.6 (``left_at``), H270: leaving the views is leaving the attachment, also for the next part that this life takes."""
    before, left_at = alone.node.left_at, alone.host.now
    alone.node.withdraw()
    withdrawn = alone.node.left_at
    alone.run(0.1)
    alone.node.take_part()
    assert (before, withdrawn, alone.node.left_at) == (None, left_at, left_at)


def test_both_parts_share_one_tick(alone: NodeStand) -> None:
    """Views 4: one wake-up a heartbeat, whatever this node is."""
    assert alone.host.timers == 1


def test_a_node_that_takes_no_part() -> None:
    """Views 10, D31: no view, no lease; a message is not carried; a trip is none."""
    stand = NodeStand(3, None, A)
    stand.node.start()
    outcomes: list[Carried] = []
    stand.node.carry(B, Note(1), outcomes.append)
    assert outcomes == [Carried.NOT_IN_VIEW]
    assert (stand.node.view, stand.node.state, stand.node.leased_until, stand.node.settled_at) == (None, ViewState.LOST, -inf, inf)
    assert (stand.node.left_at, stand.node.settled, stand.node.trip("why"), stand.node.idle_since) == (-inf, False, False, None)
    stand.run(100)
    assert stand.host.sent == []
    assert stand.host.timers == 0


def test_no_server_reachable(client: NodeStand) -> None:
    """Views D19: lost, no view; the survey says why, and for how long."""
    client.run(20)
    survey = client.node.survey()
    assert client.node.state is ViewState.LOST
    assert client.node.view is None
    assert survey.lost_for == 20 * HB
    assert survey.server is None
    assert len({to for to, _ in client.host.take(ClientPing)}) == 3


def test_what_is_not_for_this_part_is_counted(client: NodeStand) -> None:
    """Views 10: a client that is no seat drops what servers say to each other, and a seat what is for clients."""
    for message in (LinkPing(1, 0), LinkPong(1, 1, ()), Lsa(1, S1, 1, (), ()), OvResult(B, 1, ok=True, why=0, ttl=1)):
        client.node.on_message(S1, message)
    seat = NodeStand()
    seat.node.start()
    seat.node.on_message(A, StartChange(1, 1, 1))
    seat.node.on_message(A, OvData(A, 1, S0, ViewId(1, *S0), seat.data(A, 1, S0).parcel, 1, 1, True))
    client.node.on_message(S1, OvData(A, 1, B, ViewId(1, *S0), seat.data(A, 1, S0).parcel, 1, 1))
    assert client.node.counts["not_for_this_part"] == 5
    assert seat.node.counts["not_for_this_part"] == 2
    assert seat.host.take(HopAck) == []


def test_the_receiver_acknowledges_duplicates_too(alone: NodeStand) -> None:
    """Views 5.7: a message from a server of the view, once handed on, acknowledged each time; a stranger's is neither."""
    alone.node.on_message(S1, alone.data(B, 7, S0))
    assert alone.router.handed == []
    assert alone.host.take(HopAck) == []
    for hop in (1, 2):
        alone.node.on_message(S0, alone.data(B, 7, S0, hop=hop))
    assert alone.router.handed == [(B, Note(7))]


def test_it_leaves_the_view_politely(client: NodeStand) -> None:
    """Views 9: the others change at once instead of after ``client_timeout``; then this node says nothing more."""
    serve(client)
    client.host.take(ClientPing)
    client.node.withdraw()
    said = [ping for _, ping in client.host.take(ClientPing)]
    assert [ping.leave for ping in said] == [True] * 3
    client.run(40)
    assert client.host.sent == []
    assert client.host.timers == 0
    client.node.withdraw()
    assert client.host.sent == []


def test_taking_part_again_goes_on_with_the_numbers(alone: NodeStand) -> None:
    """Views G2: attach numbers, view numbers and message ids of a life only grow."""
    first = alone.node.view
    alone.node.carry(S0, Note(1), lambda outcome: None)
    alone.run(1)
    alone.node.withdraw()
    alone.run(1)
    alone.node.take_part()
    alone.node.take_part()
    alone.run(4)
    second = alone.node.view
    assert first is not None
    assert second is not None
    assert second.number > first.number
    assert second.members[0].attach > first.members[0].attach
    alone.host.emitted.clear()
    alone.node.carry(S0, Note(2), lambda outcome: None)
    alone.run(0)
    assert [fact.mid for fact in alone.host.events(CarriedFact)] == [2]


def test_the_end_of_a_message_may_take_part_or_leave(alone: NodeStand) -> None:
    """Views 5.7: ``done`` and listeners call back into this machine. What they find is true, and no timer of a former part stays."""
    outcomes: list[Carried] = []

    def ask_again(outcome: Carried) -> None:
        outcomes.append(outcome)
        if len(outcomes) < 5:
            alone.node.carry(S0, Note(2), ask_again)

    alone.node.carry(S0, Note(1), ask_again)
    alone.node.withdraw()
    assert outcomes == [Carried.TRIPPED] + [Carried.NOT_IN_VIEW] * 4
    alone.node.subscribe(lambda event: alone.node.withdraw())
    alone.node.take_part()
    alone.run(10)
    assert alone.node.client is None
    assert alone.host.timers == 1


def test_subscribers_hear_the_events(alone: NodeStand) -> None:
    """Views 9: what is emitted for people is told to machines as well, in this order."""
    heard: list[ViewEvent] = []
    alone.node.subscribe(heard.append)
    assert alone.node.trip("why")
    assert not alone.node.trip("why")
    alone.run(4)
    assert [type(event) for event in heard] == [ViewTripped, ViewLost, ViewChanged]
    assert alone.host.emitted[-1] == heard[-1]


def test_after_a_pause_the_view_is_lost_before_anything_is_read(alone: NodeStand) -> None:
    """Foundation F9, F10, views D17: the host says how long it was; the lease ended meanwhile."""
    alone.host.clock += CONFIG.lease + 1
    assert alone.node.view is None
    alone.node.on_away(CONFIG.lease + 1)
    assert isinstance(alone.host.events(ViewLost)[-1], ViewLost)
    alone.run(10)
    assert alone.host.events(ViewChanged)[-1].view == alone.node.view


def test_ticks_that_were_missed_are_not_made_up(client: NodeStand) -> None:
    """Foundation F11: after a pause there is one tick, and the next a heartbeat later."""
    client.host.take(ClientPing)
    client.host.pause(40 * HB)
    assert len(client.host.take(ClientPing)) == 1
    client.run(4.01)
    assert len(client.host.take(ClientPing)) in (4, 5)


def test_nothing_runs_after_the_stop(alone: NodeStand) -> None:
    """Foundation 3 (Machine): no timer stays, of the tick, of hops, of messages, of joins, of notices."""
    alone.node.carry(S0, Note(1), lambda outcome: None)
    for i in range(3):
        life = NodeId(f"c{i}", 1)
        alone.node.on_message(life, ClientPing(1, 1, 0, 0.0, 0, address=at(life)))
        alone.node.on_message(life, ClientPing(1, 2, S0.boot, alone.host.now, 0, address=at(life)))
        alone.node.on_message(life, alone.data(life, 1, S0, last=False))
    alone.node.stop()
    alone.run(0)
    assert alone.host.timers == 0
    before = len(alone.host.sent)
    alone.run(100)
    assert len(alone.host.sent) == before


def test_a_seat_that_is_put_back_goes_on_with_its_numbers() -> None:
    """Views G1, D3, D31: the agent stops and starts the same machine. No number has two keys, and clients hear of views again."""
    stand = NodeStand()
    for round_ in range(3):
        stand.node.start()
        for i in range(3):
            life = NodeId(f"c{i}", 1)
            stand.node.on_message(life, ClientPing(1 + round_, 1, 0, 0.0, 0, address=at(life)))
            stand.node.on_message(life, ClientPing(1 + round_, 2, S0.boot, stand.host.now, 0, address=at(life)))
        stand.run(1)
        view = stand.node.server.agreement.view  # type: ignore[union-attr]
        assert view is not None
        assert view.size == 3
        assert {to.name for to, message in stand.host.take(ViewMsg) if message.id == view.id} == {"c0", "c1", "c2"}  # type: ignore[union-attr]
        for i in range(2):  # Joins that wait to be published together when it stops.
            stand.node.on_message(NodeId(f"d{i}", 1), ClientPing(1 + round_, 1, 0, 0.0, 0, address=at(A)))
            stand.node.on_message(NodeId(f"d{i}", 1), ClientPing(1 + round_, 2, S0.boot, stand.host.now, 0, address=at(A)))
        stand.node.stop()
        stand.run(20)
    numbers = [fact.number for fact in stand.host.events(Proposed)]
    assert numbers == sorted(set(numbers))


def test_a_seat_without_clients_retires_once_and_again_after_a_use() -> None:
    """Views D31: after a minute at the usual heartbeat; an agent that takes part itself keeps its server."""
    stand = NodeStand()
    stand.node.start()
    stand.run(RETIRE_HEARTBEATS - 2)
    assert stand.host.events(ServerRetired) == []
    stand.run(40)
    assert len(stand.host.events(ServerRetired)) == 1
    stand.node.stop()
    stand.run(40)
    stand.node.start()
    stand.run(40)
    assert len(stand.host.events(ServerRetired)) == 1
    stand.run(RETIRE_HEARTBEATS)
    assert len(stand.host.events(ServerRetired)) == 2


def test_a_seat_that_takes_part_does_not_retire(alone: NodeStand) -> None:
    """Views D31: it is its own client, also while the servers do not know it yet."""
    alone.run(2 * RETIRE_HEARTBEATS)
    assert alone.host.events(ServerRetired) == []


def test_what_people_see_of_a_seat() -> None:
    """Views 9, 10: links with their states, the graph, clients, numbers; nothing that is not known is made up."""
    stand = NodeStand(3)
    stand.node.start()
    stand.run(1)
    survey = stand.node.survey()
    assert survey.links == (LinkLook(1, at(S1), None, "down", None, 0), LinkLook(2, at(S2), None, "down", None, 0))
    assert survey.graph == ((0, 1, False), (0, 2, False), (1, 2, False))
    assert (survey.own, survey.clients, survey.number, survey.rtt_p99, survey.installed_for, survey.lost_for) == (0, 0, 1, None, None, None)
    for _ in range(2):
        stand.run(1)
        seq = stand.host.take(LinkPing)[-1][1].seq
        stand.host.clock += 0.01
        stand.node.on_message(S1, LinkPong(seq, 1, ()))
    server = stand.node.server
    assert server is not None
    survey = stand.node.survey()
    assert survey.links[0] == LinkLook(1, at(S1), S1, "up", 0.0, 0)
    assert survey.rtt_p99 is not None
    server.links.fail(server.links.all[1], "test")
    assert stand.node.survey().links[0] == LinkLook(1, at(S1), S1, "quarantined", 0.0, 1, "test")
    assert stand.node.metrics()["links_down"] == 2


def test_metrics_never_fall_while_it_runs(alone: NodeStand) -> None:
    """Views 9: counters grow, also over the end of a client's part; the rest is as of now."""
    before = alone.node.metrics()
    assert before["size"] == 1
    assert before["changes_fast"] == 2
    assert before["lease_margin_min"] > 0
    alone.node.carry(S0, Note(1), lambda outcome: None)
    alone.run(1)
    alone.node.withdraw()
    alone.run(1)
    alone.node.take_part()
    after = alone.node.metrics()
    for name in ("changes_fast", "carried", "carried_delivered", "overlay_hops_2", "seconds_lost"):
        assert after[name] >= before.get(name, 0)
    assert after["overlay_hops_2"] == 1


def test_seconds_without_a_view_are_counted(client: NodeStand) -> None:
    """Views 9 (seconds panicked): from the first moment on which it takes part, and again when the view is lost."""
    client.run(10)
    assert client.node.metrics()["seconds_lost"] == pytest.approx(10 * HB)
    client.node.withdraw()
    client.run(10)
    assert client.node.metrics()["seconds_lost"] == pytest.approx(10 * HB)


def test_the_fingerprint_names_what_must_match() -> None:
    """Foundation F4, views 4: the heartbeat, the drift and the slots."""
    text = views_fingerprint(CONFIG, slots_of(2)).decode()
    assert "view_heartbeat=0.25" in text
    assert "seat0='0=s0@s0:1'" in text
    assert views_fingerprint(CONFIG, slots_of(2)) != views_fingerprint(CONFIG, slots_of(3))


def test_a_lost_view_that_is_confirmed_is_restored(alone: NodeStand) -> None:
    """Views 5.6: the node's own pongs were late; ``ViewRestored`` ends the count of seconds lost."""
    assert alone.node.client is not None
    alone.node.client.lease_until = alone.host.now
    alone.node.client.check_lease()
    assert alone.node.survey().lost_why.endswith("did not confirm the view for 1.5 s")
    alone.run(2)
    assert isinstance(alone.host.events(ViewRestored)[-1], ViewRestored)
    assert alone.node.survey().lost_for is None
