"""The worker processes of one agent: split, told, held.  Spec: limits 5.1, D22; foundation F9, F14."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from random import Random

import pytest

from holdfast.features.limits.protocol.outlet import Allotment, Wants
from holdfast.features.limits.protocol.workers import SILENT_AFTER, UNCONFIRMED_MAX, WORKERS_MAX, Tell, Workers, split

LEASE = 3.0
TINY = 1e-6


@dataclass
class Process:
    """A worker as the client is: it goes by the last tell that it read, and confirms it with its next word."""

    unread: list[Tell] = field(default_factory=list)
    tell: Tell | None = None
    hangs: bool = False

    def usable(self, now: float) -> float:
        return self.tell.usable(now) if self.tell is not None else 0.0

    def may_use(self, now: float) -> float:
        """What the checker counts: it may have read any of them, or none yet."""
        return max((tell.usable(now) for tell in [*([self.tell] if self.tell else []), *self.unread]), default=0.0)


class Stand:
    """Workers of one agent and their processes, at a clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.processes: dict[int, Process] = {}
        self.workers = Workers(lambda: self.now, lambda number, tell: self.processes[number].unread.append(tell))
        self.less = 0
        self.workers.on_less = self._count
        self.allotment = Allotment(0.0, -inf, 0.0, -inf)

    def _count(self) -> None:
        self.less += 1

    def attach(self, *numbers: int, weight: float = 1.0) -> None:
        for number in numbers:
            self.processes[number] = Process()
            self.workers.attach(number, weight)

    def allot(
        self, rate: float, *, lease: float = LEASE, after: float = inf, ends_in: float = inf, limit: float = 1000, burst: float = 100
    ) -> None:
        self.allotment = Allotment(rate, self.now + lease, after, self.now + ends_in, limit, burst)
        self.workers.allot(self.allotment)

    def read(self, number: int) -> Tell | None:
        """The process reads what it was told, but has not confirmed it yet."""
        one = self.processes[number]
        if one.unread and not one.hangs:
            one.tell = one.unread[-1]
            one.unread.clear()
        return one.tell

    def say(self, number: int, arrived: float = 0.0, waiting: float = 0.0, user: float | None = None) -> None:
        """The process reads, and reports; what it was told from then on is confirmed."""
        one = self.processes[number]
        if not one.hangs:
            self.read(number)
            self.workers.report(number, one.tell.serial if one.tell is not None else 0, arrived, waiting, user)

    def talk(self, **wants: float) -> None:
        """An epoch: each reports twice, so that all that was told is confirmed; then the limiter looks and allots anew."""
        for number in self.processes:
            self.say(number, arrived=wants.get(f"w{number}", 0.0))
        for number in self.processes:
            self.say(number)
        self.now += 0.5
        self.workers.wants()
        self.workers.allot(self.allotment._replace(until=self.now + LEASE))

    def usable(self) -> dict[int, float]:
        return {number: one.usable(self.now) for number, one in self.processes.items()}


@pytest.fixture
def stand() -> Stand:
    return Stand()


def test_one_worker_gets_all_that_its_agent_may_use(stand: Stand) -> None:
    """Limits 5.1: the agent splits its L; the bucket's depth is max(d_min, B * L / R)."""
    stand.attach(1)
    stand.allot(200)
    tell = stand.read(1)
    assert tell is not None
    assert (tell.rate, tell.depth, tell.until) == (200, 20, stand.now + LEASE)


def test_a_worker_that_starts_gets_its_part_once_the_other_confirmed_less(stand: Stand) -> None:
    """D22:

    raising one waits until the others have acknowledged less; the part comes from the agent's L, never from 1/n of its
    own."""
    stand.attach(1)
    stand.allot(200)
    stand.say(1)
    stand.attach(2)
    assert stand.processes[2].unread == []
    lower = stand.read(1)
    assert lower is not None
    assert lower.rate == 100
    assert stand.workers.told == 200
    stand.say(1)
    assert stand.processes[2].unread[-1].rate == 100
    assert stand.workers.told == 200


def test_a_worker_that_hangs_keeps_what_it_was_told_until_its_time(stand: Stand) -> None:
    """Limits 5.1, F14: then ``after`` until ``ends_at``; what is free by that is given to the others."""
    stand.attach(1, 2)
    stand.allot(200, after=50, ends_in=2 * LEASE)
    stand.talk(w1=1000, w2=1000)
    stand.processes[1].hangs = True
    stand.talk(w2=1000)  # What it had said before it hung counts for one renewal.
    given_at, kept = stand.now, stand.workers.workers[1].held(stand.now)
    assert kept == pytest.approx(100)
    until = max(tell.until for tell in stand.workers.workers[1].told)
    while stand.now < until - 0.5:
        stand.talk(w2=1000)
        assert stand.workers.workers[1].held(stand.now) == pytest.approx(kept)
        assert stand.usable()[2] <= 100 + TINY
    assert stand.now > given_at
    stand.now = until
    stand.talk(w2=1000)
    stand.talk(w2=1000)
    assert stand.workers.workers[1].held(stand.now) == pytest.approx(25)
    assert 150 < stand.usable()[2] <= 175 + TINY
    stand.now = max(tell.ends_at for tell in stand.workers.workers[1].told)
    assert stand.workers.workers[1].held(stand.now) == 0


