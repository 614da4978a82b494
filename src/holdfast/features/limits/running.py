"""Limits in an agent that may use them: light until a process uses one, or a peer's gossip says that it must.  Spec: limits 1, 5.11, D22.

The protocol is imported when it is first used. Until then an agent has nothing of limits but this object; one that takes part in views
for another reason has a doorbell, because all members of a view gossip. An agent that took part goes on until it leaves its group: what
others gave it has to be given back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from holdfast.agent.feature import Calls, Parts, Running
from holdfast.errors import ConfigError, shown
from holdfast.events import (
    ChokePoint,
    FleetExceeded,
    LimitChanged,
    LimitPanicked,
    LimitRestored,
    LinkBlacklisted,
    LinkRestored,
    SpecConflict,
    Starved,
)
from holdfast.features.limits.settings import LimitsSettings

if TYPE_CHECKING:
    from holdfast.agent.feature import HttpPart, Web
    from holdfast.events import Event
    from holdfast.features.limits.doorbell import Doorbell
    from holdfast.features.limits.handlers import LimitHandlers
    from holdfast.features.limits.protocol.limiter import Limiter
    from holdfast.features.limits.protocol.specs import Specs
    from holdfast.features.limits.users import Users
    from holdfast.host import Message, NodeId, Views
    from holdfast.local.calls import Finding

# What the calls import, in an order in which each name brings at most three more. They are loaded one by one (H382).
_OF_LIMITS = "holdfast.features.limits."
CALLS = (
    f"{_OF_LIMITS}calls",
    *(f"{_OF_LIMITS}protocol.{name}" for name in ("shares", "workers")),
    f"{_OF_LIMITS}desk",
    *(
        f"{_OF_LIMITS}protocol.{name}"
        for name in (
            "specs", "limit", "quota", "standing", "allocator", "choke", "pushsum", "central", "member_lists", "trader", "limiter", "survey"
        )
    ),
    f"{_OF_LIMITS}handlers",
)  # fmt: skip
MACHINE = (f"{_OF_LIMITS}users", f"{_OF_LIMITS}participants", f"{_OF_LIMITS}protocol.member_views")
LIMITS_MAX = 256  # conflicts that are kept: one of each limit that a group may have
DRAIN_TIMEOUT = 2.0  # seconds for the workers to confirm that they use nothing; what they were told has an end anyway


class LimitsAgent(Running):
    """One limiter, from the first use of a limit on."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.settings = LimitsSettings.of(parts.config)
        self.limiter: Limiter | None = None  # None: it was not needed yet
        self.users: Users | None = None
        self.over = ""  # "views" or "members", once it runs
        self.specs_since: float | None = None
        self._specs: Specs | None = None
        self._handlers: LimitHandlers | None = None
        self._doorbell: Doorbell | None = None
        self._lent = False
        self._draining_until: float | None = None
        self.conflicts: dict[str, SpecConflict] = {}  # the last one of each limit
        parts.overlay.on_views.append(self._on_views)
        if parts.overlay.views is not None:
            self._hang_doorbell()

    # What an agent asks of a feature.

    info: tuple[type[Event], ...] = (LimitChanged, LimitRestored, LinkRestored)
    warning: tuple[type[Event], ...] = (LimitPanicked, LinkBlacklisted, FleetExceeded, SpecConflict, ChokePoint, Starved)

    needs = CALLS

    def calls(self) -> Calls:
        from holdfast.features.limits import calls

        handlers = self.handlers
        return Calls(
            in_turn={
                calls.AttachLimit: handlers.attach,
                calls.ReportLimit: handlers.report,
                calls.TakeLimit: handlers.take,
                calls.SetLimit: handlers.set,
                calls.RemoveLimit: handlers.remove,
                calls.PenalizeLimit: handlers.penalize,
                calls.SurveyLimits: handlers.survey,
            },
            needs=dict.fromkeys((calls.AttachLimit, calls.TakeLimit), self._modules),
        )

    def drain(self, *, draining: bool = True) -> None:
        """The share of this agent is given up before it leaves: its workers are told to use nothing."""
        if self.users is not None:
            self.users.drain(draining=draining)
        if draining:
            if self.limiter is not None:
                self.limiter.retire()
            self._draining_until = self.parts.host.now + DRAIN_TIMEOUT
            self._look_whether_drained()
        else:
            self._draining_until = None
            if self.limiter is not None and self.over == "views":
                self._borrow()

    @property
    def drained(self) -> bool:
        return self._draining_until is None or self._is_idle

    def counts(self) -> dict[str, float]:
        if self.limiter is None:
            return {}
        from holdfast.features.limits.protocol.survey import metrics_of

        return {f"limits_{name}": value for name, value in metrics_of(self.limiter, self.parts.host.now).items()}

    def findings(self) -> Iterable[Finding]:
        if self.limiter is None:
            return ()
        from holdfast.features.limits.findings import of_limits

        return of_limits(self.limiter, self.conflicts, self.parts.host.me.name, self.parts.host.now)

    def http(self, web: Web) -> HttpPart:
        from holdfast.features.limits.http import LimitsHttp

        return LimitsHttp(web, self)

    # What the handlers use.

    @property
    def _modules(self) -> tuple[str, ...]:
        """What ``use`` loads."""
        lender = self.parts.overlay.lender
        return MACHINE if lender is None else (MACHINE[0], *lender.modules)

    @property
    def handlers(self) -> LimitHandlers:
        if self._handlers is None:
            from holdfast.features.limits.handlers import LimitHandlers

            self._handlers = LimitHandlers(self)
        return self._handlers

    @property
    def now(self) -> float:
        return self.parts.host.now

    @property
    def has_specs(self) -> bool:
        """The limits of the group were asked for here."""
        return self._specs is not None

    @property
    def specs(self) -> Specs:
        """The limits of the group. From the first use on this agent keeps the table, also while it uses none of them."""
        if self._specs is None:
            from holdfast.features.limits.protocol.specs import TOPIC, Specs

            parts = self.parts
            self._specs = Specs(parts.host, parts.exchange)
            self.specs_since = parts.host.now
            peers = parts.broadcast.peers(TOPIC)
            if peers:  # Instead of with the next period: a client waits for it.
                parts.exchange.compare(TOPIC, parts.host.random.choice(peers).id)
        return self._specs

    def use(self) -> tuple[Limiter, Users]:
        """This agent takes part from now on. Raises ``ConfigError`` if it cannot."""
        if self._draining_until is None:
            self._borrow()
        limiter = self._run()
        assert self.users is not None
        return limiter, self.users

    def check_policy(self, policy: str) -> None:
        """Limits 5.11: a member list is no view."""
        if policy != "fair" and self.parts.overlay.lender is None:
            raise ConfigError(
                f'policy: {shown(policy)} needs agreed views; accepted is "fair" over a member list. {self.parts.slots.missing}'
            )

    # The machine.

    def _borrow(self) -> None:
        """Views from the feature that has them."""
        if not self._lent:
            self._lent = self.parts.overlay.begin(self) is not None

    def _run(self) -> Limiter:
        if self.limiter is None:
            self.limiter = self._made()
            self._take_doorbell_down()
            self.parts.host.node.add(self.limiter)
        return self.limiter

    def _made(self) -> Limiter:
        from holdfast.features.limits.items import Items
        from holdfast.features.limits.protocol.limiter import Limiter
        from holdfast.features.limits.users import Users

        parts, lender = self.parts, self.parts.overlay.lender
        self.over = "members" if lender is None else "views"
        limiter = Limiter(parts.host, self.settings.limits_config(), self._views(), self.specs, agreed=lender is not None)
        self.users = Users(parts.host, limiter, Items(limiter, self.settings.limit_epoch), self.settings.limit_epoch)
        limiter.subscribe(self._on_event)
        return limiter

    def _views(self) -> Views:
        views = self.parts.overlay.views
        if self.over == "views":
            assert views is not None
            return views
        from holdfast.features.limits.participants import ROW, Participants
        from holdfast.features.limits.protocol.member_views import MemberViews

        self.parts.membership.publish(ROW, b"")
        return MemberViews(self.parts.host, Participants(self.parts.membership))

    def _on_event(self, event: Event) -> None:
        """The workers are to know it, too. In the middle of a turn of the limiter: how it stands is read when that is over."""
        if isinstance(event, SpecConflict) and (event.name in self.conflicts or len(self.conflicts) < LIMITS_MAX):
            self.conflicts[event.name] = event
        if self.users is not None:
            self.parts.host.post(self.users.look)

    # The doorbell.

    def _on_views(self) -> None:
        if self.parts.overlay.views is not None and self.limiter is None:
            self._hang_doorbell()

    def _hang_doorbell(self) -> None:
        if self._doorbell is None and not self._lent:
            from holdfast.features.limits.doorbell import Doorbell

            self._doorbell = Doorbell(self._on_ring)
            self.parts.host.node.add(self._doorbell)

    def _take_doorbell_down(self) -> None:
        if self._doorbell is not None:
            self.parts.host.node.remove(self._doorbell)
            self._doorbell = None

    def _on_ring(self, source: NodeId, message: Message) -> None:
        """A member of this view uses a limit."""
        if self.parts.overlay.views is not None:
            self._run().on_message(source, message)

    # The end.

    @property
    def _is_idle(self) -> bool:
        until = self._draining_until
        return self.users is None or self.users.told <= 0 or (until is not None and self.parts.host.now >= until)

    def _look_whether_drained(self) -> None:
        """Views are left last: what is given up is given up in the view."""
        if self._draining_until is None:
            return
        if not self._is_idle:
            self.parts.host.after(0.05, self._look_whether_drained)
        elif self._lent:
            self._lent = False
            self.parts.overlay.end(self)
