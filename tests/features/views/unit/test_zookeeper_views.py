"""Views from ZooKeeper, against an ensemble in memory.  Spec: views 5Z, D21, D22; G1, G2, G6; F9."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

import pytest

from holdfast.bounds import NUMBER_MAX
from holdfast.errors import NameConflict
from holdfast.events import ViewChanged, ViewLost, ViewTripped
from holdfast.features.views.protocol.config import CLIENTS_MAX, RHO_MIN, ViewsConfig
from holdfast.features.views.zookeeper.data import MemberData, encode, segment
from holdfast.features.views.zookeeper.leaving import LEAVE_MAX
from holdfast.features.views.zookeeper.looks import ENSEMBLE
from holdfast.host import Address, Machine, NodeId, View, ViewId, ViewMember, Views, ViewState
from holdfast.kit.deadline import wait_length
from tests.features.views.fake_ensemble import ASKED, CONFIG, GROUP, STALE, Seat, Stand

MEMBERS = f"/holdfast/{GROUP}/members"
LOOK = CONFIG.lease / 4


def seat_conflict(seat: Seat) -> NameConflict | None:
    return seat.views.conflict


def test_offers_the_interfaces() -> None:
    """Views 5Z: the machine is the same for what is above it."""
    views: Machine = Stand("a").seats[0].views
    assert isinstance(views, Views)
    assert (tuple(views.handles), views.fingerprint) == ((), b"")


def test_nothing_happens_before_it_takes_part() -> None:
    """Views D31: an agent takes part as soon as a client asks for it, and costs nothing before; to take part twice is to take part once."""
    stand = Stand("")
    seat = Seat(stand, NodeId("a", 1))
    stand.run(5.0)
    assert (seat.sessions.opened, stand.ensemble.log, seat.views.state) == ([], [], ViewState.LOST)
    seat.views.take_part()
    seat.views.take_part()
    stand.run(0.1)
    assert len(seat.sessions.opened) == 1


def test_layout() -> None:
    """Views 5Z, D23: persistent parents and mailbox; an ephemeral member with boot, address and rows."""
    stand = Stand("ab")
    tree = stand.ensemble.tree
    assert sorted(tree) == [
        "/", "/holdfast", "/holdfast/g", "/holdfast/g/mail", "/holdfast/g/mail/a", "/holdfast/g/mail/b",
        MEMBERS, f"{MEMBERS}/a", f"{MEMBERS}/b",
    ]  # fmt: skip
    assert {path for path, znode in tree.items() if znode.owner} == {f"{MEMBERS}/a", f"{MEMBERS}/b"}
    assert tree[f"{MEMBERS}/a"].data == encode(MemberData(1, Address("a", 1), {}))


def test_rows_are_those_of_the_entry() -> None:
    """Views 5Z, H242: a member enters with its rows; they are heard with the view that lists it. Later ones wait for its next entry,
    because the data of a znode never changes."""
    stand = Stand("a")
    (a,) = stand.seats
    heard: list[tuple[NodeId, int, Mapping[str, bytes], str]] = []
    a.views.on_rows(lambda life, version, rows: heard.append((life, version, rows, a.names)))
    b = Seat(stand, NodeId("b", 1))
    b.views.publish(3, {"tag:zone": b"eu"})
    b.views.take_part()
    stand.run(0.3)
    path = f"{MEMBERS}/b"
    assert stand.ensemble.tree[path].data == encode(MemberData(1, Address("b", 1), {"tag:zone": b"eu"}, 3))
    assert (heard, a.names) == ([(b.me, 3, {"tag:zone": b"eu"}, "a")], "ab")
    b.views.publish(4, {})
    stand.run(1.0)
    assert (stand.ensemble.tree[path].stat.version, len(heard)) == (0, 1)
    assert b.views.trip("to enter again")
    stand.until(lambda: len(heard) == 2)
    assert heard[1][:3] == (b.me, 4, {})


def test_the_view() -> None:
    """Views 5Z: the id is the zxid of the last change of the list; the attach number is that of the member's znode."""
    stand = Stand("ab")
    a, b = stand.seats
    czxids = {name: stand.ensemble.tree[f"{MEMBERS}/{name}"].czxid for name in "ab"}
    assert a.views.view == View(
        ViewId(stand.members.pzxid, "", 0),
        (),
        (ViewMember(a.me, a.host.address, czxids["a"], ENSEMBLE), ViewMember(b.me, b.host.address, czxids["b"], ENSEMBLE)),
        fleet=2,
    )
    assert b.views.view == a.views.view
    assert (a.views.state, a.views.left_at) == (ViewState.STABLE, None)
    assert a.host.met == {a.me: a.host.address, b.me: b.host.address}


