"""How many seats vote, in one sentence for operators: the command line, HTTP and ``doctor`` say the same.  Spec: foundation F12; H189."""

from __future__ import annotations

from holdfast.local.calls import SeatView


def verdict(views: tuple[SeatView, ...]) -> str:
    """How many vote, and what the next failure would cost; one sentence."""
    voting, needed = sum(view.state == "serving" for view in views), len(views) // 2 + 1
    said = f"{voting} of {len(views)} vote"
    waits = sorted(view.wait for view in views if view.state == "waiting")
    if voting < needed <= voting + len(waits):
        return f"{said}: {needed} are needed, and nothing exclusive is granted for another {waits[needed - voting - 1]:.1f} s"
    if voting < needed:
        return f"{said}: {needed} are needed, so nothing exclusive is granted or renewed"
    if voting == needed and len(views) > 1:
        return f"{said}: one fewer, and nothing is granted"
    return said
