"""A client of views alone: the test plays its servers.  Spec: views 5.6, 10, D9, D11, D12, D17, D20, D28; foundation F9, F11."""

from __future__ import annotations

from itertools import pairwise

import pytest
from msgspec.structs import replace

from holdfast.bounds import AHEAD_MAX
from holdfast.events import Changing, ViewChanged, ViewLost, ViewRestored, ViewTripped
from holdfast.features.views.protocol.client import HINT_AHEAD_MAX, LEAVE_TRIES, MISSING, SILENT, in_order
from holdfast.features.views.protocol.config import CLIENTS_MAX, TRIP_PAUSE, TRIP_PAUSE_MAX
from holdfast.features.views.protocol.facts import Attached, Detached
from holdfast.features.views.protocol.messages import (
    ATTACHING,
    CHANGING,
    REFUSED,
    STABLE,
    UNKNOWN,
    ClientPing,
    ClientPong,
    StartChange,
)
from holdfast.host import NodeId, ViewState
from tests.features.views.stand import CONFIG, HB, S0, S1, S2, A, B, C, ClientStand, at, member, slots_of, view_of, whole


@pytest.fixture
def stand() -> ClientStand:
    """A client that begins."""
    return ClientStand()


@pytest.fixture
def leased(stand: ClientStand) -> ClientStand:
    """A client with a view of itself and B."""
    stand.install(1, member(B))
    stand.told.clear()
    stand.host.sent.clear()
    stand.tick()
    return stand


# Attaching.


def test_it_begins_without_a_stamp(stand: ClientStand) -> None:
    """Views 5.6, D11: the first ping of an attachment brings nothing back; it says where this client listens."""
    ((to, ping),) = stand.host.take(ClientPing)
    assert to == stand.client.servers[0].address
    assert ping == ClientPing(1, 1, 0, 0.0, 0, False, False, at(A))
    assert (stand.client.state, stand.client.view) == (ViewState.LOST, None)


def test_the_first_answer_is_answered_at_once(stand: ClientStand) -> None:
    """Views 5.6 (attaching): with its stamp; later answers of that kind wait for the tick."""
    stand.host.pass_time(0.01)
    stand.pong(ATTACHING)
    first, second = stand.pings()
    assert (second.seq, second.server, second.stamp, second.address) == (2, stand.server.boot, stand.host.now, at(A))
    stand.host.send(stand.server, second)
    stand.pong(ATTACHING)
    assert len(stand.pings()) == 1
    assert first.stamp == 0.0


def test_servers_are_tried_in_an_order_that_spreads() -> None:
    """Views 2 (servers): the own slot first, then by the hash of name and slot."""
    slots = slots_of(3)
    assert in_order("s1", slots, 1)[0].number == 1
    firsts = {in_order(f"c{i}", slots, None)[0].number for i in range(50)}
    assert firsts == {0, 1, 2}
    assert in_order("c1", slots, None) == in_order("c1", slots, None)


def test_a_silent_server_is_left_for_the_next_one(stand: ClientStand) -> None:
    """Views 5.6: after ``server_timeout``, round and round, with a new attach number each."""
    asked = []
    for _ in range(16):
        stand.tick()
        asked += [ping.attach for ping in stand.pings()]
    assert asked == [1] * 4 + [2] * 4 + [3] * 4 + [4] * 4 + [5]
    assert stand.client.at == 4 % 3


def test_a_tick_that_is_late_accuses_no_server(leased: ClientStand) -> None:
    """Foundation F11: the answers may still wait to be read. It asks, and the next tick judges."""
    server = leased.client.server
    leased.host.after(HB, leased.client.on_tick)
    leased.host.pause(3.0)
    assert leased.client.server == server
    assert len(leased.pings()) == 2
    leased.tick()
    assert leased.client.server is None


def test_an_attachment_that_is_over_takes_a_higher_number(stand: ClientStand) -> None:
    """Views 5.6 (unknown), D10: above the hint, at the same server, at once."""
    stand.pong(UNKNOWN, hint=6)
    ping = stand.last_ping()
    assert (ping.attach, ping.stamp, stand.client.at) == (7, 0.0, 0)