def test_what_changed_is_told_by_life() -> None:
    """Views 9: ``ViewChanged`` compares with the view before."""
    stand = Stand("ab")
    a, b = stand.seats
    a.host.emitted.clear()
    b.session.break_off()
    stand.run(ASKED + 0.1)
    again = stand.add("b", boot=2)
    stand.run(0.1)
    told = [(event.added, event.removed) for event in a.host.emitted if isinstance(event, ViewChanged)]
    assert told == [((), (b.me,)), ((again.me,), ())]


def test_a_listener_hears_what_is_emitted() -> None:
    """Views 9: machines of the agent subscribe, and hear the same events in the same order."""
    stand = Stand("a")
    (a,) = stand.seats
    a.host.emitted.clear()
    heard: list[object] = []
    a.views.subscribe(heard.append)
    a.session.blip()
    stand.run(0.3)
    stand.add("b")
    stand.run(0.3)
    assert [type(each).__name__ for each in heard] == ["ViewLost", "ViewRestored", "ViewChanged"]
    assert heard == [each for each in a.host.emitted if type(each).__name__.startswith("View")]


def test_the_watch_is_armed_again() -> None:
    """Views 5Z: every change is seen at once, not with the next look: five of them, one after the other."""
    stand = Stand("a")
    (a,) = stand.seats
    for name in "bcdef":
        stand.run(LOOK / 2)
        stand.add(name)
        took = stand.until(lambda name=name: name in a.names)  # type: ignore[misc]
        assert took < LOOK / 4


def test_views_are_skipped_but_never_reordered() -> None:
    """Views 5Z, G2: one firing of the watch may stand for several changes; numbers only grow."""
    stand = Stand("a", seed=3)
    (a,) = stand.seats
    a.sessions.delay = lambda: stand.clockwork.random.uniform(0.001, 0.05)
    for name in "bcdefgh":
        stand.add(name)
        stand.run(0.01)
    stand.run(0.5)
    numbers = [event.view.number for event in a.host.emitted if isinstance(event, ViewChanged)]
    assert a.names == "abcdefgh"
    assert numbers == sorted(set(numbers))
    assert len(numbers) < 8


def test_a_view_without_this_member_is_not_installed() -> None:
    """Views 5Z, G2: an operator deletes the znode; it is made again, and the next view has it."""
    stand = Stand("ab")
    a, b = stand.seats
    attach = a.views.survey().attach
    stand.ensemble.refused.add(f"{MEMBERS}/a")
    stand.ensemble.delete(f"{MEMBERS}/a")
    stand.run(0.5)
    assert b.names == "b"
    stand.ensemble.refused.clear()
    stand.run(1.5)
    assert (a.names, b.names) == ("ab", "ab")
    assert a.views.survey().attach > attach
    views = [event.view for event in a.host.emitted if isinstance(event, ViewChanged)]
    assert all(view.find("a") is not None for view in views)


def test_the_lease_counts_from_before_the_sync() -> None:
    """Views 5Z, F8: lease_until = time before the sync + what a holder may count; answers that come late shorten it."""
    stand = Stand("a")
    (a,) = stand.seats
    a.sessions.delay = lambda: 0.1
    stand.run(5.0)
    before = a.views.leased_until
    asked_at: list[float] = []
    sync = a.session.sync
    a.session.sync = lambda path, then: (asked_at.append(stand.clockwork.now), sync(path, then))[1]  # type: ignore[func-returns-value, method-assign]
    stand.until(lambda: asked_at)
    stand.until(lambda: a.views.leased_until > before + LOOK)
    assert a.views.leased_until == pytest.approx(asked_at[0] + CONFIG.held, abs=1e-9)
    assert stand.clockwork.now == pytest.approx(asked_at[0] + 0.2, abs=0.002)


