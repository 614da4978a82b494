"""What tests of the verbs about keys use."""

from tests.cli.conftest import holdfast

__all__ = ["holdfast"]
