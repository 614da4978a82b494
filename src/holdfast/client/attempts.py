"""When ``join`` looks for another agent, because the one it met was ending.  docs/decisions.md H193."""

from __future__ import annotations

from holdfast.client.options import Plan
from holdfast.client.start import Child
from holdfast.client.wire import agent_lost
from holdfast.errors import AgentLost, JoinTimeout, shown
from holdfast.net.clock import now

OWN_LOST_MAX = 3  # agents that this call started and that ended at once: a fourth one would end in the same way


def check_stays(plan: Plan, state: str) -> None:
    """A shared agent that is leaving will not be a member again. Raises AgentLost; ``Attempts`` looks for another one."""
    if plan.shared and state == "leaving":
        raise agent_lost(plan.path, "it is leaving the group")


class Attempts:
    """What becomes of a ``join`` whose agent was lost before this process was a member (H193)."""

    def __init__(self, end_at: float) -> None:
        self._end_at = end_at
        self._own_lost = 0

    def lost(self, plan: Plan, child: Child | None, error: AgentLost) -> None:
        """Returns if another agent may be found or started, else raises what the caller is told."""
        if plan.named_by:
            raise AgentLost(f"{error}. {plan.named_by} names this agent, so no other one was tried") from error
        self._own_lost += child is not None
        if not plan.shared or self._own_lost >= OWN_LOST_MAX:
            raise error
        if now() >= self._end_at:
            raise JoinTimeout(f"group {shown(plan.group)}: not a member in time; the last agent was lost: {error}") from error
