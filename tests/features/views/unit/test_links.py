"""Links between servers.  Spec: views 5.1, D1, D11, D13, D25; foundation F3, F11."""

from __future__ import annotations

from collections import Counter

import pytest

from holdfast.features.views.protocol.facts import LinkDown, LinkUp
from holdfast.features.views.protocol.links import QUARANTINES_MAX, Link, Links, Quarantine
from holdfast.features.views.protocol.messages import LinkPing, LinkPong
from holdfast.host import NodeId
from holdfast.kit.slots import Slot
from tests.features.views.stand import CONFIG, HB, S0, S1, S2, at, slots_of
from tests.support.fake_host import FakeHost


class Stand:
    """The links of s0; it owns them as well."""

    used = True

    def __init__(self, slots: tuple[Slot, ...] | None = None) -> None:
        self.host = FakeHost(*S0)
        self.counts: Counter[str] = Counter()
        self.changes: list[tuple[str, NodeId | None]] = []
        self.links = Links(self.host, CONFIG, slots_of(3) if slots is None else slots, 0, self, self.counts)

    @property
    def first(self) -> Link:
        return self.links.all[1]

    def on_link_up(self, link: Link) -> None:
        self.changes.append(("up", link.life))

    def on_link_down(self, link: Link) -> None:
        self.changes.append(("down", link.life))

    def ask(self) -> int:
        """The number of the question."""
        self.links.ask()
        return self.host.take(LinkPing)[-1][1].seq

    def answer(self, seq: int, source: NodeId = S1, slot: int = 1) -> float | None:
        asked_at = self.links.on_pong(source, LinkPong(seq, slot, ()))
        if asked_at is not None:
            self.links.raise_if_proved(slot)
        return asked_at

    def bring_up(self) -> None:
        for _ in range(CONFIG.up_count):
            self.answer(self.ask())
            self.host.pass_time(HB)
        assert self.first.up


@pytest.fixture
def stand() -> Stand:
    return Stand()


def test_every_other_slot_is_asked(stand: Stand) -> None:
    """Views 5.1, D1: by the addresses of the slots, with a new number each time."""
    stand.links.ask()
    stand.links.ask()
    asked = stand.host.take(LinkPing)
    assert [to for to, _ in asked] == [at(S1), at(S2)] * 2
    assert [ping.seq for _, ping in asked] == [1, 1, 2, 2]


def test_two_answers_in_a_row_bring_a_link_up(stand: Stand) -> None:
    """Views 4 (up_count), 5.1: one answer may be the last one of a peer that dies."""
    stand.answer(stand.ask())
    assert not any(link.up for link in stand.links.all.values())
    stand.answer(stand.ask())
    assert stand.links.up == (S1,)
    assert stand.changes == [("up", S1)]
    assert stand.host.events(LinkUp) == [LinkUp(S1)]


def test_answers_with_silence_between_are_not_in_a_row(stand: Stand) -> None:
    """Views 2 (ok), 5.1: a peer that answers once a minute has no link, and does not flap."""
    for _ in range(4):
        stand.answer(stand.ask())
        assert not stand.first.up
        stand.host.pass_time(CONFIG.link_timeout + HB)
        stand.links.judge()


def test_an_answer_is_counted_from_its_question(stand: Stand) -> None:
    """Views 5.1, D24: ``last`` is the send time, so a slow answer keeps no link up for longer."""
    stand.bring_up()
    seq = stand.ask()
    asked_at = stand.host.now
    stand.host.pass_time(0.9 * CONFIG.link_timeout)
    assert stand.answer(seq) == asked_at
    stand.host.pass_time(0.2 * CONFIG.link_timeout)
    stand.links.judge()
    assert not stand.first.up


@pytest.mark.parametrize("silence", [0.99, 1.01])
def test_silence_takes_a_link_down(stand: Stand, silence: float) -> None:
    """Views 5.1: older than ``link_timeout``; after it, answers in a row are asked for again."""
    stand.bring_up()
    stand.host.clock = stand.first.last + silence * CONFIG.link_timeout
    stand.links.judge()
    assert stand.first.up == (silence < 1)
    if silence > 1:
        assert stand.first.ok == 0
        assert stand.host.events(LinkDown) == [LinkDown(S1, "silent", 0.0)]
        assert stand.changes[-1] == ("down", S1)


def silent(stand: Stand, heartbeats: int) -> float:
    """The link comes up; its peer answers no question after the one that this is the instant of. Each heartbeat is 10 ms early then, as
    where the one of the last answered question was late."""
    stand.bring_up()
    stand.answer(stand.ask())
    last = stand.first.last
    for number in range(1, heartbeats + 1):
        stand.host.pass_time(last + number * HB - 0.01 - stand.host.now)
        stand.links.judge()
        stand.ask()
    return last


def test_a_silent_link_does_not_wait_for_a_heartbeat(stand: Stand) -> None:
    """H255, views 4 (``link_timeout``): down when the silence has lasted for so long, and not up to a heartbeat later."""
    last = silent(stand, heartbeats=4)
    was_up = []
    for around in (-0.001, 0.001):
        stand.host.pass_time(last + CONFIG.link_timeout + around - stand.host.now)
        was_up.append(stand.first.up)
    assert was_up == [True, False]
    assert stand.host.events(LinkDown) == [LinkDown(S1, "silent", 0.0)]
    assert stand.first.ok == 0
    stand.host.pass_time(CONFIG.link_timeout)
    assert stand.changes.count(("down", S1)) == 1


def test_an_answer_in_the_last_moment_keeps_a_link_up(stand: Stand) -> None:
    """H255, views 5.1: the timer is of one silence."""
    silent(stand, heartbeats=3)
    stand.answer(stand.ask())
    stand.host.pass_time(2 * HB)
    assert stand.first.up


