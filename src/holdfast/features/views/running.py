"""Views in an agent that may use them: light until a client of this agent, or of another one, asks for views.  Spec: views 9, 10, D1, D31.

The protocol is imported when it is first used. Before that an agent that is no seat has nothing of views; a seat has a ``Doorbell``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from holdfast.agent.feature import Calls, Parts, Running
from holdfast.events import ViewLost, ViewTripped
from holdfast.features.views.settings import ViewsSettings

if TYPE_CHECKING:
    from holdfast.agent.feature import HttpPart, Web
    from holdfast.agent.socket.connection import Handler
    from holdfast.events import Event
    from holdfast.features.views.backend import Backend
    from holdfast.features.views.handlers import ViewHandlers
    from holdfast.host import Machine, Message, NodeId
    from holdfast.local.calls import Call, Finding


# What the protocol imports, in an order in which each name brings at most three more. Calls load them one by one (H382).
_OF_VIEWS = "holdfast.features.views."
MODULES = (
    "holdfast.kit.parcels",
    *(
        f"{_OF_VIEWS}protocol.{name}"
        for name in (
            "messages", "links", "liveness", "nsview", "client", "carrier", "agreement", "linkstate", "relay", "server", "views"
        )
    ),
    f"{_OF_VIEWS}backend",
)  # fmt: skip


class ViewAgent(Running):
    """The part of one agent in views: as a client, from the first user that asks until the last one ends, and as a server if it is a seat.

    Once it is made, the machine lives as long as the agent: the numbers of a life only grow (views G2), also from one part to the next.
    """

    why = ""  # nothing is missing
    warning: tuple[type[Event], ...] = (ViewLost, ViewTripped)

    def __init__(self, parts: Parts, of_membership: Backend | None = None) -> None:
        """``of_membership``: the member list is a view, so this agent takes part as long as it is a member. The membership sees to that."""
        self.parts = parts
        self.settings = ViewsSettings.of(parts.config)
        self.views = of_membership  # None: it was not needed yet
        self.users: dict[object, None] = {}
        self._added: Machine | None = of_membership  # which of the two the node has
        self._is_membership = of_membership is not None
        self._draining = False
        self._handlers: ViewHandlers | None = None
        self._doorbell: Machine | None = None
        if parts.config.http:
            from holdfast.features.views.protocol.facts import Carried, Received

            self.frequent = Carried, Received
        parts.overlay.lender = self
        if of_membership is not None:
            parts.overlay.views = of_membership
        elif parts.slots.own is not None and not self.settings.zookeeper:
            self._doorbell = self._added = self._hang_doorbell()
            self.machines = (self._doorbell,)

    @property
    def takes_part(self) -> bool:
        """As a client of views."""
        return self._is_membership or bool(self.users)

    @property
    def serves(self) -> bool:
        """This agent is a seat, and somewhere a client takes part."""
        return self.views is not None and self._added is self.views and self.parts.slots.own is not None and not self.settings.zookeeper

    # What HTTP shows (``http.ViewSource``).

    @property
    def back_end(self) -> Literal["seats", "zookeeper"]:
        return "zookeeper" if self.settings.zookeeper else "seats"

    @property
    def slot(self) -> int | None:
        return self.parts.slots.own

    @property
    def now(self) -> float:
        return self.parts.host.now

    @property
    def me(self) -> NodeId:
        return self.parts.host.me

    def http(self, web: Web) -> HttpPart:
        from holdfast.features.views.http import ViewsHttp

        return ViewsHttp(web, self)

    # Who uses views. In turns.

    def begin(self, user: object) -> Backend:
        """This agent takes part, at least until ``end``. Raises ``ConfigError`` if it cannot."""
        views = self._run()
        self.users[user] = None
        if not self._draining and not self._is_membership:
            self._take_part(views)
        return views

    def end(self, user: object) -> None:
        self.users.pop(user, None)
        if not self._is_membership and (not self.users or (self._draining and not self._lent)):
            self._withdraw()

    @property
    def _lent(self) -> bool:
        """Another feature of this agent uses views: it ends that by itself when the agent leaves, after what it has to say there."""
        return any(user is not self._handlers for user in self.users)

    # What an agent asks of a feature.

    needs = (f"{_OF_VIEWS}calls", f"{_OF_VIEWS}streams", f"{_OF_VIEWS}handlers")

    @property
    def modules(self) -> Sequence[str]:
        return () if self.settings.zookeeper else MODULES

    def calls(self) -> Calls:
        from holdfast.features.views.calls import SurveyViews, TripView, WatchViews
        from holdfast.features.views.handlers import ViewHandlers

        self._handlers = handlers = ViewHandlers(self)
        in_turn: dict[type[Call], Handler] = {WatchViews: handlers.watch, TripView: handlers.trip, SurveyViews: handlers.survey}
        return Calls(in_turn=in_turn, needs={WatchViews: (*self.modules, f"{_OF_VIEWS}shapes")})

    def on_event(self, event: Event) -> None:
        """``ServerRetired``, in the middle of a turn of the machine that is to be taken out."""
        del event
        self.parts.host.post(self._retire)

    def drain(self, *, draining: bool = True) -> None:
        """An agent that leaves its group leaves the view as well. Its clients hear ``ViewLost`` when their lease is over."""
        self._draining = draining
        if self._is_membership:
            return
        if draining:
            if not self._lent:
                self._withdraw()
        elif self.users:
            self._take_part(self._run())

    @property
    def drained(self) -> bool:
        """The membership sees to the goodbye of its own views."""
        return self._is_membership or self.views is None or (self.views.left and not self._lent)

    def counts(self) -> dict[str, float]:
        found = {} if self.views is None else {f"views_{name}": value for name, value in sorted(self.views.metrics().items())}
        found["views_users"] = float(len(self.users))
        return found

    def lost(self) -> dict[str, int]:
        return {"view_events_lost": 0 if self._handlers is None else self._handlers.news.missed}

    def findings(self) -> Iterable[Finding]:
        if self.views is None or not (self.takes_part or self.serves):
            return ()
        from holdfast.features.views.findings import of_views

        return of_views(self.views, self.settings, self.me.name, serves=self.serves)

    # The machine.

    def _hang_doorbell(self) -> Machine:
        from holdfast.features.views.doorbell import Doorbell
        from holdfast.features.views.protocol.config import views_fingerprint
        from holdfast.features.views.protocol.facts import LinkDown, LinkUp, ServerRetired, SlowChange

        self.hears, self.info, self.warning = (ServerRetired,), (LinkUp, LinkDown, ServerRetired), (*self.warning, SlowChange)
        return Doorbell(views_fingerprint(self.settings.views_config(), self.parts.slots.all), self._on_ring)

    def _run(self) -> Backend:
        """The machine is in the node from here on."""
        if self.views is None:
            from holdfast.features.views.backend import back_end

            parts = self.parts
            self.views = back_end(parts.host, parts.config.group, self.settings, parts.slots)
        self._exchange(self.views)
        return self.views

    def _exchange(self, machine: Machine) -> None:
        """The node has this machine, and not the other one."""
        if self._added is machine:
            return
        if self._added is not None:
            self.parts.host.node.remove(self._added)
        self._added = machine
        self.parts.host.node.add(machine)

    def _take_part(self, views: Backend) -> None:
        self.parts.overlay.views = views
        views.take_part()

    def _withdraw(self) -> None:
        self.parts.overlay.views = None
        if self.views is not None:
            self.views.withdraw()

    def _on_ring(self, source: NodeId, message: Message) -> None:
        self._run().on_message(source, message)

    def _retire(self) -> None:
        """A seat that no client needs waits at its doorbell again."""
        if self._doorbell is not None and self.views is not None and not self.users and self.views.idle_since is not None:
            self._exchange(self._doorbell)
