"""Keys: files, rotation without downtime, and silence about the key itself."""

from __future__ import annotations

import traceback
from base64 import b64encode
from pathlib import Path

import pytest

from holdfast.drops import Drop, Rejected
from holdfast.errors import ConfigError, KeyUnusable
from holdfast.wire import Key, Keyring, Sealed, exposure, generate, load_key, parse_key
from holdfast.wire.keys import KEY_FILE_BYTES_MAX, KEYS_MAX

SECRET = bytes(range(100, 132))
KEY = Key(SECRET)
TEXT = b64encode(SECRET).decode()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "group.key"


def unusable(path: Path) -> str:
    with pytest.raises(KeyUnusable) as error:
        load_key(path)
    text = str(error.value)
    assert text.startswith(f"key file {path}: ")
    assert "\n" not in text
    assert error.value.__suppress_context__ or error.value.__context__ is None, "a traceback would show what was being parsed"
    return text


@pytest.mark.parametrize("text", [TEXT, TEXT + "\n", f"  {TEXT}\r\n\n", SECRET.hex(), SECRET.hex().upper() + "\n"])
def test_key_files(path: Path, text: str) -> None:
    """Base64 or hexadecimal, with the white space that editors leave."""
    path.write_text(text)
    path.chmod(0o600)
    assert load_key(path) == KEY
    assert load_key(str(path)).id == KEY.id


def test_generated_keys_are_new_and_usable(path: Path) -> None:
    """``holdfast keys generate`` writes what load_key reads."""
    path.write_text(generate())
    path.chmod(0o600)
    assert load_key(path) != Key(SECRET)
    assert len({generate() for _ in range(20)}) == 20


def test_a_file_that_is_not_there(path: Path) -> None:
    """What bad input gets: an unreadable key file gets one clear line."""
    assert unusable(path) == f"key file {path}: No such file or directory"


def test_a_file_that_is_no_file(tmp_path: Path) -> None:
    """A directory, and a path that no system accepts."""
    assert unusable(tmp_path).endswith("Is a directory")
    with pytest.raises(KeyUnusable, match="is no path"):
        load_key("a\0b")


def test_a_file_that_may_not_be_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs tests as root may read everything, so the refusal is made up."""

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert unusable(path).endswith("Permission denied")


@pytest.mark.parametrize(
    "content, complaint",
    [
        (b"", "holds 0 bytes"),
        (b64encode(b"short"), "holds 5 bytes"),
        (b64encode(b"x" * 33), "holds 33 bytes"),
        (SECRET.hex()[:-2].encode(), "holds 31 bytes"),
        (SECRET.hex()[:-1].encode(), "neither base64 nor hexadecimal"),
        (b"not a key!", "neither base64 nor hexadecimal"),
        (b"g" * 63 + b"!", "neither base64 nor hexadecimal"),
        (SECRET, "is no key file"),  # raw bytes: an editor would spoil them
        (b"A" * (KEY_FILE_BYTES_MAX + 1), "is no key file"),
        ("schlüssel".encode(), "is no key file"),
    ],
)
def test_files_that_hold_no_key(path: Path, content: bytes, complaint: str) -> None:
    """The line says what is wrong and what is accepted; the content is not repeated."""
    path.write_bytes(content)
    path.chmod(0o600)
    text = unusable(path)
    assert complaint in text
    assert "accepted: 32 bytes as base64 or 64 hexadecimal digits" in text
    assert not content or content.decode("latin-1") not in text.removeprefix(f"key file {path}")


def test_a_key_that_everybody_may_replace_is_refused(path: Path) -> None:
    """Decision: world-writable is an error, since whoever wrote it can read the group."""
    path.write_text(TEXT)
    path.chmod(0o602)
    assert "every user may write to it" in unusable(path)


def test_a_key_that_everybody_may_read_is_a_warning(path: Path) -> None:
    """Decision: world-readable works (container secrets are mounted 0444), and ``exposure`` has the line to print."""
    path.write_text(TEXT)
    path.chmod(0o644)
    assert load_key(path) == KEY
    assert "other users of this machine can read it" in str(exposure(path))
    path.chmod(0o600)
    assert exposure(path) is None


def test_no_key_material_in_any_text() -> None:
    """Whoever reads a log or a traceback learns the key's id, not the key."""
    texts = [repr(KEY), str(KEY), f"{KEY}", repr(Keyring(KEY)), repr(Sealed("g", Keyring(KEY))), repr([KEY])]
    for bad in (TEXT[:-1], TEXT[:-4], SECRET.hex()[:-1], SECRET.hex()[:-1] + "x"):
        try:
            parse_key(bad)
        except KeyUnusable as error:
            # Without the lines of source: they hold this test's names, and no values in any case.
            texts.append("".join(traceback.TracebackException.from_exception(error).format_exception_only()))
    try:
        Key(SECRET + b"x")
    except KeyUnusable as error:
        texts.append(str(error))
    assert len(texts) == 11
    for text in texts:
        for form in (SECRET.hex(), TEXT, repr(SECRET), SECRET.decode("latin-1")):
            assert form[:12] not in text
    assert KEY.id.hex() in repr(KEY)


