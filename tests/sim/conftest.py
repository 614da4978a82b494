"""What the sweeps share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import sizes
from tests.support.search import Search

KNOWN = Path(__file__).with_name("known_seeds.json")  # by file and test: the first seed that failed when it was written


@pytest.fixture
def search(request: pytest.FixtureRequest, rewrite: bool) -> Search:
    """Finds a seed that fails."""
    return Search(f"{request.path.name}::{request.node.name}", KNOWN, rewrite=rewrite, hunt=sizes.is_all())
