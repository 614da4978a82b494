"""Broadcast (PrCast): infect and die, at most once, never more than 64 peers per callback.  Tickets 5.9, foundation 4, F17."""

from __future__ import annotations

from math import ceil, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import ConfigError
from holdfast.host import FANOUT_MAX, Address, Member, NodeId
from holdfast.kit import broadcast as module
from holdfast.kit.broadcast import FORGET_AFTER, PAYLOAD_BYTES_MAX, WINDOW_MAX, Broadcast, Rumour, RumourId, Window, fanout, hops
from holdfast.kit.roster import Roster
from tests.support.fake_host import FakeHost

TOPIC = "t"


def group(size: int) -> list[Member]:
    return [Member(NodeId(f"n{i:03}", 1), Address(f"n{i:03}", 1), {f"topic:{TOPIC}": b""}) for i in range(size)]


class Listening:
    """One member of a static group that listens to the topic."""

    def __init__(self, size: int = 50, name: str = "n000") -> None:
        self.host = FakeHost(name)
        self.roster = Roster(self.host, group(size), hello_period=0)
        self.cast = Broadcast(self.host, self.roster)
        self.heard: list[tuple[RumourId, bytes]] = []
        self.cast.on_rumour(TOPIC, lambda rumour, payload: self.heard.append((rumour, payload)))
        self.cast.start()

    def receive(self, seq: int, *, origin: str = "n001", boot: int = 1, left: int = 3, topic: str = TOPIC, payload: bytes = b"p") -> None:
        self.cast.on_message(NodeId("n002", 1), Rumour(NodeId(origin, boot), topic, seq, left, payload))

    def sent(self) -> list[tuple[NodeId | Address, Rumour]]:
        self.host.pass_time(0)
        return self.host.take(Rumour)


@pytest.mark.parametrize("members", [1, 2, 50, 200, 1000, 10**6])
@pytest.mark.parametrize("loss", [0.0, 0.05, 0.5])
def test_fanout_and_hops_are_the_formulas(members: int, loss: float) -> None:
    """Tickets 4: f = ceil((ln N + 4)/(1 - loss)), at least 3; hops = ceil(ln N) + 3."""
    assert fanout(members, loss=loss) == max(3, ceil((log(members) + 4) / (1 - loss)))
    assert hops(members) == ceil(log(members)) + 3


def test_the_fanout_never_passes_the_limit() -> None:
    """F17, whatever loss somebody measured."""
    assert fanout(10**6, loss=0.9) == FANOUT_MAX


def test_a_cast_goes_to_some_others_once_each() -> None:
    """Tickets 5.9: f members of the topic, chosen at random, not oneself."""
    node = Listening()
    rumour = node.cast.cast(TOPIC, b"news")
    sent = node.sent()
    assert rumour == RumourId(node.host.me, TOPIC, 1)
    assert len({to for to, _ in sent}) == len(sent) == fanout(50)
    assert node.host.me not in {to for to, _ in sent}
    assert {message for _, message in sent} == {Rumour(node.host.me, TOPIC, 1, hops(50) - 1, b"news")}
    assert node.cast.cast(TOPIC, b"more").seq == 2
    assert node.heard == []


def test_the_first_sight_is_delivered_and_passed_on_once() -> None:
    """Tickets 5.9, infect and die."""
    node = Listening()
    node.receive(1, left=2)
    assert node.heard == [(RumourId(NodeId("n001", 1), TOPIC, 1), b"p")]
    sent = node.sent()
    assert len(sent) == fanout(50)
    assert {message.hops for _, message in sent} == {1}
    node.receive(1, left=9)
    assert len(node.heard) == 1
    assert node.sent() == []
    assert node.cast.counts["duplicate"] == 1


def test_a_rumour_out_of_hops_is_delivered_and_not_passed_on() -> None:
    """Tickets 5.9: "if hops left forward once"."""
    node = Listening()
    node.receive(1, left=0)
    assert len(node.heard) == 1
    assert node.sent() == []


def test_a_peer_cannot_make_a_rumour_run_for_ever() -> None:
    """F17: what a peer asks of us has a limit."""
    node = Listening()
    node.receive(1, left=10**9)
    assert {message.hops for _, message in node.sent()} == {module.HOPS_MAX - 1}


def test_lives_are_told_apart() -> None:
    """F1: the same number from the next life of the same name is another rumour."""
    node = Listening()
    node.receive(1, boot=1)
    node.receive(1, boot=2)
    assert [rumour.origin.boot for rumour, _ in node.heard] == [1, 2]


def test_nobody_hears_its_own_rumour() -> None:
    """Also not one of a former life: whoever cast it knows it."""
    node = Listening()
    node.receive(1, origin="n000", boot=1)
    node.receive(1, origin="n000", boot=0)
    assert node.heard == []
    assert node.sent() == []


@given(st.lists(st.integers(-3, 3000), max_size=60))
def test_at_most_once_in_any_order(seqs: list[int]) -> None:
    """Foundation 4: at most once, whatever order and repetition; and at least the newest of each is seen while it fits."""
    window = Window()
    seen = [seq for seq in seqs if window.first_sight(seq)]
    assert len(seen) == len(set(seen))
    assert set(seen) == {seq for seq in seqs if seq > 0}
    assert len(window.above) <= WINDOW_MAX


