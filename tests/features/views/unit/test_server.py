"""A server of views alone: the test plays its peers and clients.  Spec: views 5.1-5.5, 10, D3, D5-D11, D15, D17, D20, D24-D26, D29."""

from __future__ import annotations

import pytest
from msgspec import msgpack

from holdfast.features.views.protocol import server as server_module
from holdfast.features.views.protocol.facts import ClientRemoved, Delivered, LinkDown
from holdfast.features.views.protocol.messages import (
    ATTACHING,
    CHANGING,
    NEVER,
    REFUSED,
    STABLE,
    UNKNOWN,
    ClientPing,
    ClientPong,
    Known,
    LinkPing,
    LinkPong,
    Listed,
    Lsa,
    LsaWant,
    Propose,
    StartChange,
    ViewMsg,
)
from holdfast.host import FANOUT_MAX, NodeId
from tests.features.views.stand import CONFIG, HB, S0, S1, S2, S3, A, B, C, ServerStand, at, member


@pytest.fixture
def alone() -> ServerStand:
    """The only server."""
    return ServerStand(1)


@pytest.fixture
def stand() -> ServerStand:
    """One of three, with links to the others and a view with one client."""
    stand = ServerStand(3)
    stand.link(*stand.peers.values())
    stand.attach(A)
    stand.agree(*stand.peers.values())
    stand.host.sent.clear()
    return stand


def peers(stand: ServerStand) -> tuple:  # type: ignore[type-arg]
    return tuple(stand.peers.values())


# Attaching.


def test_attaching_is_a_handshake(alone: ServerStand) -> None:
    """Views 5.5 (c, d), D11: a client is listed when a reading of this clock came back, so one that cannot hear us never is."""
    for seq in range(1, 9):
        pong = alone.ping(A, 1, seq)
        assert pong is not None
        assert (pong.state, pong.seq, pong.attach, pong.stamp) == (ATTACHING, seq, 1, alone.host.now)
        alone.tick()
    assert len(alone.server.clients) == 0
    answer = alone.ping(A, 1, 9, alone.host.now)
    assert answer is not None
    assert (answer.state, answer.view) == (STABLE, alone.agreement.view and alone.agreement.view.id)
    assert alone.agreement.view is not None
    assert alone.agreement.view.members == (member(A),)


@pytest.mark.parametrize("age, state", [(0.99, STABLE), (1.01, ATTACHING)])
def test_an_old_stamp_does_not_attach(alone: ServerStand, age: float, state: int) -> None:
    """Views 5.5 (c): older than ``client_timeout``. ``alive_at`` is the stamp, not the arrival (D24)."""
    first = alone.ping(A)
    assert first is not None
    alone.host.pass_time(age * CONFIG.client_timeout)
    second = alone.ping(A, 1, 2, first.stamp)
    assert second is not None
    assert second.state == state
    if state == STABLE:
        assert alone.server.clients.all[A.name].alive_at == first.stamp


def test_a_stamp_of_another_life_of_the_server_is_none(alone: ServerStand) -> None:
    """Views 5.5 (c): clocks of two lives have nothing to do with each other."""
    alone.server.on_client_ping(A, ClientPing(1, 2, S0.boot - 1, alone.host.now, 0, address=at(A)))
    (_, pong) = alone.host.take(ClientPong)[-1]
    assert pong.state == ATTACHING
    alone.attach(A)
    was = alone.server.clients.all[A.name].alive_at
    alone.tick()
    alone.server.on_client_ping(A, ClientPing(1, 3, S0.boot - 1, alone.host.now, 0))
    assert alone.server.clients.all[A.name].alive_at == was


def test_a_stamp_of_the_future_changes_nothing(alone: ServerStand) -> None:
    """Views 10: no process has read this clock so late; counted and dropped, attached or not."""
    assert alone.ping(A, 1, 1, alone.host.now + 0.01) is None
    alone.attach(A)
    was = alone.server.clients.all[A.name].alive_at
    assert alone.ping(A, 1, 3, alone.host.now + 1e6) is None
    assert alone.server.clients.all[A.name].alive_at == was
    assert alone.counts["future"] == 2


