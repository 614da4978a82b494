"""What Holdfast can do, one folder per capability; a room that a feature does not need is not there.

``FEATURES`` is the one list of what an agent runs beside its membership, in the order in which machines are built and started.
"""

FEATURES = (
    "holdfast.features.names.agent:NameFeature",
    "holdfast.features.mail.agent:MailFeature",
    "holdfast.features.keys.agent:KeyFeature",
    "holdfast.features.farewell.agent:FarewellFeature",
    "holdfast.features.probe.agent:ProbeFeature",
    "holdfast.features.leadership.agent:LeadershipFeature",
    "holdfast.features.tickets.agent:TicketFeature",
)