def test_a_worker_that_hangs_is_not_given_more_time(stand: Stand) -> None:
    """Limits 5.1:

    ``until`` is renewed in each epoch in which the worker used or wanted anything; one that hangs says neither."""
    stand.attach(1)
    stand.allot(200)
    stand.talk(w1=10)
    stand.say(1, waiting=5)
    stand.processes[1].hangs = True
    stand.talk()
    until = max(tell.until for tell in stand.workers.workers[1].told)
    for _ in range(6):
        stand.talk()
    assert max(tell.until for tell in stand.workers.workers[1].told) == until


def test_a_worker_that_is_known_to_be_dead_counts_no_more(stand: Stand) -> None:
    """Issue 16: a killed worker's part returns when the kernel confirms its death; the limiter hears that less is used."""
    stand.attach(1, 2)
    stand.allot(200)
    stand.talk(w1=1000, w2=1000)
    stand.say(2)
    before = stand.less
    stand.workers.detach(1)
    del stand.processes[1]
    assert stand.processes[2].unread[-1].rate == 200
    stand.talk(w2=1000)
    assert stand.usable() == {2: 200}
    stand.workers.detach(2)
    assert stand.workers.told == 0
    assert stand.less > before


def test_less_is_told_at_once_and_counts_when_it_is_confirmed(stand: Stand) -> None:
    """D22: "q -= give" is not "I use less": ``told`` falls with the worker's word, and the limiter is called."""
    stand.attach(1)
    stand.allot(200)
    stand.say(1)
    stand.allot(50)
    assert stand.workers.told == 200
    assert stand.less == 0
    stand.say(1)
    assert stand.workers.told == 50
    assert stand.less == 1


def test_an_idle_worker_costs_no_packet(stand: Stand) -> None:
    """Limits 5.1: an idle worker is not told anything new while its part is the same."""
    stand.attach(1)
    stand.allot(200)
    stand.talk()
    serial = stand.workers.workers[1].told[-1].serial
    for _ in range(20):
        stand.talk()
    assert stand.workers.workers[1].told[-1].serial == serial


def test_an_active_worker_is_given_more_time_before_its_time_is_over(stand: Stand) -> None:
    """Limits 5.1: what it was told is renewed while it uses or wants anything, with a third of the time gone; not with each report."""
    stand.attach(1)
    stand.allot(200)
    stand.talk(w1=5)
    first = stand.workers.workers[1].told[-1].serial
    for _ in range(20):
        stand.talk(w1=5)
        assert stand.workers.workers[1].told[-1].until >= stand.now + LEASE / 2
    assert stand.workers.workers[1].told[-1].serial <= first + 10


def test_a_worker_that_wants_something_after_a_long_rest_is_told_at_once(stand: Stand) -> None:
    """Limits 5.1:

    past ``ends_at`` an idle worker of an ``exact`` limit has nothing; its first report brings its part back."""
    stand.attach(1)
    stand.allot(200, after=0, ends_in=LEASE)
    stand.say(1)
    stand.now += 100
    assert stand.workers.told == 0
    stand.allot(200, after=0, ends_in=LEASE)
    assert stand.workers.told == 0
    stand.say(1, waiting=1)
    assert stand.processes[1].unread[-1].usable(stand.now) == 200


def test_a_worker_that_is_silent_past_its_time_holds_nothing(stand: Stand) -> None:
    """H280: with policy fair what a worker goes on with has no end; one that hangs does not use it, and others of its agent are not starved
    for it. One whose connection is gone is silent for another reason, and counts."""
    stand.attach(1, 2)
    stand.allot(200, after=200)
    for number, one in stand.processes.items():
        stand.say(number)
        one.hangs = True
    stand.workers.lose(2)
    stand.now += LEASE - 0.1
    assert stand.workers.told == 200
    stand.now += SILENT_AFTER
    assert stand.workers.told == 100
    stand.workers.lose(2, alone=False)
    stand.now += SILENT_AFTER + 0.1
    assert stand.workers.told == 0
    stand.processes[1].hangs = False
    stand.say(1, waiting=5)
    assert stand.workers.told > 0


def test_wants_are_sums_and_the_weight_is_the_largest(stand: Stand) -> None:
    """H276: the weight of a member is the largest of its workers'. Arrivals count once."""
    stand.attach(1, weight=0.3)
    stand.attach(2, weight=0.7)
    stand.say(1, arrived=5, waiting=1)
    stand.say(2, arrived=7, waiting=2, user=9.0)
    for arrived in (12, 0):
        assert stand.workers.wants() == Wants(arrived, 3, 9.0, 0.7)