def test_looks_are_a_quarter_of_a_lease_apart() -> None:
    """Views 5Z: sync, own znode, children; and nothing else while nothing changes."""
    stand = Stand("abc")
    (a, *_) = stand.seats
    stand.run(1.0)
    a.session.asked.clear()
    stand.run(CONFIG.lease * 10)
    assert a.session.asked.keys() == {"sync", "get", "children"}
    assert {a.session.asked[kind] for kind in ("sync", "get")} == {40}
    assert a.session.asked["children"] <= 40 + 1  # the cleaner's


def test_a_lease_needs_the_sync() -> None:
    """Views D22: a follower that lost its leader answers reads from what it has; without an answer to the sync they prove nothing."""
    stand = Stand("ab")
    a, _ = stand.seats
    a.session.sync = lambda path, then: None  # type: ignore[method-assign]
    a.forget()
    stand.run(CONFIG.lease + 0.1)
    assert (a.views.state, a.told) == (ViewState.LOST, ["ViewLost"])


def test_a_broken_connection_voids_the_lease_at_once() -> None:
    """Views 5Z: SUSPENDED is ``ViewLost``; the same session and list are ``ViewRestored``."""
    stand = Stand("ab")
    a, _ = stand.seats
    view = a.views.view
    a.forget()
    a.session.break_off()
    stand.run(0.0)
    assert (a.views.view, a.views.state, a.views.leased_until, a.told) == (None, ViewState.LOST, -inf, ["ViewLost"])
    assert a.views.survey().lost_why == "the connection to ZooKeeper broke"
    stand.run(1.0)
    a.session.join()
    stand.run(0.1)
    assert (a.views.view, a.told, a.views.survey().lost_for) == (view, ["ViewRestored"], None)


def test_a_session_that_is_over_begins_again() -> None:
    """Views 5Z: on CONNECTED after LOST the znode is gone, and is made again; the others saw the member go and come."""
    stand = Stand("ab")
    a, b = stand.seats
    for seat in stand.seats:
        seat.forget()
    a.session.break_off()
    stand.run(ASKED + 0.1)
    assert b.names == "b"
    a.session.join()
    stand.run(0.1)
    assert (a.names, b.names) == ("ab", "ab")
    assert (a.told, b.told) == (["ViewLost", "ViewChanged"], ["ViewChanged", "ViewChanged"])


def test_a_lease_ends_by_itself() -> None:
    """F9, views 5Z: an ensemble that is silent while the connection stands: the clock ends the lease, before any timer says so."""
    stand = Stand("a")
    (a,) = stand.seats
    a.forget()
    a.session.freeze()
    a.session._ask = lambda *args: None  # type: ignore[method-assign]
    until = a.views.leased_until
    stand.clockwork.now = until  # No timer has run.
    assert (a.views.view, a.views.state, a.views.settled) == (None, ViewState.LOST, False)
    assert a.told == []
    stand.run(0.0)
    assert a.told == ["ViewLost"]
    assert "did not confirm the list of members for 1.5 s" in a.views.survey().lost_why


def test_a_pause_is_noticed_in_the_next_turn() -> None:
    """Views D17: a process that was stopped learns that its lease is over before anything else."""
    stand = Stand("a")
    (a,) = stand.seats
    a.forget()
    stand.clockwork.now += 60.0
    a.views.on_away(60.0)
    assert a.told == ["ViewLost"]
    stand.run(1.0)
    assert a.told == ["ViewRestored"]


def test_settle() -> None:
    """Views 5Z: settled = leased, and installed wait_length(lease + zk_stale) ago; a restored view keeps its age."""
    stand = Stand("ab")
    a, b = stand.seats
    assert a.views.settle == wait_length(CONFIG.lease + STALE, RHO_MIN, CONFIG.margin)
    took = stand.until(lambda: a.views.settled)
    assert took <= a.views.settle
    assert a.views.settled_at == pytest.approx(stand.clockwork.now, abs=0.002)
    a.session.blip()
    settled = []
    for seconds in (0.01, 0.2):
        stand.run(seconds)
        settled.append(a.views.settled)
    b.views.withdraw()
    stand.run(0.1)
    assert [*settled, a.views.settled] == [False, True, False]


