"""Letters by ZooKeeper, against an ensemble in memory.  Spec: views 5Z (carry, receiver, leave), D23, D30; G5, G7."""

from __future__ import annotations

import pytest

from holdfast.bounds import NUMBER_MAX
from holdfast.features.views.protocol.config import SENDS_MAX
from holdfast.features.views.zookeeper import inbox
from holdfast.features.views.zookeeper.cleaner import ABSENT_SECONDS, LOOK_PERIOD
from holdfast.features.views.zookeeper.data import Letter, encode
from holdfast.features.views.zookeeper.znodes import Standing, Then
from holdfast.host import Carried, NodeId
from holdfast.kit.parcels import PARCEL_BYTES_MAX, Parcel
from tests.features.views.fake_ensemble import ASKED, CONFIG, GROUP, Seat, Stand

MAIL = f"/holdfast/{GROUP}/mail"
MEMBERS = f"/holdfast/{GROUP}/members"
PARCEL = Parcel(b"", b"\x92\xcd\x23\xa1\xa5hello")  # Note("hello")


def deaf(seat: Seat) -> None:
    """This member reads no mail any more."""
    seat.views.inbox._busy = True


def test_a_letter_is_delivered() -> None:
    """Views 5Z, D23: an ephemeral sequential child of the mailbox, deleted when it was handed on; ``done`` runs once."""
    stand = Stand("abc")
    a, b, _ = stand.seats
    a.carry(b)
    stand.run(0.1)
    assert (a.results, b.router.handed[0][0], b.heard) == ([Carried.DELIVERED], a.me, ["hello"])
    created = [each for each in stand.ensemble.log if "m-" in each]
    assert created == [f"create {MAIL}/b/m-0000000000", f"delete {MAIL}/b/m-0000000000"]
    stand.run(30.0)
    assert a.results == [Carried.DELIVERED]
    assert a.views.metrics()["carried_ok"] == b.views.metrics()["carried_received"] == 1


def test_a_letter_to_oneself() -> None:
    """Views 5.7: any member of the view is a receiver."""
    stand = Stand("a")
    (a,) = stand.seats
    a.carry(a)
    stand.run(0.1)
    assert (a.results, a.heard) == ([Carried.DELIVERED], ["hello"])


def test_letters_keep_their_order() -> None:
    """Views 5Z: the receiver sorts by the ten digits, over portions and lists."""
    stand = Stand("ab", seed=5)
    a, b = stand.seats
    for seat in (a, b):
        seat.sessions.delay = lambda: stand.clockwork.random.uniform(0.001, 0.02)
    for number in range(200):
        a.carry(b, str(number))
    stand.run(5.0)
    assert b.heard == [str(number) for number in range(200)]
    assert a.results == [Carried.DELIVERED] * 200


def test_a_deletion_that_was_lost_delivers_nothing_twice() -> None:
    """G7: the connection breaks between handing on and deleting; the letter is found again, and deleted without being handed on, even when
    the ensemble was away for an hour and every session outlived it."""
    stand = Stand("ab")
    a, b = stand.seats
    broken: list[bool] = []
    delete = b.session.delete

    def broken_off(path: str, then: Then) -> None:
        if not broken and "/m-" in path:
            broken.append(True)
            b.session.break_off()
            b.session._expiry.cancel()  # type: ignore[union-attr]
        else:
            delete(path, then)

    b.session.delete = broken_off  # type: ignore[method-assign]
    a.carry(b)
    stand.run(1.0)
    assert (b.heard, stand.ensemble.letters("b")) == (["hello"], ["m-0000000000"])
    a.session.break_off()
    a.session._expiry.cancel()  # type: ignore[union-attr]
    stand.run(3600.0)
    a.session.join()
    b.session.join()
    stand.run(0.5)
    assert (b.heard, stand.ensemble.letters("b"), a.results) == (["hello"], [], [Carried.TRIPPED])
    assert b.views.inbox._undeleted == {}


def test_letters_wait_while_too_many_deletions_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """G7, views 10: what was handed on is remembered until its deletion is confirmed, and that table has a limit: reading waits."""
    monkeypatch.setattr(inbox, "UNDELETED_MAX", 100)
    stand = Stand("ab")
    a, b = stand.seats
    b.session.delete = lambda path, then: None  # type: ignore[method-assign]
    for number in range(400):
        a.carry(b, str(number))
    stand.run(1.0)
    assert 100 <= len(b.heard) <= 100 + inbox.PORTION
    stand.run(2.0)
    assert len(b.views.inbox._undeleted) == len(b.heard) <= 100 + inbox.PORTION


