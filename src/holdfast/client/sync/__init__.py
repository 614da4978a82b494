"""The client for threads. ``scripts/spell.py`` makes the files of this folder from those of ``client.aio`` (H213): edit them there."""
