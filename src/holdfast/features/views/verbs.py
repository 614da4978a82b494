"""The verbs of views: ``holdfast views``."""

from holdfast.cli.verbs import Entry, Offer, Table

VIEWS = Table(
    "The agreed view of this agent, and the servers of views.",
    {
        "show": Entry("features.views.cli:show", "The view of this agent: its members by their server, and the servers with their links."),
        "trip": Entry("features.views.cli:trip", "Believe the present view no more, and force another one."),
    },
    default="show",
)
OFFER = Offer({"views": VIEWS})