def test_nothing_is_counted_from_leaving() -> None:
    """Views 5Z: G6 (c) has no bound here, so ``left_at`` is None whatever happens; ``settled_at`` is never without a view."""
    stand = Stand("a")
    (a,) = stand.seats
    assert Seat(stand, NodeId("z", 1)).views.settled_at == inf
    a.views.trip("test")
    assert a.views.left_at is None
    a.session.break_off()
    stand.run(ASKED * 2)
    assert a.views.left_at is None


def test_answers_to_a_former_connection_are_dropped() -> None:
    """Views 5Z: kazoo tells state and answers in threads of their own, so an answer may come after its connection is over."""
    stand = Stand("ab", seed=1)
    a, b = stand.seats
    a.sessions.late = True
    a.sessions.delay = lambda: 0.05
    stand.run(1.0)
    stand.until(lambda: a.views.looks._look is not None)
    stand.run(0.06)  # The server has answered.
    a.session.break_off()
    stand.run(0.5)
    assert a.views.link.late > 0
    assert a.views.state is ViewState.LOST
    b.views.withdraw()
    a.session.join()
    stand.run(0.5)
    assert a.names == "a"


def test_a_former_life_is_deleted() -> None:
    """Views 5Z: the znode of a lower boot is this agent's previous life, whose session has not run out."""
    stand = Stand("ab")
    a, b = stand.seats
    a.session.break_off()
    again = stand.add("a", boot=2)
    stand.run(0.2)
    assert (again.names, again.views.conflict) == ("ab", None)
    assert b.views.view is not None
    assert b.views.view.find("a") == again.views.view.find("a")  # type: ignore[union-attr]
    a.session.join()
    stand.run(0.2)
    assert a.views.conflict is not None
    assert again.names == "ab"


def test_an_earlier_session_of_this_life_is_deleted() -> None:
    """Views 5Z: an agent that ended its session and began another finds its own znode."""
    stand = Stand("ab")
    a, _ = stand.seats
    a.session.break_off()
    a.views.withdraw()
    a.views.take_part()
    stand.run(0.2)
    assert (a.names, a.views.conflict) == ("ab", None)


@pytest.mark.parametrize("boot", [1, 2])
def test_a_living_agent_of_the_same_name_is_a_conflict(boot: int) -> None:
    """Views 5Z, F5: an equal or higher boot elsewhere: no view, the reason says what to do, and it is over when the other agent is."""
    stand = Stand("")
    stand.add("b")
    stand.run(0.1)
    for path in ("/holdfast/g/mail/a",):
        stand.ensemble.create(path, b"", 0, sequence=False)
    other = stand.ensemble.begin_session(stand.add("c").session)
    stand.ensemble.create(f"{MEMBERS}/a", encode(MemberData(boot, Address("elsewhere", 1))), other, sequence=False)
    a = stand.add("a", boot=1)
    stand.run(3.0)
    assert (a.names, a.views.state) == ("", ViewState.LOST)
    assert a.views.conflict is not None
    assert f"a#{boot} at elsewhere:1 has the same name in ZooKeeper: give one of the two another name" in str(a.views.conflict)
    assert a.views.survey().lost_why == str(a.views.conflict)
    stand.ensemble.end_session(other)
    stand.run(1.5)
    assert a.names == "abc"
    assert seat_conflict(a) is None


def test_a_znode_of_this_name_that_cannot_be_read_is_a_conflict() -> None:
    """Views 5Z: its boot is not known, so it is not deleted."""
    stand = Stand("b")
    other = stand.ensemble.begin_session(stand.add("c").session)
    stand.run(0.1)
    stand.ensemble.create(f"{MEMBERS}/a", b"\xc1", other, sequence=False)
    a = stand.add("a")
    stand.run(0.5)
    assert "cannot be read" in str(a.views.conflict)
    assert stand.ensemble.tree[f"{MEMBERS}/a"].data == b"\xc1"


def test_one_number_is_one_list_of_lives() -> None:
    """G1: a name that comes back as another life between the list and the reading of its znode belongs to a later number."""
    stand = Stand("a", settle=0.2)
    (a,) = stand.seats
    ensemble = stand.ensemble
    read = a.session._read
    made: list[int] = []

    def overtaken(path: str) -> object:
        if path == f"{MEMBERS}/b" and not made:
            made.append(stand.members.pzxid)
            ensemble.delete(path)
            ensemble.create(path, encode(MemberData(9, Address("b", 9))), 99, sequence=False)
        return read(path)

    a.session._read = overtaken  # type: ignore[assignment, method-assign]
    ensemble.create(f"{MEMBERS}/b", encode(MemberData(8, Address("b", 8))), 98, sequence=False)
    stand.run(0.2)
    assert made
    views = [event.view for event in a.host.emitted if isinstance(event, ViewChanged)]
    assert [(view.number > made[0], view.find("b").id.boot) for view in views[1:]] == [(True, 9)]  # type: ignore[union-attr]


