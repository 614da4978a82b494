"""The host for unit tests, under the name that tests use: it ships with the lab, so that a protocol outside of this tree has it too."""

from __future__ import annotations

from holdfast.lab.fake_host import FakeHost, FakeStorage, FakeTimer, Sent

__all__ = ["FakeHost", "FakeStorage", "FakeTimer", "Sent"]
