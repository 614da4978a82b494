"""What both clients do about joining, losing and leaving an agent; only how they wait differs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from holdfast.client.options import Options, Plan
from holdfast.errors import ConfigError, JoinFailed, JoinTimeout, KeyUnusable, NotAMember, shown
from holdfast.local.calls import GroupView, Welcome
from holdfast.net.clock import now

LEAVE_TIMEOUT = 30.0  # seconds for an agent to drain and leave: the longest deadline it may have published, and the last round trips
END_TIMEOUT = 5.0  # seconds for a process that has left to end
KNOCK_TIMEOUT = 0.001  # seconds for an agent that is not waited for: what it refuses, it refuses at once
PAUSE_MIN, PAUSE_MAX = 0.01, 0.2  # seconds between looks whether the group was joined
RETRY_MIN, RETRY_MAX = 0.1, 2.0  # seconds between attempts to find an agent again

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
            f"name: {shown(plan.name)}, but the agent at {plan.path} is {shown(welcome.agent.name)} and has other clients;"
            " leave the name out, or give seeds to get an agent of your own"
        )


def not_joined(plan: Plan, view: GroupView, options: Options) -> JoinTimeout:
    """H164: its text says what the agent waits for."""
    tried = f"seeds {', '.join(options.seeds[:5])}" if options.seeds else f"agent {plan.path}"
    why = f": {view.waits_for}" if view.waits_for else ""
    return JoinTimeout(
        f"group {shown(plan.group)}: not a member in time; the agent is {shown(view.state)} ({tried}){why}."
        " Do the seeds run, with the same group, key and timing? `holdfast doctor` looks for the reason"
    )


def left(group: str) -> NotAMember:
    return NotAMember(f"group {shown(group)}: this process has left it; join again")
