"""``Send`` to members of the view, in a real agent whose views the test writes itself.  Spec: views D30, D31; docs/mail.md."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.features.mail import calls
from holdfast.features.mail.agent import MailAgent
from holdfast.features.mail.protocol.messages import CarriedLetter, CarriedReceipt, Outcome
from holdfast.host import Carried, NodeId
from holdfast.kit.parcels import Parcels
from tests.agent.live import Live
from tests.agent.raw_client import RawClient, Sent
from tests.support.agents import until
from tests.support.fake_views import FakeViews

WAIT = 60.0
B = NodeId("b", 7)


class Stand:
    """An agent alone in its group, and a client of it."""

    def __init__(self, live: Live, client: RawClient) -> None:
        self.live, self.client = live, client
        self.views = FakeViews()
        mail = live.agent.features["mail"]
        assert isinstance(mail, MailAgent)
        self.mail = mail.mail
        live.call(lambda: setattr(self.mail._overlay, "views", self.views))

    def carried(self) -> CarriedLetter:
        """The letter that the agent gives to the overlay next."""
        until(lambda: bool(self.views.carried), "a letter is carried")
        ((to, letter),) = self.views.take(CarriedLetter)
        assert to == B
        self.live.turn(lambda: self.views.end(Carried.DELIVERED))
        return letter


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with Live(tmp_path_factory.mktemp("mail")) as live:
        live.until_member()
        with RawClient(live.path) as client:
            yield Stand(live, client)


def test_a_member_of_the_view_alone_gets_a_message(stand: Stand) -> None:
    """Views D30, D31: by its name; nothing listens at its address, so the overlay carries it, and the receipt comes back in a parcel."""
    stand.live.turn(lambda: stand.views.install(stand.live.agent.me))
    with pytest.raises(Sent, match="no member is called 'b'"):
        stand.client.ask(calls.Send, "b", b"hello", WAIT)
    stand.live.turn(lambda: stand.views.install(stand.live.agent.me, B))
    asked = stand.client.say(calls.Send, "b", b"hello", WAIT)
    letter = stand.carried()
    assert (letter.payload, letter.back) == (b"hello", stand.live.agent.host.address)
    parcels = Parcels(stand.live.agent.host.node, stand.live.agent.host.wall)
    receipt = parcels.pack(CarriedReceipt(letter.seq, Outcome.QUEUED))
    assert receipt is not None
    stand.live.turn(lambda: parcels.unpack(B, receipt))
    stand.client.answer(calls.Send, asked)


def test_a_life_is_written_to_and_no_other_one(stand: Stand) -> None:
    """F3: a client that means a life does not reach another one of that name, whether the list has the name or the view."""
    stand.live.turn(lambda: stand.views.install(stand.live.agent.me, B))
    for boot in (B.boot - 1, B.boot + 1):
        with pytest.raises(Sent, match="NotAMember"):
            stand.client.ask(calls.Send, "b", b"", WAIT, boot)
    asked = stand.client.say(calls.Send, "b", b"to seven", WAIT, B.boot)
    letter = stand.carried()
    assert letter.payload == b"to seven"
    stand.live.turn(lambda: stand.mail.on_message(B, CarriedReceipt(letter.seq, Outcome.NOBODY)))
    with pytest.raises(Sent, match="listens"):
        stand.client.answer(calls.Send, asked)


def test_a_member_that_the_view_gave_up_is_told_as_such(stand: Stand) -> None:
    """Views 10: Tripped, well before the time is over."""
    stand.live.turn(lambda: stand.views.install(stand.live.agent.me, B))
    asked = stand.client.say(calls.Send, "b", b"hello", WAIT)
    stand.carried()
    stand.live.turn(lambda: stand.views.install(stand.live.agent.me))
    with pytest.raises(Sent, match="the view gave 'b' up before it answered; the message may have arrived") as caught:
        stand.client.answer(calls.Send, asked)
    assert caught.value.error == "Tripped"
