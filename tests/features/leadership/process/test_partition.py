"""The leader is cut off from the other seats and comes back: at no time do two work.  Spec: fast-detection G5, D20; foundation F8, F9.

By forwarders in this process always, by network namespaces and their firewall where root allows.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.host import Address
from tests.features.leadership.process.fleet import GRACE, SEATS, Leads, Place, after_the_deadline, finish, lead_and_wait
from tests.support.forwarder import in_a_thread, somewhere
from tests.support.netns import PORT, Namespaces, unavailable

NAMES = tuple(f"seat{number}" for number in range(SEATS))
CUT = SEATS - 1  # the leader, which is a seat: it still has its own vote


def cut_and_heal(leads: Leads, cut: Callable[[], None], heal: Callable[[], None]) -> None:
    """One of three seats leads and is cut off; the majority goes on without it; healed, it can lead again."""
    first, second = lead_and_wait(leads, leads.seats[CUT], "scheduler")
    cut()
    second.until_works()
    assert first.wait() == 0
    heal()
    third = leads.body(leads.seats[CUT], "scheduler", grace=GRACE)
    finish(second)
    assert after_the_deadline(second)
    finish(third)
    tokens = [term.token for term in third.record.terms()]
    assert tokens == sorted({*tokens})


def test_forwarders_cut_and_heal(tmp_path: Path) -> None:
    """G5, D20: nothing passes between the leader and the others; it steps down by its own clock before another one leads."""
    with in_a_thread(NAMES, seed=5) as (mesh, run):
        places = [Place(somewhere(mesh, name), str(mesh.address(name))) for name in NAMES]
        for name, place in zip(NAMES, places, strict=True):
            host, _, port = place.bind.rpartition(":")
            mesh.attach(name, Address(host, int(port)))
        with Leads(tmp_path, places) as leads:
            cut_and_heal(leads, lambda: run(lambda: mesh.split(NAMES[:CUT], NAMES[CUT:])), lambda: run(mesh.heal))


@pytest.mark.netns
def test_namespaces_cut_and_heal(tmp_path: Path) -> None:
    """G5, D20: the same with a kernel's firewall between three machines."""
    reason = unavailable()
    if reason is not None:
        pytest.skip(reason)
    with Namespaces(SEATS) as net:
        places = [Place(f"{net.address(number)}:{PORT}", before=net.words(number)) for number in range(SEATS)]

        def cut() -> None:
            for other in range(CUT):
                net.cut_both(CUT, other)

        with Leads(tmp_path, places) as leads:
            cut_and_heal(leads, cut, net.heal)
