"""What both clients do about joining, losing and leaving an agent; only how they wait differs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from holdfast.client.options import Options, Plan
from holdfast.client.start import Child
from holdfast.client.wire import agent_lost
from holdfast.errors import AgentLost, ConfigError, JoinFailed, JoinTimeout, KeyUnusable, NotAMember, shown
from holdfast.local.calls import Welcome
from holdfast.net.clock import now

LEAVE_TIMEOUT = 30.0  # seconds for an agent to drain and leave: the longest deadline it may have published, and the ring's farewell
END_TIMEOUT = 5.0  # seconds for a process that has left to end
PAUSE_MIN, PAUSE_MAX = 0.01, 0.2  # seconds between looks whether the group was joined
RETRY_MIN, RETRY_MAX = 0.1, 2.0  # seconds between attempts to find an agent again

OWN_LOST_MAX = 3  # agents that this call started and that ended at once: a fourth one would end in the same way

FINAL = (ConfigError, JoinFailed, KeyUnusable)  # what trying again cannot mend


def pauses(end_at: float) -> Iterator[float]:
    """How long to wait between looks: first short, because most joins are done in milliseconds; ends when time is up."""
    for turn in count():
        yield min(PAUSE_MAX, PAUSE_MIN * 1.3**turn)
        if now() >= end_at:
            return


def retries() -> Iterator[float]:
    """How long to wait between attempts that have no end."""
    pause = RETRY_MIN
    while True:
        yield pause
        pause = min(RETRY_MAX, 2 * pause)


def check_welcome(plan: Plan, welcome: Welcome) -> None:
    """It is the agent that was meant."""
    if plan.group and welcome.group != plan.group:
        raise ConfigError(
            f"group: {shown(plan.group)}, but the agent at {plan.path} is of group {shown(welcome.group)}; leave one of the two out"
        )
    if plan.name and welcome.agent.name != plan.name:
        raise ConfigError(
            f"name: {shown(plan.name)}, but the agent at {plan.path} is {welcome.agent.name!r} and has other clients;"
            " leave the name out, or give seeds to get an agent of your own"
        )


def not_joined(plan: Plan, state: str, options: Options) -> JoinTimeout:
    tried = f"seeds {', '.join(options.seeds[:5])}" if options.seeds else f"agent {plan.path}"
    return JoinTimeout(
        f"group {shown(plan.group)}: not a member in time; the agent is {state!r} ({tried})."
        " Do the seeds run, with the same group, key and timing? `holdfast doctor` looks for the reason"
    )


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


def left(group: str) -> NotAMember:
    return NotAMember(f"group {shown(group)}: this process has left it; join again")
