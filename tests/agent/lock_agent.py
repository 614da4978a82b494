"""An agent as it is, with the fake kind in it: ``python -m tests.agent.lock_agent`` with the words of ``python -m holdfast.agent``.

``LOCK_SERVICE`` is where the service listens. With ``LOCK_CARELESS`` it takes a closed socket for a death, which the recorder must see.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from holdfast.agent.grants.granted import State
from holdfast.agent.grants.grants import Grants
from holdfast.agent.life import main as process
from holdfast.agent.life.agent import Agent
from tests.agent.fake_kind import LockKind


class LockAgent(Agent):
    """Has locks."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        if os.environ.get("LOCK_CARELESS"):
            setattr(self.grants, "disconnected", lambda session: careless(self.grants, session))  # noqa: B010 - mypy is right to object
        self.grants.add(LockKind(self.host, os.environ["LOCK_SERVICE"]))


def careless(law: Grants, session: Any) -> None:
    for grant in law.all:
        if grant.session is session and grant.state is State.HELD:
            grant.attached = False
            law._release(grant, "careless")


if __name__ == "__main__":
    setattr(process, "Agent", LockAgent)  # noqa: B010 - as above
    sys.exit(process.main(sys.argv[1:]))
