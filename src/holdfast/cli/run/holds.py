"""What a command of ``holdfast run`` may hold while it runs: a grant of the agent, or no more than membership.  Spec: foundation F9, F14.

A hold knows until when it is good, on the clock of this machine, and whether it has ended. It is moved by what the agent says and by
nothing else; an agent that is gone says nothing any more, so what was granted ends at the last deadline.

A hold that ended before anything was done under it is no loss: it is given back, and asked for ``again``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

from holdfast.cli.agent_call import ANSWER_TIMEOUT, AgentCall
from holdfast.cli.run.hold_flags import variables_of
from holdfast.client.holding import Held, delay_text
from holdfast.client.line import Answer
from holdfast.client.wire import ITEMS
from holdfast.errors import AgentLost, HoldfastError, HoldLost, Unavailable, shown
from holdfast.local.calls import Acquire, Body, Confirm, EventItem, GrantItem, GroupView, Look, Stopped, Watch
from holdfast.local.ends import LAPSED, SILENT, UNREAD, UNTAKEN
from holdfast.net.clock import now

NEVER = float("-inf")
FOREVER = float("inf")
LOOK_INTERVAL = 1.0  # seconds: membership has no deadline, so it is asked for, also when nothing is heard
GONE = "its agent is gone, and nothing is extended any more"


class Hold(Protocol):
    """Something that a command has while it runs."""

    ended: str  # why the command has to stop; "" while it may go on

    @property
    def deadline(self) -> float:
        """Nothing of the command may run after it."""

    @property
    def length(self) -> float:
        """Seconds from the grant to its first deadline, also for a process that read it late."""

    @property
    def position(self) -> int:
        """Where it waits before it is held, 1 is next; 0: nowhere yet."""

    @property
    def delay(self) -> str:
        """Why the seats grant nothing to any client, as the agent said; "": it did not."""

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
        """Tell the agent of a process that acts under the hold. The agent ends it ``before`` seconds before the deadline (0.0: never).
        Raises ``HoldLost`` when the hold is over."""

    def stopped(self) -> None:
        """Nothing of the command is left."""


class Connected:
    """The part that talks."""

    def __init__(self, call: AgentCall) -> None:
        self._call = call
        self._gone = False

    @property
    def environ(self) -> Mapping[str, str]:
        return {"HOLDFAST_AGENT": self._call.path}

    def fileno(self) -> int:
        return -1 if self._gone else self._call.fileno()

    def read(self) -> None:
        """However the connection ends, and whatever the agent says about it: there will be no more news."""
        while self._heard(0):
            pass

    def _heard(self, timeout: float) -> bool:
        """Whether the agent said something in time."""
        if self._gone:
            return False
        try:
            return self._call.read(timeout)
        except HoldfastError as error:
            self._gone = True
            self._on_lost_agent(error if isinstance(error, AgentLost) else AgentLost(str(error)))
            return False

    def _check_agent(self) -> None:
        if self._gone:
            raise AgentLost(f"the agent at {self._call.path} ended")

    def _on_lost_agent(self, error: AgentLost) -> None:
        raise NotImplementedError


class Asked(Held):
    """One ``Acquire`` of a ``GrantHold``. It is taken up when it is read, if that is in time."""

    def __init__(self, call: AgentCall, kind: str, name: str, options: Mapping[str, Any]) -> None:
        super().__init__(kind, name)
        self.length = 0.0
        self.delay = ""
        self.released = False
        self.failure: HoldfastError | None = None  # the agent does not take the question, or ended it
        self._call = call
        self.serial = call.begin(Acquire, (kind, name, options), self, sink=self)

    @property
    def granted(self) -> bool:
        return self._granted

    @property
    def over(self) -> bool:
        return self._over

    @property
    def not_granted(self) -> HoldfastError:
        """What the agent refused it with."""
        return self._not_held()

    def finish(self, why: str) -> None:
        self._finish(why)

    # The answer.

    def set_result(self, value: Any, /) -> None:
        """The agent took the question."""

    def set_exception(self, error: HoldfastError, /) -> None:
        self.failure = error

    def done(self) -> bool:
        return False

    # What the agent says about it.

    def push(self, item: Any) -> None:
        news: GrantItem = ITEMS[Acquire](item)
        if news.what == "extended" and self._granted and now() >= self.deadline:
            self._finish(UNREAD)
        super().push(item)

    def end(self, error: HoldfastError | None) -> None:
        """If the connection is gone, ``read`` says so, and what was granted ends at its deadline."""
        if self._call.lost:
            self.at_risk = True
        elif self._granted:
            self._finish(str(error or "") or SILENT)
        else:
            self.failure = error or HoldLost(f"{self.kind} {shown(self.name)}: {SILENT}")

    def _on_news(self, news: GrantItem) -> None:
        super()._on_news(news)
        self.released = self.released or news.what == "released"
        if news.what == "queued" and news.why:  # The agent says it once.
            self.delay = delay_text(news.why, news.deadline - now())
            print(f"holdfast: waiting: {self.delay}", file=sys.stderr, flush=True)
        elif news.what == "granted":
            self._on_granted(news)

    def _on_granted(self, news: GrantItem) -> None:
        """Read in time, it is taken up: the agent extends it from now on. Read too late, it was never held (F9)."""
        read_at = now()
        self.length = news.length or news.deadline - read_at
        if read_at < self.deadline:
            with suppress(AgentLost):  # It is heard when the next word is read.
                self._call.tell(Confirm, self.serial, self.token)
        else:
            self._finish(UNTAKEN)

    def _changed(self) -> None:
        """The supervisor looks at it after each read."""


class GrantHold(Connected):
    """A grant of the agent: it excludes others until its deadline."""

    def __init__(self, call: AgentCall, kind: str, name: str, options: Mapping[str, Any]) -> None:
        if not call.same_clock:
            raise Unavailable(f"the agent at {call.path} reads another clock than this command, so its deadlines mean nothing here (F14)")
        super().__init__(call)
        self._kind, self._name, self._options = kind, name, options
        self._asked = Asked(call, kind, name, options)

    @property
    def deadline(self) -> float:
        return self._asked.deadline if self._asked.granted else NEVER

    @property
    def length(self) -> float:
        return self._asked.length

    @property
    def position(self) -> int:
        return self._asked.position

    @property
    def delay(self) -> str:
        return self._asked.delay

    @property
    def ended(self) -> str:
        return self._asked.why

    @ended.setter
    def ended(self, why: str) -> None:
        self._asked.finish(why)

    @property
    def why(self) -> str:
        return self.ended or (GONE if self._gone else LAPSED)

    @property
    def held(self) -> bool:
        return self._asked.valid

    @property
    def over(self) -> bool:
        return self._asked.over or NEVER < self.deadline <= now()

    @property
    def refused(self) -> str:
        """Why it was never to be had; "" if it was, or may be."""
        return "" if self._asked.granted else self.ended

    def read(self) -> None:
        super().read()
        if self._asked.failure is not None:
            raise self._asked.failure

    def again(self) -> None:
        if self.refused:
            raise self._asked.not_granted
        self._check_agent()
        if not self._asked.released:
            self._call.tell(Stopped, self._asked.serial)
        self._call.close_stream(self._asked.serial)  # An agent keeps a stream until it is closed, and not any number of them.
        self._asked = Asked(self._call, self._kind, self._name, self._options)

    @property
    def environ(self) -> Mapping[str, str]:
        token = str(self._asked.token)
        told = {**super().environ, "HOLDFAST_HOLD": f"{self._kind}:{self._name}", "HOLDFAST_TOKEN": token}
        return told | {name: str(getattr(self._asked, which)) for name, which in variables_of(self._kind).items()}

    def register(self, pid: int, *, before: float = 0.0, mark: str = "") -> None:
        answer = Answer()
        self._call.begin(Body, (self._asked.serial, pid, before, mark), answer)
        until = now() + ANSWER_TIMEOUT
        while not answer.given and self._heard(max(0.001, min(until, self.deadline) - now())):
            pass
        if answer.error is not None:  # Whatever it objects to, nothing was executed yet.
            self._check_agent()
            raise HoldLost(f"{self._kind} {shown(self._name)}: the agent refused the command: {answer.error}")
        if not answer.given:
            self._check_agent()
            raise HoldLost(f"{self._kind} {shown(self._name)}: the agent did not confirm the command in time")

    def stopped(self) -> None:
        """Without it the agent would wait for the deadline, or notice by itself that all are dead."""
        if not self._gone and not self._asked.released and self._asked.granted:
            try:
                self._call.ask(Stopped, self._asked.serial)
            except HoldfastError:
                self._gone = True

    def _on_lost_agent(self, error: AgentLost) -> None:
        if not self._asked.granted:
            raise error


class MemberHold(Connected):
    """No exclusion: the command runs while the agent is a member of its group."""

    deadline = length = FOREVER
    position, delay = 0, ""

    def __init__(self, call: AgentCall) -> None:
        super().__init__(call)
        self.ended = ""
        self._member = False
        self._failure: HoldfastError | None = None
        self._asked_at = now()
        call.begin(Watch, (False,), self, sink=self)

    @property
    def held(self) -> bool:
        return self._member and not self.ended

    @property
    def why(self) -> str:
        return self.ended or (GONE if self._gone else LAPSED)

    @property
    def over(self) -> bool:
        return bool(self.ended)

    def again(self) -> None:
        self._check_agent()
        self._member, self.ended = False, ""
        self._look()

    def read(self) -> None:
        super().read()
        if self._failure is not None:
            raise self._failure
        if now() - self._asked_at >= LOOK_INTERVAL:
            self._look()

    def register(self, pid: int, *, before: float = 0.0, mark: str = "") -> None:
        """There is no deadline."""

    def stopped(self) -> None:
        """There is no grant to end."""

    # The answers to ``Watch`` and ``Look``.

    def set_result(self, view: GroupView, /) -> None:
        self._on_state(view.state)

    def set_exception(self, error: HoldfastError, /) -> None:
        self.end(error)

    def done(self) -> bool:
        return False

    # The stream.

    def push(self, item: Any) -> None:
        event: EventItem = ITEMS[Watch](item)
        if event.name == "Expelled":
            self._end("this agent is out of its group")
        elif event.change is not None:
            self._on_state(event.change.state)

    def end(self, error: HoldfastError | None) -> None:
        """If the connection is gone, ``read`` says so."""
        if self._call.lost:
            return
        if not self._member:
            self._failure = error
        self._end(str(error or "") or "the agent ended the conversation")

    def _look(self) -> None:
        if not self._gone:
            with suppress(AgentLost):  # It is heard when the next answer is read.
                self._asked_at = now()
                self._call.begin(Look, (), self)

    def _on_state(self, state: str) -> None:
        if state == "member":
            self._member = True
        else:
            self._end(f"this agent is {state}")

    def _end(self, why: str) -> None:
        if self._member:
            self.ended = self.ended or why

    def _on_lost_agent(self, error: AgentLost) -> None:
        if not self._member:
            raise error
        self._end("the agent is gone")
