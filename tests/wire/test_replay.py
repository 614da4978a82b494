"""The replay window against a model that forgets nothing, and what happens when there are more runs than room."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.drops import Drop, Rejected
from holdfast.wire import Channel, Key, Keyring, Sealed
from holdfast.wire.replay import CIPHERS_MAX, RETIRED_MAX, RUNS_MAX, WINDOW_COUNTERS, Runs, Window

KEYRING = Keyring(Key(b"k" * 32))
near = st.integers(1, 3 * WINDOW_COUNTERS)
far = st.integers(0, (1 << 64) - 1)


def run_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def name(number: int) -> bytes:
    return b"name" + run_id(number)


def refused(sealer: Sealed, data: bytes) -> Drop:
    with pytest.raises(Rejected) as rejected:
        sealer.open(data)
    return rejected.value.why


@given(st.lists(near | far, max_size=200))
def test_a_window_accepts_what_a_perfect_memory_accepts(counters: list[int]) -> None:
    """docs/wire.md: once per counter; below the window, never."""
    window, seen, highest = Window(), set[int](), 0
    for counter in counters:
        expected = counter not in seen and counter > highest - WINDOW_COUNTERS
        assert window.accept(counter) is expected
        seen.add(counter)
        highest = max(highest, counter)


def test_both_edges_of_the_window() -> None:
    """The window is 1024 wide: the highest counter and the 1023 below it."""
    window = Window()
    assert window.accept(5000)
    assert window.accept(5000 - WINDOW_COUNTERS + 1)
    assert not window.accept(5000 - WINDOW_COUNTERS)
    assert window.accept(5000 + WINDOW_COUNTERS - 1)
    assert not window.accept(5000)


def test_a_jump_to_the_end_of_the_counter_costs_no_memory() -> None:
    """A shift by 2^63 would; only somebody with the key can ask for it."""
    window = Window()
    assert window.accept(1)
    assert window.accept((1 << 64) - 1)
    assert not window.accept(2)


def test_a_window_that_starts_high_takes_nothing_from_below() -> None:
    """What a retired run comes back with: the counters up to its highest count as seen."""
    window = Window(5000)
    assert not any(window.accept(counter) for counter in (5000, 4999, 5000 - WINDOW_COUNTERS + 1, 1))
    assert window.accept(5001)
    assert not window.accept(5000)


def test_the_run_heard_longest_ago_is_retired() -> None:
    """Limits: at most ``runs_max`` windows; what stays of the others are their highest counters."""
    runs = Runs(2, runs_max=2)
    assert runs.admit(name(0)).windows[1].accept(7)
    runs.admit(name(1))
    runs.active.move_to_end(name(0))
    runs.admit(name(2))
    assert list(runs.active) == [name(0), name(2)]
    runs.admit(name(3))
    assert runs.retired == {name(1): (0, 0), name(0): (0, 7)}
    assert not runs.admit(name(0)).windows[1].accept(7)
    assert name(0) not in runs.retired


def test_beyond_the_retired_table_the_oldest_is_forgotten() -> None:
    """Limits: docs/wire.md says what this means. Who comes back is not pushed out by the run it replaces."""
    runs = Runs(1, runs_max=1, retired_max=2)
    for number in range(5):
        assert runs.admit(name(number)).windows[0].accept(9)
    assert list(runs.active) == [name(4)]
    assert list(runs.retired) == [name(2), name(3)]
    assert not runs.admit(name(2)).windows[0].accept(9)
    assert list(runs.retired) == [name(3), name(4)]


def test_an_evicted_run_cannot_be_replayed_and_goes_on() -> None:
    """Without the retired table, a receiver that meets RUNS_MAX other runs would believe everything a second time."""
    receiver = Sealed("orders", KEYRING)
    first = Sealed("orders", KEYRING, run_id=run_id(0))
    early, late = first.seal(b"not delivered yet"), first.seal(b"once")
    assert receiver.open(late) == b"once"
    for number in range(1, RUNS_MAX + 2):
        receiver.open(Sealed("orders", KEYRING, run_id=run_id(number)).seal(b"hello"))
    assert len(receiver._runs.active) == RUNS_MAX
    assert len(receiver._runs.retired) == 2
    assert refused(receiver, late) is Drop.REPLAYED
    assert refused(receiver, early) is Drop.REPLAYED  # nobody remembers that it was not
    assert receiver.open(first.seal(b"new")) == b"new"
    assert RETIRED_MAX > RUNS_MAX


def test_a_run_that_is_heard_keeps_its_windows_in_a_flood() -> None:
    """The order is that of hearing, not of meeting: a late datagram of a busy run is still taken."""
    receiver = Sealed("orders", KEYRING)
    busy = Sealed("orders", KEYRING, run_id=run_id(0))
    late = busy.seal(b"late")
    for number in range(1, 2 * RUNS_MAX):
        receiver.open(Sealed("orders", KEYRING, run_id=run_id(number)).seal(b"hello"))
        if number % 1000 == 0:
            receiver.open(busy.seal(b"still here"))
    assert receiver.open(late) == b"late"


def ciphers(receiver: Sealed) -> int:
    return sum(run.cipher is not None for run in receiver._runs.active.values())


def test_few_ciphers_are_kept_and_all_windows() -> None:
    """H344: beyond CIPHERS_MAX senders a cipher is made again when it is needed; each sender's counters are remembered all the same."""
    receiver, count = Sealed("orders", KEYRING), CIPHERS_MAX + 40
    senders = [Sealed("orders", KEYRING, run_id=run_id(number)) for number in range(count)]
    late = [sender.seal(b"late") for sender in senders]
    for turn in range(1, 4):
        said = [sender.seal(b"%d" % turn) for sender in senders]
        assert [receiver.open(data) for data in said] == [b"%d" % turn] * count
        assert ciphers(receiver) == len(receiver._runs._with_cipher) == CIPHERS_MAX
        assert {refused(receiver, data) for data in said} == {Drop.REPLAYED}
    assert [receiver.open(data) for data in late] == [b"late"] * count
    assert {refused(receiver, data) for data in late} == {Drop.REPLAYED}