def test_a_hint_that_no_server_can_mean_is_not_followed(stand: ClientStand) -> None:
    """Views 10: numbers of attachments must not be used up by one answer."""
    stand.pong(UNKNOWN, hint=HINT_AHEAD_MAX + 2)
    assert stand.client.attach == 1
    assert stand.counts["malformed"] == 1


def test_unknown_again_and_again_goes_on_at_the_pace_of_ticks(stand: ClientStand) -> None:
    """Views 5.6: an answer that makes us ask at once, for ever, would be a storm."""
    for _ in range(10):
        stand.pong(UNKNOWN, hint=stand.client.attach)
    assert len(stand.pings()) == 2
    stand.tick()
    assert len(stand.pings()) == 1


def test_a_refusal_makes_it_try_the_next_server(stand: ClientStand) -> None:
    """Views 5.6 (refused): at the next tick, so that a refusal by all does not go round at the pace of the network."""
    stand.host.take(ClientPing)
    stand.host.send(stand.server, ClientPing(1, 1, 0, 0.0, 0))
    stand.pong(REFUSED)
    assert stand.client.at == 1
    assert len(stand.pings()) == 1
    stand.tick()
    ((to, ping),) = stand.host.take(ClientPing)
    assert (to, ping.attach) == (stand.client.servers[1].address, 2)


def test_a_server_that_forgot_it_is_told_anew(leased: ClientStand) -> None:
    """Views D9, D10: it was away for so long that not even its grave is known. The number of an attachment is used once, so it takes
    another one, and it says again where it listens. Seen: without that it asked for ever and was never let in."""
    leased.host.after(HB, leased.client.on_tick)
    leased.host.pause(2000.0)
    leased.pong(ATTACHING)
    ping = leased.last_ping()
    assert (ping.attach, ping.stamp, ping.address) == (2, 0.0, at(A))
    leased.pong(ATTACHING)
    assert leased.last_ping().address == at(A)
    assert leased.last_ping().stamp == leased.host.now


def test_an_answer_of_before_the_attachment_comes_late(stand: ClientStand) -> None:
    """Views 5.6 (attaching), D11: the tick asked once more before the first stamp came, and that answer is overtaken by the one that says
    "attached". Seen: the client attached anew, and its join took 0.60 s instead of 0.41 s on a WAN."""
    stand.tick()
    stand.pong(ATTACHING, seq=1)
    stand.pong(CHANGING, seq=3)
    stand.pong(ATTACHING, seq=2)
    assert stand.client.attach == 1
    stand.tick()
    stand.pong(ATTACHING)
    assert stand.client.attach == 2


def test_a_restarted_server_knows_no_clients(leased: ClientStand) -> None:
    """Views 5.6: a newer life answers. The client attaches anew; an older life is not heard."""
    newer = NodeId(leased.server.name, leased.server.boot + 1)
    older = NodeId(leased.server.name, leased.server.boot - 1)
    leased.pong(ATTACHING, source=older)
    assert leased.client.attach == 1
    leased.pong(ATTACHING, source=newer)
    assert leased.last_ping().attach == 2


def test_answers_of_other_servers_and_times_are_dropped(stand: ClientStand) -> None:
    """Views 5.6 (ClientPong): from the current server, with the current attach number and a known seq."""
    stranger = next(life for life in (S0, S1, S2) if life != stand.server)
    pings = len(stand.pings())
    stand.host.send(stand.server, ClientPing(1, 1, 0, 0.0, 0))
    stand.pong(ATTACHING, source=stranger)
    stand.pong(ATTACHING, seq=99)
    stand.client.on_pong(stand.server, ClientPong(2, 1, ATTACHING, None, 0, 0, 1.0))
    assert (pings, len(stand.pings())) == (1, 1)
    assert stand.counts["late"] == 3
    assert stand.client.server is None


