"""Mail with one rule taken out each: what the checkers must catch.  No configuration reaches them."""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from holdfast.features.mail.lab.scenarios.detour import DetourScenario
from holdfast.features.mail.lab.scenarios.mail import MailScenario
from holdfast.features.mail.protocol.detour import Detour
from holdfast.features.mail.protocol.inbox import Deliver, Inbox, Sender
from holdfast.features.mail.protocol.mail import Mail
from holdfast.features.mail.protocol.messages import CarriedLetter, Letter, Outcome, Receipt
from holdfast.features.mail.protocol.posted import Posted
from holdfast.host import Carried, Host, Membership, NodeId
from holdfast.kit.overlay import Overlay


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

    def make(self, host: Host, membership: Membership, deliver: Deliver, overlay: Overlay | None = None) -> Mail:
        mail = self.machine(host, membership, deliver, overlay)
        mail._inbox = self.inbox(host, membership, deliver, mail.counts, mail._overlay)
        return mail


# Letters that go round a cut.


class NeverCarries(Detour):
    """A letter has the direct way alone."""

    def after_try(self, letter: Posted, after: int) -> None:
        """Nothing is carried."""


class CarriesOnce(Detour):
    """A copy that came too early is not carried again."""

    def after_try(self, letter: Posted, after: int) -> None:
        carrying = letter.carrying
        letter.carrying = carrying or self._counts[f"{letter.seq}"]
        super().after_try(letter, after)
        self._counts[f"{letter.seq}"] = letter.carrying


class Renumbers(Mail):
    """One number: a copy that is carried has one of its own, and its receipt ends the letter all the same."""

    copies: dict[int, int]

    def _on_receipt(self, source: NodeId, message: Receipt) -> None:
        super()._on_receipt(source, replace(message, seq=self.copies.get(message.seq, message.seq)))


class Renumbering(Detour):
    """Its other half."""

    mail: Renumbers

    def _carry(self, letter: Posted, after: int) -> None:
        self.mail._last_seq += 1
        self.mail.copies[self.mail._last_seq] = letter.seq
        copy = CarriedLetter(self.mail._last_seq, 0, letter.payload)
        self._overlay.carry(letter.to, copy, lambda became: None)


class AnswersDirectly(Detour):
    """A letter that was carried is answered on the direct way alone."""

    def answer(self, to: NodeId, receipt: Receipt) -> None:
        self._host.send(to, receipt)


class TrustsTheOverlay(Detour):
    """Outcomes: a copy that was delivered counts as a receipt."""

    mail: Mail

    def _on_carried(self, letter: Posted, copy: int, became: Carried) -> None:
        super()._on_carried(letter, copy, became)
        receiver = self.mail._posted.get(letter.to)
        if became is Carried.DELIVERED and receiver is not None and letter.seq in receiver.letters:
            self.mail._finish(letter, Outcome.QUEUED)


class TwoInboxes(Mail):
    """At most once: what came by the overlay has a memory of its own."""

    def _on_letter(self, source: NodeId, message: Letter) -> None:
        if not hasattr(self, "_other"):
            self._other = Inbox(self._host, self._membership, self._deliver, Counter(), self._overlay)
        if message.carried:
            self._inbox, self._other = self._other, self._inbox
        super()._on_letter(source, message)
        if message.carried:
            self._inbox, self._other = self._other, self._inbox


class EndsWithTheList(Mail):
    """A removal from the list ends the letters to a receiver that the view has."""

    def _on_removal(self, life: NodeId, *, left: bool) -> None:
        self._give_up(life, Outcome.NOT_A_MEMBER)


class ListAlone(Mail):
    """Only members of the list are written to."""

    def addressee(self, name: str) -> NodeId | None:
        member = self._membership.get(name)
        return None if member is None else member.id


class TrippedIsCertain(Mail):
    """Outcomes: a view that gave a receiver up is no proof that it got nothing."""

    def _end(self, letter: Posted, outcome: Outcome) -> None:
        super()._end(letter, Outcome.NOBODY if outcome is Outcome.TRIPPED else outcome)


class DetourAblation(DetourScenario):
    """The scenario with another class in the place of Mail, or of its detour."""

    def __init__(self, machine: type[Mail] = Mail, detour: type[Detour] = Detour) -> None:
        self.machine, self.detour = machine, detour

    def make(self, host: Host, membership: Membership, deliver: Deliver, overlay: Overlay | None = None) -> Mail:
        mail = self.machine(host, membership, deliver, overlay)
        mail._detour = self.detour(host, mail._overlay, mail.counts)
        if isinstance(mail._detour, TrustsTheOverlay):
            mail._detour.mail = mail
        if isinstance(mail._detour, Renumbering):
            assert isinstance(mail, Renumbers)
            mail._detour.mail, mail.copies = mail, {}
        return mail
