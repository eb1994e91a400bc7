"""The cost of a logged step, counted: Python calls of ours, and hand-overs between packages.

Counts are of a step with SGD and momentum, marked by hand, the fifth with ``every=1``: by then
everything that is prepared once is there.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest
import torch
import torchvision
from torch import Tensor, nn

import fmapboard
from fmapboard.capture import passes

PACKAGE = str(Path(fmapboard.__file__).parent)


class Counting:
    """Calls of our functions while it is on, generators resumed included.

    Attributes:
        calls: file -> calls on the training thread.
        hand_overs: (is of the training thread, package, package) -> calls of the second package's
            functions whose nearest caller of ours is in the first. A package is a folder, or
            ``logger.py``; the other single files (``records.py``, ``errors.py``) are of all.
    """

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.hand_overs: Counter[tuple[bool, str, str]] = Counter()
        self.is_on = False
        self._training_thread = threading.get_ident()

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        file = frame.f_code.co_filename
        if self.is_on and event == "call" and file.startswith(PACKAGE):
            name = file[len(PACKAGE) + 1 :]
            is_training = threading.get_ident() == self._training_thread
            if is_training:
                self.calls[name] += 1
            package, caller = package_of(frame), frame.f_back
            while caller is not None and package_of(caller) is None:
                caller = caller.f_back
            before = None if caller is None else package_of(caller)
            if package is not None and before is not None and before != package:
                self.hand_overs[is_training, before, package] += 1

    def between_packages(self, *, training_thread: bool) -> int:
        """How many hand-overs there were on the training thread, or on others."""
        return sum(n for (is_of, *_), n in self.hand_overs.items() if is_of == training_thread)


def package_of(frame: FrameType) -> str | None:
    """The package of ours that a function is of; None for one of others, or of a single file."""
    file = frame.f_code.co_filename
    if not file.startswith(PACKAGE):
        return None
    parts = file[len(PACKAGE) + 1 :].split("/")
    return parts[0] if len(parts) > 1 or parts[0] == "logger.py" else None


def counted(model: nn.Module, images: Tensor, run: Path) -> Counting:
    """What the fifth logged step of a training costs."""
    optimizer = torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9)
    found = Counting()
    threading.setprofile(found)  # the worker starts with the first step
    board = fmapboard.watch(model, run, every=1)
    before = sys.getprofile()
    try:
        for number in range(5):
            if number == 4:
                found.is_on = True
                sys.setprofile(found)
            with board.step(number):
                model(images).square().mean().backward()
                optimizer.step()
                optimizer.zero_grad()
            sys.setprofile(before)
            board.flush()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
        found.is_on = False
        board.close()
    return found


def small() -> nn.Module:
    def block(channels: int) -> list[nn.Module]:
        return [nn.Conv2d(channels, 8, 3), nn.BatchNorm2d(8), nn.ReLU()]

    head = [nn.Conv2d(8, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)]
    return nn.Sequential(*block(3), *block(8), *head)


@pytest.fixture
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One thread, in a process in which no other test has compiled anything."""
    monkeypatch.setattr(passes, "is_compile_used", bool)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("_one_thread")
def test_a_logged_step_of_three_convolutions_takes_at_most_1000_calls(tmp_path: Path) -> None:
    found = counted(small(), torch.rand(4, 3, 24, 24), tmp_path)
    assert 100 < found.calls.total() <= 1000, found.calls


@pytest.mark.usefixtures("_one_thread")
def test_a_logged_step_of_a_resnet_18_takes_at_most_3600_calls(tmp_path: Path) -> None:
    found = counted(torchvision.models.resnet18(num_classes=10), torch.rand(4, 3, 64, 64), tmp_path)
    assert 100 < found.calls.total() <= 3600, found.calls


@pytest.mark.usefixtures("_one_thread")
def test_nothing_of_what_transformers_need_runs_in_a_step_of_a_network_without_blocks(
    tmp_path: Path,
) -> None:
    found = counted(small(), torch.rand(4, 3, 24, 24), tmp_path)
    of_transformers = ("attention", "texts", "head_rows", "seen_keys", "experts")
    of_transformers += ("kept_tokens", "token_grids")
    assert "capture/collector.py" in found.calls
    assert [name for name in found.calls if Path(name).stem in of_transformers] == []


@pytest.mark.usefixtures("_one_thread")
def test_a_logged_step_is_handed_from_package_to_package_at_most_230_times_per_thread(
    tmp_path: Path,
) -> None:
    found = counted(small(), torch.rand(4, 3, 24, 24), tmp_path)
    assert 100 < found.between_packages(training_thread=True) <= 230, found.hand_overs
    assert 100 < found.between_packages(training_thread=False) <= 230, found.hand_overs