def test_the_newest_stamp_is_echoed(stand: ClientStand) -> None:
    """Views 5.6: of the newest ping that was answered, whatever the order of the answers."""
    stand.pong(ATTACHING)
    stand.tick()
    stand.tick()
    newest, older = stand.last_ping().seq, stand.last_ping().seq - 1
    stand.pong(CHANGING, seq=newest)
    stamp = stand.host.now
    stand.host.pass_time(0.1)
    stand.pong(CHANGING, seq=older)
    stand.tick()
    assert stand.last_ping().stamp == stamp
    assert stand.host.events(Attached) == [Attached(stand.server, 1)]


# Views and leases.


def test_a_view_is_installed(stand: ClientStand) -> None:
    """Views 5.6 (ViewMsg): it tells what is new and what is gone, and meets every member (foundation H2)."""
    view = stand.install(3, member(B))
    assert stand.told == [ViewChanged(view, (A, B), ())]
    assert stand.host.met == {B: at(B)}
    assert stand.state() is ViewState.STABLE
    stand.view(second := stand.mine(4, member(C)))
    assert stand.told[1:] == [ViewChanged(second, (C,), (B,))]


def test_a_lease_counts_from_before_the_ping(leased: ClientStand) -> None:
    """Views 5.6, D12, foundation F8: from the send time of the ping that was answered ``stable``, less the drift of two clocks."""
    asked_at = leased.host.now
    leased.host.pass_time(0.9)
    leased.pong(STABLE, view=leased.client.view)
    assert leased.client.lease_until == asked_at + CONFIG.held < asked_at + CONFIG.lease


def test_a_view_counts_from_the_ping_that_it_echoes(stand: ClientStand) -> None:
    """Views 5.6 (ViewMsg), D24: the message may have been under way for any time."""
    stand.pong(ATTACHING)
    asked_at, echo = stand.host.now, stand.last_ping().seq
    stand.host.pass_time(0.6)
    stand.view(stand.mine(1), echo=echo)
    assert stand.client.lease_until == asked_at + CONFIG.held
    stand.host.pass_time(0.2)
    stand.view(stand.mine(2), echo=1)
    assert stand.client.lease_until < asked_at + CONFIG.held + 0.01


def test_a_view_that_comes_too_late_is_lost_at_once(stand: ClientStand) -> None:
    """Views 5.6, F9: its lease is over when it arrives."""
    stand.pong(ATTACHING)
    echo = stand.last_ping().seq
    stand.host.pass_time(CONFIG.lease)
    stand.view(view := stand.mine(1), echo=echo)
    assert [type(event) for event in stand.told] == [ViewChanged, ViewLost]
    assert stand.state() is ViewState.LOST
    assert stand.client.view == view


def test_the_lease_is_compared_at_every_use(leased: ClientStand) -> None:
    """Foundation F9, views D17: no tick has run, and it is over."""
    leased.pong(STABLE, view=leased.client.view)
    leased.host.clock = leased.client.lease_until - 0.001
    assert leased.state() is ViewState.STABLE
    leased.host.clock += 0.002
    assert leased.state() is ViewState.LOST
    leased.client.check_lease()
    leased.client.check_lease()
    assert [type(event) for event in leased.told] == [ViewLost]


def test_an_answer_restores_a_lost_view(leased: ClientStand) -> None:
    """Views 5.6: ``stable`` for the same view, without a new one."""
    for _ in range(8):
        leased.pong(CHANGING)
        leased.tick()
    assert leased.state() is ViewState.LOST
    leased.pong(STABLE, view=leased.client.view)
    assert [type(event) for event in leased.told] == [Changing, ViewLost, ViewRestored]
    assert leased.state() is ViewState.STABLE


def test_a_gap_in_the_lease_is_told(leased: ClientStand) -> None:
    """Foundation F9: the lease ended between two ticks; an answer that renews it comes after ``ViewLost``, not instead of it."""
    leased.pong(STABLE, view=leased.client.view)
    seq = leased.client._seq + 1
    leased.client.on_tick()
    leased.host.clock = leased.client.lease_until + 0.001
    leased.client._sent[seq] = leased.host.now - 0.1  # asked a moment ago
    leased.pong(STABLE, view=leased.client.view, seq=seq)
    assert [type(event) for event in leased.told] == [ViewLost, ViewRestored]


