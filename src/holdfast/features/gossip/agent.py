"""Gossip as a feature: what an operator may ask of a member, in a group of any membership.  Spec: gossip 10 (forget)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from holdfast.agent.feature import Calls, Feature, Missing, Parts, Running

if TYPE_CHECKING:
    from holdfast.agent.socket.connection import Connection
    from holdfast.features.gossip.calls import Forget
    from holdfast.features.gossip.protocol.node import GossipNode

NOT_GOSSIP = 'membership: "{}" remembers no dead member that it would try to reach; `forget` is of "gossip"'


class GossipAgent(Running):
    """Answers ``Forget``. Machines, metrics and findings are those of the membership (``side.py``)."""

    def __init__(self, node: GossipNode) -> None:
        self._node = node

    def calls(self) -> Calls:
        from holdfast.features.gossip.calls import Forget

        return Calls(in_turn={Forget: self._forget})

    def _forget(self, client: Connection, call: Forget) -> None:
        self._node.forget(call.name)
        client.done(call.serial)


class NoGossip(Missing):
    """Another membership."""

    def calls(self) -> Calls:
        from holdfast.features.gossip.calls import Forget

        return Calls(at_once={Forget: self.refuse})


class GossipFeature(Feature):
    """Every agent has it: a call to the wrong kind of group is told so."""

    name = "gossip"

    def build(self, parts: Parts) -> Running:
        kind = parts.config.membership
        if kind == self.name:
            return GossipAgent(cast("GossipNode", parts.membership))
        return NoGossip(NOT_GOSSIP.format(kind))
