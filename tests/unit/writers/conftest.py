"""A `Desk`, released at the end of each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from held_work import Desk


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk()
    yield desk
    desk.let_go()
