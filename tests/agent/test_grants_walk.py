"""F14 as an invariant of random clients, kinds, deaths and pauses, without sockets and processes.  Spec: foundation 4 (Grants)."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any

import pytest

from holdfast.agent.grants.granted import NEVER, State
from holdfast.agent.grants.granted import Granted as GrantedOne
from holdfast.agent.grants.grants import Grants
from holdfast.errors import HoldLost
from holdfast.local.calls import GrantItem
from tests.agent.law import Because, FakeHeld, FakeSession, Stand


class Walk:
    """Random clients, kinds and pauses; after every step the law is compared with what every client was told."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.stand = Stand()
        self.stopped: set[int] = set()
        self.confirmed: set[int] = set()  # those that did not at once
        self.of: dict[int, tuple[FakeSession, FakeHeld]] = {}

    def step(self) -> None:
        random, stand = self.random, self.stand
        number = random.choice(list(self.of)) if self.of and random.random() < 0.8 else 0
        if not number:
            session = stand.session(named=random.random() < 0.8, confirms=random.random() < 0.6)
            self.of[session.number] = session, stand.ask(session, name=f"x{session.number}")
            return
        session, held = self.of[number]
        steps = (self._grant, self._extend, self._extend, self._end, self._pause, self._time, self._time, self._confirm, self._stop)
        random.choice(steps)(session, held)
        stand.host.settle()

    def check(self) -> None:
        for number, (session, held) in self.of.items():
            assert len(held.calls) <= 1
            told = max((item.deadline for _, item in session.items if item.what in ("granted", "extended")), default=0.0)
            dead = session.client is not None and session.client.dead
            binds = self.stand.host.now < told and not dead and number not in self.stopped
            assert not (binds and held.calls), f"released while its client may act until {told}"
            over = not binds and told and (not session.connected or number in self.stopped or self.stand.host.now >= told)
            assert not (over and not held.calls), "nobody acts under it, and it is not released"
            if session.law is None and number not in self.confirmed:
                assert "extended" not in session.said, "extended for a client that did not take it up"

    def _grant(self, session: FakeSession, held: FakeHeld) -> None:
        if not held.calls and not session.said and not session.paused:
            self.stand.token += 1
            held.holder.on_granted(self.stand.token, self.stand.host.now + self.random.uniform(0.5, 5.0))

    def _extend(self, session: FakeSession, held: FakeHeld) -> None:
        if session.said and held.renewing:
            held.holder.on_extended(self.stand.host.now + self.random.uniform(0.5, 5.0))

    def _end(self, session: FakeSession, held: FakeHeld) -> None:
        how = self.random.randrange(5)
        if how == 0 and session.connected:
            self.stopped.add(session.number)
            self.stand.law.stopped(session, 1)
        elif how == 1 and session.connected:
            self.stand.leave(session)
        elif how == 2 and session.client is not None and not session.client.dead:
            self.stand.kill(session)
        elif how == 3 and session.said:
            held.holder.on_lost(Because("so"))
        elif how == 4 and session.connected:
            self.stand.law.close(session, 1)

    def _confirm(self, session: FakeSession, held: FakeHeld) -> None:
        if session.said and session.connected and not session.paused:
            with suppress(HoldLost):
                self.stand.law.confirm(session, 1, session.items[0][1].token)
                self.confirmed.add(session.number)

    def _pause(self, session: FakeSession, held: FakeHeld) -> None:
        was = session.paused
        session.paused = not was
        if was and session.connected:
            self.stand.law.readable(session)

    def _stop(self, session: FakeSession, held: FakeHeld) -> None:
        """Its process does not read any more, or reads again."""
        session.read = session.sent if session.read is None else None

    def _time(self, session: FakeSession, held: FakeHeld) -> None:
        length = self.random.uniform(0.0, 2.0)
        self.random.choice((self.stand.host.pass_time, self.stand.host.pause))(length)


def walk_all() -> None:
    for seed in range(60):
        walk = Walk(seed)
        for number in range(120):
            walk.step()
            try:
                walk.check()
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, step {number}: {error}") from error


def test_random_walks() -> None:
    """F14 as an invariant: never released while somebody may act, always released when nobody may, either cancelled or released, once."""
    walk_all()


def careless_detach(law: Grants, grant: GrantedOne, why: str) -> None:
    """A closed socket is taken for a death."""
    if grant.state is State.ASKED:
        law._cancel(grant)
    else:
        law._release(grant, why)


def careless_publish(law: Grants, grant: GrantedOne) -> None:
    """What a client was told is not counted."""
    if grant.published == NEVER:
        grant.published = grant.deadline
        grant.tell("granted")
        law._watch(grant)
    else:
        grant.session.push(grant.serial, GrantItem("extended", grant.token, grant.deadline, 0))


def careless_confirmed(grant: GrantedOne) -> bool:
    """Whoever was told holds it, whether it read that or not."""
    return True


def careless_dead(grant: GrantedOne) -> bool:
    """A client that the kernel cannot name counts as dead."""
    return all(body.dead for body in grant.bodies)


def careless_look(law: Grants, grant: GrantedOne) -> None:
    """Nobody looks: what ended by its deadline stays."""


@pytest.mark.parametrize(
    "where, what, instead",
    [(Grants, "_detach", careless_detach), (Grants, "_publish", careless_publish), (GrantedOne, "dead", property(careless_dead)),
     (Grants, "_look", careless_look), (GrantedOne, "confirmed", property(careless_confirmed, lambda grant, value: None))],
    ids=["socket", "publish", "unnamed", "look", "unread"],
)  # fmt: skip
def test_random_walks_catch(where: type, what: str, instead: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The walks can fail: each careless law is caught within the seeds that the right one passes."""
    monkeypatch.setattr(where, what, instead, raising=False)
    with pytest.raises(AssertionError):
        walk_all()
