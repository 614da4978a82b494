"""Mail with one rule taken out each: what the checkers must catch.  No configuration reaches them."""

from __future__ import annotations

from holdfast.features.mail.lab.scenarios.mail import MailScenario
from holdfast.features.mail.protocol.inbox import Deliver, Inbox, Sender
from holdfast.features.mail.protocol.mail import Mail, Posted
from holdfast.features.mail.protocol.messages import Letter, Outcome, Receipt
from holdfast.host import Host, Membership, NodeId


class ForgetfulInbox(Inbox):
    """At most once: no memory of what was dealt with."""

    @staticmethod
    def _deal_with(sender: Sender, seq: int, outcome: Outcome) -> None:
        """Nothing is kept."""


class UnorderedInbox(Inbox):
    """Order: a set of numbers instead of the highest one."""

    def take(self, source: NodeId, letter: Letter) -> Outcome | None:
        sender = self._senders.setdefault(source, Sender())
        if letter.seq in sender.recent:
            return sender.recent[letter.seq]
        outcome = self._deliver(source, letter.payload)
        if outcome is not Outcome.FULL:
            sender.recent[letter.seq] = outcome
        return outcome


class ImpatientInbox(Inbox):
    """Order: nobody waits for a predecessor, so whatever was overtaken is lost."""

    def take(self, source: NodeId, letter: Letter) -> Outcome | None:
        return super().take(source, Letter(letter.seq, 0, letter.payload))


class KeenInbox(Inbox):
    """FULL counts as dealt with: the retry is taken for a copy."""

    def take(self, source: NodeId, letter: Letter) -> Outcome | None:
        outcome = super().take(source, letter)
        return Outcome.QUEUED if outcome is Outcome.FULL else outcome


class ReadressingMail(Mail):
    """F3: what is sent again goes to whoever has that name now."""

    def _transmit(self, letter: Posted, after: int) -> None:
        member = self._membership.get(letter.to.name)
        if member is not None and member.id != letter.to:
            self._host.meet(member.id, member.address)
            self._host.send(member.id, Letter(letter.seq, after, letter.payload))
        super()._transmit(letter, after)

    def _give_up(self, to: NodeId, outcome: Outcome) -> None:
        """The next life shall have it."""


class SaysNobody(Mail):
    """Outcomes: silence is told as certainty."""

    def _end(self, letter: Posted, outcome: Outcome) -> None:
        super()._end(letter, Outcome.NOBODY if outcome is Outcome.TIMEOUT else outcome)


class TrustsEveryReceipt(Mail):
    """Outcomes: any receipt is a good one."""

    def _on_receipt(self, source: NodeId, message: Receipt) -> None:
        super()._on_receipt(source, Receipt(message.seq, Outcome.QUEUED))


class NeverEnds(Mail):
    """In time: a letter is tried for ever."""

    def _on_timer(self, letter: Posted) -> None:
        letter.deadline = self._host.now + 10.0
        super()._on_timer(letter)


class SendsOnce(Mail):
    """A lost letter is lost."""

    def _transmit(self, letter: Posted, after: int) -> None:
        if letter.tries == 0:
            super()._transmit(letter, after)
        elif letter.timer is None:
            letter.timer = self._host.at(letter.deadline, lambda: self._on_timer(letter))


class MailAblation(MailScenario):
    """The scenario with another class in the place of Mail, or of its inbox."""

    def __init__(self, machine: type[Mail] = Mail, inbox: type[Inbox] = Inbox) -> None:
        self.machine, self.inbox = machine, inbox

    def make(self, host: Host, membership: Membership, deliver: Deliver) -> Mail:
        mail = self.machine(host, membership, deliver)
        mail._inbox = self.inbox(host, membership, deliver, mail.counts)
        return mail