def test_a_life_that_came_back_between_two_lists_is_read_again() -> None:
    """G1: the names are the same, the count of changes is not; otherwise a known life is not read again."""
    stand = Stand("ab")
    a, _ = stand.seats
    stand.add("c")
    stand.run(0.1)
    a.session.asked.clear()
    stand.add("d")
    stand.until(lambda: a.names == "abcd")
    assert a.session.asked["get"] <= 3  # the own znode, once or twice, and d
    stand.ensemble.watches.clear()
    stand.ensemble.delete(f"{MEMBERS}/d")
    stand.ensemble.create(f"{MEMBERS}/d", encode(MemberData(7, Address("d", 7))), 99, sequence=False)
    stand.run(LOOK + 0.1)
    view = a.views.view
    assert view is not None
    assert view.number == stand.members.pzxid
    assert view.find("d") == ViewMember(NodeId("d", 7), Address("d", 7), stand.ensemble.tree[f"{MEMBERS}/d"].czxid, ENSEMBLE)


def test_a_group_that_was_wiped_is_read_again() -> None:
    """G1: an operator deletes everything; the count of changes begins again, and may be what it was."""
    stand = Stand("a")
    (a,) = stand.seats
    stand.ensemble.watches.clear()
    for path in (f"{MEMBERS}/a", MEMBERS):
        stand.ensemble.delete(path)
    stand.run(LOOK + 0.2)
    assert a.names == "a"
    assert a.number == stand.members.pzxid


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"\x91" * 5000,
        encode(MemberData(1, Address("x", 1))) + b"x" * (32 * 1024),
        encode(MemberData(NUMBER_MAX, Address("x", 1))),
        b"\x93\x01\x92\xa1x\x00\x81\xa1r\xc5\x01\x01" + b"x" * 257,
        b"\x93\x01\x92\xa1x\xcd\xff\xff\xff\x80",
        b"\x93\xff\x92\xa1x\x01\x80",
    ],
    ids=["empty", "no msgpack", "nested", "too large", "far ahead", "long row", "garbage behind", "negative boot"],
)
def test_members_that_cannot_be_read_are_counted(data: bytes) -> None:
    """Foundation F4, views 10: the data of a znode is the bytes of another process: a counter, never an exception, and no member."""
    stand = Stand("a")
    (a,) = stand.seats
    stand.ensemble.create(f"{MEMBERS}/x", data, 99, sequence=False)
    stand.run(0.2)
    assert a.names == "a"
    assert a.number == stand.members.pzxid
    assert a.views.metrics()["zookeeper_members_malformed_total"] == 1


@pytest.mark.parametrize("name", ["a b", "%41", "%zz", "."])
def test_names_that_no_agent_writes_are_counted(name: str) -> None:
    """Views 10: one name has one path, so that no two znodes are one member."""
    stand = Stand("a")
    (a,) = stand.seats
    stand.ensemble.create(f"{MEMBERS}/{name}", encode(MemberData(1, Address("x", 1))), 99, sequence=False)
    stand.run(0.2)
    assert (a.names, a.views.metrics()["zookeeper_members_malformed_total"]) == ("a", 1)


def test_a_member_whose_data_was_changed_does_not_count() -> None:
    """G1: two agents that read it at different times would read different lives under one number."""
    stand = Stand("a")
    (a,) = stand.seats
    stand.ensemble.create(f"{MEMBERS}/x", encode(MemberData(1, Address("x", 1))), 99, sequence=False)
    stand.ensemble.set(f"{MEMBERS}/x", encode(MemberData(2, Address("x", 1))))
    stand.run(0.2)
    assert a.names == "a"


