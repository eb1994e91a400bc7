"""The tests of this folder download nothing."""

from __future__ import annotations

import importlib.util
import urllib.error
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def no_download(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Make every download fail as without a network, and let none find a file in a cache."""

    def fail(*args: Any, **kwargs: Any) -> None:
        raise urllib.error.URLError("no network in tests")

    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch_home"))
    monkeypatch.setattr("torch.hub.urlopen", fail)
    if importlib.util.find_spec("huggingface_hub"):  # not in the dev extra
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
