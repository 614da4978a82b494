"""Every reason for which a message is dropped, and nothing else.  A peer can send anything: it costs a counter."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum


class Drop(StrEnum):
    """Why a message went no further. The value is the counter's name in metrics and reports."""

    # What arrives and cannot be read (wire/).
    TRUNCATED = "truncated"
    OVERSIZED = "oversized"
    UNKNOWN_VERSION = "unknown_version"
    PLAINTEXT = "plaintext"  # unsealed, where this group seals
    SEALED = "sealed"  # sealed, where this group speaks plaintext
    WRONG_GROUP = "wrong_group"
    WRONG_KEY = "wrong_key"  # a key id this keyring does not hold
    FORGED = "forged"  # the tag check failed: altered on the way, or made without the key
    REPLAYED = "replayed"
    MALFORMED = "malformed"
    OUT_OF_BOUNDS = "out_of_bounds"  # the right types, and a value that the field does not have (bounds.py)
    FAR_AHEAD = "far_ahead"  # a boot, ballot, term, token or generation that no honest clock comes to
    UNKNOWN_TAG = "unknown_tag"
    NESTED_TOO_DEEP = "nested_too_deep"
    # What can be read and is not for us (node.py).
    REFLECTED = "reflected"  # our own words, sent back to us
    WRONG_LIFE = "wrong_life"
    UNBOUND = "unbound"  # a greeting to an address: answered with our life, then sent again to it
    NOT_A_GREETING = "not_a_greeting"
    WRONG_FINGERPRINT = "wrong_fingerprint"
    NO_OWNER = "no_owner"
    # What we would send and do not.
    NO_ADDRESS = "no_address"
    TOO_LARGE = "too_large"
    FANOUT = "fanout"
    QUEUE_FULL = "queue_full"
    UNREACHABLE = "unreachable"


class Rejected(Exception):  # never an error of ours: it ends in a counter
    """Raised inside ``wire`` only, caught by the host that read the bytes."""

    def __init__(self, why: Drop) -> None:
        super().__init__(why.value)
        self.why = why


Drops = Counter[Drop]
