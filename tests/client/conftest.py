"""What the tests of the client share: a private runtime directory, a fake agent, both spellings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.client.fake_agent import FakeAgent
from tests.client.spelling import Aio, Blocking, Spelling


@pytest.fixture(autouse=True)
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A short path: the name of a Unix socket has 107 bytes."""
    for name in [name for name in os.environ if name.startswith("HOLDFAST_")]:
        monkeypatch.delenv(name)
    with TemporaryDirectory(prefix="hf-") as folder:
        monkeypatch.setenv("HOLDFAST_RUNTIME_DIR", folder)
        monkeypatch.setenv("XDG_STATE_HOME", folder)
        yield Path(folder)


@pytest.fixture
def agent(runtime: Path) -> Iterator[FakeAgent]:
    with FakeAgent(runtime / "fake.sock") as agent:
        yield agent


@pytest.fixture(params=["aio", "blocking"])
def client(request: pytest.FixtureRequest) -> Iterator[Spelling]:
    spelling = Aio() if request.param == "aio" else Blocking()
    yield spelling
    spelling.close()
