"""Parts of leadership that a scenario puts in the place of others: they say more to checkers, or know less than they should."""

from __future__ import annotations

from holdfast.events import Internal
from holdfast.features.leadership.detector.messages import Vote, VoteKind, WatchedOk
from holdfast.features.leadership.protocol.campaign import Campaign
from holdfast.features.leadership.protocol.office import LeadOffice
from holdfast.features.leadership.protocol.watch import Watches
from holdfast.host import Address, Message, NodeId
from holdfast.kit.deadline import Deadline
from holdfast.kit.hold import Holder


class HeartbeatRead(Internal, frozen=True):
    """A heartbeat has come, whatever is made of it."""

    life: NodeId
    seq: int


class MissSaid(Internal, frozen=True):
    """VOTE(missed) leaves."""

    life: NodeId
    seq: int


class SpokenWatches(Watches):
    """Emits before it acts: a listener sees the state in which something was said."""

    def on_heartbeat(self, source: NodeId, ok: WatchedOk) -> int:
        self.host.emit(HeartbeatRead(source, ok.seq))
        return super().on_heartbeat(source, ok)

    def say(self, to: NodeId | Address, message: Message) -> None:
        if isinstance(message, Vote) and message.kind is VoteKind.MISSED:
            self.host.emit(MissSaid(NodeId(message.watched, message.round), message.seq))
        super().say(to, message)


class Forgetful(Campaign):
    """Asks for numbers that may have been led before. The seats must not mind what a candidate knows."""

    def _begin_asking(self, number: int, why: str) -> None:
        super()._begin_asking(max(self.spent + 1, self.number + 1, number - self.office.random.choice((0, 1, 2, 5))), why)


class ForgetfulOffice(LeadOffice):
    """Runs forgetful campaigns."""

    def make_campaign(self, name: str, length: float, holder: Holder) -> Campaign:
        return Forgetful(self, Deadline(self._host), name, length, holder)
