"""`datagrams`: CPU per message received, opened, decoded, routed, handled, encoded, sealed and sent.

    of_stock_asyncio    ours / the same node and wire on asyncio's create_datagram_endpoint, both sealed
    sealed_over_plain   ours sealed / ours in plaintext

A second process asks and keeps so many questions on their way that the socket is rarely empty, as at a busy node; only
this side's CPU counts, the kernel's share included. One question at a time is measured too and reported beside it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from contextlib import asynccontextmanager
from typing import AsyncIterator, NamedTuple
