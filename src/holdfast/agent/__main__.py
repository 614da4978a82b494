"""``python -m holdfast.agent``: the agent process."""

from __future__ import annotations

import os
import sys

from holdfast.agent.life.lean import lean_imports

if __name__ == "__main__":
    with lean_imports():
        from holdfast.agent.life.main import main
    # Everything is closed. Ending the usual way would wait for threads that ask a DNS server or a disk that does not answer.
    os._exit(main(sys.argv[1:]))
