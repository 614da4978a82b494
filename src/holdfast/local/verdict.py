"""How many seats vote, in one sentence for operators: the command line, HTTP and ``doctor`` say the same.  Spec: foundation F12; H189."""

from __future__ import annotations

from holdfast.local.calls import SeatView


def verdict(views: tuple[SeatView, ...]) -> str:
    """How many vote, and what the next failure would cost; one sentence."""
    voting, needed = sum(view.state == "serving" for view in views), len(views) // 2 + 1
    said = f"{voting} of {len(views)} vote"
    if voting < needed:
        return f"{said}: {needed} are needed, so nothing exclusive is granted or renewed"
    if voting == needed and len(views) > 1:
        return f"{said}: one fewer, and nothing is granted"
    return said
