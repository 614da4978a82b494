"""Why the seats grant nothing now, in words for the client that waits for them.  Spec: foundation F13; H155."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.kit.slots import Slot

JUST_STARTED = "the seats have just started, and what they may have promised before must end first"


class Delay(NamedTuple):
    """Why, and for how long."""

    why: str
    seconds: float | None  # until they grant; None: until the seats that are missing answer


def delay_of(waits: Sequence[float], slots: int, silent: Sequence[Slot], *, asking: bool) -> Delay | None:
    """``waits``: of the seats that grant or will, seconds until then; ``silent``: those that were not heard; ``asking``: one of the
    others has not yet heard enough of them. None: a majority grants."""
    enough = slots // 2 + 1
    if len(waits) >= enough:
        longest = sorted(waits)[enough - 1]
        return None if longest <= 0 else Delay(JUST_STARTED, longest)
    missing = "; not heard: " + ", ".join(f"seat {slot.number} ({slot.address})" for slot in silent) if silent else ""
    if asking:
        return Delay(f"the seats have just started and must hear each other first{missing}", None)
    return Delay(f"{len(waits)} of {slots} seats answer and may vote, which is no majority{missing}", None)
