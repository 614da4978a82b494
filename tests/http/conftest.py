"""One small group for the tests of a file; the first agent serves it, with a token."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.page.stub_agent import StubGroup, stub_group
from tests.support.agents import until

TOKEN = "a-token-for-tests-alone"
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StubGroup]:
    """Three members; nobody leaves or fails in these tests."""
    token: Path = tmp_path_factory.mktemp("http") / "token"
    token.write_text(TOKEN + "\n")
    with stub_group() as started:
        started.add("a", tags={"zone": "eu-1"}, http="127.0.0.1:0", http_token_file=str(token))
        started.add("b", tags={"note": HOSTILE})
        started.add('c "quoted" \\ back')
        until(lambda: started.settled(3), "three members are a group")
        yield started
