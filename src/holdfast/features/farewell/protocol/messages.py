"""How an operator asks another agent to leave.  Spec: foundation F3, F5."""

from __future__ import annotations

from holdfast.bounds import Number
from holdfast.host import Message


class LeaveAsk(Message, frozen=True, tag=266):
    """An operator asks you to drain and leave."""

    serial: Number


class LeaveAnswer(Message, frozen=True, tag=267):
    """I do."""

    serial: Number
