"""What a command of ``holdfast run`` may hold while it runs: a grant of the agent, or no more than membership.  Spec: foundation F9, F14.

A hold knows until when it is good, on the clock of this machine, and whether it has ended. It is moved by what the agent says and by
nothing else; an agent that is gone says nothing any more, so what was granted ends at the last deadline.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from holdfast.cli.agent_call import ANSWER_TIMEOUT, AgentCall, value_of
from holdfast.client.holding import delay_text
from holdfast.errors import AgentLost, ConfigError, HoldfastError, Lost, Unavailable
from holdfast.local.calls import (
    Acquire,
    Body,
    Closed,
    Done,
    EventItem,
    FromAgent,
    GrantItem,
    GroupView,
    Look,
    Pushed,
    Refused,
    Stopped,
    Watch,
)
from holdfast.net import clock

NEVER = float("-inf")
FOREVER = float("inf")
LOOK_INTERVAL = 1.0  # seconds: membership has no deadline, so it is asked for, also when nothing is heard
LOOK_INTERVAL_MIN = 0.05  # seconds: a burst of events is one reason to look


class Hold(Protocol):
    """Something that a command has while it runs."""

    deadline: float  # nothing of the command may run after it
    ended: str  # why the command has to stop; "" while it may go on
    position: int  # where it waits before it is held, 1 is next; 0: nowhere yet
    delay: str  # why the seats grant nothing to any client, as the agent said; "": it did not

    @property
    def held(self) -> bool:
        """The command may start."""

    @property
    def environ(self) -> Mapping[str, str]:
        """What the command is told about it."""

    def fileno(self) -> int:
        """Readable when there is news; -1 when there will be none."""

    def read(self) -> None:
        """Take in what the agent said. Raises what it refused, while nothing is held yet."""

    def register(self, pid: int, *, before: float = 0.0, mark: str = "") -> None:
        """A process that acts under it, which the agent ends so long before the deadline (0.0: never). Raises ``Lost`` when it is over."""

    def stopped(self) -> None:
        """Nothing of the command is left."""


class Connected:
    """The part that talks."""

    def __init__(self, call: AgentCall, kind: type[Any], *fields: Any) -> None:
        self.deadline, self.ended, self.position, self.delay = FOREVER, "", 0, ""
        self._call = call
        self._serial = call.say(kind, *fields)
        self._gone = False

    @property
    def environ(self) -> Mapping[str, str]:
        return {"HOLDFAST_AGENT": self._call.path}

    def fileno(self) -> int:
        return -1 if self._gone else self._call.fileno()

    def read(self) -> None:
        try:
            while (said := self._call.hear(0)) is not None:
                self._on_said(said)
        except AgentLost as error:
            self._gone = True
            self._on_lost_agent(error)

    def register(self, pid: int, *, before: float = 0.0, mark: str = "") -> None:
        """There is no deadline."""

    def stopped(self) -> None:
        """Nobody waits for it."""

    def _on_said(self, said: FromAgent) -> None:
        if said.serial != self._serial:
            return
        if isinstance(said, Pushed):
            self._on_item(said.item)
        elif isinstance(said, Done):
            self._on_opened(said)
        else:
            self._on_closed(said)

    def _on_opened(self, said: Done) -> None:
        """The agent took the question."""

    def _on_closed(self, said: Refused | Closed) -> None:
        raise NotImplementedError

    def _on_item(self, item: msgspec.Raw) -> None:
        raise NotImplementedError

    def _on_lost_agent(self, error: AgentLost) -> None:
        raise NotImplementedError


class GrantHold(Connected):
    """A grant of the agent: it excludes others until its deadline."""

    def __init__(self, call: AgentCall, kind: str, name: str, options: Mapping[str, Any], *, now: Callable[[], float] = clock.now) -> None:
        if not call.same_clock:
            raise Unavailable(f"the agent at {call.path} reads another clock than this command, so its deadlines mean nothing here (F14)")
        super().__init__(call, Acquire, kind, name, options)
        self.deadline = NEVER
        self._kind, self._name, self._now = kind, name, now
        self._token = self._number = 0
        self._released = False

    @property
    def held(self) -> bool:
        return not self.ended and self._now() < self.deadline

    @property
    def environ(self) -> Mapping[str, str]:
        told = {**super().environ, "HOLDFAST_HOLD": f"{self._kind}:{self._name}", "HOLDFAST_TOKEN": str(self._token)}
        if self._kind == "lead":
            told["HOLDFAST_TERM"] = str(self._token)
        if self._kind == "ticket":
            told["HOLDFAST_TICKET"] = str(self._number)
        return told

    def register(self, pid: int, *, before: float = 0.0, mark: str = "") -> None:
        serial = self._call.say(Body, self._serial, pid, before, mark)
        until = self._now() + ANSWER_TIMEOUT
        while (said := self._call.hear(max(0.001, min(until, self.deadline) - self._now()))) is not None:
            if said.serial == serial and not isinstance(said, Pushed):
                value_of(said, None)
                return
            self._on_said(said)
        raise Lost(f"{self._kind} {self._name!r}: the agent did not confirm the command in time")

    def stopped(self) -> None:
        """Without it the agent would wait for the deadline, or notice by itself that all are dead."""
        if not self._gone and not self._released and self.deadline > NEVER:
            try:
                self._call.ask(Stopped, self._serial)
            except HoldfastError:
                self._gone = True

    def _on_item(self, item: msgspec.Raw) -> None:
        news: GrantItem = msgspec.msgpack.decode(item, type=GrantItem)
        if news.what == "queued" and news.why:
            self._on_delay(news)
        elif news.what == "queued":
            self.position = news.number
        elif news.what == "granted":
            self.deadline, self._token, self._number = news.deadline, news.token, news.number
        elif news.what == "extended":
            if self._now() < self.deadline:  # F9: what has ended is not revived by a late word
                self.deadline = max(self.deadline, news.deadline)
        elif news.what in ("stop", "lost", "released"):
            self._released = self._released or news.what == "released"
            self.ended = self.ended or news.why or news.what

    def _on_delay(self, news: GrantItem) -> None:
        """The agent says it once."""
        self.delay = delay_text(news.why, news.deadline - self._now())
        print(f"holdfast: waiting: {self.delay}", file=sys.stderr, flush=True)

    def _on_closed(self, said: Refused | Closed) -> None:
        if self.deadline == NEVER:
            value_of(said, None)
        self.ended = self.ended or said.text

    def _on_lost_agent(self, error: AgentLost) -> None:
        if self.deadline == NEVER:
            raise error


class MemberHold(Connected):
    """No exclusion: the command runs while the agent is a member of its group."""

    def __init__(self, call: AgentCall, *, now: Callable[[], float] = clock.now) -> None:
        super().__init__(call, Watch, False)
        self._now = now
        self._member = False
        self._asked = 0  # serial of the last Look
        self._asked_at = NEVER

    @property
    def held(self) -> bool:
        return self._member and not self.ended

    def read(self) -> None:
        super().read()
        if self._now() - self._asked_at >= LOOK_INTERVAL:
            self._look()

    def _on_said(self, said: FromAgent) -> None:
        if isinstance(said, Done) and said.serial == self._asked:
            self._on_view(value_of(said, Look.answers))
        else:
            super()._on_said(said)

    def _on_opened(self, said: Done) -> None:
        self._on_view(value_of(said, Watch.answers))

    def _on_item(self, item: msgspec.Raw) -> None:
        """Whatever it was, it may be about this agent."""
        if msgspec.msgpack.decode(item, type=EventItem).name == "Expelled":
            self._end("this agent is out of its group")
        elif self._now() - self._asked_at >= LOOK_INTERVAL_MIN:
            self._look()

    def _look(self) -> None:
        if not self._gone:
            with suppress(AgentLost):  # It is heard when the next answer is read.
                self._asked, self._asked_at = self._call.say(Look), self._now()

    def _on_view(self, view: GroupView) -> None:
        if view.state == "member":
            self._member = True
        else:
            self._end(f"this agent is {view.state}")

    def _end(self, why: str) -> None:
        if self._member:
            self.ended = self.ended or why

    def _on_closed(self, said: Refused | Closed) -> None:
        if not self._member:
            value_of(said, None)
        self._end(said.text or "the agent ended the conversation")

    def _on_lost_agent(self, error: AgentLost) -> None:
        if not self._member:
            raise error
        self._end("the agent is gone")


def parsed_hold(text: str) -> tuple[str, str]:
    kind, colon, name = text.partition(":")
    if not kind or not colon or not name:
        raise ConfigError(f"--hold {text}: accepted is KIND:NAME")
    return kind, name
