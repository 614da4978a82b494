"""Leadership: many names, each led by at most one agent at a time; the voters are the seats.

Spec: fast-detection D17b, 5, D13-D26; foundation F8-F17.

Any agent may be a candidate for any number of names. Who leads is decided by the seats' promises (``kit.promise``) and by
nothing else: a majority of them promised a name to one life, for a number and a length; the leader counts from the
moment before it asked (F8). Everything besides is there to be fast: monitors that find a leader dead within about one
heartbeat (``detector.ffd``), and START, which tells the next candidate to ask.

``campaign`` is a candidate's life, ``office`` runs the campaigns of an agent, ``pulse`` is its heartbeat,
``seat`` what a seat promises, ``watch`` what monitors see, ``reigns`` and ``board`` who is believed to lead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import NamedTuple

from holdfast.bounds import CLOCK_MIN
from holdfast.errors import ConfigError, HoldLost, Unavailable, shown
from holdfast.events import Decided, Failed, Joined, LeaderChanged, LeaderSuspected, Left, MembershipEvent
from holdfast.features.leadership.detector.messages import DidYouMissToo, Granted, Lead, MonitorOk, Resign, Vote, WatchedOk
from holdfast.features.leadership.protocol.board import LEADER, Board, Row
from holdfast.features.leadership.protocol.config import CANDIDACIES_MAX, LEADS_MAX, NAME_BYTES_MAX, LeadershipConfig
from holdfast.features.leadership.protocol.facts import FoundDead
from holdfast.features.leadership.protocol.messages import Holders, StartRounds, Succession, WhoHolds
from holdfast.features.leadership.protocol.office import LeadOffice
from holdfast.features.leadership.protocol.reigns import Reigns
from holdfast.features.leadership.protocol.roads import Roads
from holdfast.features.leadership.protocol.seat import LeadSeat
from holdfast.features.leadership.protocol.watch import Watches
from holdfast.host import Host, Membership, Message, NodeId, Timer, only
from holdfast.kit.exchange import Exchange
from holdfast.kit.hold import Holder
from holdfast.kit.seats import Seats

__all__ = ["Led", "Leadership", "LeadershipConfig"]

ANSWERS_BYTES = 950  # of one MONITOR-OK: with its envelope a datagram
ANSWER_BYTES = 50  # of one entry without its name


class Led(NamedTuple):
    """Who leads a name, as known here."""

    name: str
    leader: NodeId
    token: int
    leading: bool  # False: it is expected to, and not heard to do so yet


class Leadership:
    """One per agent; a Machine. Emits ``LeaderChanged`` on every agent of the group, ``LeaderSuspected`` where a monitor asked."""

    def __init__(self, host: Host, membership: Membership, seats: Seats, exchange: Exchange, config: LeadershipConfig) -> None:
        """Makes the table ``leads`` in ``exchange``, and uses the part "promises" of ``host.storage`` if this agent is a seat."""
        self.config = config
        self.counts: Counter[str] = Counter()  # malformed, not_a_seat; more are kept by the parts
        self.received: Counter[type[Message]] = Counter()  # messages, by what they are
        self._host, self._seats = host, seats
        self.roads = Roads(host, membership, seats)
        self.reigns = Reigns(host, self._on_reign)
        self.board = Board(host, exchange, self.roads.listed, self._on_row)
        self.seat = LeadSeat(host, seats)
        self.watches = Watches(host, config, self.roads, self._on_suspicion, self._on_dead)
        self.office = LeadOffice(
            host, config, seats, roads=self.roads, board=self.board, reigns=self.reigns, seat=self.seat, watches=self.watches
        )
        self._told: dict[str, Led] = {}  # as last emitted
        self._suspected: set[str] = set()  # of these, whose leader was said to be suspected
        self._sweep: Timer | None = None
        self._on: dict[type[Message], Callable[[NodeId, Message], None]] = {}
        self._register()
        membership.subscribe(only(self._on_member, Joined, Decided, Failed, Left))

    # What the agent calls.

    def campaign(self, name: str, length: float, holder: Holder) -> None:
        """This agent is a candidate from now on. ``length`` is what the seats are asked to promise: lease and grace, at least
        ``config.length_min``, at most the seats' ``keeper.length_max``. The deadlines that the holder hears count all of it,
        shortened for drift (F8), from before the asking. Raises ConfigError for a bad name or length, Unavailable for too many."""
        self._check(name, length)
        self.office.lapse()
        self.office.stand(name, length, holder)

    def withdraw(self, name: str) -> None:
        """No candidate any more. What was asked for is given back. A leader calls ``resign``. Unknown names are ignored."""
        self.resign(name)

    def resign(self, name: str) -> None:
        """Gives it up at once and stops being a candidate; the next one asks within a round trip. Call it when F14 allows: what was
        published has passed, or the client said that it stopped. ``on_lost`` is not called. Not leading: the same as ``withdraw``."""
        self.office.lapse()
        if name in self.office.campaigns:
            self.office.leave(name)
            self._on_reign(name)
            self.office.arm()

    def renew_allowed(self, name: str, allowed: bool) -> None:
        """False: what was told is not extended any more, so it ends by itself; and while it is not led here, it is not asked for
        either. True, as at first: it is."""
        self.office.lapse()
        campaign = self.office.campaigns.get(name)
        if campaign is not None:
            campaign.allow(allowed)
            self.office.arm()

    def highest(self, name: str) -> int:
        """The highest number of that name that was heard of; 0: none."""
        return self.reigns.highest(name)

    def exceed(self, name: str, number: int) -> None:
        """The next terms of this name have tokens above that: it was led in another way under it (F16)."""
        if self.office.credible(number):
            self.reigns.exceed(name, number)

    def is_leader(self, name: str) -> bool:
        """Compared with the clock at every call (F9)."""
        campaign = self.office.campaigns.get(name)
        return campaign is not None and campaign.leading

    def token(self, name: str) -> int:
        """Of this agent's leadership. Raises ``errors.HoldLost`` if it does not lead."""
        if not self.is_leader(name):
            raise HoldLost(f"{shown(name)} is not led by this agent; wait until it is")
        return self.office.campaigns[name].number

    def deadline(self, name: str) -> float:
        """Until when this agent leads, on ``host.now``; minus infinity if it does not."""
        return self.office.campaigns[name].deadline.until if self.is_leader(name) else -inf

    def leader(self, name: str) -> Led | None:
        """Who leads, as known here: a hint, on every agent of the group, and what ``LeaderChanged`` said last."""
        led = self._told.get(name)
        return led if led is None or led.leader != self._host.me or self.is_leader(name) else None  # F9: about ourselves the clock decides.

    def leaders(self) -> Mapping[str, Led]:
        """All of them, sorted by name."""
        found = ((name, self.leader(name)) for name in sorted(self._told))
        return {name: led for name, led in found if led is not None}

    def candidates(self, name: str) -> tuple[NodeId, ...]:
        """Who stands for it, as known here, in the order in which they are asked to lead."""
        return self.board.candidates(name)

    def counters(self) -> Counter[str]:
        """What all parts counted: what was refused and dropped, and what happened how often."""
        parts = (
            self.seat.counts,
            self.office.counts,
            self.watches.counts,
            self.watches.links.counts,
            self.reigns.counts,
            self.board.counts,
        )
        return sum((Counter(part) for part in parts), Counter(self.counts))

    # The machine.

    @property
    def handles(self) -> Sequence[type[Message]]:
        return tuple(self._on)

    @property
    def fingerprint(self) -> bytes:
        return self.config.fingerprint

    def start(self) -> None:
        self.seat.report()
        self.board.start()

    def on_message(self, source: NodeId, message: Message) -> None:
        self.office.lapse()
        self.received[type(message)] += 1
        self._on[type(message)](source, message)
        self.office.arm()

    def on_away(self, seconds: float) -> None:
        """F10: before the datagrams that waited. What has ended while we were stopped has ended."""
        self.office.lapse()
        self.watches.on_away(seconds)

    def stop(self) -> None:
        self.board.stop()
        if self._sweep is not None:
            self._sweep.cancel()
        self.watches.stop()
        self.office.stop()

    # Messages.

    def _register(self) -> None:
        handlers: dict[type[Message], Callable[..., None]] = {
            WatchedOk: self._on_watched_ok,
            MonitorOk: self.office.pulse.on_monitor_ok,
            StartRounds: self._on_start_rounds,
            Resign: self._on_resign,
            DidYouMissToo: self.watches.on_query,
            Vote: self.watches.on_vote,
            WhoHolds: self._on_who_holds,
            Holders: self._on_holders,
        }
        self._on.update(handlers)

    def _on_watched_ok(self, source: NodeId, ok: WatchedOk) -> None:
        if len(ok.leads) > LEADS_MAX or not all(self._sound(lead.name, lead.round) for lead in ok.leads):
            return
        if self.watches.get(source) is None:
            self._supersede(source)
        missed = self.watches.on_heartbeat(source, ok)
        for lead in ok.leads:
            self._take(source, lead)
        self.seat.answer(source, ok.leads, ok.page, lambda answers: self._reply(source, ok, missed, answers))
        if self._sweep is None:
            self._sweep = self._host.after(self.config.t_itv / 2, self._on_sweep)

    def _take(self, source: NodeId, lead: Lead) -> None:
        """What a heartbeat says about one name."""
        campaign = self.office.campaigns.get(lead.name)
        if lead.leading:
            if self.reigns.led(lead.name, lead.round, source):
                if lead.name not in self._told:
                    self._on_reign(lead.name)  # It was silent, and nothing else is new.
                if campaign is not None:
                    campaign.on_heard()
            return
        self.reigns.asks(lead.name, lead.round, source)
        if campaign is not None and lead.round >= self.reigns.highest(lead.name):
            campaign.on_asker(lead.round, before=self.office.before(lead.name, source))

    def _reply(self, source: NodeId, ok: WatchedOk, missed: int, answers: tuple[Granted, ...]) -> None:
        """Usually one message; where refusals fill more than a datagram, several."""
        page: list[Granted] = []
        room = ANSWERS_BYTES
        for answer in answers:
            room -= len(answer.name.encode()) + ANSWER_BYTES
            if room < 0:
                self._host.send(source, MonitorOk(ok.seq, ok.stamp, tuple(page), missed))
                page, room = [], ANSWERS_BYTES - len(answer.name.encode()) - ANSWER_BYTES
            page.append(answer)
        self._host.send(source, MonitorOk(ok.seq, ok.stamp, tuple(page), missed))

    def _on_start_rounds(self, source: NodeId, message: StartRounds) -> None:
        del source
        if len(message.starts) <= LEADS_MAX:
            for start in message.starts:
                if self._sound(start.name, start.round):
                    self._on_start(start)
        self.watches.sweep(self._busy)

    def _on_start(self, start: Succession) -> None:
        campaign = self.office.campaigns.get(start.name)
        if campaign is not None and campaign.leading:
            # The word of a quorum of seats stands against this one (G7): say again that we are here.
            self.office.pulse.soon(start.name, wide=True)
            return
        chosen = NodeId(start.watched, start.boot)
        if not self.reigns.expect(start.name, start.round, chosen):
            return
        if chosen != self._host.me:
            if campaign is not None:
                campaign.on_other(start.round, chosen)
        elif campaign is None or not campaign.on_start(start.round):
            self.office.decline(start.name)

    def _on_resign(self, source: NodeId, message: Resign) -> None:
        if not self._sound(message.name, message.round):
            return
        self.seat.release(source, message.name, message.round)
        self.reigns.resigned(message.name, message.round, source)
        campaign = self.office.campaigns.get(message.name)
        if campaign is not None:
            campaign.on_doubt(self.config.delta_c)  # A leader that resigns tells the next one: that one is first.
        self.watches.sweep(self._busy)

    def _on_who_holds(self, source: NodeId, message: WhoHolds) -> None:
        if self._seats.own is None or len(message.names) > LEADS_MAX:
            self.counts["not_a_seat" if self._seats.own is None else "malformed"] += 1
            return
        holdings = self.seat.holdings(message.names)
        if holdings is not None:
            self._host.send(source, Holders(message.serial, self._seats.own, self._seats.keeper.era, holdings))

    def _on_holders(self, source: NodeId, message: Holders) -> None:
        slot = self._seats.slot_of(source)
        if slot is None or slot != message.slot:
            self.counts["malformed"] += 1
            return
        self.office.questions.answer(message.serial, slot, message, era=message.era)

    # What others are believed to do.

    def _on_suspicion(self, life: NodeId, suspected: bool) -> None:
        """Users hear of it for each name that this life leads, as they were told (H138). Nothing follows from it."""
        for name in self.reigns.names_of(life):
            led = self._told.get(name)
            if led is None or led.leader != life or suspected == (name in self._suspected):
                continue
            if suspected:
                self._suspected.add(name)
            else:
                self._suspected.remove(name)
            self._host.emit(LeaderSuspected(name, life, led.token, cleared=not suspected))

    def _on_dead(self, life: NodeId) -> None:
        """A quorum of seats misses it: for all its names another candidate shall ask. Its promises run on (F15)."""
        names = [name for name in self.reigns.names_of(life) if self._nobody_after(name, life)]
        if names:
            self._host.emit(FoundDead(life, tuple(names)))
        self.reigns.doubt(life)
        for name in names:
            self.office.pass_on(name, life)
        self.office.arm()

    def _nobody_after(self, name: str, life: NodeId) -> bool:
        """No living candidate is expected in its place already; a hope that was heard of long ago came from a false alarm."""
        hope = self.reigns.hope(name)
        if hope is None or hope.life == life or not self.watches.alive(hope.life):
            return True
        return not hope.is_fresh(self._host.now, self.config)

    def _supersede(self, source: NodeId) -> None:
        """A newer life of a name speaks: the older ones are over (F1), and no ballot is waited for."""
        for life in self.reigns.lives():
            if life.name == source.name and life.boot < source.boot:
                self._on_gone(life)

    def _on_gone(self, life: NodeId) -> None:
        """Word of absence: it starts a question, it ends nothing (F15)."""
        self.reigns.doubt(life)
        for name in self.reigns.names_of(life):
            campaign = self.office.campaigns.get(name)
            if campaign is not None:
                campaign.on_doubt(self.config.lat)
            self._on_reign(name)

    def _on_member(self, event: MembershipEvent) -> None:
        life = event.member.id
        if isinstance(event, Failed | Left | Decided) and not self.watches.hears(life):
            self._on_gone(life)
        elif isinstance(event, Joined):
            self._supersede(life)
            for name in self.reigns.names_of(life):
                self._on_reign(name)
        self.office.arm()

    def _on_row(self, row: Row) -> None:
        if row.kind != LEADER or row.life == self._host.me or not self._sound(row.name, row.major):
            return
        campaign = self.office.campaigns.get(row.name)
        if row.over:
            self.reigns.over(row.name, row.major)
            if campaign is not None:
                campaign.on_doubt(self.config.delta_c)
        elif self.reigns.led(row.name, row.major, row.life) and campaign is not None:
            campaign.on_heard()
        self.office.arm()

    def _on_reign(self, name: str) -> None:
        """Users hear of it if who leads, as known here, is another one now."""
        led, told = self._believed(name), self._told.get(name)
        if led == told:
            return
        self._suspected.discard(name)
        if led is None:
            del self._told[name]
            self._host.emit(LeaderChanged(name, None, self.reigns.highest(name)))
        else:
            self._told[name] = led
            self._host.emit(LeaderChanged(name, led.leader, led.token))

    def _believed(self, name: str) -> Led | None:
        if self.is_leader(name):
            return Led(name, self._host.me, self.office.campaigns[name].number, leading=True)
        reign = self.reigns.get(name)
        if reign is None or reign.life is None or reign.over or reign.doubted or reign.life == self._host.me:
            return None
        return Led(name, reign.life, reign.number, leading=True) if self.watches.alive(reign.life) else None

    def _on_sweep(self) -> None:
        self.watches.sweep(self._busy)
        for name in [led.name for led in self._told.values() if not self.watches.alive(led.leader)]:
            self._on_reign(name)  # No list has it, and now it is silent: no event will tell.
        self._sweep = self._host.after(self.config.t_itv / 2, self._on_sweep) if len(self.watches) else None

    def _busy(self, life: NodeId) -> bool:
        return bool(self.reigns.names_of(life))

    def _sound(self, name: str, number: int) -> bool:
        """What a peer may say: a name and a number that can be."""
        if not 1 <= len(name.encode()) <= NAME_BYTES_MAX or number < CLOCK_MIN:
            self.counts["malformed"] += 1
            return False
        return self.office.credible(number)

    def _check(self, name: str, length: float) -> None:
        if not 1 <= len(name.encode()) <= NAME_BYTES_MAX or not name.isprintable():
            raise ConfigError(f"name: {shown(name)}; accepted are 1 to {NAME_BYTES_MAX} bytes of printable text")
        longest = self._seats.keeper.length_max
        if not self.config.length_min <= length <= longest:
            raise ConfigError(f"length: {shown(length)}; accepted are {self.config.length_min:g} to {longest:g} seconds")
        if name in self.office.campaigns:
            raise ConfigError(f"name: this agent stands for {shown(name)} already; accepted is one candidacy per name")
        if len(self.office.campaigns) >= CANDIDACIES_MAX:
            raise Unavailable(f"this agent stands for {CANDIDACIES_MAX} names already; use another agent, or fewer names")
