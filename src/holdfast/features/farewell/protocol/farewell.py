"""Farewell: one agent asks another, by name, to drain and leave.  Spec: foundation F14, F15.

Nothing is taken out of a group by an operator's word: the asked one leaves by itself, and keeps all that its clients were promised. Who is
dead is found by the membership; who is silent is told to the operator as silent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import Enum
from math import ceil

from holdfast.features.farewell.protocol.messages import LeaveAnswer, LeaveAsk
from holdfast.host import Host, Membership, Message, NodeId
from holdfast.kit.phase import Call, Questions

ASK_EVERY = 0.5  # seconds
ASKED_MAX = 64  # open questions at a time

Parting = Enum("Parting", ["AGREED", "SILENT", "NOT_A_MEMBER", "UNSEALED", "BUSY"])
Done = Callable[[Parting], None]


class Farewell:
    """``leave`` is called when a member asked: once, however often it is asked again. ``sealed``: this group has a key.

    Without one any machine on the network could write such a message, so it is neither sent nor obeyed.
    """

    handles = (LeaveAsk, LeaveAnswer)
    fingerprint = b""

    def __init__(self, host: Host, membership: Membership, leave: Callable[[], None], *, sealed: bool) -> None:
        self._host, self._membership, self._leave, self._sealed = host, membership, leave, sealed
        self._questions = Questions()
        self._calls: dict[int, Call] = {}
        self.leaving = False  # a member asked us
        self.counts: Counter[str] = Counter()  # asked, obeyed, unsealed

    def ask(self, name: str, timeout: float, done: Done) -> None:
        """``done`` runs once, also inside this call. AGREED: it drains, and ``Left`` follows when its clients are done."""
        assert timeout > 0
        if not self._sealed:
            done(Parting.UNSEALED)
        elif (member := self._membership.get(name)) is None:
            done(Parting.NOT_A_MEMBER)
        elif member.id == self._host.me:
            self._obey()
            done(Parting.AGREED)
        elif len(self._calls) >= ASKED_MAX:
            done(Parting.BUSY)
        else:
            self._host.meet(member.id, member.address)
            self._ask(member.id, timeout, done)

    def start(self) -> None:
        """Nothing is asked before an operator does."""

    def on_away(self, seconds: float) -> None:
        """Answers that waited are read before a question ends (F10)."""

    def on_message(self, source: NodeId, message: Message) -> None:
        if not self._sealed:
            self.counts["unsealed"] += 1
        elif isinstance(message, LeaveAnswer):
            self._questions.answer(message.serial, source, message)
        else:
            assert isinstance(message, LeaveAsk)
            self.counts["asked"] += 1
            # Said first: what follows may be the end of this process.
            self._host.send(source, LeaveAnswer(message.serial))
            self._obey()

    def stop(self) -> None:
        for call in self._calls.values():
            call.cancel()

    def _ask(self, to: NodeId, timeout: float, done: Done) -> None:
        def end(answer: Message | None) -> None:
            del self._calls[call.serial]
            done(Parting.SILENT if answer is None else Parting.AGREED)

        tries = max(1, ceil(timeout / ASK_EVERY))
        call = Call(self._host, self._questions, to, LeaveAsk, every=timeout / tries, tries=tries, done=end)
        self._calls[call.serial] = call
        call.start()

    def _obey(self) -> None:
        if not self.leaving:
            self.leaving = True
            self.counts["obeyed"] += 1
            self._leave()
