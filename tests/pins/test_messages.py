"""Every message that members send each other: its tag, its fields in order, and the bytes of two examples."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

import msgspec

from tests.pins.conftest import Pinned
from tests.pins.doors import Codec, Keyring, Message, NodeId, Plain, Sealed, import_all, parse_key, subclasses
from tests.pins.example import fields, full, least

# Foundation, section 6: who owns which tags. By name, not by folder: a protocol keeps its tags wherever it stands.
OWNERS = {
    "kit and node": range(1, 16),
    "ring": range(16, 48),
    "detection": range(48, 64),
    "tickets": range(64, 96),
    "gossip": range(96, 112),
    "election": range(112, 128),
    "views": range(128, 152),
    "limits": range(152, 176),
    "lab alone": range(176, 256),
    "mail": range(256, 264),
    "care": range(264, 288),
}
SENDER = NodeId("web-3", 1_753_000_000_000)
LIFE, FINGERPRINT = 77, bytes(range(8))
GROUP, KEY, RUN_ID = "orders", bytes(range(32)).hex(), bytes(range(16))


def messages() -> list[tuple[int, type[Message]]]:
    """Every type that travels, by tag; a base class without a tag is abstract."""
    import_all()
    found = [(tag, kind) for kind in subclasses(Message) if isinstance(tag := kind.__struct_config__.tag, int)]
    return sorted(found, key=lambda pair: pair[0])


def described(tag: int, kind: type[Message]) -> Iterator[str]:
    yield f"{tag} {kind.__name__}{' (greeting)' if kind.greeting else ''}"
    yield from (f"    {line}" for line in fields(kind))
    yield f"    full   {msgspec.msgpack.encode(full(kind)).hex()}"
    yield f"    least  {msgspec.msgpack.encode(least(kind)).hex()}"


def test_messages(pinned: Pinned) -> None:
    """Foundation F3 and 6: a tag, the order of fields and the bytes stay as they are; a message grows at the end only."""
    lines: list[str] = []
    for owner, tags in OWNERS.items():
        own = [(tag, kind) for tag, kind in messages() if tag in tags]
        lines += [f"# {owner}: tags {tags.start} to {tags.stop - 1}, {len(own)} used", ""]
        for tag, kind in own:
            lines += [*described(tag, kind), ""]
    assert len([line for line in lines if line[:1].isdigit()]) == len(messages()), "a tag is of no owner's range"
    pinned("messages", lines)


def test_envelope(pinned: Pinned) -> None:
    """F3: what surrounds a message stays, too: envelope, header and seal. What a codec writes it reads: each message, both examples."""
    codec = Codec(kind for _, kind in messages())
    seen = blake2b(digest_size=16)
    for _, kind in messages():
        for message in (full(kind), least(kind)):
            data = codec.encode(SENDER, LIFE, FINGERPRINT, message)
            envelope = codec.decode(data)
            assert (envelope.sender, envelope.to_life, envelope.fingerprint, envelope.message) == (SENDER, LIFE, FINGERPRINT, message)
            seen.update(data)
    first = messages()[0][1]
    one = codec.encode(SENDER, LIFE, FINGERPRINT, full(first))
    sealed = Sealed(GROUP, Keyring(parse_key(KEY)), run_id=RUN_ID)
    lines = {
        f"{first.__name__} from {SENDER}": one.hex(),
        f"the same without a key, group {GROUP}": Plain(GROUP).seal(one).hex(),
        "the same sealed": sealed.seal(one).hex(),
        "all messages, in envelopes": seen.hexdigest(),
    }
    pinned("envelope", [f"{what}: {text}" for what, text in lines.items()])