def test_a_letter_that_went_unread_is_not_delivered() -> None:
    """G7: a receiver that leaves takes its mailbox away with the letters in it. They are gone, and nobody read them: no success."""
    stand = Stand("ab")
    a, b = stand.seats
    deaf(b)
    a.carry(b)
    stand.run(0.1)
    b.views.withdraw()
    stand.run(0.2)
    assert (a.results, b.heard, a.names) == ([Carried.TRIPPED], [], "a")


def test_a_receiver_that_left_and_came_back_read_nothing() -> None:
    """G7: the znode of the receiver must be the one that the view listed when the letter was written."""
    stand = Stand("ab")
    a, b = stand.seats
    deaf(b)
    a.carry(b)
    stand.run(0.1)
    a.session.fire = lambda path, deleted: None  # type: ignore[method-assign]
    b.views.withdraw()
    stand.run(0.01)
    b.views.take_part()
    stand.run(0.01)
    assert a.results == []
    a.views.outbox._on_gone(1)
    stand.run(0.01)
    assert (a.results, b.heard) == ([Carried.TRIPPED], [])


def test_a_receiver_that_does_not_read_is_given_up() -> None:
    """Views 5Z, G5: not deleted within ``ov_deadline`` while the receiver stays in the view: trip; the letter is taken back."""
    stand = Stand("ab")
    a, b = stand.seats
    deaf(b)
    number = a.number
    a.forget()
    a.carry(b)
    stand.run(CONFIG.ov_deadline - 0.05)
    assert a.results == []
    stand.run(0.1)
    assert (a.results, a.told) == ([Carried.TRIPPED], [])
    stand.run(CONFIG.lease + 3.0)
    assert a.told == ["ViewTripped", "ViewLost", "ViewChanged"]
    assert stand.ensemble.letters("b") == []
    assert (a.names, a.number == b.number > number) == ("ab", True)


def test_a_receiver_that_left_the_view_is_no_reason_to_trip() -> None:
    """G5: the newer view is the news of it. A session may outlive a letter that was written as its owner died, so a trip waits for that."""
    stand = Stand("ab")
    a, b = stand.seats
    deaf(b)
    a.carry(b)
    stand.run(0.1)
    a.forget()
    b.session.break_off()
    took = stand.until(lambda: a.results)
    assert took <= CONFIG.ov_deadline
    stand.run(CONFIG.lease + 3.0)
    assert (a.results, a.told) == ([Carried.TRIPPED], ["ViewChanged"])
    assert stand.ensemble.letters("b") == []


def test_a_letter_whose_creation_is_not_confirmed_is_given_up() -> None:
    """G5, G7: it may have been written or not, and written again it could arrive twice."""
    stand = Stand("ab")
    a, b = stand.seats
    a.carry(b)
    a.session.break_off()
    a.session.join()
    stand.run(0.1)
    assert a.results == [Carried.TRIPPED]
    assert b.heard in ([], ["hello"])


def test_a_letter_under_way_outlives_the_connection() -> None:
    """G5, G7: written, and the connection breaks: with the same session it is asked for again."""
    stand = Stand("ab")
    a, b = stand.seats
    deaf(b)
    a.carry(b)
    stand.run(0.1)
    a.session.break_off()
    stand.run(0.5)
    b.views.inbox._busy = False
    b.views.inbox.look()
    stand.run(0.1)
    assert (b.heard, a.results) == (["hello"], [])
    a.session.join()
    stand.run(0.1)
    assert a.results == [Carried.DELIVERED]


def test_a_session_that_is_over_took_its_letters_along() -> None:
    """Views 5Z: a message znode whose sender's session ends is lost: that is a view change for the sender."""
    stand = Stand("ab")
    a, b = stand.seats
    deaf(b)
    a.carry(b)
    stand.run(0.1)
    a.session.break_off()
    stand.until(lambda: b.names == "b", within=ASKED + 0.1)
    assert stand.ensemble.letters("b") == []
    a.session.join()
    stand.run(0.1)
    assert (a.results, b.heard) == ([Carried.TRIPPED], [])


def test_another_session_took_the_letters_of_the_former_one_along() -> None:
    """Views 5Z: a session that begins without word of the end of the one before it."""
    stand = Stand("ab")
    a, b = stand.seats
    deaf(b)
    a.carry(b)
    stand.run(0.1)
    a.views.on_standing(Standing.CONNECTED, a.session.owner)
    assert a.results == []
    a.views.on_standing(Standing.CONNECTED, a.session.owner + 1)
    assert a.results == [Carried.TRIPPED]


