"""The numbers, the profiles, the switches of the laboratory.  Spec: gossip 4, 7."""

from __future__ import annotations

import re
from math import inf

import pytest

from holdfast.errors import ConfigError
from holdfast.features.gossip.protocol.config import GossipConfig
from holdfast.features.gossip.protocol.profiles import PROFILES, default, lan, local, paper, swim, wan
from holdfast.features.gossip.protocol.rules import Rules
from holdfast.features.gossip.protocol.suspicion import Span
from holdfast.host import Address
from tests.tidy.tree import PACKAGE, texts


@pytest.mark.parametrize(
    "changes",
    [
        {"period": 0.01}, {"period": 61.0}, {"period": inf}, {"probe_timeout": 0.6}, {"k_indirect": 9}, {"lhm_max": -1}, {"patience": 1.0},
        {"patience": 21.0}, {"beta": 0.5}, {"confirmations": 4}, {"retransmit": 9.0}, {"gossip_fanout": 17}, {"sync_interval": 0.5},
        {"reconnect_interval": 0.5}, {"reap_after": 119.0}, {"target": "nearest"}, {"exponent": 7.0}, {"bag_cap": 0}, {"bag_cap": 33},
        {"health_half_life": 0.0}, {"bucket": 0.0}, {"window": 10.0}, {"window": 30.0 * 121}, {"position": (0.0, inf)},
        {"seeds": (Address("a", 1),) * 65}, {"gossip_interval": 0.0001},
    ],
    ids=str,
)  # fmt: skip
def test_a_number_outside_of_its_range_is_refused_by_name(changes: dict[str, object]) -> None:
    """Gossip 4: the ranges."""
    with pytest.raises(ConfigError, match=f"^{next(iter(changes))}: "):
        GossipConfig(**changes)  # type: ignore[arg-type]


def test_derived_numbers() -> None:
    """Gossip 4: 0.4 T, T/5 (T/2 below 0.2 s), 10 T, max(8 T, 8 s), ceil(lambda log10(n+1)), ceil(3 log2(n+1)) intervals."""
    config = GossipConfig()
    assert (config.timeout, config.interval, config.reconnect, config.ae_period) == (0.4, 0.2, 10.0, 8.0)
    assert GossipConfig(period=0.1).interval == 0.05
    assert GossipConfig(period=5.0).ae_period == 40.0
    assert [config.sends(n) for n in (1, 9, 10, 99, 999)] == [2, 4, 5, 8, 12]
    assert config.settling(7) == pytest.approx(9 * 0.2)
    assert GossipConfig(gossip_fanout=0).settling(7) == 9.0
    assert config.buckets == 20


def test_members_may_have_different_periods() -> None:
    """Gossip 4, F4: only the buckets of the measured c are counted at both ends."""
    assert GossipConfig(period=5.0, patience=9.0).fingerprint == GossipConfig().fingerprint
    assert GossipConfig(bucket=10.0).fingerprint != GossipConfig().fingerprint


def test_presets_and_profiles() -> None:
    """Gossip 4: lan, wan and local differ in T alone; swim, lifeguard and paper are for the laboratory."""
    assert [each().config.period for each in (lan, wan, local)] == [1.0, 5.0, 0.2]
    assert {each().rules for each in (lan, wan, local, default)} == {Rules()}
    assert {name for name, profile in PROFILES.items() if profile().rules != Rules()} == {"swim", "lifeguard", "paper"}


def test_the_older_profiles_wait_as_their_papers_say() -> None:
    """Gossip 4: swim 4 max(1, log10 n) T; paper 3 max(1, log10 n) T, which is 5 T at 49 nodes."""
    for profile, n, expected in ((swim(), 10, 4.0), (swim(), 1000, 12.0), (paper(), 49, 5.07)):
        span = Span(profile.config, profile.rules, n)
        assert span.k == 0
        assert span.ceiling == span.floor == pytest.approx(expected, abs=0.01)
    config = paper().config
    assert (config.target, config.exponent, config.gossip_fanout, config.lhm_max, config.health_half_life) == ("spatial", 3.0, 0, 0, inf)


def test_only_the_laboratory_switches_rules() -> None:
    """Gossip 7 (ablations): no setting, no call and no file of an agent hands in rules."""
    allowed = re.compile(r"features/gossip/(protocol|lab)/|features/ring/|features/leadership/|papers/|lab/")
    readers = [path for path, text in texts().items() if "gossip.protocol.rules" in text and PACKAGE in path.parents]
    gossip = [path.relative_to(PACKAGE).as_posix() for path in readers]
    assert [place for place in gossip if not allowed.match(place)] == []
    assert any(place.endswith("gossip/protocol/node.py") for place in gossip)
