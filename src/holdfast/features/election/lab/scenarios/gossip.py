"""Elections on the gossip that ships, under mixed faults, in the three modes; E1 to E13.  Spec: election 7.

As election/mixed, but lists are those of a group that gossips: what they say while messages get lost, members are stopped and sides are cut
off is the membership's own, and so is what it measures of c.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from msgspec.structs import replace

from holdfast.features.election.lab.draws import SIZES, draw_faults, draw_link, draw_parameters, spared
from holdfast.features.election.lab.scenarios.mixed import MEMBERS_SECONDS, SEATS_SECONDS, SPARED_SECONDS, MixedScenario
from holdfast.features.election.lab.settled import HEALED
from holdfast.features.gossip.lab.members import Joiner, address_of, machines
from holdfast.features.gossip.lab.settled import QUIET
from holdfast.features.gossip.protocol import profiles
from holdfast.features.gossip.protocol.node import GossipNode
from holdfast.features.gossip.protocol.profiles import Profile
from holdfast.host import Host, Machine
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.lab.scenario import Setup
from holdfast.lab.world import World

PROFILES = ("local", "local", "local", "lan")
PERIODS = (25.0, 50.0)  # of faults, at least fifteen seconds
SECONDS_MIN = 15.0
SEEDS = 3


class GossipScenario(MixedScenario):
    """One to twenty processes, one to four names."""

    name = "election/gossip"
    title = "Elections on the gossip that ships, without and with a majority, under mixed faults"
    lists_kind = GossipNode

    def setup(self, random: Random) -> Setup:
        names = tuple(f"n{i}" for i in range(random.randint(*random.choice(SIZES))))
        kind = random.choice(PROFILES)
        period = profiles.PROFILES[kind]().config.period
        seconds = max(SECONDS_MIN, round(random.uniform(*PERIODS) * period, 3))
        parameters = {**draw_parameters(random, len(names)), "profile": kind, "calm": 0.0}
        plan = draw_faults(random, names, parameters, seconds).sparing(spared(random, names, parameters), SPARED_SECONDS)
        mode = {"none": 0.0, "seats": SEATS_SECONDS, "members": MEMBERS_SECONDS}[str(parameters["mode"])]
        return Setup(names, seconds, QUIET * period + HEALED + mode, plan, draw_link(random), parameters)

    def profile(self, setup: Setup) -> Profile:
        found = profiles.PROFILES[str(setup.parameters["profile"])]()
        return Profile(replace(found.config, seeds=tuple(map(address_of, setup.names[:SEEDS]))), found.rules)

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        below = machines(host, self.profile(setup), kind=GossipNode)
        node, broadcast, exchange = below
        assert isinstance(node, GossipNode)
        assert isinstance(broadcast, Broadcast)
        assert isinstance(exchange, Exchange)
        node.publish("tag:load", str(Random(f"{host.me}/load").randint(0, 9)).encode())
        return [*self.made(host, setup, below, node, broadcast, exchange), Joiner(node)]

    def direct(self, world: World, setup: Setup) -> None:
        """The lists are the members' own."""


SCENARIO = GossipScenario()