def test_results_come_within_their_time_without_an_ensemble() -> None:
    """G5: within ``ov_deadline + lease + 3 s`` the sender knows, whatever became of the ensemble."""
    stand = Stand("ab")
    a, b = stand.seats
    deaf(b)
    a.carry(b)
    stand.run(0.1)
    a.session.freeze()
    stand.run(CONFIG.ov_deadline)
    assert a.results == [Carried.TRIPPED]


def test_only_members_of_the_view_are_sent_to() -> None:
    """Views 5.7: another life, a stranger, and any receiver while there is no view: nothing is sent."""
    stand = Stand("ab")
    a, b = stand.seats
    a.carry(NodeId("b", 2))
    a.carry(NodeId("z", 1))
    a.session.break_off()
    stand.run(0.0)
    a.carry(b)
    assert a.results == [Carried.NOT_IN_VIEW] * 3
    assert [each for each in stand.ensemble.log if "m-" in each] == []


def test_what_is_too_large() -> None:
    """Views 10, D30: a parcel holds the longest letter and no more."""
    stand = Stand("ab")
    a, b = stand.seats
    a.carry(b, "x" * PARCEL_BYTES_MAX)
    a.carry(b, "x" * (PARCEL_BYTES_MAX - 64))
    stand.run(0.1)
    assert a.results == [Carried.TOO_LARGE, Carried.DELIVERED]


def test_too_many_under_way() -> None:
    """Views 4, 10: 4,096 of one client; more are ``BUSY``, which is no trip, and come to nothing."""
    stand = Stand("ab")
    a, b = stand.seats
    deaf(b)
    for _ in range(SENDS_MAX + 1):
        a.carry(b)
    assert a.results == [Carried.BUSY]
    assert a.views.metrics()["overlay_under_way"] == SENDS_MAX
    stand.run(CONFIG.ov_deadline + 0.1)
    assert a.results[1:] == [Carried.TRIPPED] * SENDS_MAX
    assert a.views.metrics()["overlay_under_way"] == 0


def test_what_the_ensemble_refuses_is_busy() -> None:
    """Views 5.7: a quota or a permission: nothing was delivered, and no view changes for it."""
    stand = Stand("ab")
    a, b = stand.seats
    stand.ensemble.refused.add(f"{MAIL}/b/")
    a.forget()
    a.carry(b)
    stand.run(CONFIG.ov_deadline + 1)
    assert (a.results, a.told) == ([Carried.BUSY], [])


def test_a_missing_mailbox_is_made_again() -> None:
    """Views 5Z: its owner sees that it is gone; a letter that met none is written when there is one."""
    stand = Stand("ab")
    a, b = stand.seats
    b.session.children = lambda path, then, watch=False: None  # type: ignore[method-assign, misc]
    stand.ensemble.delete(f"{MAIL}/b")
    a.carry(b)
    stand.run(0.2)
    assert a.results == []
    del b.session.children
    b.views.inbox.reset()
    b.views.inbox.look()
    stand.run(CONFIG.e2e_rto)
    assert (a.results, b.heard) == ([Carried.DELIVERED], ["hello"])


def test_a_mailbox_that_goes_is_noticed_by_its_owner() -> None:
    """Views 5Z: the watch on it fires when it goes, too."""
    stand = Stand("ab")
    stand.ensemble.delete(f"{MAIL}/b")
    stand.run(0.1)
    assert f"{MAIL}/b" in stand.ensemble.tree


@pytest.mark.parametrize(
    "data, counter",
    [
        (b"", "malformed"),
        (b"\xc1", "malformed"),
        (b"x" * (PARCEL_BYTES_MAX + 2048), "malformed"),
        (encode(Letter(NodeId("x", NUMBER_MAX), NodeId("a", 1), 1, PARCEL)), "malformed"),
        (encode(Letter(NodeId("x", 1), NodeId("a", 2), 1, PARCEL)), "misdirected"),
        (encode(Letter(NodeId("x", 1), NodeId("b", 1), 1, PARCEL)), "misdirected"),
    ],
    ids=["empty", "no msgpack", "too large", "far ahead", "a later life", "another member"],
)
def test_letters_that_cannot_be_handed_on_are_counted(data: bytes, counter: str) -> None:
    """Foundation F3, F4, views 10: any process can write into a mailbox; it costs a counter, and the letter is taken away."""
    stand = Stand("a")
    (a,) = stand.seats
    stand.ensemble.create(f"{MAIL}/a/m-", data, 99, sequence=True)
    stand.ensemble.create(f"{MAIL}/a/m-", encode(Letter(NodeId("x", 1), a.me, 1, PARCEL)), 99, sequence=True)
    stand.run(0.1)
    assert (a.heard, stand.ensemble.letters("a")) == (["hello"], [])
    assert a.views.metrics()[f"zookeeper_letters_{counter}_total"] == 1


