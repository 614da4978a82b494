"""``python -m holdfast.agent``: the agent process."""

from __future__ import annotations

import sys

from holdfast.agent.lean import without_openssl

if __name__ == "__main__":
    with without_openssl():
        from holdfast.agent.main import main
    sys.exit(main(sys.argv[1:]))
