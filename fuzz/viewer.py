"""A client of views beside a fuzzer: it takes part, reads what it is told, trips, looks, stops and begins again.

    viewer = Viewer()
    viewer.step(agent, random)  # in a turn of that agent, again and again

It stands where a connection of the local socket does, so its calls go through the feature's own handlers, and what it is told was encoded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import msgspec

from holdfast.agent.life.agent import Agent
from holdfast.errors import HoldfastError
from holdfast.features.views.calls import SurveyViews, TripView, ViewItem, ViewsReport, WatchViews
from holdfast.local.calls import Call

STOPS = 0.01  # chance of a step: it leaves the view, and begins again with the next step
TRIPS, LOOKS = 0.02, 0.1
ITEMS_MAX = 8  # it reads in one step; sometimes it falls behind

_item = msgspec.msgpack.Decoder(ViewItem)


class Viewer:
    """One client, life after life of its agent."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()  # what it was told
        self._agent: Agent | None = None
        self._handlers: Mapping[type[Call], Callable[[Any, Any], None]] = {}
        self._stream: Any = None
        self._serial = 0

    def step(self, agent: Agent, random: Random) -> None:
        if agent is not self._agent:
            self._agent, self._stream = agent, None
            self._handlers = agent.features["views"].calls().in_turn
        if self._stream is None:
            self._ask(WatchViews)
            return
        self._read()
        chance = random.random()
        if chance < STOPS:
            self._stream.close()
            self._stream = None
        elif chance < STOPS + TRIPS:
            self._ask(TripView, "the fuzzer says so")
        elif chance < STOPS + TRIPS + LOOKS:
            self._ask(SurveyViews)

    # What handlers ask of a connection.

    def check_room(self) -> None:
        """There is always room for one stream."""

    def open_stream(self, serial: int, stream: Any) -> None:
        self._stream = stream

    def wake(self, serial: int) -> None:
        """It reads when it steps."""

    def done(self, serial: int, value: bytes = b"") -> None:
        if value:
            msgspec.msgpack.decode(value, type=ViewsReport)
            self.counts["report"] += 1

    # Inside.

    def _ask(self, kind: type[Call], *fields: Any) -> None:
        self._serial += 1
        try:
            self._handlers[kind](self, kind(self._serial, *fields))
        except HoldfastError:
            self.counts["refused"] += 1

    def _read(self) -> None:
        for encoded in self._stream.take(ITEMS_MAX):
            item = _item.decode(encoded)
            self.counts[item.what] += 1