def test_keys_compare_by_content() -> None:
    """Equality is about the key, not about its four-byte id."""
    assert Key(SECRET) == KEY
    assert hash(Key(SECRET)) == hash(KEY)
    assert Key(bytes(32)) != KEY
    assert KEY != SECRET


def test_a_keyring_is_never_changed() -> None:
    """Each step of a rotation gives a new ring; whoever holds the old one is not surprised."""
    new = Key(bytes(32))
    ring = Keyring(KEY)
    both = ring.add(new)
    assert ring.keys == (KEY,)
    assert both.keys == (KEY, new)
    assert both.add(new).keys == (KEY, new)
    assert both.use(new.id).primary == new
    assert both.use(new.id).remove(KEY.id).keys == (new,)
    assert both.get(KEY.id) == KEY
    assert both.get(b"none") is None


def test_what_a_keyring_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's mistakes are named: removing the key in use, naming one that is not there, too many."""
    with pytest.raises(ConfigError, match="is in use; use another one before removing it"):
        Keyring(KEY).remove(KEY.id)
    with pytest.raises(ConfigError, match=f"key 00000000: not in this keyring; accepted: {KEY.id.hex()}"):
        Keyring(KEY).use(bytes(4))
    with pytest.raises(KeyUnusable, match=f"accepted: up to {KEYS_MAX}"):
        Keyring(*(Key(bytes([number]) * 32) for number in range(KEYS_MAX + 1)))
    twin = Key(bytes(32))
    monkeypatch.setattr(twin, "id", KEY.id)
    with pytest.raises(KeyUnusable, match="another key of this keyring has the same id"):
        Keyring(KEY).add(twin)


def test_rotation_without_downtime() -> None:
    """Install everywhere, use everywhere, remove everywhere, in any order within a step: nothing is dropped meanwhile."""
    old, new = KEY, Key(bytes(32))
    nodes = [Sealed("orders", Keyring(old)) for _ in range(3)]
    opened = 0

    def everybody_talks() -> None:
        nonlocal opened
        for sender in nodes:
            for receiver in nodes:
                if receiver is not sender:
                    assert receiver.open(sender.seal(b"hello")) == b"hello"
                    opened += 1

    everybody_talks()
    for node in nodes:
        node.rekey(node.keyring.add(new))
        everybody_talks()
    for node in reversed(nodes):
        node.rekey(node.keyring.use(new.id))
        everybody_talks()
    late = nodes[0].seal(b"late")
    for node in nodes:
        node.rekey(node.keyring.remove(old.id))
        everybody_talks()
    assert opened == 10 * 6
    assert nodes[1].open(late) == b"late"
    with pytest.raises(Rejected, match=Drop.WRONG_KEY.value):
        nodes[0].open(Sealed("orders", Keyring(old)).seal(b"x"))


def test_a_removed_key_closes_runs_that_were_met_and_its_return_opens_no_replay() -> None:
    """Removal takes effect for known runs too; putting the key back does not forget what was seen."""
    spare = Key(bytes(32))
    sender, receiver = Sealed("orders", Keyring(KEY)), Sealed("orders", Keyring(spare, KEY))
    first, second = sender.seal(b"1"), sender.seal(b"2")
    assert receiver.open(first) == b"1"
    receiver.rekey(receiver.keyring.remove(KEY.id))
    for data in (first, second):
        with pytest.raises(Rejected, match=Drop.WRONG_KEY.value):
            receiver.open(data)
    receiver.rekey(receiver.keyring.add(KEY))
    assert receiver.open(second) == b"2"
    with pytest.raises(Rejected, match=Drop.REPLAYED.value):
        receiver.open(first)
