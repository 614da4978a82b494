"""What a command of ``holdfast run`` may hold while it runs: a grant of the agent, or no more than membership.  Spec: foundation F9, F14.

A hold knows until when it is good, on the clock of this machine, and whether it has ended. It is moved by what the agent says and by
nothing else; an agent that is gone says nothing any more, so what was granted ends at the last deadline.

A hold that ended before anything was done under it is no loss: it is given back, and asked for ``again``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from holdfast.cli.agent_call import ANSWER_TIMEOUT, AgentCall, value_of
from holdfast.client.holding import delay_text
from holdfast.client.wire import error_class
from holdfast.errors import AgentLost, HoldfastError, Lost, Unavailable, shown
from holdfast.local.calls import (
    Acquire,
    Body,
    Close,
    Closed,
    Confirm,
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
from holdfast.local.ends import LAPSED, UNREAD, UNTAKEN
from holdfast.net import clock

NEVER = float("-inf")
FOREVER = float("inf")
LOOK_INTERVAL = 1.0  # seconds: membership has no deadline, so it is asked for, also when nothing is heard
LOOK_INTERVAL_MIN = 0.05  # seconds: a burst of events is one reason to look
GONE = "its agent is gone, and nothing is extended any more"


class Hold(Protocol):
    """Something that a command has while it runs."""

    deadline: float  # nothing of the command may run after it
    length: float  # seconds from the grant to its first deadline, also for a process that read it late
    ended: str  # why the command has to stop; "" while it may go on
    position: int  # where it waits before it is held, 1 is next; 0: nowhere yet
    delay: str  # why the seats grant nothing to any client, as the agent said; "": it did not

    @property
    def held(self) -> bool:
        """The command may start."""

    @property
    def why(self) -> str:
        """Why it is not held any more, by word or by clock."""

    @property
    def over(self) -> bool:
        """It was held, or refused; it is not held and will not be unless it is asked for again."""

    def again(self) -> None:
        """Nothing is done under it: give back what there was, and ask anew. Raises why if it was refused, or if the agent is gone."""

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
        self.deadline, self.length, self.ended, self.position, self.delay = FOREVER, FOREVER, "", 0, ""
        self._call = call
        self._serial = call.say(kind, *fields)
        self._gone = False

    @property
    def environ(self) -> Mapping[str, str]:
        return {"HOLDFAST_AGENT": self._call.path}

    def fileno(self) -> int:
        return -1 if self._gone else self._call.fileno()

    @property
    def why(self) -> str:
        return self.ended or (GONE if self._gone else LAPSED)

    @property
    def over(self) -> bool:
        return bool(self.ended)

    def read(self) -> None:
        while (said := self._heard(0)) is not None:
            self._on_said(said)

    def register(self, pid: int, *, before: float = 0.0, mark: str = "") -> None:
        """There is no deadline."""

    def stopped(self) -> None:
        """Nobody waits for it."""

    def _heard(self, timeout: float) -> FromAgent | None:
        """However the connection ends, and whatever the agent says about it: there will be no more news."""
        if self._gone:
            return None
        try:
            return self._call.hear(timeout)
        except HoldfastError as error:
            self._gone = True
            self._on_lost_agent(error if isinstance(error, AgentLost) else AgentLost(str(error)))
            return None

    def _check_agent(self) -> None:
        if self._gone:
            raise AgentLost(f"the agent at {self._call.path} ended")

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
        self._kind, self._name, self._options, self._now = kind, name, options, now
        self._reset()

    def _reset(self) -> None:
        self.deadline, self.length, self.ended, self.position, self.delay = NEVER, 0.0, "", 0, ""
        self._token = self._number = 0
        self._released = False
        self._refusal = ""  # the error of what was never granted, as the agent named it

    @property
    def held(self) -> bool:
        return not self.ended and self._now() < self.deadline

    @property
    def over(self) -> bool:
        return bool(self.ended) or NEVER < self.deadline <= self._now()

    @property
    def refused(self) -> str:
        """Why it was never to be had; "" if it was, or may be."""
        return self.ended if self.deadline == NEVER else ""

    def again(self) -> None:
        if self.refused:
            raise (error_class(self._refusal) if self._refusal else Lost)(f"{self._kind} {shown(self._name)}: {self.refused}")
        self._check_agent()
        if not self._released:
            self._call.say(Stopped, self._serial)
        self._call.say(Close, self._serial)  # An agent keeps a stream until it is closed, and not any number of them.
        self._serial = self._call.say(Acquire, self._kind, self._name, self._options)
        self._reset()

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
        while (said := self._heard(max(0.001, min(until, self.deadline) - self._now()))) is not None:
            if said.serial == serial and not isinstance(said, Pushed):
                self._on_registered(said)
                return
            self._on_said(said)
        self._check_agent()
        raise Lost(f"{self._kind} {shown(self._name)}: the agent did not confirm the command in time")

    def stopped(self) -> None:
        """Without it the agent would wait for the deadline, or notice by itself that all are dead."""
        if not self._gone and not self._released and self.deadline > NEVER:
            try:
                self._call.ask(Stopped, self._serial)
            except HoldfastError:
                self._gone = True

    def _on_registered(self, said: Done | Refused | Closed) -> None:
        try:
            value_of(said, None)
        except HoldfastError as error:  # Whatever it objects to, nothing was executed yet.
            raise Lost(f"{self._kind} {shown(self._name)}: the agent refused the command: {error}") from None

    def _on_item(self, item: msgspec.Raw) -> None:
        news: GrantItem = msgspec.msgpack.decode(item, type=GrantItem)
        if news.what == "queued" and news.why:
            self._on_delay(news)
        elif news.what == "queued":
            self.position = news.number
        elif news.what == "granted":
            self._on_granted(news)
        elif news.what == "extended":
            if self._now() < self.deadline:  # F9: what has ended is not revived by a late word
                self.deadline = max(self.deadline, news.deadline)
            else:
                self.ended = self.ended or UNREAD
        elif news.what in ("stop", "lost", "released"):
            self._released = self._released or news.what == "released"
            self.ended, self._refusal = self.ended or news.why or news.what, news.error

    def _on_delay(self, news: GrantItem) -> None:
        """The agent says it once."""
        self.delay = delay_text(news.why, news.deadline - self._now())
        print(f"holdfast: waiting: {self.delay}", file=sys.stderr, flush=True)

    def _on_granted(self, news: GrantItem) -> None:
        """Read in time, it is taken up: the agent extends it from now on. Read too late, it was never held (F9)."""
        now = self._now()
        self.deadline, self._token, self._number = news.deadline, news.token, news.number
        self.length = news.length or news.deadline - now
        if now < self.deadline:
            with suppress(AgentLost):  # It is heard when the next word is read.
                self._call.say(Confirm, self._serial, self._token)
        else:
            self.ended = UNTAKEN

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

    def again(self) -> None:
        self._check_agent()
        self._member, self.ended = False, ""
        self._look()

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
