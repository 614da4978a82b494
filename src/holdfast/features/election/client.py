"""Elections for a client, beside the terms that ``group.lead`` makes.  docs/election.md."""

from __future__ import annotations

from holdfast.client.aio.link import Link
from holdfast.features.election.calls import Elect
from holdfast.features.election.client_base import checked_name


async def elect(link: Link, name: str) -> None:
    await link.call(Elect, checked_name(name))
