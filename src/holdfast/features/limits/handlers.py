"""The calls about limits.  docs/local-api.md, docs/limits.md."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from holdfast.errors import ConfigError, HoldfastError, shown
from holdfast.features.limits import calls, terms
from holdfast.features.limits.desk import Desk
from holdfast.features.limits.items import line_of
from holdfast.features.limits.protocol.specs import make
from holdfast.features.limits.streams import LimitStream
from holdfast.local.frame import encoded

if TYPE_CHECKING:
    from holdfast.agent.feature import Parts
    from holdfast.agent.socket.connection import Connection
    from holdfast.features.limits.protocol.limiter import Limiter
    from holdfast.features.limits.protocol.specs import Spec, Specs
    from holdfast.features.limits.settings import LimitsSettings
    from holdfast.features.limits.terms import Terms
    from holdfast.features.limits.users import Users
    from holdfast.local.calls import Call

KNOWN_AFTER = 1.0  # seconds: this agent has compared its table with another member's, if there is one that keeps it
LOOK_INTERVAL = 0.05


class TakingPart(Protocol):
    """The limits of one agent."""

    parts: Parts
    settings: LimitsSettings
    limiter: Limiter | None
    users: Users | None
    over: str
    specs_since: float | None

    @property
    def specs(self) -> Specs: ...
    def use(self) -> tuple[Limiter, Users]: ...
    def check_policy(self, policy: str) -> None: ...


class LimitHandlers:
    """Of one agent."""

    def __init__(self, agent: TakingPart) -> None:
        self._agent = agent
        self._desks: dict[str, Desk] = {}

    def attach(self, client: Connection, call: calls.AttachLimit) -> None:
        terms.checked_name(call.name)
        terms.checked_weight(call.weight)
        if call.terms is not None:
            terms.check_told(call.terms)
            self._agent.check_policy(call.terms.policy)
        client.check_room()
        self._when_known(client, call, call.name, partial(self._attach, client, call), needed=call.terms is None)

    def _attach(self, client: Connection, call: calls.AttachLimit) -> None:
        _, users = self._agent.use()
        users.check_room(call.name)
        if call.terms is not None:
            self._agent.specs.offer(call.name, spec_of(call.terms))
        stream = LimitStream(client, call.serial, 0, client.body())
        users.attach(call.name, stream, call.worker, call.weight)
        client.open_stream(call.serial, stream)
        client.done(call.serial)
        client.wake(call.serial)

    def report(self, client: Connection, call: calls.ReportLimit) -> None:
        users = self._agent.users
        if users is None:
            raise ConfigError(f"stream: {call.stream}; accepted is the serial of an open AttachLimit")
        users.report(client, call.stream, call.confirmed, call.arrived, call.waiting, call.user, call.tally)
        client.done(call.serial)

    def take(self, client: Connection, call: calls.TakeLimit) -> None:
        terms.checked_name(call.name)
        terms.checked_cost(call.cost)
        terms.number(call.wait, "wait", f"a number of seconds up to {terms.WAIT_MAX:g}", 0.0, terms.WAIT_MAX)
        self._when_known(client, call, call.name, partial(self._take, client, call), needed=True)

    def _take(self, client: Connection, call: calls.TakeLimit) -> None:
        def answer(went: bool, retry_after: float) -> None:
            client.done(call.serial, encoded(calls.Taken(went, retry_after)))

        self.desk(call.name).take(call.cost, call.wait, lambda: client.connected, answer)

    def desk(self, name: str) -> Desk:
        """Where callers without a bucket ask."""
        found = self._desks.get(name)
        if found is None:
            _, users = self._agent.use()
            users.check_room(name)
            period = self._agent.settings.limit_epoch / 2
            found = self._desks[name] = Desk(self._agent.parts.host, users, name, period, partial(self._desk_gone, name))
        return found

    def _desk_gone(self, name: str) -> None:
        del self._desks[name]

    def set(self, client: Connection, call: calls.SetLimit) -> None:
        terms.checked_name(call.name)
        if call.terms is not None:
            terms.check_told(call.terms)
            self._agent.check_policy(call.terms.policy)
        change = call.change
        if change is not None:
            terms.check_change(change)

        def done() -> None:
            specs = self._agent.specs
            if call.terms is not None:
                specs.set(call.name, spec_of(call.terms))
            if change is not None:
                specs.change(call.name, rate=change.rate, burst=change.burst, fleet=change.fleet)
            client.done(call.serial)

        self._when_known(client, call, call.name, done, needed=call.terms is None)

    def remove(self, client: Connection, call: calls.RemoveLimit) -> None:
        def done() -> None:
            self._agent.specs.remove(call.name)
            client.done(call.serial)

        self._when_known(client, call, call.name, done, needed=True)

    def penalize(self, client: Connection, call: calls.PenalizeLimit) -> None:
        terms.checked_factor(call.factor)
        terms.number(call.seconds, "seconds", f"a number of seconds up to {terms.PENALTY_MAX:g}", 0.001, terms.PENALTY_MAX)

        def done() -> None:
            self._agent.specs.penalize(call.name, call.seconds, call.factor)
            client.done(call.serial)

        self._when_known(client, call, call.name, done, needed=True)

    def survey(self, client: Connection, call: calls.SurveyLimits) -> None:
        def done() -> None:
            client.done(call.serial, encoded(self.report_of(call.name)))

        self._when_known(client, call, call.name, done, needed=bool(call.name))

    def report_of(self, name: str = "") -> calls.LimitsReport:
        agent, host = self._agent, self._agent.parts.host
        used, totals = ({}, {}) if agent.users is None else (agent.users.used, agent.users.totals)
        lines = tuple(
            line_of(each, spec, agent.limiter, used.get(each), agent.over, host.now, host.wall(), totals.get(each))
            for each, spec in agent.specs.items()
            if not name or each == name
        )
        black = () if agent.limiter is None else tuple(sorted({peer.name for peer in agent.limiter.links.black}))
        return calls.LimitsReport(agent.limiter is not None, lines, black)

    def _when_known(self, client: Connection, call: Call, name: str, done: Callable[[], None], *, needed: bool) -> None:
        """The table of this agent may be young: what is not in it yet is waited for. ``needed``: without it the call is refused."""
        specs, host = self._agent.specs, self._agent.parts.host
        since = self._agent.specs_since
        assert since is not None
        known = specs.get(name) is not None if name else len(specs) > 0
        if known or host.now >= since + KNOWN_AFTER or (not needed and name):
            if needed and not known:
                raise ConfigError(
                    f"limit {shown(name)}: there is none of that name; accepted is one that `holdfast limit ls` lists, or a rate"
                )
            done()
            return
        host.after(LOOK_INTERVAL, partial(self._again, client, call, partial(self._when_known, client, call, name, done, needed=needed)))

    def _again(self, client: Connection, call: Call, look: Callable[[], None]) -> None:
        if not client.connected:
            return
        try:
            look()
        except HoldfastError as error:
            client.refuse(call.serial, error)


def spec_of(given: Terms) -> Spec:
    return make(
        given.rate,
        given.burst,
        policy=given.policy,
        share=given.share,
        aggregate=given.aggregate,
        fleet=given.fleet,
        reserve=given.reserve,
        headroom=given.headroom,
    )
