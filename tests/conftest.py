"""What every test relies on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

# Helpers that hold asserts: their failures show values, as those of test modules do.
for _helper in Path(__file__).with_name("helpers").glob("*.py"):
    pytest.register_assert_rewrite(_helper.stem)


@pytest.fixture(autouse=True)
def _same_random_numbers() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _errors_of_ours_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests of what a user sees of an error take this away again."""
    monkeypatch.setenv("FMAPBOARD_ON_ERROR", "raise")


@pytest.fixture
def errors_are_only_logged(
    monkeypatch: pytest.MonkeyPatch, _errors_of_ours_are_raised: None
) -> None:
    monkeypatch.delenv("FMAPBOARD_ON_ERROR")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """In CI a test that skips fails, but for those that need a GPU."""
    outcome = yield
    report = outcome.get_result()
    if report.skipped and os.environ.get("CI") and not item.get_closest_marker("cuda"):
        if hasattr(report, "wasxfail"):
            return
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped in CI: {report.longrepr[-1]}"