def test_the_window_slides() -> None:
    """Tickets 5.9: at most 1024 above the contiguous ones; what falls out counts as seen, so nothing is delivered twice."""
    window = Window()
    seqs = range(10, 10 + 2 * (WINDOW_MAX + 50), 2)  # every second one is missing
    assert all(window.first_sight(seq) for seq in seqs)
    assert len(window.above) <= WINDOW_MAX
    assert not any(window.first_sight(seq) for seq in seqs)
    assert not window.first_sight(11)
    assert window.first_sight(seqs[-1] - 1)
    contiguous = Window()
    assert all(contiguous.first_sight(seq) for seq in range(1, 5000))
    assert not contiguous.above


def test_windows_are_forgotten_ten_minutes_after_the_member_left() -> None:
    """Tickets 5.9; a life that is still listed is never forgotten."""
    node = Listening()
    node.receive(1, origin="n001", boot=1)  # listed
    node.receive(1, origin="gone", boot=1)
    node.host.pass_time(FORGET_AFTER - 1)
    node.receive(1, origin="gone", boot=1)
    assert len(node.heard) == 2
    node.host.pass_time(130)  # two sweeps
    node.receive(1, origin="gone", boot=1)
    node.receive(1, origin="n001", boot=1)
    assert [rumour.origin.name for rumour, _ in node.heard] == ["n001", "gone", "gone"]


def test_a_full_table_drops_and_never_doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    """F17: a limit and a counter; at most once comes first."""
    monkeypatch.setattr(module, "WINDOWS_MAX", 1)
    node = Listening()
    node.receive(1, origin="n001")
    node.receive(1, origin="n003")
    node.receive(1, origin="n003")
    assert len(node.heard) == 1
    assert node.cast.counts["table_full"] == 2


def test_one_callback_reaches_at_most_64_peers() -> None:
    """F17: many casts at once leave in several callbacks, none lost."""
    node = Listening(size=300)
    per_callback: list[int] = []
    after = node.host.after

    def counting(delay: float, callback: object) -> object:
        def run() -> None:
            before = len(node.host.sent)
            callback()  # type: ignore[operator]
            per_callback.append(len({to for to, _ in node.host.sent[before:]}))

        return after(delay, run)

    node.host.after = counting  # type: ignore[method-assign, assignment]
    for _ in range(40):
        node.cast.cast(TOPIC, b"x")
    assert node.host.sent == []
    assert len(node.sent()) == 40 * fanout(300)
    assert max(per_callback) <= FANOUT_MAX


def test_a_topic_nobody_listens_to_here_is_not_passed_on() -> None:
    """A sender's list may be older than our leaving."""
    node = Listening()
    node.receive(1, topic="other")
    node.cast.leave(TOPIC)
    node.receive(1)
    assert node.heard == []
    assert node.sent() == []
    assert node.cast.counts["not_joined"] == 2


def test_joining_and_leaving_are_published() -> None:
    """Tickets 5.9: join adds the topic to the agent's rows, leave removes it; several listeners share one row."""
    host = FakeHost("n000")
    roster = Roster(host, [], hello_period=0)
    cast = Broadcast(host, roster)
    heard: list[str] = []
    cast.on_rumour("x", lambda rumour, payload: heard.append("first"))
    cast.on_rumour("x", lambda rumour, payload: heard.append("second"))
    assert [member.id for member in roster.members("x")] == [host.me]
    cast.on_message(NodeId("b", 1), Rumour(NodeId("b", 1), "x", 1, 0, b""))
    assert heard == ["first", "second"]
    cast.leave("x")
    assert roster.members("x") == ()


@pytest.mark.parametrize("topic, payload", [("", b""), ("x" * 65, b""), ("t", b"x" * (PAYLOAD_BYTES_MAX + 1))])
def test_what_a_user_gets_wrong_is_said(topic: str, payload: bytes) -> None:
    """STYLE: the field and the accepted values."""
    node = Listening()
    with pytest.raises(ConfigError, match="accepted are"):
        node.cast.cast(topic, payload)


@pytest.mark.parametrize("topic, payload", [("x" * 65, b""), (TOPIC, b"x" * (PAYLOAD_BYTES_MAX + 1))])
def test_what_a_peer_gets_wrong_is_counted(topic: str, payload: bytes) -> None:
    """STYLE: a counted drop, no exception."""
    node = Listening()
    node.receive(1, topic=topic, payload=payload)
    assert node.cast.counts["malformed"] == 1
    assert node.heard == []


def test_a_member_never_heard_before_is_reached_where_the_list_says() -> None:
    """Foundation 3 (meet): whom to send to comes from the membership, so does the address."""
    node = Listening(size=2)
    node.cast.cast(TOPIC, b"x")
    assert node.host.met == {NodeId("n001", 1): Address("n001", 1)}


def test_topics_without_end_cost_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """F17: whoever casts to a new topic every time fills no table, and no number comes twice in a topic."""
    monkeypatch.setattr(module, "TOPICS_MAX", 5)
    node = Listening()
    numbers: dict[str, list[int]] = {}
    for turn in range(200):
        topic = f"user {turn % 2 or turn % 17}"
        numbers.setdefault(topic, []).append(node.cast.cast(topic, b"").seq)
        assert max(len(node.cast._last_seq), len(node.cast._peers)) <= 5
    assert all(each == sorted(set(each)) for each in numbers.values())