def test_the_own_znode_spoilt_by_another_process_is_no_endless_loop() -> None:
    """Views 10: the reason is told, and looks go on at their pace."""
    stand = Stand("a")
    (a,) = stand.seats
    stand.ensemble.set(f"{MEMBERS}/a", b"")
    stand.ensemble.create(f"{MEMBERS}/x", encode(MemberData(1, Address("x", 1))), 99, sequence=False)
    stand.ensemble.delete(f"{MEMBERS}/x")
    a.views.looks._known.clear()
    a.session.asked.clear()
    stand.run(3.0)
    assert a.session.asked["sync"] <= 3.0 / LOOK + 2
    assert "is not as this agent wrote it" in a.views.survey().lost_why


def test_too_many_members() -> None:
    """Views 10: 2,000 per group; with more there is no view, and the reason says so."""
    stand = Stand("a")
    (a,) = stand.seats
    data = encode(MemberData(1, Address("x", 1)))
    for number in range(CLIENTS_MAX - 1):
        stand.ensemble.create(f"{MEMBERS}/x{number}", data, 99, sequence=False)
    stand.run(LOOK * 3)
    assert a.views.metrics()["size"] == CLIENTS_MAX
    stand.ensemble.create(f"{MEMBERS}/y", data, 99, sequence=False)
    stand.run(LOOK * 3)
    assert (a.number, a.views.survey().lost_why) == (0, "the group has 2001 members in ZooKeeper, and views hold up to 2000")


def test_a_number_beyond_what_a_view_can_have() -> None:
    """G2, F16: a zxid has 64 bits, the number of a view is exact in every language; after two million elections there is no view."""
    stand = Stand("a")
    (a,) = stand.seats
    stand.ensemble.zxid = NUMBER_MAX
    b = stand.add("b")
    stand.run(LOOK * 2)
    assert (a.views.view, b.views.view) == (None, None)
    assert "goes up to 2^53" in a.views.survey().lost_why


def test_an_older_list_is_never_installed() -> None:
    """G2: what a deposed leader shows after its successor gives neither a view nor a lease."""
    stand = Stand("ab")
    a, b = stand.seats
    held = stand.ensemble.state()
    b.views.withdraw()
    stand.run(0.1)
    number = a.number
    a.forget()
    a.session.frozen = held
    stand.run(CONFIG.lease + 0.1)
    assert a.told == ["ViewLost"]
    assert a.views.metrics()["zookeeper_older_lists_total"] > 0
    assert f"is older than view {number}" in a.views.survey().lost_why


def test_a_trip() -> None:
    """Views 5Z, 5.7: the own znode is deleted and made again, so every member gets another view; the lease is void at once."""
    stand = Stand("ab")
    a, b = stand.seats
    number, attach = a.number, a.views.survey().attach
    for seat in stand.seats:
        seat.forget()
    assert a.views.trip("no route to b")
    assert (a.views.view, a.told) == (None, ["ViewTripped", "ViewLost"])
    stand.run(0.1)
    assert (a.names, b.names, a.number == b.number > number) == ("ab", "ab", True)
    assert a.views.survey().attach > attach
    assert a.told == ["ViewChanged"]


def test_trips_are_rare() -> None:
    """Views 5.7: one per ten seconds; a client that goes on waits twice as long each time, up to five minutes, and is forgiven."""
    stand = Stand("a")
    (a,) = stand.seats
    assert a.views.trip("first")
    at = stand.clockwork.now
    assert not a.views.trip("at once")
    waits = []
    for _ in range(8):
        stand.until(lambda: a.views.trip("again"), within=400.0, step=0.5)
        waits.append(stand.clockwork.now - at)
        at = stand.clockwork.now
    assert waits == pytest.approx([10, 20, 40, 80, 160, 300, 300, 300], abs=0.6)
    stand.run(601.0)
    assert a.views.trip("later")
    assert stand.until(lambda: a.views.trip("again"), within=400.0, step=0.5) == pytest.approx(10, abs=0.6)


def test_a_trip_without_a_connection_is_made_good() -> None:
    """Views 5.7: its point is that the view is not believed, so the same view is not restored with the connection."""
    stand = Stand("ab")
    a, b = stand.seats
    number = b.number
    a.session.break_off()
    stand.run(0.1)
    assert a.views.trip("nothing answers")
    a.session.join()
    stand.run(0.2)
    assert "ViewRestored" not in a.told
    assert a.number == b.number > number


