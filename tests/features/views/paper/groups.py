"""Groups of the paper's figures, in the lab, under the checkers CB1 to CB6, CB8 and CB9.  Spec: views 5.8, 7."""

from __future__ import annotations

from holdfast.events import Changing, Event, ViewChanged, ViewLost, ViewTripped
from holdfast.features.views.lab.groups import ViewGroup
from holdfast.features.views.lab.users import Answered, Habits, Heard
from holdfast.features.views.protocol.facts import Carried as CarriedFact
from holdfast.features.views.protocol.facts import Delivered, Detached, Proposed
from holdfast.host import Carried

QUIET = Habits(says=0.0)  # users say what the test lets them say, and nothing else
CHANGES = (ViewChanged, Changing, ViewLost, ViewTripped)
SETTLE = 5.5  # seconds at ``lan`` numbers, and a little
FORMED = 2.0  # seconds until a group of this size is one view


def formed(servers: int = 3, clients: int = 6, *, both: bool = False, homes: bool = False, chain: bool = False) -> ViewGroup:
    """One view of all; from then on the events are noted that users of views hear, and the facts of servers."""
    group = ViewGroup(7, servers, clients, habits=QUIET, both=both, homes=homes, chain=chain)
    group.run(FORMED)
    assert group.is_one()
    group.note(*CHANGES, Answered, Heard, CarriedFact, Delivered, Proposed, Detached)
    return group


def figure_5() -> ViewGroup:
    """Three servers, two clients each, which reach no other server: c0 and c3 are N_1 and N_2 at S_a."""
    group = formed(homes=True)
    assert [home(group, name) for name in group.clients] == ["s0", "s1", "s2"] * 2
    return group


def home(group: ViewGroup, client: str) -> str:
    """The server that this client is attached to."""
    server = group.node(client).survey().server
    return "" if server is None else server.name


def noted(group: ViewGroup, *kinds: type[Event]) -> list[tuple[str, Event]]:
    """Who, and what."""
    return [(name, event) for _, name, event in group.events if isinstance(event, kinds)]


def outcomes(group: ViewGroup, source: str) -> dict[int, Carried]:
    """Of what this agent said, by number."""
    return {event.number: event.outcome for _, name, event in group.events if name == source and isinstance(event, Answered)}


def all_reach_all(group: ViewGroup) -> int:
    """Every ordered pair of participants says one thing by the overlay, and it arrives. The most hops that one of them took."""
    said = {(a, b): group.say(a, b) for a in group.participants for b in group.participants if a != b}
    group.run(1.0)
    for (source, target), number in said.items():
        assert outcomes(group, source)[number] is Carried.DELIVERED, (source, target)
    return max(event.hops for _, _, event in group.events if isinstance(event, CarriedFact))
