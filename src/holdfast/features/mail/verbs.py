"""The verbs of mail."""

from holdfast.cli.verbs import Entry, Offer

OFFER = Offer(
    {
        "send": Entry("features.mail.cli:send", "Send a message to one member."),
        "cast": Entry("features.mail.cli:cast", "Tell all listeners of a topic."),
        "messages": Entry("features.mail.cli:messages", "Print the messages that arrive."),
    },
    last=True,
)
