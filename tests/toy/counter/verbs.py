"""The verbs of counters: ``holdfast counter`` and ``holdfast run --counter``."""

from holdfast.cli.parser import Flag
from holdfast.cli.run.hold_flags import RunKind, Wanted
from holdfast.cli.verbs import Entry, Offer, Table
from tests.toy.counter import KIND

COUNTER = Table(
    "Counters of the group: every member can add.",
    {
        "show": Entry("features.counter.cli:show", "The counters, as this agent knows them."),
        "add": Entry("features.counter.cli:add", "Add to a counter, and print its value."),
    },
    default="show",
)
ALONE = Flag("--counter", help="Run it while it has this counter to itself on this agent.", metavar="NAME")


def _wanted(text: str, grace: float | None) -> Wanted:
    return Wanted(f"{KIND}:{text}", {}, grace)


OFFER = Offer({"counter": COUNTER}, kinds=(RunKind(KIND, ALONE, _wanted, variables={"HOLDFAST_COUNTER": "token"}),))
