"""What tests of leadership's verbs and clients use."""

from tests.cli.conftest import holdfast
from tests.client.conftest import runtime

__all__ = ["holdfast", "runtime"]
