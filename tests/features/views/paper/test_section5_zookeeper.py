"""Paper 003, section 5.2: a circuit breaker on ZooKeeper, with an ensemble in memory.  One test per rule; departures are in views 5Z.

What ZooKeeper itself does (elections, Zab, quorums) is not ours; ``process/test_zookeeper`` has a real ensemble.
"""

from __future__ import annotations

from holdfast.events import ViewChanged
from holdfast.features.views.zookeeper.znodes import Then
from holdfast.host import Carried, View
from tests.features.views.fake_ensemble import ASKED, CONFIG, GROUP, FakeSession, Seat, Stand

SOON = 0.05  # seconds: a few round trips, and far less than the time between two looks (a quarter of a lease)
MAIL = f"/holdfast/{GROUP}/mail"


def views_of(seat: Seat) -> list[View]:
    return [event.view for event in seat.host.emitted if isinstance(event, ViewChanged)]


def test_5_2_a_member_is_a_znode() -> None:
    """Paper 003, section 5.2: "clients add (or remove) themselves to the current view by creating (or deleting) a znode", and "This
    directory of znodes represents the current view"."""
    stand = Stand("ab")
    a, b = stand.seats
    assert (sorted(stand.members.children), a.names) == (["a", "b"], "ab")
    b.views.withdraw()
    stand.run(SOON)
    assert (sorted(stand.members.children), a.names) == (["a"], "a")


def test_5_2_members_watch_the_directory() -> None:
    """Paper 003, section 5.2: 'Clients may "watch" a directory of znodes, receiving alerts when any child znodes change': the next view is
    there within a few round trips, long before the next look."""
    stand = Stand("a")
    (a,) = stand.seats
    assert CONFIG.lease / 4 > 2 * SOON
    for name in "bcd":
        stand.add(name)
        stand.run(SOON)
        assert a.names == "".join(sorted(stand.members.children))
        assert name in a.names


def test_5_2_a_member_that_failed_is_removed() -> None:
    """Paper 003, section 5.2: "Zookeeper automatically removes a group member from the view when it fails to remain connected": its znode
    is ephemeral, and goes with its session."""
    stand = Stand("ab")
    a, b = stand.seats
    assert stand.ensemble.tree[f"/holdfast/{GROUP}/members/b"].owner == b.session.owner != 0
    b.session.break_off()
    stand.run(ASKED - 0.1)
    assert a.names == "ab"
    stand.run(0.2)
    assert a.names == "a"


def test_5_2_a_member_that_reconnects_joins_again() -> None:
    """Paper 003, section 5.2: "When re-connecting, clients re-insert their znode into the hierarchy to re-join the view"."""
    stand = Stand("ab")
    a, b = stand.seats
    b.session.break_off()
    stand.run(ASKED + 0.1)
    assert sorted(stand.members.children) == ["a"]
    b.session.join()
    stand.run(SOON)
    assert (sorted(stand.members.children), a.names, b.names) == (["a", "b"], "ab", "ab")


def test_5_2_all_see_one_sequence() -> None:
    """Paper 003, section 5.2: "returning the same sequence of changes to these shared objects to each connected client": what members
    install are parts of one sequence. One alert may stand for several changes, so a view may be skipped (views 5Z)."""
    stand = Stand("abc", seed=4)
    for seat in stand.seats:
        seat.sessions.delay = lambda: stand.clockwork.random.uniform(0.001, 0.05)
    for name in "defgh":
        seat = stand.add(name)
        stand.run(0.07)
        if name in "eg":
            seat.views.withdraw()
    stand.run(2.0)
    lists: dict[int, View] = {}
    for seat in stand.seats:
        numbers = [view.number for view in views_of(seat)]
        assert len(numbers) > 2
        assert numbers == sorted(set(numbers))
        for view in views_of(seat):
            assert lists.setdefault(view.number, view) == view
    assert len({seat.number for seat in stand.seats}) == 1


