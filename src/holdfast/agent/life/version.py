"""Which Holdfast this is, without asking the package's metadata: reading that costs an agent more memory than its member list."""

VERSION = "0.1.0"  # a test compares it with pyproject.toml
