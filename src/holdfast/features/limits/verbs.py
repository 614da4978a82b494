"""The verbs of rate limits: ``holdfast limit`` and ``holdfast run --limit``."""

from holdfast.cli.parser import Flag
from holdfast.cli.run.hold_flags import RunFirst
from holdfast.cli.verbs import Entry, Offer, Table

LIMIT = Table(
    "Rate limits of the group, shared by all members without a coordinator.",
    {
        "ls": Entry("features.limits.cli:ls", "The limits of the group, as this agent sees them."),
        "show": Entry("features.limits.cli:show", "One limit: its numbers, this agent's share, and the processes that use it."),
        "set": Entry("features.limits.cli:put", "Make a limit, or change its numbers for all members."),
        "remove": Entry("features.limits.cli:remove", "Forget a limit, on all members."),
        "watch": Entry("features.limits.cli:watch", "Print how a limit stands, once a second."),
        "try": Entry("features.limits.cli:attempt", "Let a cost go, if it may (exit 0: go, 1: not now, 4: not in time)."),
    },
    default="ls",
)
OFFER = Offer(
    {"limit": LIMIT},
    firsts=(
        RunFirst(
            Flag("--limit", help="Wait until this rate limit lets a cost of 1 go, then run it.", metavar="NAME"),
            "features.limits.cli:take_first",
        ),
    ),
)
