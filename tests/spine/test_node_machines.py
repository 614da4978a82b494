"""Machines that come and go while a node runs.  Spec: foundation 3 (Node); docs/roadmap.md (views start late); H203."""

from __future__ import annotations

import pytest

from holdfast.drops import Drop
from holdfast.events import ConfigMismatch
from holdfast.host import fingerprint
from holdfast.node import OtherFingerprint, WrongLife
from tests.spine.test_node import MY_LIFE, PEER, THERE, Bench, Hello, Listener, Word


def bench_of_two() -> tuple[Bench, Listener]:
    """A node that runs a machine for Hello; a machine for Word comes later."""
    bench = Bench()
    bench.node.remove(bench.listener)
    first, later = Listener(handles=(Hello,)), Listener(fingerprint(T=1.0), handles=(Word,))
    bench.node.add(first)
    bench.listener = first
    return bench, later


def test_a_machine_that_is_added_to_a_running_node_starts_and_hears() -> None:
    """H203: it is started once, its types are routed to it, and what the node sends of them carries its fingerprint (F4)."""
    bench, later = bench_of_two()
    told: list[int] = []
    bench.node.on_machines = lambda: told.append(len(bench.node.types))
    bench.node.add(later)
    assert later.calls == ["start"]
    assert told == [len(bench.node.types)]
    assert Word in bench.node.types
    bench.node.receive(THERE, PEER, MY_LIFE, bench.node.digests[Word], Word(1))
    assert later.heard == [(PEER, Word(1))]
    bench.node.send(PEER, Word(2))
    assert bench.take()[-1].fingerprint == bench.node.digests[Word] != b""
    bench.node.on_away(2.0)
    bench.node.stop()
    assert later.calls == ["start", "away 2", "stop"]


def test_other_numbers_of_a_later_machine_are_named() -> None:
    """F4, H203: its fingerprint counts from its first message on, at both ends."""
    bench, later = bench_of_two()
    bench.node.add(later)
    bench.node.receive(THERE, PEER, MY_LIFE, b"8 bytes.", Word(1))
    assert later.heard == []
    assert isinstance(bench.take()[-1].message, OtherFingerprint)
    tag = Word.__struct_config__.tag
    assert isinstance(tag, int)
    bench.node.receive(THERE, PEER, MY_LIFE, b"", OtherFingerprint(tag, fingerprint(T=2.0), answer=True))
    assert bench.host.events(ConfigMismatch) == [ConfigMismatch(PEER, "T", "1.0", "2.0")]


def test_a_machine_that_is_removed_is_stopped_and_hears_nothing() -> None:
    """H203: its types have no owner any more, its messages are counted drops, and another machine may own them then."""
    bench, later = bench_of_two()
    bench.node.add(later)
    digest = bench.node.digests[Word]
    bench.node.receive(THERE, PEER, MY_LIFE, digest, Word(1))
    bench.node.remove(later)
    assert later.calls == ["start", "stop"]
    bench.node.receive(THERE, PEER, MY_LIFE, digest, Word(2))
    assert later.heard == [(PEER, Word(1))]
    assert bench.node.drops[Drop.NO_OWNER] == 1
    assert Word not in bench.node.digests
    again = Listener(handles=(Word,))
    bench.node.add(again)
    bench.node.receive(THERE, PEER, MY_LIFE, b"", Word(3))
    assert again.heard == [(PEER, Word(3))]
    with pytest.raises(AssertionError, match="removes what was added"):
        bench.node.remove(later)


def test_a_pass_follows_the_machines() -> None:
    """``admits`` (lab): a pass that was given out loses the types of a removed machine, and a new pass has those of an added one."""
    bench, later = bench_of_two()
    bench.node.receive(THERE, PEER, MY_LIFE, b"", Hello())
    former = bench.node.admits(THERE, PEER, bench.node.digests)
    bench.node.add(later)
    admitted = bench.node.admits(THERE, PEER, bench.node.digests)
    assert set(former) == {Hello, WrongLife, OtherFingerprint}
    assert set(admitted) == {Hello, Word, WrongLife, OtherFingerprint}
    bench.node.remove(later)
    assert Word not in admitted


def test_a_machine_may_be_added_by_one_that_starts() -> None:
    """Each machine is started once, whoever adds it and when."""
    bench, later = bench_of_two()
    bench.node.stop()

    class Opener(Listener):
        def start(self) -> None:
            super().start()
            bench.node.add(later)

    opener = Opener(handles=())
    bench.node.add(opener)
    bench.node.start()
    assert later.calls == ["start"]
    assert opener.calls == ["start"]
