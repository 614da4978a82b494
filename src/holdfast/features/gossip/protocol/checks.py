"""What a member may say: the checks that every rumour passes before it is believed.  Spec: gossip 3; foundation F16.

The types of the fields have bounds already (``messages.py``). What is looked at here depends on what is known of the
member.
"""

from __future__ import annotations

from holdfast.features.gossip.protocol.messages import BOOT_MAX, INLINE_BYTES_MAX, Rumour, Status
from holdfast.features.gossip.protocol.table import Entry
from holdfast.host import Address, NodeId, rows_bytes

INC_STEP = 1 << 16  # an inc this far above the known one was not reached by refutations; believed from the member itself alone
OWN_STEPS = 64  # so many of these a member believes of what is said about itself: it has to refute what others believed in steps (H332)
INC_MAX = (1 << 32) - 1
NAME_BYTES_MAX = 64


def is_place(address: Address) -> bool:
    """True if a process can be reached there."""
    return address.port > 0 and address.host != "" and address.host.isprintable()


def is_life(life: NodeId) -> bool:
    return 0 < life.boot < BOOT_MAX and 0 < len(life.name.encode()) <= NAME_BYTES_MAX and life.name.isprintable()


def refused(rumour: Rumour, source: NodeId, known: Entry | None, *, steps: int = 1) -> str:
    """Why a rumour is not believed, as the counter's name; "" if it is. ``known``: what is held of that life; its inc may be ``steps``
    steps behind."""
    if not is_life(rumour.id):
        return "refused_id"
    if not is_place(rumour.address):
        return "refused_address"
    inc = 0 if known is None else known.inc
    if rumour.inc > inc + steps * INC_STEP and rumour.id != source:
        return "refused_inc"
    if rumour.rows_at > rumour.inc or (rumour.rows and not rumour.rows_at):
        return "refused_rows"
    if rumour.rows is not None and (rumour.status is not Status.ALIVE or rows_bytes(rumour.rows) > INLINE_BYTES_MAX):
        return "refused_rows"
    return ""