def test_a_client_keeps_its_place_by_echoing(alone: ServerStand) -> None:
    """Views 5.5, D24: the newest reading that came back counts; a ping that was long under way proves nothing new."""
    pong = alone.attach(A)
    for seq in range(3, 30):
        alone.tick()
        answer = alone.ping(A, 1, seq, pong.stamp)
        assert answer is not None
        pong = answer
    assert alone.server.clients.get(A) is not None
    stamp = alone.server.clients.all[A.name].alive_at
    seq = 30
    while alone.server.clients.get(A) is not None:
        alone.ping(A, 1, seq, stamp - 1.0)
        alone.tick()
        seq += 1
    assert CONFIG.client_timeout < alone.host.now - stamp < CONFIG.client_timeout + 2 * HB


def test_a_deaf_client_is_dropped_although_it_talks(alone: ServerStand) -> None:
    """Views D11: one-way loss from server to client; its view is changed once, not again and again."""
    alone.attach(A)
    for seq in range(3, 80):
        alone.tick()
        alone.ping(A, 1 + seq // 7, seq)
    assert len(alone.server.clients) == 0
    assert len(alone.host.events(Delivered)) == 3  # none, A, none


def test_a_removed_attachment_is_over(alone: ServerStand) -> None:
    """Views 5.5 (a), D10: it hears the number that it has to exceed; a higher one is let in."""
    alone.attach(A, 3)
    alone.tick(9)
    late = alone.ping(A, 3, 9, alone.host.now)
    assert late is not None
    assert (late.state, late.hint) == (UNKNOWN, 3)
    assert alone.attach(A, 4).state == STABLE


def test_an_attachment_that_another_server_lists_is_over(stand: ServerStand) -> None:
    """Views 5.5 (a): fresh link states of the others count like an own removal."""
    stand.server.on_lsa(S1, stand.peers[1].lsa(clients=(Listed(B, 6, at(B)),)))
    stand.beat(*peers(stand))
    late = stand.ping(B, 6, 1)
    assert late is not None
    assert (late.state, late.hint) == (UNKNOWN, 6)
    newer = stand.ping(B, 7, 1)
    assert newer is not None
    assert newer.state == ATTACHING


def test_a_former_life_of_a_client_is_not_answered(alone: ServerStand) -> None:
    """Views D10, D16: a restarted process has a higher boot, and its attach numbers begin anew."""
    restarted = NodeId(A.name, 2)
    alone.attach(A, 9)
    assert alone.attach(restarted, 1).state == STABLE
    assert alone.ping(A, 10, 1, alone.host.now) is None
    assert alone.server.clients.get(restarted) is not None
    alone.tick(9)
    assert alone.ping(A, 10, 1, alone.host.now) is None
    assert alone.counts["old_life"] == 1


def test_an_older_attachment_does_not_replace_a_newer_one(alone: ServerStand) -> None:
    """Views 5.5, D9: pings overtake each other."""
    alone.attach(A, 2)
    assert alone.ping(A, 1, 8, alone.host.now) is None
    assert alone.server.clients.all[A.name].attach == 2
    assert alone.counts["late"] == 1


def test_a_quarantined_client_is_refused(alone: ServerStand) -> None:
    """Views 5.5 (b), D13: until the quarantine is over."""
    alone.attach(A)
    alone.server.on_client_lost(A)
    refused = alone.ping(A, 2)
    assert refused is not None
    assert refused.state == REFUSED
    alone.host.pass_time(CONFIG.quarantine + 0.01)
    assert alone.attach(A, 2).state == STABLE


def test_a_full_group_refuses(alone: ServerStand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Views 10: 2,000 clients; one that attaches anew is among them."""
    monkeypatch.setattr(server_module, "CLIENTS_MAX", 1)
    alone.attach(A)
    refused = alone.ping(B)
    assert refused is not None
    assert refused.state == REFUSED
    assert alone.counts["full"] == 1
    assert alone.attach(A, 2).state == STABLE


def test_a_client_that_leaves_is_gone_at_once(alone: ServerStand) -> None:
    """Views 5.5 (leave), 9: and none of its late pings brings it back, that of an attachment it had begun included."""
    first = alone.attach(A, 1)
    alone.ping(A, 2, 3)
    assert alone.ping(A, 2, 4, leave=True) is None
    assert len(alone.server.clients) == 0
    assert alone.agreement.view is not None
    assert alone.agreement.view.members == ()
    for attach in (1, 2):
        late = alone.ping(A, attach, 3, first.stamp)
        assert late is not None
        assert (late.state, late.hint) == (UNKNOWN, 2)


def test_an_old_farewell_is_no_farewell(alone: ServerStand) -> None:
    """Views 5.5: of an attachment before the present one."""
    alone.attach(A, 2)
    assert alone.ping(A, 1, 3, leave=True) is None
    assert alone.server.clients.get(A) is not None


def test_a_late_farewell_opens_no_door(alone: ServerStand) -> None:
    """Views 5.5 (leave), D10: of an attachment before the last one that was removed. The later one stays what must be exceeded."""
    answer = alone.attach(A, 5)
    alone.ping(A, 5, 3, leave=True)
    alone.ping(A, 3, 4, leave=True)
    late = alone.ping(A, 4, 5, answer.stamp)
    assert late is not None
    assert (late.state, late.hint) == (UNKNOWN, 5)
    assert len(alone.server.clients) == 0


def test_clients_that_join_together_lift_the_number_above_the_highest(alone: ServerStand) -> None:
    """Views D15, D20: two of them wait for one link state, and the later one has installed less."""
    alone.attach(C)
    alone.attach(A, last_num=41)
    alone.attach(B, last_num=7)
    alone.host.pass_time(CONFIG.join_batch)
    assert alone.agreement.view is not None
    assert (alone.agreement.view.number, alone.agreement.view.size) == (42, 3)


def test_a_client_lifts_the_number_of_its_new_server(alone: ServerStand) -> None:
    """Views 5.5 (d), D20: it installed 41 in another partition; the view it gets is above. A ping that does not attach lifts nothing."""
    alone.ping(B, 1, 1, None, last_num=900)
    alone.attach(A, last_num=41)
    assert alone.agreement.view is not None
    assert alone.agreement.view.number == 42


# Vouching.


def test_an_answer_looks_at_the_clock_first(alone: ServerStand) -> None:
    """Views 5.4 (look), D24: between two ticks a client fell silent; the view with it is vouched for no more."""
    alone.attach(A)
    alone.host.pass_time(1.0)
    alone.attach(B)
    alone.host.pass_time(CONFIG.client_timeout - 0.9)
    answer = alone.ping(B, 1, 3, alone.host.now)
    assert answer is not None
    assert answer.state == STABLE
    assert alone.agreement.view is not None
    assert alone.agreement.view.members == (member(B),)
    assert answer.view == alone.agreement.view.id


def test_a_client_that_is_over_gets_no_answer_of_its_own_end(alone: ServerStand) -> None:
    """Views 5.5: its ping brings no newer stamp, and the look before the answer removes it."""
    pong = alone.attach(A)
    alone.host.pass_time(CONFIG.client_timeout + 0.01)
    assert alone.ping(A, 1, 3, pong.stamp) is None
    assert alone.host.events(ClientRemoved) == [ClientRemoved(A, 1, "silent")]


def test_stable_is_said_for_the_present_attachment_alone(stand: ServerStand) -> None:
    """Views 5.5: this (life, attach, server) is in the view, the state is stable, and the server vouches."""
    assert stand.ping(A, 1, 3, stand.host.now).state == STABLE  # type: ignore[union-attr]
    first = stand.ping(A, 2, 4)
    assert first is not None
    assert first.state == ATTACHING
    second = stand.ping(A, 2, 5, first.stamp)
    assert second is not None
    assert (second.state, second.view) == (CHANGING, None)


def test_a_client_that_waits_for_its_publication_is_in_no_view(alone: ServerStand) -> None:
    """Views 5.5, D15: the server is stable, and its view does not list this client yet, or an attachment of it that is over."""
    alone.attach(A)
    assert alone.attach(B).state == CHANGING
    assert alone.agreement.stable
    assert alone.host.take(ViewMsg)[0][0] == A
    alone.host.pass_time(CONFIG.join_batch)
    answer = alone.ping(B, 1, 3, alone.host.now)
    assert answer is not None
    assert answer.state == STABLE


def test_what_an_answer_says_counts_from_the_question(stand: ServerStand) -> None:
    """Views 5.2, D24: the answer of s1 was 0.6 s under way; its link state and number are as old as the question."""
    stand.server.links.ask()
    asked_at = stand.host.now
    stand.answer(stand.peers[1], after=0.6)
    assert stand.server.states.held[1].fresh_at == asked_at
    assert stand.server.states._seen[1].at == asked_at


def test_a_server_whose_peer_went_on_vouches_no_more(stand: ServerStand) -> None:
    """Views D26, D24: a pong says that s1 is at a higher number; the next answer to a client is ``changing``, and no tick has passed."""
    stand.peers[1].num += 1
    stand.answer_next(stand.peers[1])
    answer = stand.ping(A, 1, 3, stand.host.now)
    assert answer is not None
    assert answer.state == CHANGING


def test_a_server_that_hears_no_numbers_vouches_no_more(stand: ServerStand) -> None:
    """Views D24: link states pass by way of s2, but for longer than ``lsa_max_age`` no word of s1's number came."""
    s1, s2 = peers(stand)
    for seq in range(3, 3 + 10):
        stand.tick()
        if seq == 3:
            silent_since = stand.host.now
        stand.answer(s2, Known(1, s1.life, s1.seq, 0.0, 0, NEVER))
        answer = stand.ping(A, 1, seq, stand.host.now)
        assert answer is not None
        if stand.host.now - silent_since > CONFIG.lsa_max_age - HB:
            assert answer.state == CHANGING


def test_a_delivery_looks_at_the_clock_first() -> None:
    """Views G3, D5, 5.4: the last proposal arrives when the clock has ended a client of the view; it is not delivered."""
    stand = ServerStand(2)
    (s1,) = stand.peers.values()
    stand.link(s1)
    stand.attach(A)
    stand.attach(B)
    s1.num = stand.agreement.num + 1
    stand.beat(s1, times=6)
    stand.ping(B, 1, 3, stand.host.now)
    assert stand.agreement.num == s1.num
    assert not stand.agreement.stable
    stand.host.pass_time(CONFIG.client_timeout - 6 * HB - 0.05)
    stand.answer_next(s1)
    delivered = len(stand.host.events(Delivered))
    stand.host.pass_time(0.1)
    stand.propose(s1)
    assert len(stand.host.events(Delivered)) == delivered
    assert stand.agreement.ns is not None
    assert stand.agreement.ns.members == (member(B),)


def test_a_notice_looks_at_the_clock_first(alone: ServerStand) -> None:
    """Views 5.4, D24, D29: a view waits in its portion while the process is stopped; it is not told any more."""
    alone.attach(A)
    alone.host.pause(CONFIG.client_timeout + 0.1)
    assert [message.id.number for _, message in alone.host.take(ViewMsg)] == [2]  # the one with the pong
    assert alone.agreement.num == 3


# Views to clients.


def test_a_change_is_told_to_all_clients(stand: ServerStand) -> None:
    """Views 5.4 (begin), paper 003, section 5.1: ``startChange``; it names the number, and the answer to a ping repeats it."""
    stand.attach(B)
    stand.host.pass_time(0)
    told = stand.host.take(StartChange)
    assert {to for to, _ in told} == {A, B}
    assert {(message.sc, message.num) for _, message in told} == {(stand.agreement.sc, stand.agreement.num)}
    answer = stand.ping(A, 1, 3, stand.host.now)
    assert answer is not None
    assert (answer.state, answer.sc) == (CHANGING, stand.agreement.sc)


def test_a_delivered_view_is_sent_to_its_clients(stand: ServerStand) -> None:
    """Views 5.4 (deliver): with the newest ping as its echo."""
    stand.attach(B)
    view = stand.agree(*peers(stand))
    stand.host.pass_time(HB / 2)
    told = dict(stand.host.take(ViewMsg))
    assert set(told) == {A, B}
    assert told[B].id == view.id
    assert (told[B].attach, told[B].echo) == (1, 2)


def test_a_lost_view_is_sent_again_for_the_ping_that_shows_it(alone: ServerStand) -> None:
    """Views 5.5: while pings show an older ``last_num``, but not while the former copy may be under way."""
    alone.attach(A)
    alone.host.pass_time(HB / 2)
    alone.host.take(ViewMsg)
    alone.ping(A, 1, 3, alone.host.now)
    assert alone.host.take(ViewMsg) == []
    alone.host.pass_time(HB / 2)
    alone.ping(A, 1, 4, alone.host.now)
    ((to, message),) = alone.host.take(ViewMsg)
    assert (to, message.echo, message.id.number) == (A, 4, 2)
    alone.host.pass_time(HB)
    alone.ping(A, 1, 5, alone.host.now, last_num=2)
    assert alone.host.take(ViewMsg) == []


def test_the_whole_list_for_a_client_that_asks(alone: ServerStand) -> None:
    """Views D14: a delta did not fit."""
    for i in range(4):
        alone.attach(NodeId(f"c{i}", 1))
    alone.host.pass_time(HB)
    alone.host.take(ViewMsg)
    alone.attach(A)
    number = alone.agreement.num
    alone.ping(NodeId("c0", 1), 1, 3, alone.host.now, last_num=number - 1)
    ((_, delta),) = [each for each in alone.host.take(ViewMsg) if each[0] == NodeId("c0", 1)]
    assert delta.base is not None
    alone.host.pass_time(HB)
    alone.ping(NodeId("c0", 1), 1, 4, alone.host.now, last_num=number - 1, want_full=True)
    ((_, whole),) = [each for each in alone.host.take(ViewMsg) if each[0] == NodeId("c0", 1)]
    assert (whole.base, len(whole.members)) == (None, 5)


def test_joins_that_follow_one_another_are_one_change(alone: ServerStand) -> None:
    """Views D15: the first is published at once, what follows within ``join_batch`` together; a leave does not wait."""
    for i in range(10):
        alone.attach(NodeId(f"c{i}", 1))
        alone.host.pass_time(CONFIG.join_batch / 20)
    assert len(alone.host.events(Delivered)) == 2
    alone.host.pass_time(CONFIG.join_batch)
    assert [fact.view.size for fact in alone.host.events(Delivered)] == [0, 1, 10]
    alone.attach(A)
    alone.attach(B)
    alone.ping(NodeId("c0", 1), 1, 3, leave=True)
    assert alone.host.events(Delivered)[-1].view.size == 11


def test_no_callback_reaches_too_many_clients(alone: ServerStand) -> None:
    """Views D29, foundation F17: 700 clients of one server; start and view of a change leave in portions, and all have it in time."""
    clients = [NodeId(f"c{i:03}", 1) for i in range(700)]
    for life in clients:
        alone.attach(life)
    alone.host.pass_time(1.0)
    for life in clients:
        alone.ping(life, 1, 3, alone.host.now, last_num=alone.agreement.num)
    alone.host.sent.clear()
    alone.ping(clients[0], 1, 4, leave=True)
    reached = {to for to, _ in alone.host.take(ViewMsg)}
    end = alone.host.now + HB / 2
    while alone.host.now <= end:
        before = len(alone.host.sent)
        alone.host.pass_time(0.0005)
        now = {sent.to for sent in alone.host.sent[before:]}
        assert len(now) <= FANOUT_MAX
        reached |= now
    assert reached == set(clients[1:])


# Other servers.


def test_a_ping_is_answered_with_what_is_known(stand: ServerStand) -> None:
    """Views 5.1 (LinkPing): my life, link state and number, and what I hold of the others with ages counted to now."""
    stand.host.pass_time(0.125)
    stand.server.on_link_ping(S1, LinkPing(77, 1))
    ((to, pong),) = stand.host.take(LinkPong)
    s1, s2 = peers(stand)
    number = stand.agreement.num
    assert (to, pong.seq, pong.slot) == (S1, 77, 0)
    assert pong.known == (
        Known(0, S0, stand.server.states.mine.seq, 0.0, number, 0.0),
        Known(1, S1, s1.seq, 0.125, number, 0.125),
        Known(2, S2, s2.seq, 0.125, number, 0.125),
    )


def test_the_answer_to_a_ping_looks_first(alone: ServerStand) -> None:
    """Views 5.4 (look), D24: the number in a pong is the one of now. A silent client has ended the former one before the tick sees it."""
    stand = ServerStand(2)
    stand.attach(A)
    was = stand.agreement.num
    stand.host.pass_time(CONFIG.client_timeout + 0.01)
    stand.server.on_link_ping(S1, LinkPing(1, 1))
    ((_, pong),) = stand.host.take(LinkPong)
    assert pong.known[0].num == was + 1


def test_strangers_are_not_answered(stand: ServerStand) -> None:
    """Views D1: a server ignores ids it does not know; each costs a counter, and no message."""
    stranger = NodeId("x", 1)
    basis, number = stand.server.states.version, stand.agreement.num
    stand.server.on_link_ping(stranger, LinkPing(1, 1))
    stand.server.on_link_ping(S1, LinkPing(1, 2))
    stand.server.on_link_pong(stranger, LinkPong(1, 1, ()))
    stand.server.on_lsa(stranger, Lsa(1, S1, 99, (), ()))
    stand.server.on_lsa_want(stranger, LsaWant((0,)))
    stand.server.on_propose(stranger, Propose(1, S1, 99, b"k" * 16, 0, False, 3, S0))
    assert stand.counts["stranger"] == 6
    assert stand.host.sent == []
    assert (stand.server.states.version, stand.agreement.num) == (basis, number)


def test_a_link_state_of_a_slot_that_is_not_its_own(stand: ServerStand) -> None:
    """Views 10: of an unknown slot, of another server's slot, of this server's slot: dropped, under a counter of its own."""
    version = stand.server.states.version
    for lsa in (Lsa(9, S1, 99, (), ()), Lsa(2, S1, 99, (), ()), Lsa(0, NodeId(S0.name, S0.boot + 1), 99, (), ()), Lsa(-1, S1, 99, (), ())):
        stand.server.on_lsa(S1, lsa)
    assert (stand.counts["foreign_lsa"], stand.counts["stranger"]) == (4, 0)
    stand.server.on_lsa(S1, Lsa(0, S0, 99, (), ()))  # our own word, as if it had gone round
    assert stand.server.states.version == version


def test_a_pong_says_nothing_of_a_slot_under_a_wrong_name(stand: ServerStand) -> None:
    """Views 10, D1: a life that cannot sit in that slot would put the real one behind it for ever."""
    stand.beat(stand.peers[1])
    stand.answer(stand.peers[2], Known(1, NodeId("x", 10**6), 5, 0.0, 99, 0.0))
    assert stand.host.take(LsaWant) == []
    stand.beat(*peers(stand))
    assert stand.agreement.vouches()


def test_a_newer_link_state_is_fetched(stand: ServerStand) -> None:
    """Views 5.2: once per pong, all slots in one message; the owner of the question is asked."""
    s1, s2 = peers(stand)
    s1.seq += 1
    s2.seq += 1
    stand.tick()
    stand.answer(s1, s2.known())
    assert stand.host.take(LsaWant) == [(S1, LsaWant((1, 2)))]


def test_what_is_wanted_is_sent(stand: ServerStand) -> None:
    """Views 3 (LsaWant): what is held, each once; what is not held is passed over."""
    stand.server.on_lsa_want(S1, LsaWant((2, 0, 2, 5, -1)))
    assert [(to, lsa.slot) for to, lsa in stand.host.take(Lsa)] == [(S1, 0), (S1, 2)]


def test_link_states_are_handed_on(stand: ServerStand) -> None:
    """Views 5.2: over up links, except to where it came from and to its origin; one that is not newer is not handed on."""
    lsa = stand.peers[1].lsa(clients=(Listed(B, 1, at(B)),))
    stand.server.on_lsa(S1, lsa)
    assert [to for to, each in stand.host.take(Lsa) if each == lsa] == [S2]
    stand.server.on_lsa(S2, lsa)
    assert stand.host.take(Lsa) == []


def test_a_link_that_comes_up_brings_all_link_states(stand: ServerStand) -> None:
    """Views 5.1: my new one at once, and the peer gets the whole database, each link state once."""
    s1, _ = peers(stand)
    stand.server.links.fail(stand.server.links.all[1], "a message did not pass")
    stand.host.pass_time(CONFIG.quarantine)
    stand.host.sent.clear()
    for _ in range(CONFIG.up_count):
        stand.tick()
        stand.answer(s1)
    assert stand.server.links.up == (S1,)
    got = [lsa.slot for to, lsa in stand.host.take(Lsa) if to == S1]
    assert got == [0, 2]


def test_a_client_that_moved_is_dropped_here(stand: ServerStand) -> None:
    """Views 5.2, D9: another server lists it with a higher attach number, or life; a lower one changes nothing."""
    stand.server.on_lsa(S1, stand.peers[1].lsa(clients=(Listed(A, 1, at(A)),)))
    assert stand.server.clients.get(A) is not None
    stand.server.on_lsa(S1, stand.peers[1].lsa(clients=(Listed(A, 2, at(A)),)))
    assert stand.server.clients.get(A) is None
    assert stand.host.events(ClientRemoved) == [ClientRemoved(A, 1, "moved")]
    late = stand.ping(A, 1, 9, stand.host.now)
    assert late is not None
    assert (late.state, late.hint) == (UNKNOWN, 2)


def test_an_expired_neighbour_is_a_link_that_is_down(stand: ServerStand) -> None:
    """Views D25: heartbeats of s1 pass and its link states do not; both sides go on without the other. Tried: only silence counts."""
    s1, s2 = peers(stand)
    s1.seq += 1
    stand.beat(s1, s2, times=round(CONFIG.lsa_max_age / HB) + 2)
    assert stand.host.events(LinkDown) == [LinkDown(S1, "its link state does not arrive", CONFIG.quarantine)]
    assert stand.agreement.ns is not None
    assert stand.agreement.ns.servers == (S0, S2)
    stand.beat(s1, s2, times=3)
    assert stand.server.links.up == (S2,)


def test_proposals_are_routed(stand: ServerStand) -> None:
    """Views 5.4, 5.7: for another destination they go on while there is a hop left; no path, no message."""
    proposal = Propose(1, S1, 9, b"k" * 16, 0, False, 3, S2)
    proposals, size = stand.server.proposals, stand.server.proposal_bytes
    stand.server.on_propose(S1, proposal)
    assert [(to, each.ttl) for to, each in stand.host.take(Propose)] == [(S2, 2)]
    assert (stand.server.proposals, stand.server.proposal_bytes) == (proposals + 1, size + len(msgpack.encode(proposal)))
    stand.server.on_propose(S1, Propose(1, S1, 9, b"k" * 16, 0, False, 1, S2))
    stand.server.on_propose(S1, Propose(1, S1, 9, b"k" * 16, 0, False, 3, NodeId("x", 1)))
    assert stand.host.take(Propose) == []


def test_a_proposal_with_too_many_hops_does_not_go_round(stand: ServerStand) -> None:
    """Views 10: servers whose tables differ would hand it to each other 65,535 times."""
    stand.server.on_propose(S1, Propose(1, S1, 9, b"k" * 16, 0, False, 65_535, S2))
    assert stand.host.take(Propose) == []
    assert stand.counts["malformed"] == 1


def test_without_a_path_the_link_serves(stand: ServerStand) -> None:
    """Views 5.4: the graph knows no way yet, the direct link is up."""
    stand.server.on_lsa(S2, stand.peers[2].lsa(up=()))
    assert stand.agreement.ns is not None
    assert S2 not in stand.agreement.ns.steps
    stand.host.take(Propose)
    stand.server.on_propose(S1, Propose(1, S1, 9, b"k" * 16, 0, False, 3, S2))
    assert [to for to, _ in stand.host.take(Propose)] == [S2]


def test_a_server_that_all_dropped_is_alone(stand: ServerStand) -> None:
    """Views D6: it hears all others, and none of them lists it."""
    s1, s2 = peers(stand)
    stand.server.on_lsa(S1, s1.lsa(up=(S2,)))
    stand.server.on_lsa(S2, s2.lsa(up=(S1,)))
    assert stand.agreement.view is not None
    assert stand.agreement.view.servers == (S0,)


def test_a_restarted_peer_is_another_one() -> None:
    """Views D6, D16: its former life leaves the group at its first answer, and its former words count no more."""
    stand = ServerStand(2)
    stand.link(*peers(stand))
    newer = NodeId(S1.name, S1.boot + 1)
    stand.host.take(LinkPing)
    stand.tick()
    seq = next(ping.seq for to, ping in stand.asked() if to == at(S1))
    stand.server.on_link_pong(newer, LinkPong(seq, 1, (Known(1, newer, 1, 0.0, 1, 0.0),)))
    assert stand.agreement.ns is not None
    assert S1 not in stand.agreement.ns.servers
    stand.server.on_propose(S1, Propose(1, S1, 99, b"k" * 16, 0, False, 3, S0))
    assert stand.counts["stranger"] == 1
    stand.server.on_lsa(newer, Lsa(1, S1, 99, (), ()))  # it was under way for long: late, and no lie
    assert (stand.counts["old_life"], stand.counts["foreign_lsa"]) == (1, 0)


# Pauses.


def test_a_stopped_server_looks_before_it_answers(stand: ServerStand) -> None:
    """Views D17: it was away for 9 s. The ping that waited gets no ``stable``; it finds itself alone, with no client."""
    pong = stand.ping(A, 1, 3, stand.host.now)
    assert pong is not None
    stand.host.clock += 9.0
    assert stand.ping(A, 1, 4, pong.stamp) is None
    assert stand.agreement.view is not None
    assert (stand.agreement.view.servers, stand.agreement.view.members) == ((S0,), ())


def test_a_stopped_server_accuses_no_link(stand: ServerStand) -> None:
    """Views D17, foundation F11: the tick that is late heard nothing for so long. It asks; the next one judges."""

    def tick() -> None:
        stand.server.on_tick()

    stand.host.after(HB, tick)
    stand.host.pause(9.0)
    assert stand.host.events(LinkDown) == []
    for peer in peers(stand):
        stand.answer(peer)
    stand.tick()
    assert stand.host.events(LinkDown) == []
    assert stand.agreement.ns is not None
    assert stand.agreement.ns.servers == (S0, S1, S2)


def idle_for(stand: ServerStand) -> float | None:
    since = stand.server.idle_since
    return None if since is None else stand.host.now - since


def test_it_is_idle_when_no_client_is_known_anywhere(stand: ServerStand) -> None:
    """Views D31: from then on; clients of other servers count."""
    assert idle_for(stand) is None
    stand.server.on_lsa(S1, stand.peers[1].lsa(clients=(Listed(B, 1, at(B)),)))
    stand.beat(*peers(stand))
    stand.ping(A, 1, 3, leave=True)
    assert idle_for(stand) is None
    stand.server.on_lsa(S1, stand.peers[1].lsa(clients=()))
    assert idle_for(stand) == 0
    stand.tick()
    assert idle_for(stand) == HB
    assert not stand.host.take(LinkPing)[-1][1].used


def test_four_servers_fit(stand: ServerStand) -> None:
    """Views D1, D8: the lab runs any number up to seven; a fourth server that only one end knows of stays outside."""
    four = ServerStand(4)
    four.link(*four.peers.values())
    assert four.agreement.ns is not None
    assert four.agreement.ns.servers == (S0, S1, S2, S3)
