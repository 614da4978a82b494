"""The verb of farewell."""

from holdfast.cli.verbs import Entry, Offer

OFFER = Offer(
    {"force-leave": Entry("features.farewell.cli:force_leave", "Ask another agent, by its name, to drain and leave.")},
    above="tags",
)
