"""The bundled photographs, loaded once."""

from __future__ import annotations

import pytest

from fmapboard.demo.photographs import Photographs


@pytest.fixture(scope="session")
def photographs() -> Photographs:
    return Photographs.load()