def test_a_parcel_that_cannot_be_opened_is_counted_by_the_node() -> None:
    """Views D30: what is in a letter is decoded like a message from a peer."""
    stand = Stand("a")
    (a,) = stand.seats
    stand.ensemble.create(f"{MAIL}/a/m-", encode(Letter(NodeId("x", 1), a.me, 1, Parcel(b"", b"\xc1"))), 99, sequence=True)
    stand.run(0.1)
    assert (a.heard, sum(a.router.drops.values()), stand.ensemble.letters("a")) == ([], 1, [])


def test_znodes_that_are_no_letters_are_left_alone() -> None:
    """Views 5Z: letters are ``m-`` and ten digits."""
    stand = Stand("a")
    (a,) = stand.seats
    for name in ("m-1", "m-00000000xx", "x-0000000001", "m-00000000011"):
        stand.ensemble.create(f"{MAIL}/a/{name}", b"", 99, sequence=False)
    stand.run(0.1)
    assert len(stand.ensemble.letters("a")) == 4
    assert a.views.metrics()["zookeeper_letters_malformed_total"] > 0


def test_no_watch_is_left_behind() -> None:
    """Views 10: a watch for a letter goes with the letter, whenever the sender asks for it; else the ensemble's table would grow."""
    stand = Stand("ab")
    a, b = stand.seats
    for _ in range(50):
        a.carry(b)
        stand.run(0.05)
    assert a.results == [Carried.DELIVERED] * 50
    stand.run(1.0)
    assert {path for path, sessions in stand.ensemble.watches.items() if sessions} == {MEMBERS, f"{MAIL}/a", f"{MAIL}/b"}
    assert (a.views.outbox._mids, a.views.outbox._sending) == ({}, {})


def test_mailboxes_of_agents_that_are_gone() -> None:
    """Views 5Z: the smallest member takes a mailbox away when its owner was in no view for ten minutes, with what is in it."""
    stand = Stand("abc")
    a, b, c = stand.seats
    c.session.break_off()
    stand.run(1.0)
    deaf(c)
    b.carry(c)
    stand.run(ABSENT_SECONDS)
    stand.ensemble.create(f"{MAIL}/c/m-", b"", 99, sequence=True)
    assert f"{MAIL}/c" in stand.ensemble.tree
    assert (len(a.views.cleaner._absent), len(b.views.cleaner._absent)) == (1, 0)
    stand.run(2 * LOOK_PERIOD + ASKED)
    assert f"{MAIL}/c" not in stand.ensemble.tree
    assert (a.views.metrics()["zookeeper_mailboxes_removed_total"], b.views.metrics()["zookeeper_mailboxes_removed_total"]) == (1, 0)
    assert {f"{MAIL}/a", f"{MAIL}/b"} <= stand.ensemble.tree.keys()


def test_a_mailbox_whose_owner_comes_back_stays() -> None:
    """Views 5Z: the ten minutes begin again, and the owner's znode is looked for before anything is deleted."""
    stand = Stand("ab")
    a, b = stand.seats
    b.session.break_off()
    stand.run(ABSENT_SECONDS - 100)
    b.session.join()
    stand.run(2 * LOOK_PERIOD)
    b.session.break_off()
    stand.run(ABSENT_SECONDS - 100)
    assert f"{MAIL}/b" in stand.ensemble.tree
    a.views.cleaner._absent["b"] = 0.0
    b.session.join()
    stand.run(0.1)
    deaf(b)
    a.carry(b)
    stand.run(0.1)
    a.views.cleaner._on_mailbox("b", stand.ensemble_reply(f"{MAIL}/b"))
    stand.run(0.1)
    assert stand.ensemble.letters("b") == ["m-0000000000"]


def test_a_newer_view_without_the_receiver_ends_its_letters() -> None:
    """G5: such a letter is given up with the view, and taken back."""
    stand = Stand("ab")
    a, b = stand.seats
    deaf(b)
    b.session.break_off()
    stand.run(ASKED - 1.0)
    a.carry(b)
    stand.until(lambda: a.names == "a", within=1.1)
    assert a.results == [Carried.TRIPPED]
    stand.run(0.1)
    assert stand.ensemble.letters("b") == []
