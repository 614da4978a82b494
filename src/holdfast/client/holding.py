"""What a client holds: the local side of a grant, without I/O.  Spec: foundation F9, F14, F16; PRODUCT ("validity is local").

A deadline is compared with the clock whenever it is asked for, never flagged: this holds while the agent is dead, the loop is stalled
or the machine was asleep. What was once over never becomes valid again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar

from holdfast.client.wire import ITEMS, error_class, made
from holdfast.errors import AcquireTimeout, ConfigError, HoldfastError, HoldLost, shown
from holdfast.host import Grant
from holdfast.local.calls import Acquire, GrantItem
from holdfast.local.ends import FORKED, LAPSED, LEAVING, SILENT
from holdfast.net.clock import now

NOT_YET = "it is not held yet: its block was not entered, or waits"


class Held:
    """One ``Acquire``: asked for, granted, over."""

    lost_error: ClassVar[type[HoldLost]] = HoldLost  # what ``check`` raises
    method: ClassVar[str] = ""  # of ``group``, that makes it; "": the name of its kind

    def __init__(self, kind: str, name: str) -> None:
        self.kind, self.name = kind, name
        self.token = 0  # grows with every holder of this name; a resource refuses a smaller one than it has seen
        self.number = 0  # of what was granted, where there are several of a name
        self.deadline = 0.0  # on this machine's clock (``holdfast.client.clock``); it moves as the agent renews
        self.position = 0  # before it is granted: where it waits, 1 is next; 0: nowhere yet
        self.waits_for = ""  # before it is granted: what it waits for beside its turn, as its agent said last
        self._waits_until = 0.0  # when that ends; 0.0: not known
        self.at_risk = False  # it was not renewed in time, and ends at its deadline unless that comes
        self.why = ""  # it is over
        self._numbers: Mapping[str, int] = {}  # that belong to the reason
        self._refusal = ""  # the error of what was never granted, as the agent named it
        self._error_before: HoldfastError | None = None  # what ended its stream before it was granted: the agent is lost, or leaves
        self._pid = os.getpid()
        self._entered = False
        self._granted = False
        self._over = False

    @property
    def valid(self) -> bool:
        """Whether this process may act now: the same process that was granted it, not told to stop, and before the deadline.
        Reads the clock and nothing else; works when the agent is dead."""
        return not self._over and now() < self.deadline and os.getpid() == self._pid

    @property
    def left(self) -> float:
        """Seconds until the deadline; 0.0 when it is not valid."""
        return max(0.0, self.deadline - now()) if self.valid else 0.0

    def check(self) -> None:
        """Raise ``HoldLost``, or its subclass for this kind, unless ``valid``: for code that is many calls away from the block.
        As ``valid`` it speaks of this instant; what is done after it is for the token to protect."""
        if not self.valid:
            raise self._not_held()

    def _not_held(self) -> HoldfastError:
        if self._error_before is not None and os.getpid() == self._pid:
            return type(self._error_before)(*self._error_before.args)  # A new one each time: an exception collects the places it passed.
        why = FORKED if os.getpid() != self._pid else self.why or (LAPSED if self._granted else NOT_YET)
        error = self.lost_error if self._granted or not self._refusal else error_class(self._refusal)
        return self._error(error, f"{self.kind} {shown(self.name)}: {why}", why)

    def _error(self, error: type[HoldfastError], text: str, why: str) -> HoldfastError:
        return made(error, text, self._numbers)

    @property
    def hint(self) -> str:
        """Why it may be that it is not granted, where the agent says nothing."""
        return "another client holds it, or too few seats answer (`holdfast seats`)"

    @property
    def grant(self) -> Grant:
        return Grant(self.kind, self.name, self.token, self.deadline, self.number)

    def _enter(self) -> None:
        """A block of its own for each: what was held once is never held again (F9)."""
        if self._entered:
            call = f"group.{self.method or self.kind}"
            raise ConfigError(f"{self.kind} {shown(self.name)}: was entered before; accepted is one block for each call of `{call}`")
        self._entered = True

    # A stream of the conversation.

    def push(self, item: Any) -> None:
        news: GrantItem = ITEMS[Acquire](item)
        if not self._look():  # F9: also when its deadline passed while this was on its way. Never revived.
            self._on_news(news)
        self._changed()

    def _on_news(self, news: GrantItem) -> None:
        if news.what == "queued":
            if news.number or not news.why:
                self.position = news.number
            self.waits_for, self._waits_until = news.why, news.deadline
        elif news.what == "granted":
            self.token, self.number, self.deadline, self._granted = news.token, news.number, news.deadline, True
        elif news.what == "extended":
            self.deadline, self.at_risk = news.deadline, False
        elif news.what == "at_risk":
            self.at_risk = True
        else:  # "stop", "lost", "released", and whatever a later agent calls the end of it
            self._numbers, self._refusal = news.numbers, news.error
            self._finish(news.why or {"stop": LEAVING}.get(news.what, news.what))

    def end(self, error: HoldfastError | None) -> None:
        """The connection is gone: it is not renewed, but what was published stands until its deadline. What was never granted is not lost:
        a caller that waits for it is told what happened to the agent."""
        self.at_risk = True
        if not self._granted:
            if not self._over:
                self._error_before = error
            self._finish(str(error) if error else SILENT)
        else:
            self._look()
        self._changed()

    def _finish(self, why: str) -> None:
        if not self._over:
            self._over, self.why = True, why

    def _look(self) -> bool:
        """Whether it is over, by word or by clock."""
        if self._granted and not self._over and now() >= self.deadline:
            self._finish(LAPSED)
        return self._over

    def _changed(self) -> None:
        """A caller that waits for it may look again."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{self._title}: {self._state}>"

    @property
    def _title(self) -> str:
        return f"{type(self).__name__} of {shown(self.name)}"

    @property
    def _state(self) -> str:
        """Works in every process: it is for logs and debuggers."""
        if self.valid:
            return f"token {self.token}, valid for {self.left:.2f} s{', at risk' if self.at_risk else ''}"
        if self._granted:
            return f"token {self.token}, over: {FORKED if os.getpid() != self._pid else self.why or LAPSED}"
        if self._over:
            return f"never held: {self.why}"
        return f"waits at position {self.position}" if self.position else "not held yet"


def not_granted(held: Held, timeout: float | None) -> AcquireTimeout:
    text = f"{held.kind} {shown(held.name)}: not granted within {timeout:g} s"
    if held.waits_for:
        text = f"{text}; {delay_text(held.waits_for, held._waits_until - now())}"
    if held.position:
        return AcquireTimeout(f"{text}; it waited at position {held.position}", held.position)
    if held.waits_for:
        return AcquireTimeout(text)
    return AcquireTimeout(f"{text}; {held.hint}")


def delay_text(why: str, seconds: float) -> str:
    """Why the seats grant nothing, and for how long if that is known."""
    return f"{why}; they grant nothing for another {seconds:.1f} s" if seconds > 0 else why
