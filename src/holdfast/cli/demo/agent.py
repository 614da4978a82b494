"""``python -m holdfast.cli.demo.agent``: an agent that has loaded what limits need before it joins.  H355.

Any other agent loads it when a limit is first used, and stands still meanwhile: a twentieth of a second of CPU, which is a part of a lease
at the preset ``local``, and all of it on a machine that is busy with six other agents which do the same.
"""

from __future__ import annotations

import os
import sys

from holdfast.agent.life.lean import lean_imports

if __name__ == "__main__":
    with lean_imports():
        import holdfast.features.limits.handlers
        import holdfast.features.limits.items
        import holdfast.features.limits.protocol.limiter
        import holdfast.features.limits.users
        import holdfast.features.views.backend
        import holdfast.features.views.handlers
        import holdfast.features.views.protocol.views  # noqa: F401 - all seven are loaded, and not used here
        from holdfast.agent.life.main import main
    os._exit(main(sys.argv[1:]))  # As ``holdfast.agent`` does.
