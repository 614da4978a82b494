"""The decisions as switches, so that the laboratory can show what each of them is for.  Spec: gossip 4 (profiles), 7 (ablations).

All other code hands in ``Rules()``: no configuration reaches these, and a test keeps it so.
"""

from __future__ import annotations

from msgspec import Struct


class Rules(Struct, frozen=True, kw_only=True):
    """What the protocol obeys. The defaults are the protocol."""

    nacks_confirm: bool = True  # D16: a helper's NACK is an independent failed probe
    direct: bool = True  # D16: accuser and accused talk directly
    last_call: bool = True  # D16: a suspected member is asked once more before it is buried
    answer_stale: bool = True  # D16: an accusation with an old inc is answered with the present one
    tables_accuse: bool = True  # D5: a table may accuse, and does not kill
    hearsay_asks: bool = True  # D16: one that others bury is asked here as well, before it is out of this list
    own_once: bool = True  # D7: one's own probes never confirm one's own suspicion
    pause_guard: bool = True  # 5.8: who was away judges no member before it has heard what waited
    reconnect: bool = True  # D9: tombstones are tried again
    standing_seeds: bool = True  # D9: unlisted seeds are tried also while other members are listed
    rows_by_version: bool = True  # D18: of two sets of rows the newer one counts
    growing_min: bool = False  # SWIM, Lifeguard and the paper: the shortest suspicion grows with log10 n, too
