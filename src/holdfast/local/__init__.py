"""How a process talks to the agent on its machine: frames over a Unix socket. Shared by ``agent`` and ``client``."""
