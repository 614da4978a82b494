"""The verb of gossip."""

from holdfast.cli.verbs import Entry, Offer

OFFER = Offer(
    {"forget": Entry("features.gossip.cli:forget", "Give up a dead member for good, in a group whose membership is gossip.")},
    above="tags",
)
