"""The law of grants: published deadlines bind the publisher.  Spec: foundation F9, F14, F15, F16.

Between a protocol that holds something (``kinds``) and a client that acts under it stands one ``Granted`` with the last deadline that
was *published*: handed to the client's socket. It is released when the client said "stopped", when the kernel confirmed the death of
every body, or when that deadline has passed, and for no other reason. A closed socket only ends the extensions. Whatever
happens first looks at the clock: a grant whose published deadline has passed is over, also if its renewal is just coming in.

A client that was told is not yet a client that holds: it may be stopped. So nothing is extended before it confirmed that it read its first
deadline, nor while it has read nothing since the last one; what it lets pass so is lost, and not renewed for ever (H146, H148).

All of this runs in the host's turns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from holdfast.agent.grants.bodies import NOT_ASKED, Asked, Body, body_of
from holdfast.agent.grants.granted import NEVER, Granted, Session, State, Tokens, Turns
from holdfast.agent.grants.kinds import GrantKind, RefusedKind
from holdfast.agent.grants.owned import Keys
from holdfast.agent.grants.ways import Ways
from holdfast.errors import ConfigError, Forked, HoldLost, Unavailable, shown
from holdfast.events import AtRisk, Lost, Released, TokenRefused
from holdfast.events import Granted as GrantedEvent
from holdfast.kit.hold import Claim, LossReason
from holdfast.local.calls import Acquire, GrantItem
from holdfast.local.ends import LEAVING, RELEASES

if TYPE_CHECKING:
    from holdfast.agent.grants.reaper import Notice, Reaper

GRANTS_MAX = 4096  # of all clients together; each has a timer and up to BODIES_MAX descriptors
GRANTS_PER_SESSION_MAX = 256  # that one process may want at once
BODIES_MAX = 16  # commands that act under one grant, beside the client
NAME_BYTES_MAX = 128
READING_INTERVAL = 0.05  # seconds between two looks whether a client reads: a third of the shortest term there is


class Grants:
    """All grants of one agent life."""

    def __init__(self, host: Turns) -> None:
        self.host = host
        self.keys = Keys(host)
        self.kinds: dict[str, GrantKind] = {}
        self.ways = Ways()
        self.draining = False
        self.counts: Counter[str] = Counter()  # granted, lost, token_refused, and released by reason
        self._sessions: dict[int, dict[int, Granted]] = {}  # session -> serial -> grant
        self._tokens = Tokens()
        self._drained: list[Callable[[], None]] = []
        self._reaper: type[Reaper] | None = None  # None: no kind can be had, so no command is ever to be ended
        self.on_asked: Callable[[], None] = _nothing  # a client waits for something from now on
        self.notice: Notice = _unheard  # where it is told what the agent ended, or could not end

    def add(self, kind: GrantKind) -> None:
        assert kind.kind not in self.kinds
        self.kinds[kind.kind] = kind
        if self._reaper is None and not isinstance(kind, RefusedKind):
            from holdfast.agent.grants.reaper import Reaper  # Now and not when it is needed: F14 cannot wait for a disk (H221).

            self._reaper = Reaper

    def __len__(self) -> int:
        return sum(map(len, self._sessions.values()))

    @property
    def all(self) -> tuple[Granted, ...]:
        return tuple(each for grants in self._sessions.values() for each in grants.values())

    @property
    def published_until(self) -> float:
        """Nothing that was told to a client lasts longer."""
        return max((each.published for each in self.all), default=NEVER)

    # What clients ask for.

    def acquire(self, session: Session, call: Acquire, answer: Callable[[], None]) -> None:
        """``answer`` runs before anything is pushed. Raises what the client is to be told."""
        kind = self._checked(session, call)
        body = session.body()
        if body is not None and body.dead:
            raise Forked("the process that made this connection has ended; what it was granted is not its children's: connect anew")
        grant = Granted(self, session, call, [] if body is None else [body])
        try:
            claim = kind.acquire(call.name, call.options, grant)
        except BaseException:
            grant.state = State.OVER  # Whatever the kind says about it from now on.
            raise
        self._sessions.setdefault(session.number, {})[call.serial] = grant
        grant.claim = claim
        answer()
        self.on_asked()

    def stopped(self, session: Session, serial: int) -> None:
        """The client's own word, for all its bodies. What is over already stays so: the word and the end may cross."""
        grant = self._find(session, serial)
        if grant is None:
            return
        if grant.state is State.ASKED:
            self._cancel(grant)
        else:
            self._release(grant, "stopped")

    def confirm(self, session: Session, serial: int, token: int) -> None:
        """The client took it up, in time: from now on it is extended. What its kind has said meanwhile it is told at once."""
        grant = self._find(session, serial)
        if grant is not None:
            if grant.published == NEVER:
                raise ConfigError(f"grant: {serial} is not granted yet; accepted is one that this connection was told of")
            self._look(grant)
        if grant is None or grant.state is not State.HELD:
            raise HoldLost(f"grant: {serial} is not held on this connection; it is over, or was never asked for")
        if token != grant.token:
            raise ConfigError(f"token: {token}; accepted is the one that was granted, {grant.token}")
        grant.confirmed = True
        self._publish(grant)

    def claim(self, session: Session, serial: int) -> Claim | None:
        """What its kind keeps for it, if the client holds it now: by the word that it was told, and by the clock (F9)."""
        grant = self._find(session, serial)
        if grant is None or grant.state is not State.HELD or self.host.now >= grant.published:
            return None
        return grant.claim

    def add_body(self, session: Session, serial: int, pid: int | None, asked: Asked = NOT_ASKED) -> None:
        """One more process acts under it. None: its pid is of another pid namespace. Without a pidfd, no process death ends the grant
        early."""
        grant = self._find(session, serial)
        if grant is None:
            raise HoldLost(f"grant: {serial} is not held on this connection; it is over, or was never asked for")
        if len(grant.bodies) > BODIES_MAX:
            raise Unavailable(f"{grant}: {BODIES_MAX} bodies act under it already")
        body = None if pid is None else body_of(pid)
        if body is None:
            grant.confirmable = False
        else:
            grant.bodies.append(body)
            grant.then.append(body.close)
            body.watch(partial(self.host.post, partial(self._look, grant)))
        if asked.before > 0:
            self._reap_later(grant, body, asked)

    def close(self, session: Session, serial: int) -> None:
        """The client does not listen any more. It did not say that it stopped."""
        grant = self._find(session, serial)
        if grant is not None:
            self._detach(grant, "closed")

    def disconnected(self, session: Session) -> None:
        """A closed socket is not a death (F14)."""
        for grant in self._of(session):
            self._detach(grant, "disconnected")
        self._forget(session)

    def client_died(self, session: Session) -> None:
        """The kernel says so. Other bodies may still act."""
        self.keys.stopped(session)
        for grant in self._of(session):
            self._detach(grant, "dead")

    def readable(self, session: Session) -> None:
        """It reads again: it is told what it missed."""
        for grant in self._of(session):
            self._publish(grant)

    def drain(self, done: Callable[[], None]) -> None:
        """Ask every client to stop, extend nothing any more, and call ``done`` when no process acts under a grant (F14)."""
        self.draining = True
        self._drained.append(done)
        for grant in self.all:
            if grant.state is State.ASKED:
                self._cancel(grant)
                grant.session.end(grant.serial, "Unavailable", LEAVING)
            else:
                assert grant.claim is not None
                if grant.state is State.HELD:
                    grant.tell("stop", LEAVING)
                grant.claim.renew_allowed(False)
                self._look(grant)
        self._tell_drained()

    def ask_to_stop(self, kind: str, name: str, number: int, why: str) -> bool:
        """Ask the holder here to stop, as an agent that leaves does; it ends when F14 allows. False: no client of this agent holds it."""
        found = [each for each in self.all if (each.kind, each.name, each.number) == (kind, name, number) and each.state is State.HELD]
        for grant in found:
            assert grant.claim is not None
            if not grant.stopping:
                grant.stopping = True
                grant.tell("stop", why)
                grant.claim.renew_allowed(False)
            self._look(grant)
        return bool(found)

    def abandon(self) -> None:
        """This life of the agent ends now. Nothing is released: what was told ends by its own clock. Descriptors are given back."""
        for grant in self.all:
            if grant.reaper is not None:
                grant.reaper.abandon(max(0.0, grant.ends_at - grant.reaper.before - self.host.now))
            for body in grant.bodies:
                body.close()

    def reopen(self) -> None:
        """The agent is to be a member again."""
        self.draining = False

    # What kinds say.

    def on_queued(self, grant: Granted, position: int, why: str) -> None:
        if grant.state is State.ASKED and grant.session.reads:  # Who does not read hears the next one.
            grant.session.push(grant.serial, GrantItem("queued", 0, 0.0, position, why))

    @property
    def undelayed(self) -> tuple[Granted, ...]:
        """What clients wait for without having heard why."""
        return tuple(grant for grant in self.all if grant.state is State.ASKED and not grant.delay_told)

    def tell_delay(self, grant: Granted, why: str, until: float | None) -> None:
        """Once: the seats grant nothing to any client before ``until`` (None: not known). A client of an earlier release reads a place
        in a queue."""
        if grant.state is State.ASKED and grant.session.reads:
            grant.delay_told = True
            grant.session.push(grant.serial, GrantItem("queued", 0, until or 0.0, 0, why))

    def on_granted(self, grant: Granted, token: int, deadline: float, number: int) -> None:
        if grant.state is State.OVER:
            return  # Cancelled in the same turn; the kind gives it back by itself.
        assert grant.state is State.ASKED
        refused = self._tokens.why_not(grant, token, number)
        if refused is not None:
            # F16: under it no client may act. It comes from what peers said and seats remember, so it costs this hold and not the agent.
            self.counts["token_refused"] += 1
            self.host.emit(TokenRefused(grant.kind, grant.name, number, token, refused.last))
            self._lose(grant, refused)
            self._release(grant, "token")
            return
        self._tokens.note(grant, token, number)
        grant.state = State.HELD
        grant.token, grant.number = token, number
        grant.deadline = grant.unheard_until = deadline
        self.counts["granted"] += 1
        self._publish(grant)

    def on_extended(self, grant: Granted, deadline: float) -> None:
        if grant.state is not State.HELD:
            return
        grant.deadline = max(grant.deadline, deadline)
        if self.host.now >= grant.ends_at:
            self._expire(grant)  # The client has stopped: it cannot be called back.
        else:
            grant.at_risk_told = False
            self._publish(grant)

    def on_at_risk(self, grant: Granted) -> None:
        if grant.state is State.HELD and not grant.at_risk_told:
            grant.at_risk_told = True
            grant.tell("at_risk")
            self.host.emit(AtRisk(grant.fact))

    def on_lost(self, grant: Granted, reason: LossReason) -> None:
        """The protocol's word. The client's deadline stands, and the grant is there until it has passed."""
        if grant.state is State.ASKED:
            self._lose(grant, reason)
            self._end(grant)
        elif grant.state is State.HELD:
            self._lose(grant, reason)
            self._look(grant)

    # Moves.

    def _publish(self, grant: Granted) -> None:
        """Tell the client how long it may act, if it can hear it. What was told counts from this moment on."""
        reaped = grant.reaper is not None and grant.reaper.begun
        first = grant.published == NEVER
        told = grant.wanted and not reaped and (first or grant.confirmed)
        if not told or grant.deadline <= max(self.host.now, grant.published):
            pass
        elif not first and not grant.session.follows(grant.sent):
            self._publish_later(grant)
        elif grant.session.reads:
            grant.published = grant.deadline
            grant.tell("granted" if first else "extended")
            grant.sent = grant.session.sent
            if first:
                self.host.emit(GrantedEvent(grant.fact))
        self._watch(grant)

    def _publish_later(self, grant: Granted) -> None:
        """The kernel does not say when a client reads, so it is looked at until it does, or until it is too late."""
        if grant.reading is None:
            grant.reading = self.host.at(self.host.now + READING_INTERVAL, partial(self._on_reading, grant))

    def _on_reading(self, grant: Granted) -> None:
        grant.reading = None
        if grant.state is State.HELD and self.host.now < grant.ends_at:
            self._publish(grant)

    def _watch(self, grant: Granted) -> None:
        """Look at it again when what was told ends. An extension does not move the timer: one that comes early looks and waits on."""
        if grant.timer is None and grant.state in (State.HELD, State.LOST):
            grant.timer = self.host.at(min(grant.ends_at, grant.reaps_at), partial(self._on_timer, grant))

    def _on_timer(self, grant: Granted) -> None:
        grant.timer = None
        self._look(grant)

    def _look(self, grant: Granted) -> None:
        """Is it over? The clock and the kernel decide (F9, F14); the caller only had a reason to ask."""
        if grant.state not in (State.HELD, State.LOST):
            return
        self._reap(grant)
        if grant.dead:
            self._release(grant, "dead")
        elif self.host.now >= grant.ends_at:
            self._expire(grant)
        elif grant.published == NEVER and not grant.wanted:
            self._release(grant, "untold")
        else:
            self._watch(grant)

    def _reap_later(self, grant: Granted, body: Body | None, asked: Asked) -> None:
        """The agent ends that process, and all of its command, before the deadline: its client and its guardian may be stopped by then."""
        if grant.reaper is None:
            assert self._reaper is not None
            client = grant.bodies[0] if grant.client_named else None
            grant.reaper = self._reaper(
                client, asked, since=grant.asked_at, notice=partial(self.notice, grant=str(grant), token=grant.token)
            )
            grant.then.append(grant.reaper.leave)
        grant.reaper.add(body, asked)
        if grant.timer is not None:
            grant.timer.cancel()
            grant.timer = None
        self._look(grant)

    def _reap(self, grant: Granted) -> None:
        if grant.reaper is None:
            return
        grant.reaper.note(self.host.now)
        if self.host.now >= grant.reaps_at:
            self.counts["reaped"] += 1
            grant.reaper.begin(partial(self.host.post, partial(self._look, grant)))

    def _expire(self, grant: Granted) -> None:
        """What was told has ended. If the client was to go on, it has lost it."""
        if grant.wanted:
            self._lose(grant, grant.lapse)
        self._release(grant, "deadline")

    def _lose(self, grant: Granted, reason: LossReason) -> None:
        grant.state = State.LOST
        self.counts["lost"] += 1
        grant.tell("lost", str(reason), numbers=reason.numbers, error=reason.error)
        if grant.published > NEVER:
            self.host.emit(Lost(grant.fact, str(reason)))

    def _detach(self, grant: Granted, why: str) -> None:
        """Nothing is published any more; it ends when F14 allows."""
        if grant.state is State.ASKED:
            self._cancel(grant)
            return
        if grant.attached:
            assert grant.claim is not None
            grant.attached = False
            self.counts[why] += 1
            grant.claim.renew_allowed(False)
        self._look(grant)

    def _cancel(self, grant: Granted) -> None:
        assert grant.claim is not None
        grant.claim.cancel()
        self._end(grant)

    def _release(self, grant: Granted, why: str) -> None:
        """The one place where something goes back to its protocol."""
        assert grant.state in (State.HELD, State.LOST)
        assert grant.claim is not None
        lost = grant.state is State.LOST
        grant.state = State.OVER  # Before any listener is called: it may ask.
        self.counts[f"released: {why}"] += 1
        grant.claim.release()
        if not lost:
            grant.tell("released", RELEASES.get(why, why))
            self.host.emit(Released(grant.fact))
        self._end(grant)

    def _end(self, grant: Granted) -> None:
        grant.state = State.OVER
        for timer in (grant.timer, grant.reading):
            if timer is not None:
                timer.cancel()
        for step in grant.then:
            step()
        mine = self._sessions.get(grant.session.number, {})
        mine.pop(grant.serial, None)
        if not mine:
            self._sessions.pop(grant.session.number, None)
            self._forget(grant.session)
        self._tell_drained()

    def _forget(self, session: Session) -> None:
        """The client's pidfd is needed as long as its death can end something."""
        if session.connected or session.number in self._sessions:
            return
        until = self.keys.told_until(session)
        if self.host.now >= until:
            self.keys.forget(session)
            session.forget()
        else:
            self.host.at(until, partial(self._forget, session))

    def _tell_drained(self) -> None:
        if self.draining and not self._sessions:
            drained, self._drained = self._drained, []
            for done in drained:
                done()

    # Checks.

    def _checked(self, session: Session, call: Acquire) -> GrantKind:
        kind = self.kinds.get(call.kind)
        if kind is None:
            raise Unavailable(f"kind: {shown(call.kind)}; this agent has {', '.join(sorted(self.kinds)) or 'none'}")
        if not (call.name.isprintable() and 0 < len(call.name.encode()) <= NAME_BYTES_MAX):
            raise ConfigError(f"name: {shown(call.name)}; accepted are 1 to {NAME_BYTES_MAX} bytes of printable text")
        if self.draining:
            raise Unavailable(f"{LEAVING} and grants nothing any more")
        if len(self) >= GRANTS_MAX or len(self._sessions.get(session.number, ())) >= GRANTS_PER_SESSION_MAX:
            raise Unavailable(f"too many grants: accepted are {GRANTS_PER_SESSION_MAX} of one client, {GRANTS_MAX} of all")
        return kind

    def _find(self, session: Session, serial: int) -> Granted | None:
        return self._sessions.get(session.number, {}).get(serial)

    def _of(self, session: Session) -> tuple[Granted, ...]:
        return tuple(self._sessions.get(session.number, {}).values())


def _nothing() -> None:
    """There is nothing to tell."""


def _unheard(what: str, **fields: object) -> None:
    pass
