"""The numbers of a ring: what is derived, what is refused, and that no setting reaches the laboratory's switches.  Spec: ring 4; F4."""

from __future__ import annotations

from math import inf, nan

import pytest
from msgspec.structs import fields, replace

from holdfast.errors import ConfigError
from holdfast.events import ConfigMismatch
from holdfast.features.ring.protocol.config import ARBITRATORS_MAX, K_MAX, Arbitrator, RingConfig, adopt
from holdfast.features.ring.protocol.ids import CIRCLE
from holdfast.features.ring.protocol.rules import Rules
from holdfast.features.ring.protocol.standalone import standalone
from holdfast.host import SEEDS_MAX, Address, NodeId
from tests.support.fake_host import FakeHost

ARBS = tuple(Arbitrator(f"arb{i}", Address(f"arb{i}", 1)) for i in range(3))


def test_defaults_are_the_specs() -> None:
    """Ring 4: every default of the table."""
    config = RingConfig()
    assert (config.lease, config.t_a, config.rho, config.margin, config.k, config.retry) == (1.0, 0.5, 0.001, 0.010, 3, 1 / 8)
    assert (config.mode, config.join_pace, config.tombstone_ttl) == ("pairwise", False, 3600.0)
    assert (config.indirect, config.patient, config.here, config.early_news) == (True, False, False, True)


@pytest.mark.parametrize("lease", [0.03, 1.0, 30.0])
def test_derived_numbers(lease: float) -> None:
    """Ring 4: T_arb, wait, vote_ttl, lock_ttl, T_orph, oversleep, drain, as functions of T_l, T_a, rho, margin."""
    config = RingConfig(lease=lease, rho=0.01, margin=0.02, tombstone_ttl=3600.0)
    assert config.t_a == lease / 2
    assert config.t_arb == pytest.approx(2.5 * lease)
    assert config.wait == pytest.approx(2.5 * lease * 1.01 / 0.99 + 0.02)
    assert config.vote_ttl == pytest.approx(2 * config.wait)
    assert config.lock_ttl == pytest.approx(3 * lease)
    assert config.t_orph == pytest.approx(2 * config.wait + 4 * lease)
    assert config.oversleep == pytest.approx(lease / 16)
    assert config.drain == pytest.approx(max(0.005, lease / 50))
    assert config.publish_length == pytest.approx(lease / 2)


@pytest.mark.parametrize(
    "change",
    [
        {"lease": 0.02}, {"lease": 31.0}, {"lease": nan}, {"lease": inf}, {"arbitration": -1.0}, {"arbitration": 40.0}, {"rho": -0.1},
        {"rho": 0.2},
        {"margin": -0.001}, {"k": 0}, {"k": K_MAX + 1}, {"retry": 0.05}, {"retry": 1.5}, {"tombstone_ttl": 99.0}, {"position": -1},
        {"position": CIRCLE}, {"seeds": tuple(Address("a", i) for i in range(SEEDS_MAX + 1))}, {"mode": "other"}, {"mode": "central"},
        {"arbitrators": ARBS}, {"mode": "central", "arbitrators": (ARBS[0], ARBS[0])},
        {"mode": "central", "arbitrators": tuple(Arbitrator(str(i), Address("a", i)) for i in range(ARBITRATORS_MAX + 1))},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_refused(change: dict[str, object]) -> None:
    """Ring 4 (ranges): before anything runs, naming the field."""
    with pytest.raises(ConfigError) as caught:
        replace(RingConfig(), **change)
    assert next(iter(change)) in str(caught.value) or "arbitrators" in str(caught.value)


@pytest.mark.parametrize("field,value", [("lease", 2.0), ("arbitration", 0.3), ("rho", 0.002), ("margin", 0.02), ("k", 4)])
def test_what_both_ends_count_is_in_the_fingerprint(field: str, value: float) -> None:
    """Ring 3, F4: T_l, T_a, rho, margin, k."""
    assert replace(RingConfig(), **{field: value}).fingerprint != RingConfig().fingerprint


def test_the_mode_is_in_the_fingerprint() -> None:
    """Ring 3, F4: DA and CA never mix, and neither do two lists of arbitrators."""
    central = RingConfig(mode="central", arbitrators=ARBS)
    assert len({RingConfig().fingerprint, central.fingerprint, replace(central, arbitrators=ARBS[:1]).fingerprint}) == 3


@pytest.mark.parametrize(
    "field,value", [("retry", 1.0), ("join_pace", True), ("position", 7), ("indirect", False), ("patient", True), ("found", True)]
)
def test_what_one_end_counts_is_not(field: str, value: object) -> None:
    """F4: how often a node asks, where it sits and what it tries besides is its own affair."""
    assert replace(RingConfig(), **{field: value}).fingerprint == RingConfig().fingerprint


def test_adopting_the_rings_value() -> None:
    """Ring 3 (adopt): a refused joiner takes the value it was told, field by field; the mode it does not."""
    peer = NodeId("b", 1)
    config = adopt(RingConfig(), ConfigMismatch(peer, "T_l", "1.0", "2.0"))
    assert config.lease == 2.0
    assert adopt(config, ConfigMismatch(peer, "k", "3", "5")).k == 5
    assert adopt(config, ConfigMismatch(peer, "T_a", "1.0", "0.7")).t_a == 0.7
    with pytest.raises(ConfigError, match="mode"):
        adopt(config, ConfigMismatch(peer, "mode", "'pairwise'", "'central:a'"))
    with pytest.raises(ConfigError, match="no number"):
        adopt(config, ConfigMismatch(peer, "T_l", "1.0", "soon"))
    with pytest.raises(ConfigError, match="lease"):
        adopt(config, ConfigMismatch(peer, "T_l", "1.0", "9999"))


def test_no_configuration_reaches_the_switches() -> None:
    """Ring 11: the decisions are switches in the laboratory only: no field of RingConfig is one, and without any it is the protocol."""
    assert {field.name for field in fields(Rules)} & {field.name for field in fields(RingConfig)} == set()
    assert standalone(FakeHost(), RingConfig()).ring.rules == Rules()
    assert all(getattr(Rules(), field.name) in (True, "joint") for field in fields(Rules) if field.name != "start_up")
    assert Rules().start_up is False
