"""The client, written for asyncio. ``scripts/spell.py`` makes ``client.sync`` from the files of this folder (H213)."""
