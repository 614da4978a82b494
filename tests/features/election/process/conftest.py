"""What tests of elections on real agents use."""

from tests.cli.conftest import holdfast
from tests.client.conftest import runtime

__all__ = ["holdfast", "runtime"]
