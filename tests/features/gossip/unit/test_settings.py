"""The settings of gossip, and that those of another membership are refused by name.  Spec: gossip 10; docs/decisions.md H370."""

from __future__ import annotations

import pytest

from holdfast.config import Config, load
from holdfast.errors import ConfigError
from holdfast.features.gossip.settings import GossipSettings


def settings(**given: object) -> Config:
    return load(None, {}, {"name": "a", "insecure": True, **given})


@pytest.mark.parametrize(
    "given, said",
    [
        ({"membership": "gosip"}, "membership: 'gosip'; accepted are ring, gossip, views"),
        ({"membership": "gossip", "probe": 0.01}, "probe: 0.01; accepted are 0.05 to 60 seconds"),
        ({"membership": "gossip", "lease": 0.4}, 'lease: is set, and membership is "gossip", which has none; set probe'),
        ({"membership": "gossip", "arbitration": 0.4}, 'arbitration: is set, and membership is "gossip", which has none; leave it out'),
        ({"membership": "gossip", "k": 2}, 'k: is set, and membership is "gossip", which has none; leave it out'),
        ({"membership": "gossip", "position": "here"}, "position: 'here'; accepted is X,Y in metres"),
        ({"membership": "gossip", "position": "1,nan"}, "position: '1,nan'; accepted is X,Y in metres"),
        ({"membership": "gossip", "position": "1,2,3"}, "position: '1,2,3'; accepted is X,Y in metres"),
        ({"membership": "gossip", "patience": 1.0}, "patience: 1.0; accepted are 2 to 20"),
        ({"membership": "gossip", "probe_targets": "near"}, "probe_targets: 'near'; accepted are shuffle, spatial, bag"),
        ({"membership": "gossip", "ticket_guardians": "ring"}, 'ticket_guardians: "ring" needs membership = "ring"'),
        ({"probe": 1.0}, 'probe: is set, and membership is "ring", which has none; set lease'),
        ({"patience": 3.0}, 'patience: is set, and membership is "ring", which has none; leave it out'),
        ({"probe_targets": "bag"}, 'probe_targets: is set, and membership is "ring", which has none; leave it out'),
        ({"membership": "views", "position": "1,2"}, 'position: is set, and membership is "views", which has none; leave it out'),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(given: dict[str, object], said: str) -> None:
    """Gossip 10 (settings): the text names the field, what is accepted, and what to set instead."""
    with pytest.raises(ConfigError) as refused:
        settings(**given)
    assert str(refused.value).startswith(said)


def test_probe_comes_from_the_preset() -> None:
    """Gossip 4 (profiles): T is 1, 5 and 0.2 s."""
    periods = [settings(membership="gossip", preset=preset).probe for preset in ("lan", "wan", "local")]  # type: ignore[attr-defined]
    assert periods == [1.0, 5.0, 0.2]


def test_probe_stretches_what_comes_from_the_preset() -> None:
    """Gossip 10: probe plays the part that lease plays in H40; the settings of the ring are not there."""
    quick, calm = settings(membership="gossip", probe=0.5), settings(membership="gossip")
    assert quick.ticket_lease == calm.ticket_lease / 2
    assert quick.heartbeat == calm.heartbeat / 2
    assert not {"lease", "arbitration", "k"} & quick.shown().keys()
    assert not {"probe", "patience", "probe_targets", "position"} & settings().shown().keys()


def test_the_numbers_reach_the_protocol() -> None:
    """Gossip 4: T, alpha, targets and position are settings, all other numbers follow."""
    config = settings(membership="gossip", probe=0.1, patience=4, probe_targets="spatial", position="10,-2.5")
    numbers = config.gossip_config()  # type: ignore[attr-defined]
    assert (numbers.period, numbers.patience, numbers.target, numbers.position) == (0.1, 4.0, "spatial", (10.0, -2.5))


@pytest.mark.parametrize("probe, reap_after", [(0.05, 3600.0), (30.0, 3600.0), (60.0, 7200.0)])
def test_every_period_that_is_accepted_can_be_used(probe: float, reap_after: float) -> None:
    """Gossip 4 (period T, reap_after): a dead member is remembered for an hour, and for four comparisons of tables where these are
    further apart."""
    assert GossipSettings.of(settings(membership="gossip", probe=probe)).gossip_config().reap_after == reap_after
