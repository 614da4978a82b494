"""Counters in an agent: two calls, a kind of grant, numbers, a finding, and what an agent waits for before it leaves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from holdfast.agent.feature import Calls, Feature, Parts, Running
from holdfast.local.calls import Finding
from holdfast.local.frame import encoded
from tests.toy.counter.kind import CounterKind
from tests.toy.counter.protocol.counters import Counters
from tests.toy.counter.protocol.facts import Closed, Counted
from tests.toy.counter.settings import CounterSettings

if TYPE_CHECKING:
    from holdfast.agent.feature import HttpPart, Web
    from holdfast.agent.observe.openapi import Route
    from holdfast.agent.socket.connection import Connection
    from tests.toy.counter.calls import CounterAdd, CounterValues


class CounterAgent(Running):
    """One ``Counters``."""

    info = (Counted, Closed)

    def __init__(self, parts: Parts) -> None:
        self.counters = Counters(parts.host, parts.exchange, limit=CounterSettings.of(parts.config).counter_limit)
        self.machines = (self.counters,)
        self.grant_kind = CounterKind(parts.host)

    def calls(self) -> Calls:
        from tests.toy.counter.calls import CounterAdd, CounterValues

        return Calls(at_once={CounterValues: self._values}, in_turn={CounterAdd: self._add})

    def drain(self, *, draining: bool = True) -> None:
        self.counters.close(closed=draining)

    @property
    def drained(self) -> bool:
        return self.counters.spread

    def counts(self) -> dict[str, float]:
        return {"counter_names": len(self.counters.values), "counter_added": self.counters.counts["added"]}

    def findings(self) -> Iterable[Finding]:
        if self.counters.is_full:
            there = f"There are {len(self.counters.values)} counters, and this agent begins no other."
            yield Finding("counter_full", "warning", "counter_limit", there, "Raise counter_limit, or use fewer names.")

    def http(self, web: Web) -> HttpPart:
        from tests.toy.counter.http import CounterHttp

        return CounterHttp(web, self.counters)

    def _add(self, client: Connection, call: CounterAdd) -> None:
        client.done(call.serial, encoded(self.counters.add(call.name, call.by)))

    def _values(self, client: Connection, call: CounterValues) -> None:
        client.done(call.serial, encoded(self.counters.values))


class CounterFeature(Feature):
    """Every agent has it."""

    name = "counter"

    def build(self, parts: Parts) -> CounterAgent:
        return CounterAgent(parts)

    def routes(self) -> tuple[Route, ...]:
        from tests.toy.counter.http import ROUTES

        return ROUTES