def test_5_2_a_member_without_a_quorum_is_without_a_view() -> None:
    """Paper 003, section 5.2: cuts between servers "may also force clients to be without a view for the duration of the failure": a server
    outside the primary partition ends the connection (views 5Z). The clients of the others go on without them."""
    stand = Stand("abcdef")
    panicking, others = stand.seats[:2], stand.seats[2:]
    for seat in panicking:
        seat.session.break_off()
    stand.run(SOON)
    assert [seat.names for seat in panicking] == ["", ""]
    stand.run(ASKED)
    assert {seat.names for seat in others} == {"cdef"}
    stand.run(30.0)
    assert [seat.names for seat in panicking] == ["", ""]
    for seat in panicking:
        seat.session.join()
    stand.run(SOON)
    assert {seat.names for seat in stand.seats} == {"abcdef"}


def test_5_2_a_member_has_a_mailbox() -> None:
    """Paper 003, section 5.2: "there is an additional, but persistent znode for every group member that represents its inbound mailbox"; a
    session that ends takes the member along, and not its mailbox."""
    stand = Stand("ab")
    _, b = stand.seats
    assert stand.ensemble.tree[f"{MAIL}/b"].owner == 0
    b.session.break_off()
    stand.run(ASKED + 0.1)
    assert f"{MAIL}/b" in stand.ensemble.tree


def test_5_2_a_message_is_an_ephemeral_znode() -> None:
    """Paper 003, section 5.2: "Clients send messages by writing a new ephemeral znode with the message contents under the destination's
    mailbox znode". What its sender did not live to see delivered goes with the sender's session."""
    stand = Stand("ab")
    a, b = stand.seats
    leave_unread(b)
    a.carry(b)
    stand.run(SOON)
    (letter,) = stand.ensemble.letters("b")
    assert stand.ensemble.tree[f"{MAIL}/b/{letter}"].owner == a.session.owner != 0
    a.session.break_off()
    stand.run(ASKED + 0.1)
    assert stand.ensemble.letters("b") == []


def test_5_2_messages_are_in_order() -> None:
    """Paper 003, section 5.2: "the system assigns new message znodes monotonically increasing sequence numbers, ensuring ordered message
    delivery". The znodes of the messages have these numbers; the mailbox is a normal one (views D23)."""
    stand = Stand("abc", seed=2)
    a, b, c = stand.seats
    for seat in stand.seats:
        seat.sessions.delay = lambda: stand.clockwork.random.uniform(0.001, 0.03)
    for number in range(40):
        a.carry(b, f"a{number}")
        c.carry(b, f"c{number}")
    stand.run(3.0)
    created = [each for each in stand.ensemble.log if each.startswith(f"create {MAIL}/b/m-")]
    assert created == sorted(created)
    assert len(created) == 80
    for sender in "ac":
        assert [text for text in b.heard if text[0] == sender] == [f"{sender}{number}" for number in range(40)]


def test_5_2_a_message_that_is_not_delivered_forces_a_view() -> None:
    """Paper 003, section 5.2: "a failure to deliver a message implies a disconnection that will force Zookeeper to deliver a new view". A
    receiver that reads nothing keeps its session, so the sender forces it: its own znode goes and comes (views 5Z, G5)."""
    stand = Stand("abc")
    a, b, c = stand.seats
    leave_unread(b)
    before = c.number
    a.carry(b)
    stand.run(CONFIG.ov_deadline + CONFIG.lease + 3.0)
    assert a.results == [Carried.TRIPPED]
    assert {seat.names for seat in stand.seats} == {"abc"}
    assert min(seat.number for seat in stand.seats) > before


def leave_unread(seat: Seat) -> None:
    """It is a member as before, and lists its mailbox no more."""
    children = seat.session.children

    def list_members(path: str, then: Then, *, watch: bool = False) -> None:
        if not path.startswith(MAIL):
            children(path, then, watch=watch)

    session: FakeSession = seat.session
    session.children = list_members  # type: ignore[method-assign]
