"""The keys of a group: list, install, use, remove."""