def test_stable_counts_for_the_own_view_alone(leased: ClientStand) -> None:
    """Views 5.6: for another view, or with an older ``sc``, it renews nothing; an old ping makes no lease longer."""
    was = leased.client.lease_until
    leased.pong(STABLE, view=view_of(9, member(A)))
    leased.client._sc = 5
    leased.pong(STABLE, view=leased.client.view, sc=4)
    assert leased.client.lease_until == was
    leased.pong(STABLE, view=leased.client.view, sc=5)
    assert leased.client.lease_until == leased.host.now + CONFIG.held


def test_stable_counts_for_the_present_attachment_alone(leased: ClientStand) -> None:
    """Views 5.6, G6 (c): a view that lists a former attach number is renewed no more. Tried: without that, CB6 (c)."""
    view = leased.client.view
    assert view is not None
    leased.client._begin_attachment(leased.client.at, "test")
    leased.client._ping()
    was = leased.client.lease_until
    leased.pong(STABLE, view=view)
    assert leased.client.lease_until == was
    assert leased.client.changing


@pytest.mark.parametrize("what", ["attach", "number", "echo", "source"])
def test_a_view_of_another_time_is_dropped(leased: ClientStand, what: str) -> None:
    """Views 5.6 (ViewMsg), G2: another attach number, no higher number, an unknown echo, another server."""
    was = leased.client.view
    stranger = next(life for life in (S0, S1, S2) if life != leased.server)
    leased.view(
        leased.mine(1 if what == "number" else 2),
        attach=9 if what == "attach" else None,
        echo=99 if what == "echo" else None,
        source=stranger if what == "source" else None,
    )
    assert leased.client.view is was
    assert leased.counts["late"] == 1


def test_a_view_without_this_client_is_malformed(leased: ClientStand) -> None:
    """Views 10, G2, CB3: without it, or with another life or attach number of it; without its own server, under a wrong name: counted."""
    was, server = leased.client.view, leased.server
    mine = member(A, 1, server)
    wrong = [
        view_of(2, member(B), servers=(server,)),
        view_of(2, member(NodeId(A.name, A.boot + 1)), servers=(server,)),
        view_of(2, member(A, 2, server), servers=(server,)),
        view_of(2, mine, servers=tuple(life for life in (S0, S1) if life != server)[:1]),
        replace(view_of(2, mine, servers=(server,)), id=view_of(2, mine, servers=(S2, S0)).id._replace(boot=9)),
    ]
    for view in wrong:
        leased.view(view)
    assert leased.client.view is was
    assert (leased.counts["not_listed"], leased.counts["malformed"]) == (3, 2)
    assert leased.told == []


def test_a_view_beyond_the_limit_is_malformed(leased: ClientStand) -> None:
    """Views 10: 2,000 clients; a list that grows by deltas has the same limit."""
    assert CLIENTS_MAX == 2000
    message = replace(whole(leased.mine(2), 1, leased.last_ping().seq), size=CLIENTS_MAX + 1)
    leased.client.on_view(leased.server, message)
    assert leased.counts["malformed"] == 1


def test_a_delta_that_does_not_fit_is_asked_for_whole(leased: ClientStand) -> None:
    """Views D14: of another base, or with another digest; the ping says so until a view is installed."""
    message = whole(leased.mine(2), 1, leased.last_ping().seq)
    leased.client.on_view(leased.server, replace(message, digest=b"x" * 16))
    leased.tick()
    assert leased.last_ping().want_full
    assert leased.counts["deltas_refused"] == 1
    leased.view(leased.mine(2))
    leased.tick()
    assert not leased.last_ping().want_full
    assert leased.last_ping().last_num == 2


# Changes.


def test_a_change_is_told_once(leased: ClientStand) -> None:
    """Views 5.6 (StartChange), paper 003, section 5.1: from then on the application is careful; the lease runs on."""
    server = leased.server
    leased.client.on_start_change(server, StartChange(1, 1, 7))
    leased.client.on_start_change(server, StartChange(1, 2, 8))
    leased.pong(CHANGING, sc=2)
    assert leased.told == [Changing(7)]
    assert leased.state() is ViewState.CHANGING
    leased.pong(STABLE, view=leased.client.view, sc=2)
    assert leased.state() is ViewState.STABLE


