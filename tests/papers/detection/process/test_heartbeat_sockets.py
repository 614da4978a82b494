"""The same heartbeat detector as in the lab, on real sockets.  Spec: fast-detection D11, Proposition 4.1 from above; foundation F1, F3."""

from __future__ import annotations

import time

from holdfast.features.leadership.detector.detectors import Temporal
from holdfast.host import Address, NodeId
from holdfast.net.host import NetHost
from holdfast.papers.detection.protocol.heartbeat import GRACE_INTERVALS, HeartbeatDetector
from holdfast.wire.keys import Key, Keyring
from holdfast.wire.seal import Sealed
from tests.support.realtime import eventually, run

INTERVAL, SLACK, M = 0.2, 0.1, 2
MARGIN = 10.0  # for the machine, which may stand still for a while; whoever stood still grants its peers a grace on top
KEY = Key(b"heartbeat" + bytes(23))


async def opened(me: NodeId, port: int = 0) -> NetHost:
    return await NetHost.open(me, Address("127.0.0.1", port), Sealed("heartbeat", Keyring(KEY)))


def started(host: NetHost, members: dict[str, Address]) -> HeartbeatDetector:
    detector = HeartbeatDetector(
        host, members, interval=INTERVAL, late_timeout=SLACK, make=lambda: Temporal(M, interval=INTERVAL, slack=SLACK)
    )
    host.node.add(detector)
    host.start()
    return detector


def test_peers_are_heard_silenced_and_heard_again() -> None:
    """All hear all; one goes without a word and is silenced after m intervals and the slack; its next life, at its old port, is heard."""

    async def main() -> None:
        hosts = {name: await opened(NodeId(name, 1)) for name in "abc"}
        members = {name: host.address for name, host in hosts.items()}
        detectors = {name: started(host, members) for name, host in hosts.items()}
        await eventually(lambda: all(len(detector.trusted) == 2 for detector in detectors.values()), "all hear all")
        gone = hosts["c"].me
        gone_at = time.monotonic()
        await hosts["c"].close()
        rest = [detectors[name] for name in "ab"]
        await eventually(lambda: all(detector.silenced == (gone,) for detector in rest), "c is silenced")
        assert time.monotonic() - gone_at <= (M + GRACE_INTERVALS) * INTERVAL + SLACK + MARGIN
        newer = NodeId("c", 2)
        hosts["c"] = await opened(newer, members["c"].port)
        reborn = started(hosts["c"], members)
        everybody = [*rest, reborn]
        await eventually(lambda: all(len(each.trusted) == 2 and not each.silenced for each in everybody), "the next life is heard")
        assert all(newer in detector.trusted for detector in rest)
        for host in hosts.values():
            await host.close()

    run(main())
