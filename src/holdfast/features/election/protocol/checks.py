"""What a peer may say of a life and of a place, beyond the bounds of the types.  Spec: election 3; foundation F1, F16."""

from __future__ import annotations

from holdfast.host import Address, NodeId

NAME_BYTES_MAX = 64  # of an agent, as on the wire
BOOT_MAX = 1 << 48  # wall-clock milliseconds until the year 10889, as gossip has it


def is_life(life: NodeId) -> bool:
    """An agent may have that name and that boot."""
    return 0 < life.boot < BOOT_MAX and 0 < len(life.name.encode()) <= NAME_BYTES_MAX and life.name.isprintable()


def is_place(address: Address) -> bool:
    """A process can be reached there."""
    return address.port > 0 and address.host != "" and address.host.isprintable()