def test_senders_that_speak_in_turns_find_some_of_their_ciphers() -> None:
    """H344: with the oldest cipher given up none of them would ever be found; a drawn one leaves most where there are few too many."""
    receiver = Sealed("orders", KEYRING)
    senders = [Sealed("orders", KEYRING, run_id=run_id(number)) for number in range(CIPHERS_MAX + 8)]
    made = 0
    for _ in range(10):
        for sender in senders:
            run = receiver._runs.active.get(sender._prefix)
            made += run is None or run.cipher is None
            receiver.open(sender.seal(b"x"))
    assert made < 4 * len(senders)


def test_what_is_said_again_pushes_no_cipher_out() -> None:
    """H344: a recording of many members, played to one, costs it time and no member its cipher."""
    receiver = Sealed("orders", KEYRING)
    recorded = [Sealed("orders", KEYRING, run_id=run_id(number)).seal(b"x") for number in range(2 * CIPHERS_MAX)]
    for data in recorded:
        receiver.open(data)
    before = list(receiver._runs._with_cipher)
    assert {refused(receiver, data) for data in recorded} == {Drop.REPLAYED}
    assert receiver._runs._with_cipher == before


def test_a_removed_key_leaves_no_cipher_behind() -> None:
    """H57: neither with a run that is heard, nor with one that was retired."""
    other = Key(b"o" * 32)
    receiver = Sealed("orders", Keyring(other, Key(b"k" * 32)))
    receiver._runs._runs_max = 4
    for number in range(8):
        receiver.open(Sealed("orders", KEYRING, run_id=run_id(number)).seal(b"x"))
    kept = [run for run in receiver._runs._with_cipher if run.cipher is not None]
    assert len(kept) == ciphers(receiver) == 4
    stays = Sealed("orders", Keyring(other))
    receiver.open(stays.seal(b"x"))
    receiver.rekey(Keyring(other))
    assert [run.cipher is not None for run in receiver._runs._with_cipher] == [True]
    assert receiver.open(stays.seal(b"x")) == b"x"


def test_forged_datagrams_leave_nothing_behind() -> None:
    """A window is made, and a counter marked, only after the tag check: whoever has no key costs no memory."""
    receiver, sender = Sealed("orders", KEYRING), Sealed("orders", KEYRING)
    for number in range(100):
        made_up = Sealed("orders", KEYRING, run_id=run_id(number)).seal(b"x")[:-1] + b"?"
        assert refused(receiver, made_up) is Drop.FORGED
    assert not receiver._runs.active
    genuine = [sender.seal(b"1"), sender.seal(b"2")]
    receiver.open(genuine[0])
    assert refused(receiver, genuine[1][:-1] + bytes([genuine[1][-1] ^ 1])) is Drop.FORGED
    assert receiver.open(genuine[1]) == b"2"


def test_a_stream_may_lag_thousands_of_datagrams_behind() -> None:
    """One run, one counter, two channels: a frame that waited in a queue is late, not replayed."""
    receiver, sender = Sealed("orders", KEYRING), Sealed("orders", KEYRING)
    frames = [sender.seal(b"frame", Channel.STREAM) for _ in range(3)]
    datagrams = [sender.seal(b"datagram") for _ in range(3 * WINDOW_COUNTERS)]
    for data in datagrams:
        receiver.open(data)
    for data in frames:
        assert receiver.open(data, Channel.STREAM) == b"frame"
    for data, channel in ((frames[0], Channel.STREAM), (datagrams[-1], Channel.DATAGRAM)):
        with pytest.raises(Rejected, match="replayed"):
            receiver.open(data, channel)


def test_datagrams_may_lag_behind_a_stream() -> None:
    """The other order of the same race."""
    receiver, sender = Sealed("orders", KEYRING), Sealed("orders", KEYRING)
    datagram = sender.seal(b"datagram")
    for _ in range(2 * WINDOW_COUNTERS):
        receiver.open(sender.seal(b"frame", Channel.STREAM), Channel.STREAM)
    assert receiver.open(datagram) == b"datagram"


@given(st.permutations(range(40)), st.data())
def test_any_order_arrives_once(order: list[int], data: st.DataObject) -> None:
    """Reordered and doubled on both channels: everything is opened once, whatever came before."""
    sender, receiver = Sealed("orders", KEYRING), Sealed("orders", KEYRING)
    channels = [data.draw(st.sampled_from(Channel)) for _ in order]
    sent = [sender.seal(bytes([number]), channel) for number, channel in enumerate(channels)]
    assert [receiver.open(sent[number], channels[number])[0] for number in order] == order
    for number in order:
        with pytest.raises(Rejected, match="replayed"):
            receiver.open(sent[number], channels[number])
