"""An agent as it is, but careless: ``python -m tests.features.leadership.process.careless_agent`` with the words of ``python -m
holdfast.agent``.

It takes a closed socket for a death and gives up what that client leads, which the recorder must see: the next one is quick.
"""

from __future__ import annotations

import sys
from typing import Any

from holdfast.agent.life import main as process
from holdfast.agent.life.agent import Agent
from tests.agent.lock_agent import careless


class CarelessAgent(Agent):
    """Believes that who does not listen does not act."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        setattr(self.grants, "disconnected", lambda session: careless(self.grants, session))  # noqa: B010 - mypy is right to object


if __name__ == "__main__":
    setattr(process, "Agent", CarelessAgent)  # noqa: B010 - as above
    sys.exit(process.main(sys.argv[1:]))
