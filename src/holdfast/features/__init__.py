"""What Holdfast can do, one folder per capability; a room that a feature does not need is not there.

``FEATURES`` is the one list of what an agent runs beside its membership, in the order in which machines are built and started.
``MEMBERSHIPS`` are the features that a group stands on, by the value of the setting ``membership``. What else a folder has is found by the
names of its rooms: ``settings.py`` has tables of settings, ``calls.py`` the calls of the local socket, ``events.py`` events for users.
"""

from collections.abc import Iterable, Iterator
from importlib import import_module
from types import ModuleType

IN_ONE_SENTENCE = "Coordination without a coordinator: membership, leadership, tickets and limits with proved bounds."
MEMBERSHIPS = {
    "ring": "holdfast.features.ring.agent",
    "gossip": "holdfast.features.gossip.side",
    "views": "holdfast.features.views.side",
}
FEATURES = (
    "holdfast.features.names.agent:NameFeature",
    "holdfast.features.mail.agent:MailFeature",
    "holdfast.features.keys.agent:KeyFeature",
    "holdfast.features.farewell.agent:FarewellFeature",
    "holdfast.features.probe.agent:ProbeFeature",
    "holdfast.features.leadership.agent:LeadershipFeature",
    "holdfast.features.tickets.agent:TicketFeature",
    "holdfast.features.views.agent:ViewFeature",
    "holdfast.features.limits.agent:LimitsFeature",
    "holdfast.features.gossip.agent:GossipFeature",
    "holdfast.features.election.agent:ElectionFeature",
)


def rooms(name: str) -> Iterator[ModuleType]:
    """The module of this name in each listed folder that has one; memberships first. Each is imported when the caller asks for it."""
    folders = dict.fromkeys(place.partition(":")[0].rpartition(".")[0] for place in (*MEMBERSHIPS.values(), *FEATURES))
    return found(folders, name)


def found(packages: Iterable[str], name: str) -> Iterator[ModuleType]:
    """The module of this name in each package that has one."""
    for package in packages:
        place = f"{package}.{name}"
        try:
            yield import_module(place)
        except ModuleNotFoundError as error:  # looking for it first would take as long again
            if error.name != place:
                raise
