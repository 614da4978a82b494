"""One member of kinship for `membership`: ``python -m benchmarks.membership_kinship NAME BIND SEEDS KEY SETTINGS``.

kinship as its documentation says: ``Config.lan()`` with the settings given, ``async with Cluster(...)``, and an event loop over its
events. What it is told goes to standard output, a word and a name per line.
"""

from __future__ import annotations

import asyncio
import json
import sys

import kinship

WORDS = {
    kinship.MemberJoined: "joined",
    kinship.MemberSuspect: "suspected",
    kinship.MemberRecovered: "cleared",
    kinship.MemberDead: "failed",
    kinship.MemberLeft: "failed",
}


async def serve(name: str, bind: str, seeds: str, key: str, settings: str) -> None:
    config = kinship.Config.lan(name=name, bind=bind, seeds=json.loads(seeds), keys=[key], **json.loads(settings))
    cluster = kinship.Cluster(config)
    await cluster.start()
    events = cluster.events()  # before the list: what comes between the two is told twice, and is the same
    _tell([("ready", name), *(("joined", member.name) for member in cluster.members())])
    async for event in events:
        word, member = WORDS.get(type(event)), getattr(event, "member", None)
        if word is not None and member is not None:
            _tell([(word, member.name)])


def _tell(lines: list[tuple[str, str]]) -> None:
    sys.stdout.write("".join(f"{word} {name}\n" for word, name in lines))
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
