"""The verb of elections. ``holdfast leader`` and ``holdfast run --lead`` are those of leadership, of both ways to lead."""

from holdfast.cli.verbs import Entry, Offer
from holdfast.features.election import KIND

OFFER = Offer(
    {"elect": Entry("features.election.cli:elect", "Ask for an election of a name now: the best-ranked may take over.")},
    checks={KIND: "features.election.asked:check_flags"},
)
