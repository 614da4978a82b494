# Made by scripts/spell.py from src/holdfast/features/election/client.py: edit that file and run the script.
"""Elections for a client, beside the terms that ``group.lead`` makes.  docs/election.md."""

from __future__ import annotations

from holdfast.client.sync.link import Link
from holdfast.features.election.calls import Elect
from holdfast.features.election.client_base import checked_name


def elect(link: Link, name: str) -> None:
    link.call(Elect, checked_name(name))
