"""The verbs of counters: ``holdfast counter``."""

from holdfast.cli.verbs import Entry, Offer, Table

COUNTER = Table(
    "Counters of the group: every member can add.",
    {
        "show": Entry("features.counter.cli:show", "The counters, as this agent knows them."),
        "add": Entry("features.counter.cli:add", "Add to a counter, and print its value."),
    },
    default="show",
)
OFFER = Offer({"counter": COUNTER})
