"""What ``doctor`` says about gossip.  Spec: gossip 10; docs/operations.md has one entry for each code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from holdfast.agent.observe.findings import error, note, warning

if TYPE_CHECKING:
    from holdfast.features.gossip.protocol.node import GossipNode
    from holdfast.local.calls import Finding

SICK_FOR = 60.0  # seconds; a short load is no sickness
TURBULENT_SHARE = 0.1  # of the members: so many lists may miss a live one
DIFFERING_FOR = 60.0  # seconds for which a comparison says how it is now
ONE_WAY_LEAST = 3  # probes in a row that only a helper's way answered


def of_gossip(node: GossipNode) -> Iterator[Finding]:
    """Of this agent's member."""
    name, now = node.core.me.name, node.core.host.now
    if node.wanted and node.contact.other_seeds and node.table.n == 1:
        yield warning(
            "alone", name, "It was given seeds, and lists no other member.",
            "Start a seed, open its port for UDP and TCP, or give seeds of the group that it belongs to.",
        )  # fmt: skip
    sick_since = node.core.sick_since
    if sick_since is not None and now - sick_since >= SICK_FOR:
        yield warning(
            "sick", name,
            f"Its own probes have failed too often for {now - sick_since:.0f} s, so it probes {node.lhm + 1} times slower.",
            "Give this machine CPU, or mend its network: other members are well.",
        )  # fmt: skip
    for peer, count in sorted(node.one_way.items()):
        if count >= ONE_WAY_LEAST and node.get(peer) is not None:
            yield warning(
                "one_way", peer, f"It answered other members and not this agent, {count} probes in a row.",
                "Look for a firewall or a route that passes one direction only, between the two.",
            )  # fmt: skip
    c, n = node.c_measured(), node.table.n
    if c > max(1.0, TURBULENT_SHARE * n):
        yield warning(
            "turbulent", name, f"Up to {c} of {n} lists missed a member that lived, within the last {node.config.window:.0f} s.",
            "Look for members that stand still or links that lose messages; a longer patience forgives more.",
        )  # fmt: skip
    p99, allowed = node.rtt_p99(), node.config.timeout
    if p99 > allowed:
        yield warning(
            "probe_too_quick", name,
            f"One in a hundred probes is answered after {p99:.3g} s or later, and a probe waits for {allowed:.3g} s.",
            f"Set probe to {p99 / 0.4:.2g} or more on all agents, or take a slower preset.",
        )  # fmt: skip
    yield from _lists(node, now)


def _lists(node: GossipNode, now: float) -> Iterator[Finding]:
    recent = {peer: look for peer, look in node.compared.items() if now - look.at <= DIFFERING_FOR}
    differing = sorted(peer for peer, look in recent.items() if look.differing)
    if not differing:
        return
    say = error if node.turbulent() else note
    yield say(
        "lists_differ", ", ".join(differing),
        f"{len(differing)} of {len(recent)} members that were asked have another list than this agent.",
        "Lists differ for seconds after a change. If they differ for minutes, look for links that lose messages.",
    )  # fmt: skip
