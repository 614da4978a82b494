"""The holder of a ticket is cut off from the other seats and comes back: at no time do two work.  Spec: tickets 1, G1, D6; F8, F9.

By forwarders in this process always, by network namespaces and their firewall where root allows.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.host import Address
from tests.features.leadership.process.fleet import SEATS, Place
from tests.features.leadership.process.test_partition import CUT, NAMES, cut_and_heal
from tests.features.tickets.process.fleet import TicketFleet
from tests.support.forwarder import in_a_thread, somewhere
from tests.support.netns import PORT, Namespaces, unavailable


def test_forwarders_cut_off_the_holder(tmp_path: Path) -> None:
    """G1: nothing passes between the holder and the others; it stops by its own clock before another one has the ticket."""
    with in_a_thread(NAMES, seed=5) as (mesh, run):
        places = [Place(somewhere(mesh, name), str(mesh.address(name))) for name in NAMES]
        for name, place in zip(NAMES, places, strict=True):
            host, _, port = place.bind.rpartition(":")
            mesh.attach(name, Address(host, int(port)))
        with TicketFleet(tmp_path, places) as tickets:
            cut_and_heal(tickets, lambda: run(lambda: mesh.split(NAMES[:CUT], NAMES[CUT:])), lambda: run(mesh.heal))


@pytest.mark.netns
def test_namespaces_cut_off_the_holder(tmp_path: Path) -> None:
    """G1: the same with a kernel's firewall between three machines."""
    reason = unavailable()
    if reason is not None:
        pytest.skip(reason)
    with Namespaces(SEATS) as net:
        places = [Place(f"{net.address(number)}:{PORT}", before=net.words(number)) for number in range(SEATS)]

        def cut() -> None:
            for other in range(CUT):
                net.cut_both(CUT, other)

        with TicketFleet(tmp_path, places) as tickets:
            cut_and_heal(tickets, cut, net.heal)
