"""Members whom nobody can condemn: more than k adjacent ones vanish at once.  Spec: ring D19, T_orph, G8, G9."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.events import Event, Failed
from holdfast.features.ring.lab.rings import Rings
from holdfast.features.ring.protocol import messages as m
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.facts import Departed, Removed
from holdfast.features.ring.protocol.ids import CIRCLE, Peer
from holdfast.lab.host import LabHost
from tests.features.ring.stand import T_L, Stand, crowd, peer

ORPHAN = peer("orphan", 1050)
CONFIG = RingConfig(k=3)
T_ORPH = CONFIG.t_orph


def beside() -> tuple[Stand, list[Peer]]:
    """A member with six neighbours that live, and a seventh one between them that never answers."""
    stand, peers = crowd()
    stand.views[peers[0].id] = tuple(sorted((*stand.views[peers[0].id], ORPHAN)))
    stand.say(peers[0], stand.request(peers[0], 9))
    assert ORPHAN.id in stand.ring.list
    return stand, peers


def vouch(stand: Stand, peers: list[Peer], *, active: bool) -> None:
    for each in peers:
        stand.say(each, m.Vouched(*stand.head(each), ORPHAN.id, active))


def test_t_orph() -> None:
    """Ring 4: T_orph = 2 wait + 4 T_l."""
    assert CONFIG.t_orph == pytest.approx(2 * CONFIG.wait + 4 * T_L)


def test_everybody_is_asked_about_an_unmet_neighbour() -> None:
    """D19: unmet for longer than T_orph: Vouch(x) to all, once per T_l; not before."""
    stand, _ = beside()
    stand.live(T_ORPH - T_L, silent=[ORPHAN])
    assert stand.take(m.Vouch) == []
    stand.live(3 * T_L, silent=[ORPHAN])
    rounds = stand.told(m.Vouch)
    assert set(rounds) == set("abcefg")
    assert 2 <= len(rounds) / 6 <= 3


def test_who_has_a_pair_vouches() -> None:
    """D19: whoever has an ACTIVE pair with x, or is x, says so; everybody else denies."""
    stand, peers = crowd()
    for about in (peers[1].id, stand.ring.id, ORPHAN.id):
        stand.say(peers[0], m.Vouch(*stand.head(peers[0]), about))
    assert [answer.active for answer in stand.to(peers[0], m.Vouched)] == [True, True, False]


def test_somebody_who_vouches_gives_time() -> None:
    """D19: one ACTIVE pair with x, and its age is set back to T_orph/2."""
    stand, peers = beside()
    stand.live(T_ORPH + 2 * T_L, silent=[ORPHAN])
    vouch(stand, peers[:1], active=True)
    since = stand.ring.neighbours.unmet[ORPHAN.id]
    assert stand.host.now - since == pytest.approx(T_ORPH / 2)
    stand.take(m.Vouch)
    stand.live(T_ORPH / 2 - T_L, silent=[ORPHAN])
    assert stand.take(m.Vouch) == []


def test_without_a_majority_it_is_the_asker_who_is_alone() -> None:
    """D19: at 1.5 T_orph without answers of a majority: depart("isolated"), before anybody could be removed."""
    stand, peers = beside()
    stand.live(1.5 * T_ORPH - T_L, silent=[ORPHAN])
    vouch(stand, peers[:3], active=False)  # With its own that is 4 of 8: no majority.
    assert stand.departures() == []
    stand.live(2 * T_L, silent=[ORPHAN])
    assert stand.departures() == ["isolated"]
    assert stand.host.events(Removed) == []


def test_a_majority_that_denies_removes_the_orphan() -> None:
    """D19: at 2 T_orph, and the only removal that is not certain."""
    stand, peers = beside()
    stand.live(1.4 * T_ORPH, silent=[ORPHAN])
    vouch(stand, peers[:4], active=False)
    stand.live(0.6 * T_ORPH - T_L, silent=[ORPHAN])
    assert stand.host.events(Removed) == []
    stand.live(2 * T_L, silent=[ORPHAN])
    assert [(event.id, event.certain, event.reason) for event in stand.host.events(Removed)] == [(ORPHAN.id, False, "orphan")]
    assert [event.certain for event in stand.host.events(Failed)] == [False]
    assert stand.departures() == []


def test_strangers_deny_nothing() -> None:
    """D19: answers of those who are not listed do not count towards the majority."""
    stand, peers = beside()
    stand.live(1.4 * T_ORPH, silent=[ORPHAN])
    vouch(stand, [*peers[:3], *(peer(f"x{i}", 9000 + i) for i in range(5))], active=False)
    stand.live(0.2 * T_ORPH, silent=[ORPHAN])
    assert stand.departures() == ["isolated"]


def test_strangers_vouch_for_nobody() -> None:
    """D19: a word for the orphan counts only from somebody who is listed; a departed member's late one does not keep it for ever."""
    stand, _ = beside()
    stand.live(T_ORPH + 2 * T_L, silent=[ORPHAN])
    before = stand.ring.neighbours.unmet[ORPHAN.id]
    vouch(stand, [peer("x", 9000)], active=True)
    assert stand.ring.neighbours.unmet[ORPHAN.id] == before


@pytest.mark.parametrize("k,orphans", [(3, set()), (1, {"n18"})], ids=["at most k", "more than k"])
def test_adjacent_crashes(k: int, orphans: set[str]) -> None:
    """D19, G8: three adjacent crashes. With k = 3 all are declared with certainty; with k = 1 the middle one has no living monitor: an
    orphan. Nobody else leaves, and all lists agree again. (The dead have the largest ids, so half of a group of four is enough: D5.)"""
    rings = Rings(1, RingConfig(k=k), configure=_placed)
    rings.form([f"n{i}" for i in range(20)])
    certain: dict[str, set[bool]] = {}
    left: list[str] = []

    def note(host: LabHost, event: Event) -> None:
        if isinstance(event, Removed):
            name = next(name for name, ring in rings.members.items() if ring.id == event.id)
            certain.setdefault(name, set()).add(event.certain)
        elif isinstance(event, Departed):
            left.append(host.me.name)

    rings.world.listeners.append(note)
    for name in ("n17", "n18", "n19"):
        rings.world.crash(name)
    rings.world.run(3 * T_ORPH)
    assert left == []
    assert {len(ring.list) for ring in rings.alive} == {17}
    assert {name for name, values in certain.items() if values != {True}} == orphans


def _placed(name: str, config: RingConfig) -> RingConfig:
    return replace(config, position=int(name[1:]) * (CIRCLE // 20))
