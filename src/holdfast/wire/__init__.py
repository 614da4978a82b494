"""Bytes and messages: what travels, who may read it, what is refused under which name.  Spec: foundation F3; docs/wire.md.

The way up is ``sealer.open(data)``, ``codec.decode(payload)``, ``node.receive(...)``; the way down is ``codec.encode`` and
``sealer.seal``. Whatever a peer gets wrong raises ``holdfast.drops.Rejected`` with the name of the counter, and nothing else.
"""

from holdfast.wire.codec import Codec, Envelope
from holdfast.wire.frame import FrameReader, frame
from holdfast.wire.keys import Key, Keyring, exposure, generate, load_key, parse_key
from holdfast.wire.seal import Channel, Plain, Sealed, Sealer

__all__ = [
    "Codec",
    "Envelope",
    "Sealer",
    "Sealed",
    "Plain",
    "Channel",
    "Key",
    "Keyring",
    "generate",
    "parse_key",
    "load_key",
    "exposure",
    "FrameReader",
    "frame",
]
