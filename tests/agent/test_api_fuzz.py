"""The fuzz target of the local socket, in short; the long run is a command (docs/local-api.md, "Fuzzing")."""

from __future__ import annotations

import random
from typing import Any

import pytest

from fuzz import local
from holdfast.agent.socket.connection import Connection
from holdfast.local.calls import Call, Stopped

INPUTS = 1200


def test_hostile_calls_end_in_answers_or_ends_that_say_why() -> None:
    """Malformed frames: nothing but answers, refusals and Closed; no exception, no session, grant or pidfd that stays."""
    outcomes = local.run(INPUTS, random.getrandbits(32))  # another seed in every run of the tests, from the one they print
    assert {"(Done)", "(Refused)", "(Pushed)", "(Closed)", "answered to the end", "hung up"} <= set(outcomes)
    assert outcomes["answered to the end"] > INPUTS / 10


def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The target can fail: a call that raises is seen, with seed and input, and the exit code is 1."""
    dispatch: Any = Connection._dispatch

    def careless(connection: Connection, call: Call) -> None:
        assert not (isinstance(call, Stopped) and call.grant == 0)
        dispatch(connection, call)

    monkeypatch.setattr(Connection, "_dispatch", careless)
    before = local._pidfds()
    assert local.main(["--inputs", str(INPUTS), "--seed", "1"]) == 1
    assert "FAILED: seed 1, input " in capsys.readouterr().out
    assert local._pidfds() == before, "an agent that ends in the middle of its grants gives its descriptors back"
