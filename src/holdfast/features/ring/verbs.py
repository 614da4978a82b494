"""The verbs of the ring: ``holdfast owner`` and ``holdfast lab ring``."""

from holdfast.cli.verbs import Entry, Offer

OFFER = Offer(
    {"owner": Entry("features.ring.cli.owner:owner", "Print the member that a key belongs to.")},
    lab={"ring": Entry("features.ring.cli.sockets:ring", "Members of a ring on real sockets.")},
)
