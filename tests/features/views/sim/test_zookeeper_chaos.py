"""Members of an ensemble in memory under faults: what views promise holds after every event.  Spec: views 5Z, D21, D22; G1, G2, G5-G7.

Connections break and are noticed late, servers go on answering when they are cut off (for as long as ``zk_stale`` says), sessions end,
agents restart under a higher boot while their former life still believes, answers come from former connections, letters pass all the
time, and clocks drift.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from holdfast.events import ViewChanged, ViewLost, ViewTripped
from holdfast.features.views.protocol.config import RHO_MIN
from holdfast.host import Carried, NodeId, View
from tests.features.views.fake_ensemble import CONFIG, STALE, FakeSession, Note, Seat, Stand
from tests.sizes import seeds

CHAOS = 40.0  # seconds
CALM = 15.0
DRIFT = 0.004


class Sent:
    """A letter of this test, by its text."""

    def __init__(self, sender: Seat, to: NodeId, at: float) -> None:
        self.sender, self.to, self.at = sender, to, at
        self.results: list[Carried] = []
        self.ended_at = 0.0


class Watcher:
    """Sees all members after every event, and knows which are told to stop."""

    def __init__(self, stand: Stand) -> None:
        self.stand = stand
        self.seats: list[Seat] = []
        self.lists: dict[int, View] = {}  # by number
        self.installed: dict[NodeId, list[tuple[float, int]]] = {}
        self.told: dict[NodeId, list[tuple[float, type]]] = {}  # events of views
        self.sent: dict[str, Sent] = {}
        self.seen: Counter[str] = Counter()
        self._read: dict[NodeId, int] = {}

    def look(self) -> None:
        now = self.stand.clockwork.now
        for seat in self.seats:
            self._read_events(seat, now)
        leased = [(seat, seat.views.view) for seat in self.seats if seat.views.view is not None]
        for seat, view in leased:
            assert view is not None
            for other, others in leased:
                assert others is not None
                self._compare(seat, view, other, others)

    def _read_events(self, seat: Seat, now: float) -> None:
        emitted = seat.host.emitted
        for event in emitted[self._read.get(seat.me, 0) :]:
            if isinstance(event, ViewChanged | ViewLost | ViewTripped):
                self.told.setdefault(seat.me, []).append((now, type(event)))
                self.seen[type(event).__name__] += 1
            if isinstance(event, ViewChanged):
                self._install(seat, event.view, now)
        self._read[seat.me] = len(emitted)

    def _install(self, seat: Seat, view: View, now: float) -> None:
        known = self.lists.setdefault(view.number, view)
        assert known.members == view.members, "G1: one number, two lists"
        numbers = self.installed.setdefault(seat.me, [])
        assert not numbers or numbers[-1][1] < view.number, "G2: numbers grow"
        found = view.find(seat.me.name)
        assert found is not None, "G2: the view contains its member"
        assert found.id == seat.me, "G2: in this life"
        numbers.append((now, view.number))

    def _compare(self, seat: Seat, view: View, other: Seat, others: View) -> None:
        """There is one sequence of views, so G6 (a) and (b) say: whatever is ``settled`` has no lease on an older one beside it."""
        if others.number < view.number and seat.views.settled:
            raise AssertionError(f"G6: {seat.me} has settled in {view.number}, and {other.me} has a lease on {others.number}")

    def carry(self, seat: Seat, to: NodeId) -> None:
        text = f"{len(self.sent)}"
        sent = self.sent[text] = Sent(seat, to, self.stand.clockwork.now)

        def done(result: Carried) -> None:
            sent.results.append(result)
            sent.ended_at = self.stand.clockwork.now
            self.seen[result.name] += 1

        seat.views.carry(to, Note(text), done)

    def check_letters(self, stopped: set[NodeId]) -> None:
        heard = Counter((seat.me, text) for seat in self.seats for text in seat.heard)
        assert max(heard.values(), default=1) == 1, "G7: at most once"
        for text, sent in self.sent.items():
            assert len(sent.results) <= 1
            if not sent.results:
                assert sent.sender.me in stopped
            elif sent.results == [Carried.DELIVERED]:
                assert heard[sent.to, text] == 1, "G7: success is delivery"
            elif sent.results == [Carried.TRIPPED]:
                self._check_news(sent, stopped)
            else:
                assert heard[sent.to, text] == 0

    def _check_news(self, sent: Sent, stopped: set[NodeId]) -> None:
        """G5, unless the sender tripped lately, or was stopped."""
        assert sent.ended_at <= sent.at + CONFIG.ov_deadline * (1 + DRIFT) + 0.001
        told = self.told[sent.sender.me]
        until = sent.at + CONFIG.ov_deadline + CONFIG.lease + 3.0
        news = [at for at, _ in told if sent.at <= at <= until]
        lately = [at for at, kind in told if kind is ViewTripped and at > sent.at - 330.0]
        assert news or lately or sent.sender.me in stopped or until > self.stand.clockwork.now, "G5: nothing was told"


class Chaos:
    """Faults of one run."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.stand = Stand("", seed=seed)
        self.watcher = Watcher(self.stand)
        self.running: dict[str, Seat] = {}
        self.stopped: set[NodeId] = set()
        self.slow = self.random.choice((0.005, 0.05, 0.2))
        for name in "abcde"[: self.random.randint(2, 5)]:
            self._begin(name, 1)
        self.stand.clockwork.after_each = self.watcher.look

    def run(self) -> None:
        end = self.stand.clockwork.now + CHAOS
        while self.stand.clockwork.now < end:
            self.random.choice(self._faults())()
            for _ in range(self.random.randint(0, 4)):
                self._carry()
            self.stand.run(self.random.uniform(0.0, 0.8))
        self._heal()

    def _faults(self) -> list[Callable[[], None]]:
        often: list[Callable[[], None]] = [self._break_off, self._join, self._join, self._freeze, self._blip]
        return [*often, *often, self._outage, self._trip, self._restart, self._take_leave, lambda: None, lambda: None, lambda: None]

    def _begin(self, name: str, boot: int) -> None:
        seat = Seat(self.stand, NodeId(name, boot), drift=self.random.uniform(-DRIFT, DRIFT))
        seat.sessions.delay = lambda: self.random.uniform(0.001, self.slow)
        seat.sessions.late = self.random.random() < 0.5
        seat.views.take_part()
        self.running[name] = seat
        self.watcher.seats.append(seat)

    def _any(self) -> Seat:
        return self.random.choice([*self.running.values()])

    def _session(self) -> FakeSession:
        return self._any().session

    def _break_off(self) -> None:
        self._session().break_off(noticed_after=self.random.choice((0.0, 0.5, 2.7)))

    def _join(self) -> None:
        session = self._session()
        session._suspend()
        session.join()

    def _blip(self) -> None:
        self._session().blip()

    def _freeze(self) -> None:
        session = self._session()
        if session.frozen is None and session.connected and not session.cut:
            session.freeze()
            stale = self.random.choice((STALE, self.random.uniform(0.0, STALE)))
            self.stand.clockwork.at(self.stand.clockwork.now + stale, lambda: self._thaw(session))
            self.random.choice((self._trip, self._restart, self._take_leave))()  # News that it does not hear.

    def _thaw(self, session: FakeSession) -> None:
        """The server noticed that it has no quorum, and closes its connections."""
        if session.frozen is not None:
            session.break_off(noticed_after=self.random.choice((0.0, 1.0)))
            session.frozen = None

    def _outage(self) -> None:
        """No leader: every connection breaks, and every session gets its whole time again."""
        for seat in self.running.values():
            seat.session.break_off()
            if seat.session._expiry is not None:
                seat.session._expiry.cancel()
                seat.session._expiry = None
            seat.session._forsake()
            self.stand.clockwork.at(self.stand.clockwork.now + self.random.uniform(0.1, 2.0), seat.session.join)

    def _trip(self) -> None:
        self._any().views.trip("chaos")

    def _restart(self) -> None:
        """The former life was killed, or lives on without its group: a pause, a network of its own."""
        seat = self._any()
        self.stopped.add(seat.me)
        if self.random.random() < 0.5:
            seat.session.break_off(noticed_after=2.7)
        else:
            seat.session.break_off()
            seat.views.stop()
        self._begin(seat.me.name, seat.me.boot + 1)

    def _take_leave(self) -> None:
        seat = self._any()
        seat.views.withdraw()
        self.stand.clockwork.at(self.stand.clockwork.now + self.random.uniform(0.0, 3.0), seat.views.take_part)

    def _carry(self) -> None:
        seat = self._any()
        view = seat.views.view
        if view is not None:
            self.watcher.carry(seat, self.random.choice(view.members).id)

    def _heal(self) -> None:
        for seat in self.watcher.seats:
            if seat not in self.running.values():
                seat.views.stop()
        for seat in self.running.values():
            seat.session._suspend()
            seat.session.frozen = None
            seat.session.join()
        self.stand.run(CALM)

    def check(self) -> None:
        self.watcher.check_letters(self.stopped)
        expected = tuple(sorted(seat.me for seat in self.running.values()))
        for seat in self.running.values():
            view = seat.views.view
            assert view is not None, "views come back"
            assert tuple(member.id for member in view.members) == expected
            assert seat.views.settled
        assert len({seat.number for seat in self.running.values()}) == 1


@pytest.mark.parametrize("seed", range(seeds()))
def test_promises_hold_under_faults(seed: int) -> None:
    """G1, G2, G5, G6 (a) and (b), G7 after every event, and G4 when the faults have stopped."""
    chaos = Chaos(seed)
    chaos.run()
    chaos.check()


def test_faults_do_what_they_are_for() -> None:
    """A chaos in which nothing happens would prove nothing."""
    seen: Counter[str] = Counter()
    for seed in range(5):
        chaos = Chaos(seed)
        chaos.run()
        seen += chaos.watcher.seen
        seen["older"] += sum(seat.views._older for seat in chaos.watcher.seats)
        seen["late"] += sum(seat.views.link.late for seat in chaos.watcher.seats)
    wanted = {"ViewChanged", "ViewLost", "ViewTripped", "DELIVERED", "TRIPPED", "late"}
    assert wanted <= {name for name, count in seen.items() if count > 0}, seen
    assert RHO_MIN > DRIFT
