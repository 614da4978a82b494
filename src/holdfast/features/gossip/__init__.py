"""Gossip as membership: thousands of members, each with a list of its own that is eventually right."""
