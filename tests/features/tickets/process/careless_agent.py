"""An agent as it is, but its seat grants what is held: ``python -m tests.features.tickets.process.careless_agent`` with the words of
``python -m holdfast.agent``.

The deliberate double grant, for the recorder to find: a guardian that takes no grant to be running promises a cell to whoever asks.
"""

from __future__ import annotations

import sys

from holdfast.agent.life import main as process
from holdfast.features.tickets.protocol.guardian import Guardian


def never_busy(self: Guardian, cell: object) -> float:
    return 0.0


if __name__ == "__main__":
    setattr(Guardian, "busy", never_busy)  # noqa: B010 - mypy is right to object
    sys.exit(process.main(sys.argv[1:]))