def test_a_change_that_is_through_is_none(leased: ClientStand) -> None:
    """Views 5.6 (StartChange): it was overtaken by the view that the change ended with. Seen: the client was "changing" once more,
    and told so. The same holds for an answer that is older than the view."""
    asked = leased.last_ping().seq
    leased.view(leased.mine(7, member(B)))
    leased.told.clear()
    leased.client.on_start_change(leased.server, StartChange(1, 1, 7))
    leased.pong(CHANGING, seq=asked, sc=1)
    assert leased.told == []
    assert leased.state() is ViewState.STABLE
    leased.client.on_start_change(leased.server, StartChange(1, 2, 8))
    assert leased.told == [Changing(8)]


def test_old_news_of_a_change_is_dropped(leased: ClientStand) -> None:
    """Views 5.6: another server, another attach number, no newer ``sc``."""
    leased.client._sc = 3
    leased.client.on_start_change(NodeId("x", 1), StartChange(1, 9, 7))
    leased.client.on_start_change(leased.server, StartChange(2, 9, 7))
    leased.client.on_start_change(leased.server, StartChange(1, 3, 7))
    leased.pong(CHANGING, sc=2)
    assert leased.told == []
    assert not leased.client.changing


def test_settled_counts_from_the_installation(leased: ClientStand) -> None:
    """Views G6, D12: ``settle`` after it; a view that is not installed never settles."""
    assert leased.client.settled_at == leased.client.installed_at + CONFIG.settle
    assert ClientStand().client.settled_at == float("inf")
    assert CONFIG.settle == pytest.approx(5.4, abs=0.05)


# Leaving a server, and all of them.


def test_the_lease_runs_on_when_it_fails_over(leased: ClientStand) -> None:
    """Views D28: three missed pings start the move while half the lease is left. Tried: the move voids the lease."""
    leased.pong(STABLE, view=leased.client.view)
    until, former = leased.client.lease_until, leased.server
    leased.tick(4)
    assert leased.client.server is None
    assert leased.last_ping().attach == 2
    assert leased.client.leased
    assert leased.client.lease_until == until
    assert leased.client.lease_until - leased.host.now >= CONFIG.lease / 4
    assert leased.client.left_at == leased.host.now
    assert leased.told == []
    assert leased.host.events(Detached)[-1] == Detached(former, 2, "its server does not answer")


def test_a_view_remembers_when_its_attachment_was_left_first(leased: ClientStand) -> None:
    """Views 5.6 (``left_at``), G6 (c): a second move does not count anew; a new view ends it."""
    leased.client._begin_attachment(1, "test")
    first = leased.client.left_at
    leased.host.pass_time(0.1)
    leased.client._begin_attachment(2, "test")
    assert leased.client.left_at == first
    leased.client._ping()
    leased.install(5)
    assert leased.client.left_at is None


def test_a_message_that_did_not_reach_its_server_moves_it(leased: ClientStand) -> None:
    """Views 5.7, D13: heartbeats pass, and a hop used up its tries; a hop to a former server moves nothing."""
    former = leased.server
    leased.client.fail_over(former)
    assert leased.client.at == 1
    assert leased.last_ping().attach == 2
    leased.client.fail_over(former)
    assert leased.client.at == 1


def miss(stand: ClientStand, heartbeats: int, *, number: int = 7) -> int:
    """So many heartbeats in which its server names a view that does not arrive, and the attachments that begin meanwhile."""
    before = stand.client.attach
    for _ in range(heartbeats):
        stand.pong(STABLE, view=stand.mine(number))
        stand.tick()
    return stand.client.attach - before


