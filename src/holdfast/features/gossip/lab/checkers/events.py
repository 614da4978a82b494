"""What users hear, and when.  Spec: gossip 7 (G10), 5.1; foundation 3 (events)."""

from __future__ import annotations

from holdfast.events import Cleared, Decided, Event, Failed, Joined, Left, MembershipEvent, Suspected, Updated
from holdfast.features.gossip.lab.members import Change
from holdfast.features.gossip.lab.watch import GossipChecker, Life
from holdfast.features.gossip.protocol.facts import BecameMember
from holdfast.features.gossip.protocol.messages import Status
from holdfast.host import NodeId
from holdfast.lab.host import LabHost
from holdfast.lab.world import World

OUT, IN, DOUBTED, DECIDED, GONE = "out", "in", "suspected", "decided", "left"
KINDS = (Joined, Suspected, Cleared, Decided, Failed, Left, Updated)
ORDER: dict[tuple[str, type[Event]], str] = {
    (OUT, Joined): IN,
    (IN, Suspected): DOUBTED,
    (DOUBTED, Cleared): IN,
    (IN, Decided): DECIDED,
    (DOUBTED, Decided): DECIDED,
    (DECIDED, Failed): OUT,
    (IN, Left): GONE,
    (DOUBTED, Left): GONE,
    (IN, Updated): IN,
    (DOUBTED, Updated): DOUBTED,
}


class Heard:
    """What one member was told of, since it became one."""

    def __init__(self) -> None:
        self.states: dict[NodeId, str] = {}
        self.version = -1  # at the end of the last event that this member served
        self.emitted: list[Event] = []
        self.was_member = False

    def begin(self, life: Life) -> None:
        """It has become a member. What its table began with is news to none (``groups.form``)."""
        table = life.node.table
        self.states = {entry.id: IN for name, entry in table.base.entries.items() if name not in table.own}


class EventOrder(GossipChecker):
    """G10: per member and life Joined (Suspected Cleared)* and then Decided Failed, or Left; the list is changed first, and ``version``
    grows with it; subscribers and the program hear the same, once. ``Failed`` is never certain."""

    name = "G10 events"

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, BecameMember):
            life = self.watch.life(world, host)
            if life is not None:
                self._heard(life).begin(life)
        if not isinstance(event, KINDS):
            return
        life = self.watch.life(world, host)
        if life is not None:
            heard = self._heard(life)
            heard.emitted.append(event)
            self._judge(life, heard, event)

    def acted(self, world: World, life: Life) -> None:
        heard = self._heard(life)
        if heard.emitted or life.node.told:
            told = [event for event in life.node.told if event.member.id.name != life.me.name or event.member.id == life.me]
            if told != heard.emitted:
                self.fail(f"subscribers of {life} heard {_names(told)}, and its program {_names(heard.emitted)}")
            heard.emitted.clear()
        heard.version = life.node.version
        if life.node.is_member and not heard.was_member:
            heard.was_member = True
            for entry in life.node.table.entries():
                self._agree(life, heard, entry.id)

    def changed(self, world: World, life: Life, change: Change) -> None:
        heard = self._heard(life)
        if life.node.is_member and heard.was_member and not life.left:
            for entry in (change.former, change.new):
                if entry is not None:
                    self._agree(life, heard, entry.id)

    def _heard(self, life: Life) -> Heard:
        found: Heard | None = life.kept.get(self.name)
        if found is None:
            found = life.kept[self.name] = Heard()
        return found

    def _judge(self, life: Life, heard: Heard, event: MembershipEvent) -> None:
        subject, table, kind = event.member.id, life.node.table, type(event)
        state = heard.states.get(subject, OUT)
        following = ORDER.get((state, kind))
        if following is None:
            self.fail(f"{life} says {kind.__name__} of {subject}, which is {state} for it")
            return
        heard.states[subject] = following
        if isinstance(event, Failed) and event.certain:
            self.fail(f"{life} is certain that {subject} failed")
        if table.lists(subject) != (following in (IN, DOUBTED)):
            self.fail(f"{life} says {kind.__name__} of {subject} before its list says so")
        if life.node.version <= heard.version:
            self.fail(f"{life} says {kind.__name__} of {subject}, and the version of its list is {heard.version} as before")

    def _agree(self, life: Life, heard: Heard, subject: NodeId) -> None:
        """The list, and what was said of it."""
        state = heard.states.get(subject, OUT)
        entry = life.node.table.of(subject)
        status = None if entry is None or not entry.listed else entry.status
        wanted = {IN: Status.ALIVE, DOUBTED: Status.SUSPECT}.get(state)
        if status != wanted:
            shown = "not listed" if status is None else status.name
            self.fail(f"for the users of {life} {subject} is {state}, and in its list it is {shown}")


def _names(events: list[Event] | list[MembershipEvent]) -> str:
    return ", ".join(f"{type(event).__name__} {event.member.id}" for event in events if isinstance(event, KINDS)) or "nothing"
