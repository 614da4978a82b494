"""The verbs of this paper in the lab: ``holdfast lab demo`` and ``holdfast lab node``."""

from holdfast.cli.verbs import Entry, Offer

OFFER = Offer(
    lab={
        "demo": Entry(
            "papers.detection.cli.demo:demo",
            "A leader election loses its leader, its network and its patience; then a planted bug is hunted down.",
        ),
        "node": Entry("papers.detection.cli.node:node", "One member of a leader election on real sockets."),
    }
)