def test_a_view_that_does_not_arrive_is_sought_at_the_next_server(leased: ClientStand) -> None:
    """H235: after ``view_timeout``, and not before. By then the lease is over, so the move costs the client nothing (views G6)."""
    assert miss(leased, 8) == 0
    assert not leased.client.leased
    leased.pong(STABLE, view=leased.mine(7))
    leased.tick()
    assert (leased.client.attach, leased.client.at) == (2, 1)
    assert leased.host.events(Detached)[-1].why == MISSING
    assert leased.client.left_at == leased.host.now
    (lost,) = [event for event in leased.told if isinstance(event, ViewLost)]
    assert "its view does not arrive" in lost.why


def test_the_pause_between_two_such_moves_doubles(leased: ClientStand) -> None:
    """H235: it stays at the second server for as long as a view is waited for, at the third one for twice as long, then four times."""
    moved: list[int] = []
    for beat in range(100):
        if leased.client.server is None:
            leased.pong(ATTACHING)
        moved += [beat] * miss(leased, 1)
    assert [later - earlier for earlier, later in pairwise(moved)] == [9, 16, 32]


def test_the_longest_pause_and_what_ends_it(leased: ClientStand) -> None:
    """H235: 1200 heartbeats, so that hundreds of members that no view reaches let the others rest; short again after twice as long."""
    client = leased.client
    pauses = []
    for _ in range(10):
        client._leave_for_a_view()
        pauses.append(round(client._move_pause / HB))
        leased.host.clock += client._move_pause
    assert pauses == [8, 16, 32, 64, 128, 256, 512, 1024, 1200, 1200]
    again = ClientStand(former=client, host=leased.host).client  # It left the view, and came back.
    again._leave_for_a_view()
    assert again._move_pause == CONFIG.move_pause_max
    leased.host.clock += 2 * again._move_pause
    again._leave_for_a_view()
    assert again._move_pause == CONFIG.move_pause


def test_the_only_server_is_not_left() -> None:
    """H235: a new attachment at it brings no other view, and changes that of all others."""
    one = ClientStand(servers=1)
    one.install(1, member(B))
    assert miss(one, 100) == 0
    assert "its view does not arrive" in one.client.lost_why


def test_what_ends_the_wait_for_a_view(leased: ClientStand) -> None:
    """H235: a view that arrives, or the word that the own one holds. Each time the wait begins anew."""
    for number in (7, 8):
        assert miss(leased, 7, number=number) == 0
        leased.view(leased.mine(number))
    assert miss(leased, 7, number=9) == 0
    leased.pong(STABLE, view=leased.client.view)
    assert miss(leased, 8, number=9) == 0


def test_an_old_answer_names_no_missing_view(leased: ClientStand) -> None:
    """H235: a view before the own one, or in an answer to a ping that the own view has overtaken."""
    early = leased.last_ping().seq
    leased.tick()
    leased.view(leased.mine(7))
    for _ in range(20):
        leased.pong(STABLE, view=leased.mine(6))
        leased.pong(STABLE, view=leased.mine(8), seq=early)
        leased.tick()
    assert leased.client.attach == 1


def test_why_there_is_no_view_is_said_as_it_is_now() -> None:
    """H235: no server answered at first; then one does, and its view does not arrive."""
    stand = ClientStand()
    assert stand.client.lost_why == "it was not attached yet"
    stand.tick(4)
    assert "no view server answers" in stand.client.lost_why
    assert stand.host.events(Detached)[-1].why == SILENT
    stand.pong(ATTACHING)
    miss(stand, 8)
    assert "its view does not arrive" in stand.client.lost_why


def test_a_trip_voids_the_lease(leased: ClientStand) -> None:
    """Views D28, 5.7: the view is not believed; a new attachment changes the key at every server."""
    assert leased.client.trip("why", B)
    assert leased.state() is ViewState.LOST
    assert leased.told == [ViewTripped(B, "why"), ViewLost("tripped: why")]
    assert (leased.last_ping().attach, leased.client.at) == (2, 0)
    leased.pong(STABLE, view=leased.client.view)
    assert not leased.client.leased


def test_a_trip_may_ask_for_a_number_above(leased: ClientStand) -> None:
    """Views 5.7: a member that counted up by itself forces a view that its number does not bar."""
    seen = leased.client.last_num
    leased.client.trip("why", above=seen + 7)
    assert leased.last_ping().last_num == seen + 7
    leased.host.clock += TRIP_PAUSE
    leased.client.trip("why", above=1)
    assert leased.last_ping().last_num == seen + 7


