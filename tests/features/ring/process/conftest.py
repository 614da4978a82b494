"""What tests of the ring's verbs use."""

from tests.cli.conftest import holdfast

__all__ = ["holdfast"]
