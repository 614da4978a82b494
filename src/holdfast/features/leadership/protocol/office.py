"""The campaigns of one agent: their one timer, their heartbeat, what they say to seats and to each other.

Spec: fast-detection 5 (retry, resign, START, RESIGN, nag), D17b; foundation F9, F17.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import inf

from holdfast.bounds import CLOCK_MIN, is_beyond
from holdfast.features.leadership.detector.messages import Granted, Lead, Resign
from holdfast.features.leadership.protocol.board import Board
from holdfast.features.leadership.protocol.campaign import Campaign, State
from holdfast.features.leadership.protocol.config import NAMES_MAX, LeadershipConfig
from holdfast.features.leadership.protocol.facts import Leading, LostLead, RoundAsked
from holdfast.features.leadership.protocol.messages import Holders, Holding, StartRounds, Succession, WhoHolds
from holdfast.features.leadership.protocol.pulse import Pulse
from holdfast.features.leadership.protocol.reigns import Hope, Reigns
from holdfast.features.leadership.protocol.roads import Roads
from holdfast.features.leadership.protocol.seat import LeadSeat
from holdfast.features.leadership.protocol.watch import Watches
from holdfast.host import Host, NodeId, Timer
from holdfast.kit.deadline import Deadline
from holdfast.kit.hold import Holder
from holdfast.kit.outbox import Outbox
from holdfast.kit.phase import Phase, PhaseEnd, Questions, majority
from holdfast.kit.seats import Seats

PAGE_BYTES = 900  # of names and what is said about them in one message; the rest of a datagram is envelope
START_BYTES = 100  # of one START without its name: the longest agent name, numbers
HOLDING_BYTES = 110  # of one answer to a look without its name
START_REPEATS = 2  # nag: START again to a candidate that was not heard


class LeadOffice:
    """Runs the campaigns; implements ``Office``."""

    def __init__(
        self,
        host: Host,
        config: LeadershipConfig,
        seats: Seats,
        *,
        roads: Roads,
        board: Board,
        reigns: Reigns,
        seat: LeadSeat,
        watches: Watches,
    ) -> None:
        self.me, self.config, self.random = host.me, config, host.random
        self.slots, self.quorum = len(roads.slots), roads.quorum
        self.campaigns: dict[str, Campaign] = {}
        self.counts: Counter[str] = Counter()  # starts, resigned, looks, gave_up, lapsed, far_ahead, declined_again
        self._host, self._seats, self._roads, self._board, self._reigns = host, seats, roads, board, reigns
        self._seat, self._watches = seat, watches
        self.pulse = Pulse(host, config, roads, seats, seat, self._leads, self._on_granted, self._short, self._on_missed)
        self.questions = Questions()
        self._outbox = Outbox(host)
        self._timer: Timer | None = None
        self._looking: list[str] = []  # names that are looked up in a moment
        self._starts: list[Succession] = []  # START of this turn
        self._stopped = False
        self._declined: dict[str, float] = {}  # name -> when START for it was last passed on, or not
        self._spent: dict[str, int] = {}  # the highest number of each name that this life asked for in a campaign that has ended

    @property
    def now(self) -> float:
        return self._host.now

    # What the agent asks.

    def stand(self, name: str, length: float, holder: Holder) -> None:
        self._board.stand(name)
        self.campaigns[name] = campaign = self.make_campaign(name, length, holder)
        campaign.spent = self._spent.get(name, 0)
        self.arm()

    def make_campaign(self, name: str, length: float, holder: Holder) -> Campaign:
        return Campaign(self, Deadline(self._host), name, length, holder)

    def leave(self, name: str) -> None:
        campaign = self.campaigns.pop(name)
        self._board.withdraw(name)  # First: the next that is told is another candidate.
        if campaign.state is State.LEADING:  # Not ``leading``: its deadline may pass between two readings of the clock.
            campaign.end("resigned")
        else:
            campaign.leave()
        self._spent.pop(name, None)
        if len(self._spent) >= NAMES_MAX:
            del self._spent[next(iter(self._spent))]
        self._spent[name] = max(campaign.number, campaign.spent)

    def lapse(self) -> None:
        """F9: before anything else, a leader whose deadline has passed leads no more."""
        for campaign in [campaign for campaign in self.campaigns.values() if campaign.lapsed]:
            if campaign.lapsed:
                self.counts["lapsed"] += 1
                campaign.lapse()

    def arm(self) -> None:
        """One timer for all campaigns; one that comes too early looks again."""
        due = min((campaign.due_at() for campaign in self.campaigns.values()), default=inf)
        if self._timer is not None and self._timer.due_at != due:
            self._timer.cancel()
            self._timer = None
        if self._timer is None and due < inf:
            self._timer = self._host.at(due, self._on_due)

    def stop(self) -> None:
        self._stopped = True  # What is planned for a moment later is not said any more.
        self._outbox.clear()
        self.pulse.stop()
        if self._timer is not None:
            self._timer.cancel()

    # What campaigns ask (Office).

    def first_number(self) -> int:
        """F16: wall-clock milliseconds; of a clock that is not set, the least that one that is could say."""
        return max(CLOCK_MIN, int(self._host.wall() * 1000))

    def credible(self, number: int) -> bool:
        """A peer's number: one that no clock comes to is counted and dropped. What a peer said before does not make the next one
        credible, or a few thousand messages could use up all numbers of a name."""
        beyond = is_beyond(number, self._host.wall)
        self.counts["far_ahead"] += beyond
        return number >= 0 and not beyond

    def asking(self, campaign: Campaign, why: str) -> None:
        self._host.emit(RoundAsked(campaign.name, campaign.number, why))
        self._reigns.asks(campaign.name, campaign.number, self.me)
        self.pulse.soon(campaign.name, wide=True)

    def again(self, campaign: Campaign) -> None:
        self.pulse.soon(campaign.name, wide=False)

    def look(self, campaign: Campaign) -> None:
        self.counts["looks"] += 1
        if not self._looking:
            self._host.after(0.0, self._on_look)
        self._looking.append(campaign.name)

    def led(self, campaign: Campaign) -> None:
        self._host.emit(Leading(campaign.name, campaign.number))
        self._reigns.led(campaign.name, campaign.number, self.me)
        self._board.lead(campaign.name, campaign.number)
        self.pulse.soon(campaign.name, wide=True)  # All shall know at once (D13).

    def ended(self, campaign: Campaign, why: str) -> None:
        name, number = campaign.name, campaign.number
        self._host.emit(LostLead(name, number, why))
        self._reigns.over(name, number)
        self._board.over(name, number)
        self._resign(name, number)
        self.pass_on(name, self.me)

    def gave_up(self, campaign: Campaign, *, unheard: bool) -> None:
        self.counts["gave_up"] += 1
        self._reigns.resigned(campaign.name, campaign.number, self.me)
        self._resign(campaign.name, campaign.number)
        if unheard:
            self.pass_on(campaign.name, self.me)

    def place(self, name: str, but: NodeId | None = None) -> int:
        living = [life for life in self._board.candidates(name) if life == self.me or (life != but and self._is_there(life))]
        return living.index(self.me) if self.me in living else len(living)

    def _is_there(self, life: NodeId) -> bool:
        return self._watches.alive(life) and not self._watches.silent(life)

    def before(self, name: str, life: NodeId) -> bool:
        """That life comes before this agent in the order of candidates."""
        order = self._board.candidates(name)
        return life in order and self.me in order and order.index(life) < order.index(self.me)

    def alive(self, life: NodeId) -> bool:
        return self._watches.alive(life)

    def silent(self, life: NodeId) -> bool:
        return self._watches.silent(life)

    def hope(self, name: str) -> Hope | None:
        return self._reigns.hope(name)

    def highest(self, name: str) -> int:
        return self._reigns.highest(name)

    # START.

    def pass_on(self, name: str, but: NodeId) -> None:
        """The next candidate after ``but`` shall ask for the next round: tell it, the seats and the other monitors."""
        chosen, number = self._next(name, but), self._reigns.highest(name) + 1
        if chosen is None or not self._reigns.expect(name, number, chosen):
            return
        campaign = self.campaigns.get(name)
        if chosen == self.me:
            assert campaign is not None
            campaign.on_start(number, "next")
            return
        if campaign is not None:
            campaign.on_other(number, chosen)
        if not self._starts:
            self._host.after(0.0, self._on_starts)
        self._starts.append(Succession(name, number, *chosen))

    def decline(self, name: str) -> None:
        """START names this agent, which does not stand, or not any more: another candidate shall. Once in a while only: two who both
        withdrew, and whose boards do not know it yet, would tell each other without end."""
        now = self._host.now
        if now < self._declined.pop(name, -inf) + self.config.delta_c:
            self.counts["declined_again"] += 1
        else:
            self.pass_on(name, self.me)
        if len(self._declined) >= NAMES_MAX:
            del self._declined[next(iter(self._declined))]
        self._declined[name] = now

    def _next(self, name: str, but: NodeId) -> NodeId | None:
        """Who was named before and not heard comes last: it may have died with ``but``, and no list may say so yet (H144)."""
        order, unheard = self._board.candidates(name), self._reigns.unheard(name)
        after = next((place + 1 for place, life in enumerate(order) if life == but), 0)
        willing = [life for life in (*order[after:], *order[:after]) if life != but and self._willing(name, life)]
        first = [life for life in willing if life not in unheard] + [life for life in unheard if life in willing]
        return first[0] if first else None

    def _willing(self, name: str, life: NodeId) -> bool:
        if life != self.me:
            return self._watches.alive(life)
        return name in self.campaigns and self.campaigns[name].allowed

    def _on_starts(self) -> None:
        starts, self._starts = self._starts, []
        if self._stopped:
            return
        monitors = self._roads.monitors()
        for page in _pages(starts):
            self.counts["starts"] += len(page)
            for target in monitors.values():
                self._host.send(target, StartRounds(page))
        self._tell_chosen([start for start in starts if start.watched not in monitors])
        self._host.after(self.config.nag, lambda: self._on_nag(starts, START_REPEATS))

    def _on_nag(self, starts: Sequence[Succession], repeats: int) -> None:
        """Those who were named and not heard yet are told again."""
        unheard = [start for start in starts if self._is_unheard(start) and not self._stopped]
        if unheard:
            self._tell_chosen(unheard)
            if repeats > 1:
                self._host.after(self.config.nag, lambda: self._on_nag(unheard, repeats - 1))

    def _is_unheard(self, start: Succession) -> bool:
        hope = self._reigns.hope(start.name)
        return hope is not None and (hope.number, hope.life) == (start.round, NodeId(start.watched, start.boot)) and not hope.heard

    def _tell_chosen(self, starts: Sequence[Succession]) -> None:
        chosen: dict[NodeId, list[Succession]] = {}
        for start in starts:
            chosen.setdefault(NodeId(start.watched, start.boot), []).append(start)
        for life, its in chosen.items():
            to = self._roads.to_life(life)
            if to is not None:
                for page in _pages(its):
                    self._outbox.put(to, StartRounds(page))  # F17: many names may be meant for many lives.

    # RESIGN.

    def _resign(self, name: str, number: int) -> None:
        """What the seats promised under this number may end: they are told twice, because a lost word costs the next one a promise."""
        self.counts["resigned"] += 1
        self._seat.release(self.me, name, number)
        message = Resign(name, 0, number)
        for monitor in self._roads.monitors().values():
            self._host.send(monitor, message)
        self._host.after(self.config.nag, lambda: self._on_resign_again(message))

    def _on_resign_again(self, message: Resign) -> None:
        for seat in () if self._stopped else tuple(self._roads.seats().values()):
            self._host.send(seat, message)

    # Looking.

    def _on_look(self) -> None:
        names, self._looking = self._looking, []
        if self._stopped:
            return
        room = 0
        pages: list[list[str]] = []
        for name in names:
            room -= len(name.encode()) + HOLDING_BYTES
            if room < 0:
                pages.append([])
                room = PAGE_BYTES - len(name.encode()) - HOLDING_BYTES
            pages[-1].append(name)
        for page in pages:
            self._ask_seats(tuple(page))

    def _ask_seats(self, names: tuple[str, ...]) -> None:
        members = self._seats.addresses
        phase = Phase(
            self._host,
            self.questions,
            members,
            lambda serial: WhoHolds(serial, names),
            every=self.config.t_rtt,
            timeout=2 * self.config.w,
            enough=majority(members),
            done=lambda end: self._on_looked(names, end),
        )
        phase.start()
        own, holdings = self._seats.own, self._seat.holdings(names)
        if own is not None and holdings is not None:
            answer = Holders(phase.serial, own, self._seats.keeper.era, holdings)
            self.questions.answer(phase.serial, own, answer, era=answer.era)

    def _on_looked(self, names: tuple[str, ...], end: PhaseEnd[int]) -> None:
        self.lapse()
        answers = [answer for answer in end.yes.values() if isinstance(answer, Holders)]
        for name in names:
            campaign = self.campaigns.get(name)
            if campaign is not None:
                said = (holding for answer in answers for holding in answer.holdings[: len(names)])
                holdings: list[Holding] = [holding for holding in said if holding.name == name and self.credible(holding.round)]
                campaign.looked(holdings if len(holdings) >= self.quorum else None)
        self.arm()

    # The clock and the heartbeat.

    def _on_due(self) -> None:
        self._timer = None
        late, now = self._host.late, self._host.now
        for campaign in [campaign for campaign in self.campaigns.values() if campaign.due_at() <= now]:
            campaign.on_due(late)
        self.arm()

    def _leads(self) -> Sequence[Lead]:
        self.lapse()
        return [lead for campaign in self.campaigns.values() if (lead := campaign.lead()) is not None]

    def _on_granted(self, slot: int, answer: Granted, asked_at: float) -> None:
        """May come from the own seat at any time: also from its disk."""
        self.lapse()
        campaign = self.campaigns.get(answer.name)
        if campaign is not None and self.credible(answer.number):
            campaign.on_granted(slot, answer, asked_at)
            self.arm()

    def _short(self, since: float) -> Sequence[str]:
        return [name for name, campaign in self.campaigns.items() if campaign.short(since)]

    def _on_missed(self, left_at: float) -> None:
        self.lapse()
        for campaign in list(self.campaigns.values()):
            campaign.on_missed(left_at)


def _pages(starts: Sequence[Succession]) -> list[tuple[Succession, ...]]:
    pages: list[list[Succession]] = []
    room = 0
    for start in starts:
        room -= len(start.name.encode()) + START_BYTES
        if room < 0:
            pages.append([])
            room = PAGE_BYTES - len(start.name.encode()) - START_BYTES
        pages[-1].append(start)
    return [tuple(page) for page in pages]
