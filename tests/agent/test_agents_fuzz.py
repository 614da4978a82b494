"""The fuzz target of whole agents, in short; the long run is a command (docs/wire.md, "Fuzzing")."""

from __future__ import annotations

import random

import pytest

from fuzz import agents
from holdfast.drops import Drop
from holdfast.features.probe.protocol.messages import Ping
from holdfast.features.probe.protocol.probe import Probe
from holdfast.features.views.protocol.client import ViewClient
from holdfast.features.views.protocol.messages import StartChange
from holdfast.host import Message, NodeId

MESSAGES = 6_000
RATE = 3_000.0
FAULT_MESSAGES = 200_000  # the fault shows after some hundreds of them: one type in about a hundred, and a number that is mostly large
VIEW_FAULT_MESSAGES = 100_000  # one shows after 700 of them


def test_forged_messages_end_in_counters() -> None:
    """docs/security.md: whatever somebody with the key sends, no agent ends, and afterwards they lead and give tickets."""
    outcomes = agents.run(MESSAGES, random.getrandbits(32), rate=RATE)  # another seed in every run of the tests, from the one they print
    assert outcomes["(sent)"] >= MESSAGES
    assert {Drop.OUT_OF_BOUNDS.value, Drop.FAR_AHEAD.value, Drop.REFLECTED.value, Drop.WRONG_LIFE.value} <= set(outcomes)
    assert outcomes["(granted to clients)"] > 0
    assert outcomes["(views told: view)"] > 0  # one agent is a client of views, so it handles what servers say to clients


@pytest.mark.timeout(2 * FAULT_MESSAGES / RATE)
def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The target can fail: an agent that dies of a serial above what honest ones reach is named, with the messages before it."""
    on_message = Probe.on_message

    def careless(probe: Probe, source: NodeId, message: Message) -> None:
        assert not isinstance(message, Ping) or message.serial < 1_000_000
        on_message(probe, source, message)

    monkeypatch.setattr(Probe, "on_message", careless)
    assert agents.main(["--messages", str(FAULT_MESSAGES), "--seed", "1", "--rate", str(RATE)]) == 1
    printed = capsys.readouterr().out
    assert "FAILED: seed 1, after " in printed
    assert "AssertionError" in printed


def test_a_planted_fault_of_a_client_of_views_is_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The client's half of views is reached: one that dies of a change to a number far above its own is named."""
    on_start_change = ViewClient.on_start_change

    def careless(client: ViewClient, source: NodeId, message: StartChange) -> None:
        assert message.num < 1_000_000
        on_start_change(client, source, message)

    monkeypatch.setattr(ViewClient, "on_start_change", careless)
    assert agents.main(["--messages", str(VIEW_FAULT_MESSAGES), "--seed", "1", "--rate", str(RATE)]) == 1
    assert "bravo ended: AssertionError" in capsys.readouterr().out