def test_a_trip_above_what_is_possible_is_a_trip_alone(leased: ClientStand) -> None:
    """H228, views 5.7: peers refuse a ping whose number is too far ahead of the clock, so such a number is not taken up."""
    highest = int(leased.host.wall() * 1000) + AHEAD_MAX
    assert leased.client.trip("why", above=highest + 1)
    assert leased.last_ping().last_num == 1
    assert leased.counts["malformed"] == 1
    leased.host.clock += TRIP_PAUSE
    assert leased.client.trip("why", above=highest)
    assert leased.last_ping().last_num == highest


def test_hurry_asks_once_in_a_tick(leased: ClientStand) -> None:
    """Views 5.6: a peer that is in a newer view makes a member ask its server; ten such peers make it ask once."""
    leased.pings()
    for _ in range(10):
        leased.client.hurry()
    assert len(leased.pings()) == 1
    leased.host.clock += leased.client._config.heartbeat
    leased.client.hurry()
    assert len(leased.pings()) == 1


def test_trips_have_a_pause_that_doubles(leased: ClientStand) -> None:
    """Views 5.7: at most one in 10 s, doubling to five minutes while they go on; after calm it is short again."""
    pauses = []
    for _ in range(7):
        assert leased.client.trip("why")
        pauses.append(leased.client.trips_again_in)
        assert not leased.client.trip("why")
        leased.host.clock += pauses[-1]
    assert pauses == [10, 20, 40, 80, 160, 300, 300]
    leased.host.clock += 2 * TRIP_PAUSE_MAX
    assert leased.client.trip("why")
    assert leased.client.trips_again_in == TRIP_PAUSE


def test_a_farewell_is_said_more_than_once(leased: ClientStand) -> None:
    """Views 9 (leave): a lost one costs the others ``client_timeout``."""
    leased.pings()
    leased.client.leave()
    assert [ping.leave for ping in leased.pings()] == [True] * LEAVE_TRIES


def test_a_client_that_left_says_and_tells_no_more(leased: ClientStand) -> None:
    """Views 9: timers and hops of its time end later; none of them begins an attachment, which the next client of this life may have."""
    server = leased.server
    leased.client.leave()
    leased.pings()
    leased.client.fail_over(server)
    leased.tick(20)
    assert not leased.client.trip("why")
    assert leased.pings() == []
    assert leased.told == []
    assert leased.client.attach == 1


def test_the_next_client_of_a_life_goes_on_with_its_numbers(leased: ClientStand) -> None:
    """Views G2: attach numbers and view numbers of a life only grow; the pause between two trips is that of the life."""
    leased.client.trip("why")
    leased.client.leave()
    leased.host.sent.clear()
    again = ClientStand(former=leased.client, host=leased.host)
    ping = again.last_ping()
    assert (ping.attach, ping.last_num) == (3, 1)
    assert not again.client.trip("why")
    again.pong(ATTACHING)
    again.view(again.mine(1))
    assert again.client.view is None
    again.view(again.mine(2))
    assert again.client.view is not None


def test_why_a_view_is_lost(leased: ClientStand) -> None:
    """Views 10, D19: what people read: no server answers, none lets it in, or it does not confirm."""
    leased.pong(STABLE, view=leased.client.view)
    leased.tick(8)
    (lost,) = [event for event in leased.told if isinstance(event, ViewLost)]
    assert "no view server answers" in lost.why


def test_the_least_that_was_left_of_a_lease(leased: ClientStand) -> None:
    """Views 9 (lease margin): before each extension; a lease that is extended early later on leaves the least as it was."""
    until = leased.client.lease_until
    leased.host.clock = until - 0.3
    leased.pong(STABLE, view=leased.client.view)
    assert leased.client.margin_min == pytest.approx(0.3)
    leased.tick()
    leased.pong(STABLE, view=leased.client.view)
    assert leased.client.margin_min == pytest.approx(0.3)
