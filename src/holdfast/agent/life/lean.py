"""What an agent does not load.  docs/agent.md, "Memory".

asyncio imports ``ssl`` and hashlib imports ``_hashlib`` only if they are there, and both bring a second OpenSSL into the process, beside
the one inside ``cryptography`` that seals our packets. No agent speaks TLS and blake2 is built in, so both are hidden while the
modules of an agent are imported: 4.5 MiB of resident memory less. Afterwards code that needs them can import them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

HIDDEN = ("ssl", "_hashlib")


@contextmanager
def without_openssl() -> Iterator[None]:
    """Importing one of these fails inside, as on a Python that was built without them."""
    hidden = [name for name in HIDDEN if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None is how Python spells "not to be imported"
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
