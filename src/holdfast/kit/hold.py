"""The life of something exclusive, declared once: queued, granted, extended, at risk, lost.  Spec: foundation 4 (Grants), F9, F14.

A machine that can exclude others is asked with a ``Holder`` and answers with a ``Claim``. Features speak these words to
the agent's grants, the grants to a client, and the lab's users hear them as clients do. All of it happens in the host's turns.

Why something is over is a value. Its type decides which error a user sees, its fields what the error says, and its word stands in traces
and messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol

from msgspec import Struct

from holdfast.local.ends import DEPOSED, LAPSED

NO_NUMBERS: Mapping[str, int] = {}


class LossReason(Struct, frozen=True):
    """Why it is over, or was never to be had. As text it is what a user reads."""

    word: ClassVar[str]  # in traces and messages
    ERROR: ClassVar[str] = ""

    @property
    def error(self) -> str:
        """The class in ``holdfast.errors`` that the user of what was never granted sees; "": the one that a loss of its kind has."""
        return self.ERROR

    @property
    def numbers(self) -> Mapping[str, int]:
        """Attributes of the error, as far as they are known (``HoldfastError.NUMBERS``)."""
        return NO_NUMBERS

    def __str__(self) -> str:
        raise NotImplementedError


class Lapsed(LossReason, frozen=True):
    """The deadline passed before it was renewed."""

    word = "lapsed"

    def __str__(self) -> str:
        return LAPSED


class Deposed(LossReason, frozen=True):
    """Another one has it: those that vote knew first that it had lapsed."""

    word = "deposed"

    def __str__(self) -> str:
        return DEPOSED


class Grantee(Protocol):
    """What hears of something that is granted to it, from the grant to the end."""

    def on_granted(self, token: int, deadline: float, number: int = 0) -> None:
        """It is ours until the deadline, on this host's clock. ``number``: which one, where several have one name."""

    def on_extended(self, deadline: float) -> None:
        """Still ours, until then: later than before."""

    def on_at_risk(self) -> None:
        """It was not renewed in time. Once, until it is extended again."""

    def on_lost(self, reason: LossReason) -> None:
        """It is over, or was never to be had."""


class Holder(Grantee, Protocol):
    """The side that wants it: a client's grant, a user in the lab. It may call back into its claim from here."""

    def on_queued(self, position: int, why: str = "") -> None:
        """It has a place; 1 is next. Before the grant, any number of times, or never. ``why``: what it waits for beside its turn."""


class Claim(Protocol):
    """What the holder gets in return. Either ``cancel`` or ``release`` is called, once; neither after a loss before the grant."""

    def cancel(self) -> None:
        """It is not wanted any more, and was not granted yet. A grant that was under way is given back."""

    def release(self) -> None:
        """Nothing acts under it any more (F14): another one may have it. Also called, for tidiness, after a loss."""

    def renew_allowed(self, allowed: bool) -> None:
        """False: the holder hears of no extension any more. It is still ours until ``release``."""