def test_a_link_that_answers_sets_no_timer(stand: Stand) -> None:
    """H255: an idle group has no more wake-ups than before."""
    stand.bring_up()
    for _ in range(20):
        stand.answer(stand.ask())
        stand.host.pass_time(HB)
        stand.links.judge()
    assert stand.first.timer is None


def test_a_late_timer_accuses_no_link(stand: Stand) -> None:
    """Foundation F11, H255: this process was stopped, and its peer may have answered all the time."""
    silent(stand, heartbeats=4)
    stand.host.pause(3 * HB)
    assert stand.first.up


def test_links_that_stop_judge_no_more(stand: Stand) -> None:
    """H255, H227: a server that retires has no timers."""
    silent(stand, heartbeats=4)
    stand.links.stop()
    stand.host.pass_time(CONFIG.link_timeout)
    assert stand.first.up
    assert stand.changes == [("up", S1)]


def test_a_late_answer_proves_nothing(stand: Stand) -> None:
    """Views 5.1: its question is older than ``link_timeout``."""
    seq = stand.ask()
    stand.host.pass_time(1.01 * CONFIG.link_timeout)
    assert stand.answer(seq) is None
    assert stand.first.ok == 0
    assert stand.counts["late"] == 1


def test_an_answer_counts_once(stand: Stand) -> None:
    """Views 5.1: a doubled datagram is one answer, an unknown number is none."""
    seq = stand.ask()
    assert stand.answer(seq) is not None
    assert stand.answer(seq) is None
    assert stand.answer(seq + 1) is None
    assert (stand.first.ok, stand.counts["late"]) == (1, 2)


def test_old_questions_are_forgotten(stand: Stand) -> None:
    """Views 2 (sent): a peer that never answers costs no memory."""
    for _ in range(50):
        stand.ask()
        stand.host.pass_time(HB)
    assert len(stand.first.sent) <= CONFIG.link_timeout / HB + 1


def test_a_new_life_begins_anew(stand: Stand) -> None:
    """Views 5.1, D6: it takes the link down first and has to prove itself; the former life is heard no more."""
    stand.bring_up()
    newer = NodeId(S1.name, S1.boot + 1)
    stand.answer(stand.ask(), newer)
    assert not stand.first.up
    assert stand.host.events(LinkDown) == [LinkDown(S1, "restarted", 0.0)]
    assert (stand.first.life, stand.first.ok) == (newer, 1)
    assert stand.answer(stand.ask(), S1) is None
    assert stand.counts["stranger"] == 1
    stand.answer(stand.ask(), newer)
    assert stand.links.up == (newer,)


def test_only_the_agent_of_a_slot_speaks_for_it(stand: Stand) -> None:
    """Views D1, 5.1: another name, another slot, the own slot, a slot that there is not: counted, and nothing changes."""
    seq = stand.ask()
    for source, slot in ((S2, 1), (S1, 2), (S0, 0), (S1, 9), (S1, -1)):
        assert stand.answer(seq, source, slot) is None
    assert stand.counts["stranger"] == 5
    assert all(link.life is None for link in stand.links.all.values())


def test_a_slot_without_a_name_is_its_address() -> None:
    """Foundation F12: where the settings give no name, the newest life that answers there is the server."""
    slots = tuple(Slot(i, str(at(life)), at(life)) for i, life in enumerate((S0, S1)))
    stand = Stand(slots)
    stand.answer(stand.ask(), NodeId("any", 7))
    stand.answer(stand.ask(), NodeId("any", 7))
    assert stand.links.up == (NodeId("any", 7),)
    assert stand.answer(stand.ask(), NodeId("older", 6)) is None


def test_a_failed_hop_takes_the_link_down_for_a_while(stand: Stand) -> None:
    """Views 5.7, D13: the next heartbeat must not undo it."""
    stand.bring_up()
    stand.links.fail(stand.first, "a message did not pass")
    assert not stand.first.up
    for _ in range(round(CONFIG.quarantine / HB)):
        stand.answer(stand.ask())
        assert not stand.first.up
        stand.host.pass_time(HB)
    stand.answer(stand.ask())
    assert stand.first.up


def test_messages_that_fail_together_are_one_failure(stand: Stand) -> None:
    """Views 4 (quarantine): it doubles when the link fails again, not for each message that was under way when it failed."""
    stand.bring_up()
    for _ in range(20):
        stand.links.fail(stand.first, "a message did not pass")
    assert stand.first.quarantine_until == stand.host.now + CONFIG.quarantine
    assert stand.links.quarantines == 1
    assert stand.changes.count(("down", S1)) == 1


def test_quarantine_doubles_while_it_repeats() -> None:
    """Views 4: 2 s, 4 s ... 60 s; five minutes without a failure end that."""
    quarantine = Quarantine(CONFIG)
    now, lengths = 0.0, []
    for _ in range(7):
        lengths.append(quarantine.length(1, now))
        now += 70
    assert lengths == [2, 4, 8, 16, 32, 60, 60]
    assert quarantine.length(2, now) == 2
    assert quarantine.length(1, now + CONFIG.quarantine_window + 1) == 2


def test_quarantines_that_are_remembered_have_a_limit() -> None:
    """Views 2: names that fail once do not pile up."""
    quarantine = Quarantine(CONFIG)
    for i in range(QUARANTINES_MAX + 50):
        quarantine.length(f"c{i}", 0.0)
    assert len(quarantine._failed) == QUARANTINES_MAX
    quarantine.length("c", CONFIG.quarantine_window + 1)
    assert len(quarantine._failed) == 1
