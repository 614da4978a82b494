"""An agent as it is, but careless: ``python -m tests.features.views.process.careless_agent`` with the words of ``python -m
holdfast.agent``.

As a server it vouches for its view whatever number the other servers are at (views D26 and D25 are out), which the recorder must see.
"""

from __future__ import annotations

import sys

from holdfast.agent.life import main as process
from holdfast.features.views.lab.mutations import no_numbers
from holdfast.lab.mutation import without

if __name__ == "__main__":
    with without(no_numbers):
        sys.exit(process.main(sys.argv[1:]))
