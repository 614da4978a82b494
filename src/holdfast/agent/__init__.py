"""The agent: one process per host, or a child of the program that uses it. ``python -m holdfast.agent`` is the only way it starts."""