def test_only_a_member_trips() -> None:
    """Views 5.7: before it takes part, and after it left, there is nothing to give up."""
    stand = Stand("a")
    (a,) = stand.seats
    a.views.withdraw()
    assert not a.views.trip("left")
    assert not Seat(stand, NodeId("b", 1)).views.trip("never was")


def test_leaving() -> None:
    """Views 5Z: the member's znode, then the mailbox with what is in it, then the session; the others see a view without it at once."""
    stand = Stand("ab")
    a, b = stand.seats
    for text in ("m-0000000007", "stray"):
        stand.ensemble.create(f"/holdfast/g/mail/b/{text}", b"", 99, sequence=False)
    b.views.inbox.reset()
    stand.ensemble.log.clear()
    b.views.withdraw()
    b.views.withdraw()
    assert (b.views.view, b.views.left) == (None, False)
    stand.run(0.1)
    mail = "/holdfast/g/mail/b"
    assert [each for each in stand.ensemble.log if each.startswith("delete")] == [
        f"delete {MEMBERS}/b", f"delete {mail}/m-0000000007", f"delete {mail}/stray", f"delete {mail}",
    ]  # fmt: skip
    assert (b.views.left, b.session.closed, a.names) == (True, True, "a")
    assert stand.ensemble.sessions.keys() == {a.session.owner}


@pytest.mark.parametrize("absent", ["never there", "gone", "silent"])
def test_leaving_takes_no_ensemble(absent: str) -> None:
    """Views 5Z: without an ensemble, or with one that does not answer, leaving ends within its bound."""
    stand = Stand("a")
    seat = Seat(stand, NodeId("b", 1))
    seat.sessions.absent = absent == "never there"
    seat.views.take_part()
    stand.run(0.2)
    if absent == "gone":
        seat.session.break_off()
        stand.run(0.1)
    if absent == "silent":
        seat.session.freeze()
    seat.views.withdraw()
    stand.run(LEAVE_MAX)
    assert seat.views.left
    assert seat.session.closed
    stand.run(ASKED + 0.1)
    assert stand.seats[0].names == "a"


def test_it_takes_part_again() -> None:
    """Views D31: the first client that asks again makes it a member again; also while it still leaves."""
    stand = Stand("ab")
    a, b = stand.seats
    b.views.withdraw()
    b.views.take_part()
    stand.run(0.2)
    assert (a.names, b.names, b.views.left) == ("ab", "ab", False)
    assert [session.closed for session in b.sessions.opened] == [True, False]
    b.views.withdraw()
    stand.run(0.2)
    b.views.take_part()
    stand.run(0.2)
    assert (a.names, b.names) == ("ab", "ab")


@pytest.mark.parametrize("connected", [True, False])
def test_stop_is_at_once(connected: bool) -> None:
    """Foundation 3: ``stop`` leaves no timer that does anything, and ends the session, with an ensemble or without."""
    stand = Stand("ab")
    a, b = stand.seats
    if not connected:
        b.session.break_off()
    b.carry(a)
    b.views.stop()
    log = len(b.host.emitted)
    assert b.session.closed
    stand.run(10.0)
    assert (a.names, b.results, len(b.host.emitted)) == ("a", [], log)


def test_no_change_is_announced() -> None:
    """Views 5Z: there is no StartChange, so ``Changing`` is never emitted and the state is never CHANGING."""
    stand = Stand("abc")
    (a, b, c) = stand.seats
    states = set()
    stand.clockwork.after_each = lambda: states.add(a.views.state)
    b.views.trip("test")
    c.session.break_off()
    stand.run(10.0)
    a.session.blip()
    stand.run(10.0)
    assert states == {ViewState.STABLE, ViewState.LOST}
    assert {type(event).__name__ for event in a.host.emitted} <= {"ViewChanged", "ViewLost", "ViewRestored"}


def test_an_ensemble_that_is_not_there_is_said_to_be() -> None:
    """Views 9: ``doctor`` and ``survey`` say since when there is no view and why, with what the library says."""
    stand = Stand("")
    seat = Seat(stand, NodeId("a", 1))
    seat.sessions.absent = True
    seat.views.take_part()
    seat.session.complaint = "Connection refused"
    stand.run(7.0)
    survey = seat.views.survey()
    assert survey.lost_for == pytest.approx(7.0)
    assert survey.lost_why == "ZooKeeper has not answered yet (Connection refused)"
    assert seat.views.metrics()["seconds_lost"] == pytest.approx(7.0)
    assert seat.told == []  # There was no view that was lost.


