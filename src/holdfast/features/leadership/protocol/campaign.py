"""A candidate's side: the life of one name at one agent that stands for it.

Spec: fast-detection 5, D13, D14, D17b, D20, D23; foundation F8-F11, F16.

FOLLOWING  another agent leads, or is expected to. Without a sign of it for a while: look.
LOOKING    what do the seats remember? Looking changes nothing, so a candidate that hears no other can look for ever and disturb none (D14).
ASKING     the seats are asked for a number, again at the moment the promise that is in the way ends. Beaten or given up: look.
LEADING    a quorum promised it, and goes on. The clock alone says until when.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from math import inf
from random import Random
from typing import NamedTuple, Protocol

from holdfast.features.leadership.detector.messages import Granted, Lead
from holdfast.features.leadership.protocol.config import LeadershipConfig
from holdfast.features.leadership.protocol.messages import Holding
from holdfast.features.leadership.protocol.reigns import Hope
from holdfast.host import NodeId
from holdfast.kit.deadline import Deadline, holder_length
from holdfast.kit.hold import Holder, Lapsed

RETRY_MARGIN = 0.001  # seconds after the end of a promise that is in the way
PLACES_MAX = 8  # how far back in the order a candidate waits longer than those before it
LOOK_PAUSE_MAX = 4.0  # in t_itv: between two looks without an answer
VAIN_MAX = 4  # from here on the pause after an asking that no quorum answered does not double any more

State = Enum("State", ["FOLLOWING", "LOOKING", "ASKING", "LEADING"])


class Office(Protocol):
    """What a campaign asks of the agent that runs it."""

    me: NodeId
    config: LeadershipConfig
    random: Random
    slots: int
    quorum: int

    @property
    def now(self) -> float: ...
    def first_number(self) -> int: ...
    def asking(self, campaign: Campaign, why: str) -> None:
        """It asks under a new number: say so, and ask all seats."""

    def again(self, campaign: Campaign) -> None:
        """Ask the seats again, now."""

    def look(self, campaign: Campaign) -> None:
        """Ask the seats what they remember; ``looked`` will be called."""

    def led(self, campaign: Campaign) -> None:
        """A quorum promised it."""

    def ended(self, campaign: Campaign, why: str) -> None:
        """It led, and does not any more; what the seats still promise is given back, and the next one is told."""

    def gave_up(self, campaign: Campaign, *, unheard: bool) -> None:
        """It asked in vain; what some seats promised is given back. ``unheard``: no quorum answered, so another candidate shall ask."""

    def place(self, name: str, but: NodeId | None = None) -> int:
        """How many living candidates come before this agent, ``but`` left out."""

    def alive(self, life: NodeId) -> bool: ...
    def silent(self, life: NodeId) -> bool:
        """It was heard here, and its next heartbeat is overdue."""

    def hope(self, name: str) -> Hope | None: ...
    def highest(self, name: str) -> int: ...


class Given(NamedTuple):
    """The newest grant of one slot."""

    era: int
    asked_at: float


class Campaign:
    """One name. All its times are compared when its owner's one timer fires (``due_at``)."""

    def __init__(self, office: Office, clock: Deadline, name: str, length: float, holder: Holder) -> None:
        self.office, self.name, self.length, self.holder = office, name, length, holder
        self.state = State.FOLLOWING
        self.number = 0  # asked for, or led
        self.spent = 0  # no number up to this will be led by this life again
        self.allowed = True
        self.deadline = clock
        self.at_risk = False
        self._grants: dict[int, Given] = {}
        self._rivals: dict[int, None] = {}  # slots that promised our number, or a higher one, to another candidate
        self._answered: dict[int, None] = {}  # slots that said something since it asks
        self._vain = 0  # askings in a row that no quorum answered
        self._look_at = office.now + office.config.lat  # by then those who stand up together know of each other
        self._heard_at = -inf  # a sign of the leader
        self._looks = 0  # in a row without an answer
        self._busy_looks = 0  # in a row that found a promise to a living candidate that we do not hear
        self._vacant_since: float | None = None
        self._retry_at = self._give_up_at = self._rival_at = self._deaf_at = inf

    # What its owner asks.

    @property
    def leading(self) -> bool:
        """F9: by the clock."""
        return self.state is State.LEADING and self.deadline.valid

    @property
    def lapsed(self) -> bool:
        return self.state is State.LEADING and not self.deadline.valid

    def lead(self) -> Lead | None:
        """What the heartbeat says about it."""
        if self.state is State.ASKING or (self.state is State.LEADING and self.allowed):
            return Lead(self.name, 0, self.number, self.state is State.LEADING, self.length)
        return None

    def due_at(self) -> float:
        if self.state is State.LEADING:
            return self.deadline.until
        if self.state is State.ASKING:
            return min(self._retry_at, self._in_vain_at())
        return self._look_at if self.state is State.FOLLOWING and self.allowed else inf

    def granted_at(self) -> float:
        """The latest time of asking that a quorum of one era has granted since; -inf if there is none (F13: eras are never added up)."""
        best = -inf
        for era in dict.fromkeys(given.era for given in self._grants.values()):
            times = sorted((given.asked_at for given in self._grants.values() if given.era == era), reverse=True)
            if len(times) >= self.office.quorum:
                best = max(best, times[self.office.quorum - 1])
        return best

    def short(self, since: float) -> bool:
        """A repeat of the heartbeat may help: no quorum has granted it since then, or yet, and no promise is waited for."""
        if self.state is State.LEADING:
            return self.granted_at() < since
        return self.state is State.ASKING and self._retry_at == inf

    # What happens.

    def on_heard(self) -> None:
        """A sign of the leader, or of a candidate that asks."""
        self._heard_at = self.office.now
        self._vacant_since, self._busy_looks = None, 0

    def on_due(self, late: float) -> None:
        """Its time has come. F11: a candidate that was stopped acts on nothing it knew before: it looks."""
        now = self.office.now
        if self.lapsed:
            self.lapse()
        elif self.state is State.ASKING:
            if late > self.office.config.lat:
                self._give_up()
            elif now >= self._in_vain_at():
                self._give_up(deaf=not self._is_heard())
            elif now >= self._retry_at:
                self._retry_at = inf
                self.office.again(self)
        elif self.state is State.FOLLOWING and self.allowed and now >= self._look_at:
            self._on_look_due(late)

    def on_doubt(self, patience: float) -> None:
        """The leader, or the one that was expected to lead, is gone, or said that it ended: look soon."""
        self._heard_at = -inf
        if self.state is State.FOLLOWING:
            self._look_at = min(self._look_at, self.office.now + patience * (0.5 + self.office.random.random()))

    def on_start(self, number: int, why: str = "start") -> bool:
        """START names this agent. False: it will not ask."""
        if not self.allowed:
            return False
        if self.state is State.LEADING or (self.state is State.ASKING and number <= self.number):
            return True
        self._begin_asking(max(number, self.spent + 1), why)
        return True

    def on_other(self, number: int, chosen: NodeId) -> None:
        """START names another candidate. Those that come after that one step in, one after the other, if it is not heard (D23): the first
        of them Delta_c later, so the chosen one is not counted (H144)."""
        self.on_asker(number)
        if self.state is State.FOLLOWING:
            self._follow(self.office.config.delta_c * (1 + min(self.office.place(self.name, chosen), PLACES_MAX)))

    def on_asker(self, number: int, *, before: bool = False) -> None:
        """Another candidate asks, or is told to: one of two must not keep what the other needs. The higher round stays, and of two in
        one round the candidate that is ``before`` the other in the order of candidates."""
        if self.state is State.ASKING and (number > self.number or (number == self.number and before)):
            self._give_up()
        self.on_heard()

    def on_granted(self, slot: int, answer: Granted, asked_at: float) -> None:
        if answer.round != self.number or self.state not in (State.ASKING, State.LEADING):
            return  # An answer to what is over.
        self._answered[slot] = None
        if answer.grant:
            self._rivals.pop(slot, None)
            self._grants[slot] = max(self._grants.get(slot, Given(0, -inf)), Given(answer.era, asked_at))
            self._count()
        elif self.state is State.ASKING:
            self._on_refused(slot, answer)

    def on_missed(self, left_at: float) -> None:
        """The heartbeat that left then was repeated as often as it is worth."""
        if self.state is State.LEADING and self.allowed and not self.at_risk and self.granted_at() < left_at:
            self.at_risk = True
            self.holder.on_at_risk()

    def looked(self, holdings: Sequence[Holding] | None) -> None:
        """What a quorum of seats remembers; None: there was none."""
        if self.state is not State.LOOKING:
            return
        self.state = State.FOLLOWING
        config, now = self.office.config, self.office.now
        if holdings is None:
            self._looks += 1
            pause = min(2.0 ** (self._looks - 1), LOOK_PAUSE_MAX) * config.t_itv
            self._look_at = now + pause * (0.5 + self.office.random.random())
            return
        self._looks = 0
        patience = self._why_not(holdings)
        if patience > 0 or not self.allowed:
            self._look_at = now + patience
        else:
            highest = max([holding.round for holding in holdings] + [self.office.highest(self.name)])
            self._begin_asking(max(highest + 1, self.spent + 1, 0 if highest else self.office.first_number()), "vacant")

    def allow(self, allowed: bool) -> None:
        self.allowed = allowed
        if not allowed and self.state is State.ASKING:
            self._give_up()
        elif allowed and self.state is State.LEADING:
            self.office.again(self)
        elif allowed:
            self._look_at = min(self._look_at, self.office.now)

    def lapse(self) -> None:
        """F9: the deadline has passed."""
        assert self.lapsed
        self.end(Lapsed.word)
        self.holder.on_lost(Lapsed())

    def end(self, why: str) -> None:
        """It leads no more, and never again under this number."""
        self.state, self.spent, self.at_risk = State.FOLLOWING, self.number, False
        self.deadline.end()
        self._follow(self.office.config.delta_c * (1 + self.office.random.random()))
        self.office.ended(self, why)

    def leave(self) -> None:
        """No candidate any more: what was asked for is given back."""
        if self.state is State.ASKING:
            self._give_up()

    # Looking.

    def _on_look_due(self, late: float) -> None:
        """A candidate that hears the leader looks when its promise must have ended if that was its last word; others now and then."""
        now, config = self.office.now, self.office.config
        quiet_until = self._heard_at + self.length + config.lat
        if quiet_until > now:
            self._look_at = quiet_until
        elif late > config.lat:
            self._look_at = now + config.t_rtt  # F11: what waited for us is read first.
        else:
            self.state = State.LOOKING
            self.office.look(self)

    def _why_not(self, holdings: Sequence[Holding]) -> float:
        """Seconds until it makes sense to look again; 0.0: there is no leader, and it is our turn to ask."""
        config, now, office = self.office.config, self.office.now, self.office
        closed = self._closed(holdings)
        if closed > 0:
            return min(closed, config.patience(self.length)) + RETRY_MARGIN
        busy = self._busy(holdings)
        if busy > 0:
            self._vacant_since = None
            self._busy_looks += 1
            return min(busy * 2.0 ** (self._busy_looks - 1), config.patience(self.length)) + config.lat * office.random.random()
        hope = office.hope(self.name)
        if hope is not None and hope.life != office.me and self._hopeful(hope):
            return config.delta_c
        self._vacant_since = now if self._vacant_since is None else self._vacant_since
        turn_at = self._vacant_since + config.w * min(office.place(self.name), PLACES_MAX)
        return max(0.0, turn_at - now)

    def _closed(self, holdings: Sequence[Holding]) -> float:
        """F13: seconds in which no quorum of seats promises anything. Who did not answer may be open: asking it costs little."""
        waits = [holding.wait if not holding.holder else 0.0 for holding in holdings]
        return sorted(waits + [0.0] * (self.office.slots - len(waits)))[self.office.quorum - 1]

    def _busy(self, holdings: Sequence[Holding]) -> float:
        """Seconds until a quorum of seats is free of promises to others who live; 0.0: that is near enough to ask.

        A promise to the dead is no reason to wait with asking: the seats say how long it lasts, and it is asked again when it ends.
        """
        office, waits = self.office, []
        for holding in holdings:
            life = NodeId(holding.holder, holding.boot)
            blocks = holding.wait > 0 and holding.holder and life != office.me and office.alive(life)
            near = office.silent(life) and holding.wait <= office.config.w
            waits.append(min(holding.wait, self.length) if blocks and not near else 0.0)
        return sorted(waits)[office.quorum - 1]  # Who did not answer may be bound.

    def _hopeful(self, hope: Hope) -> bool:
        """Another candidate was told to ask, or asks: it has Delta_c to begin and, while it is heard, the time of a promise to succeed."""
        config, now = self.office.config, self.office.now
        if not self.office.alive(hope.life) or not hope.is_fresh(now, config):
            return False
        return not hope.heard or now < hope.since + self.length + 4 * config.t_itv

    # Asking.

    def _begin_asking(self, number: int, why: str) -> None:
        now, config = self.office.now, self.office.config
        self.state, self._answered, self._vacant_since = State.ASKING, {}, None
        self._give_up_at = now + self.length + 2 * config.t_itv
        self._deaf_at = now + 2 * config.t_itv + config.delta_c
        self._ask_for(number, why)

    def _ask_for(self, number: int, why: str) -> None:
        self.number = number
        self._grants, self._rivals = {}, {}
        self._retry_at = self._rival_at = inf
        self.office.asking(self, why)

    def _in_vain_at(self) -> float:
        """When it gives up. A candidate that hears no quorum of seats keeps from others what it will not get: it ends early."""
        deaf_at = inf if self._is_heard() else self._deaf_at
        return min(self._give_up_at, self._rival_at, deaf_at)

    def _is_heard(self) -> bool:
        return len(self._answered) >= self.office.quorum

    def _on_refused(self, slot: int, answer: Granted) -> None:
        if answer.number < self.number:
            if answer.wait > 0:
                self._retry_at = min(self._retry_at, self.office.now + answer.wait + RETRY_MARGIN)
            return
        if answer.wait == 0:
            self._ask_for(answer.number + 1, "behind")  # The number is used up there, and no candidate holds it.
            return
        self._rivals[slot] = None
        if self.office.slots - len(self._rivals) < self.office.quorum:
            self._give_up()  # Beaten.
        else:
            # Two who ask for one number split the seats: a candidate without a quorum after a while gives its part back.
            self._rival_at = min(self._rival_at, self.office.now + self.office.config.delta_c * (0.5 + self.office.random.random()))

    def _give_up(self, *, deaf: bool = False) -> None:
        unheard = deaf or not self._answered
        self._vain = min(self._vain + 1, VAIN_MAX) if deaf else 0
        self.state, self.spent = State.FOLLOWING, self.number
        self._follow(self.office.config.delta_c * (0.5 + 1.5 * self.office.random.random()) * 2.0 ** max(0, self._vain - 1))
        self.office.gave_up(self, unheard=unheard)

    def _follow(self, patience: float) -> None:
        self._heard_at, self._look_at = -inf, self.office.now + patience

    # Leading.

    def _count(self) -> None:
        """The quorum-th newest asking that was granted counts, from before it left (F8)."""
        until = self.granted_at() + holder_length(self.length, self.office.config.rho)
        if until <= self.office.now or until <= self.deadline.until:
            return
        if self.state is State.ASKING:
            self.state, self._vain = State.LEADING, 0
            self.deadline.extend(until)
            self.office.led(self)
            self.holder.on_granted(self.number, until)
        elif self.allowed:
            self.deadline.extend(until)
            self.at_risk = False
            self.holder.on_extended(until)
