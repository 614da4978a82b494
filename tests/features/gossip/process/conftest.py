"""What tests of the verbs and clients of gossip use."""

from tests.cli.conftest import holdfast
from tests.client.conftest import agent, client, runtime

__all__ = ["agent", "client", "holdfast", "runtime"]