def test_what_is_refused_is_said() -> None:
    """Views 5Z: an ensemble with permissions of its own refuses the znode; the reason names it, and it is tried again."""
    stand = Stand("")
    stand.ensemble.refused.add("/holdfast")
    a = stand.add("a")
    stand.run(1.5)
    assert "/holdfast/g/members/a: NoAuthError" in a.views.survey().lost_why
    stand.ensemble.refused.clear()
    stand.run(1.5)
    assert a.names == "a"


def test_the_session_that_was_granted() -> None:
    """Views 5Z: an ensemble whose smallest session is longer than what was asked for; ``doctor`` compares the two."""
    (a,) = Stand("a").seats
    a.sessions.granted = 20.0
    assert (a.views.session_asked, a.views.session_granted) == (ASKED, 20.0)
    assert a.views.metrics()["zookeeper_session_seconds"] == 20.0


def test_fleet() -> None:
    """Views 2: ``View.fleet`` is the largest view of the last ten minutes, this one included."""
    stand = Stand("abcd")
    a, b, c, d = stand.seats
    for seat in (b, c, d):
        seat.views.withdraw()
    stand.run(1.0)
    assert a.views.view is not None
    assert (a.views.view.size, a.views.view.fleet) == (1, 4)
    stand.run(601.0)
    stand.add("e")
    stand.run(0.1)
    assert (a.views.view.size, a.views.view.fleet) == (2, 2)


def test_metrics() -> None:
    """Views 9: number, size, views, seconds without one, the least that was left of a lease, round trips."""
    stand = Stand("ab")
    a, _ = stand.seats
    a.session.blip()
    stand.run(1.0)
    found = a.views.metrics()
    assert found["number"] == a.number
    assert (found["size"], found["views_total"], found["zookeeper_connected"]) == (2, 1, 1)
    assert 0.04 < found["seconds_lost"] < 0.2
    assert CONFIG.held - LOOK - 0.1 < found["lease_margin_min"] < CONFIG.held
    assert found["zookeeper_rtt_p99"] == pytest.approx(0.002, abs=0.0005)
    assert all(isinstance(value, (int, float)) for value in found.values())


@pytest.mark.parametrize("name", [".", "..", "a/b", "%", "ä", "a b", "x" * 64])
def test_names_are_any_printable_text(name: str) -> None:
    """Foundation F1: a name that ZooKeeper takes for a path is escaped."""
    stand = Stand("a")
    stand.add(name)
    stand.run(0.1)
    assert f"{MEMBERS}/{segment(name)}" in stand.ensemble.tree
    view = stand.seats[0].views.view
    assert view is not None
    assert view.find(name) is not None


def test_the_numbers_follow_the_heartbeat() -> None:
    """Views 4: the lease of 6 hb is looked after every 1.5 hb."""
    stand = Stand("")
    a = stand.add("a", config=ViewsConfig(heartbeat=1.0))
    stand.run(0.5)
    assert a.views.leased_until == pytest.approx(stand.clockwork.now - 0.5 + ViewsConfig(heartbeat=1.0).held, abs=0.1)


def test_events_say_why() -> None:
    """Views 9: ``ViewLost`` and ``ViewTripped`` carry a sentence."""
    stand = Stand("a")
    (a,) = stand.seats
    a.views.trip("b is deaf")
    whys = [event.why for event in a.host.emitted if isinstance(event, ViewLost | ViewTripped)]
    assert whys == ["b is deaf", "given up: b is deaf"]


def test_a_listener_may_trip_on_what_it_hears() -> None:
    """Views 5.7, foundation 3: machines act within their callbacks; no look at the view that was given up goes on."""
    stand = Stand("a")
    (a,) = stand.seats
    tripped: list[bool] = []
    a.views.subscribe(lambda event: tripped.append(a.views.trip("too many")) if isinstance(event, ViewChanged) and not tripped else None)
    stand.add("b")
    stand.until(lambda: tripped)
    assert (a.views.view, a.views.state) == (None, ViewState.LOST)
    stand.run(0.2)
    assert (a.names, tripped) == ("ab", [True])