def test_what_a_silent_worker_said_to_be_waiting_counts_no_more(stand: Stand) -> None:
    """Limits 5.2: demand is of processes that are there to use it; one that hangs has nothing to wait with."""
    stand.attach(1)
    stand.say(1, waiting=3)
    stand.now += SILENT_AFTER + 0.1
    assert stand.workers.wants().waiting == 0


def test_one_that_confirms_nothing_is_told_no_more(stand: Stand) -> None:
    """F17: what waits for one worker is bounded; one that does not read is told again when it has read."""
    stand.attach(1)
    for step in range(50):
        stand.allot(200 - step)
    assert len(stand.processes[1].unread) == 1 + UNCONFIRMED_MAX
    stand.say(1)
    stand.say(1)
    stand.say(1)
    assert stand.usable()[1] == 151


def test_the_number_of_workers_is_limited(stand: Stand) -> None:
    """Limits 10: 64 workers per agent and limit."""
    stand.allot(640)
    stand.attach(*range(WORKERS_MAX))
    assert stand.workers.full
    assert stand.workers.told <= 640 + TINY


def test_the_part_that_goes_on_without_an_agent_is_split_by_the_number_of_workers(stand: Stand) -> None:
    """Limits 5.1: past ``until``, or with the agent gone: min(last rate, R / (n k)), k = workers when it was last told."""
    stand.attach(1)
    stand.allot(1000, after=125)
    stand.talk(w1=1000)
    assert stand.processes[1].tell is not None
    assert stand.processes[1].tell.after == 125
    stand.attach(2)
    stand.talk(w1=1000, w2=1000)
    stand.talk(w1=1000, w2=1000)
    assert [stand.processes[number].tell.after for number in (1, 2)] == [62.5, 62.5]  # type: ignore[union-attr]


def test_workers_share_by_max_min() -> None:
    """Limits 5.2: one that wants little gets it, the rest is split by weight among those that want more."""
    shares = split(1000, {1: (900, 1.0), 2: (50, 1.0), 3: (0, 1.0), 4: (900, 0.5)})
    assert shares[2] == pytest.approx(51)
    assert shares[3] == pytest.approx(12.5)
    assert shares[1] == pytest.approx(2 * shares[4])
    assert sum(shares.values()) == pytest.approx(1000)
    assert sum(split(1000, {1: (10, 1.0), 2: (0, 1.0)}).values()) == pytest.approx(1000)


def test_a_busy_worker_gets_what_an_idle_one_leaves(stand: Stand) -> None:
    """Limits 5.1: the agent splits its L by the rule of 5.2, as demand moves."""
    stand.attach(1, 2)
    stand.allot(200)
    for _ in range(12):
        stand.talk(w1=1000)
    busy = stand.usable()
    assert busy[1] > 190
    for _ in range(24):
        stand.talk(w2=1000)
    assert stand.usable()[2] > 190


@pytest.mark.parametrize("seed", range(40))
def test_what_workers_may_use_never_exceeds_what_was_allotted_or_held_before(seed: int) -> None:
    """D22, RL4: at every step, whatever they have read, under any schedule of words, deaths and hangs."""
    chance, stand = Random(seed), Stand()
    after, numbers, raised = chance.choice([inf, 40.0]), 0, 0
    ends = chance.choice([inf, 2 * LEASE])
    for _ in range(400):
        had, kept = stand.workers.told, left(stand)
        step = chance.randrange(12)
        alive = list(stand.processes)
        if step == 0 and len(alive) < 6:
            numbers += 1
            stand.attach(numbers, weight=chance.choice([1.0, 0.5]))
        elif step == 1 and alive:
            gone = chance.choice(alive)
            del stand.processes[gone]
            stand.workers.detach(gone)
        elif step == 2 and alive:
            one = stand.processes[chance.choice(alive)]
            one.hangs = not one.hangs
        elif step in {3, 4}:
            stand.allot(chance.choice([0.0, 50, 200, chance.uniform(0, 500)]), after=after, ends_in=ends)
        elif step == 5:
            stand.now += chance.choice([0.01, 0.5, 1.0, LEASE, 10.0])
            had, kept = stand.workers.told, left(stand)
            stand.workers.wants()
        elif step == 6 and alive:
            stand.read(chance.choice(alive))
        elif alive:
            stand.say(chance.choice(alive), arrived=chance.choice([0, 0, 10, 500]), waiting=chance.choice([0, 0, 20]))
        told = stand.workers.told
        raised += told > had
        if ends < inf:
            assert sum(one.may_use(stand.now) for one in stand.processes.values()) <= told + TINY
        if ends < inf:  # Else what is silent past its time does not count (H280), and may be back.
            assert told <= max(stand.allotment.usable(stand.now), had) + TINY
            assert left(stand) <= max(stand.allotment.after, kept) + TINY
        for ahead in (0.3, 1.0, 2.9, 3.1, 5.9, 6.1, 20.0):
            assert sum(worker.held(stand.now + ahead) for worker in stand.workers.workers.values()) <= told + TINY
    assert raised > 10


def left(stand: Stand) -> float:
    """What all workers go on with when the times in ``until`` have passed."""
    return sum(worker.left(stand.now) for worker in stand.workers.workers.values())
