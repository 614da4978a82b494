"""The decisions as switches, so that the laboratory can show what each of them is for.  Spec: ring 6, 8 (E9, E13), 11.

All other code hands in ``Rules()``: no configuration reaches these, and a test keeps it so.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Upgrade = Literal["joint", "proposal", "naive"]


class Rules(Struct, frozen=True, kw_only=True):
    """What the protocol obeys. The defaults are the protocol; each departure breaks a promise or costs something."""

    guard: bool = True  # D6: a deadline that has passed is acted on before anything else
    drain: bool = True  # D6: who overslept reads the socket before it accuses
    half: bool = True  # D10: an opener is obliged before the responder becomes entitled
    recheck: bool = True  # D8: the neighbourhood is checked again under the locks
    quiet_joins: bool = True  # D9: no candidate joins next to a condemned node
    start_up: bool = False  # D12: Algorithm 1's rule, reject everything while up for less than T_arb
    leave_notice: bool = True  # D13: who departs says so
    upgrade: Upgrade = "joint"  # D14: how an arbitrator group changes
    old_accusers: bool = True  # D25: tombstoned accusers are rejected
    deaf: bool = True  # H162: who does not hear most of its neighbours leaves instead of accusing one of them
    from_stop: bool = True  # D28: the declaration counts from when acking stopped
    void: bool = True  # H380: a decision ends with the membership that made it, and when no declaration follows
    gap: bool = True  # D29: no ownership and no join locks across a gap
    fingerprint: bool = True  # F4: both ends count with the same numbers
    jump: bool = True  # G9: an orphan's removal raises the generation by 2^20
