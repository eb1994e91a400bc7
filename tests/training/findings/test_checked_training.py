"""Faults of a training loop are named from the recorded facts; intended cases stay silent."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from checked_runs import batches, check, found, network
from run_reader import read
from torch import nn

import fmapboard

FACTS = {
    "not_in_optimizer", "gradients_not_cleared", "eval_mode", "constant_images",
    "identical_images", "nonfinite", "unchanged_weights",
}  # fmt: skip
Sgd = torch.optim.SGD


class Training:
    """A loop of eight steps whose parts can be replaced."""

    def __init__(self, log_dir: Path) -> None:
        self.log_dir = log_dir
        self.model: nn.Module = network()
        self.optimizers = [Sgd(self.model.parameters(), lr=0.01)]
        self.images: Callable[[torch.Tensor], torch.Tensor] = lambda images: images
        self.clears = True
        self.before_step: Callable[[], None] = lambda: None
        self.after_step: Callable[[int], None] = lambda step: None
        self.forwards = 1
        self.options: dict[str, Any] = {}

    def run(self) -> None:
        watched = self.optimizers[-1]
        with fmapboard.watch(self.model, self.log_dir, optimizer=watched, every=1, **self.options):
            for step, (images, classes) in enumerate(batches(8)):
                if self.clears:
                    for optimizer in self.optimizers:
                        optimizer.zero_grad()
                for _ in range(self.forwards):
                    output = self.model(self.images(images))
                    nn.functional.cross_entropy(output, classes).backward()
                self.before_step()
                for optimizer in self.optimizers:
                    optimizer.step()
                self.after_step(step)


@pytest.fixture
def training(tmp_path: Path) -> Training:
    return Training(tmp_path)


@contextmanager
def only_fact(
    training: Training, capsys: pytest.CaptureFixture[str], kind: str
) -> Iterator[dict[str, Any]]:
    """Train, and expect exactly one fact."""
    training.run()
    facts = [one for one in found(capsys, training.log_dir) if one["class"] == "warning"]
    assert [one["kind"] for one in facts] == [kind]
    assert check(capsys, training.log_dir)[0] == 1
    yield facts[0]


def facts_of(training: Training, capsys: pytest.CaptureFixture[str]) -> set[str]:
    training.run()
    status, output, _ = check(capsys, training.log_dir)
    assert "fmapboard_findings" not in output, "the facts are recorded"
    kinds = {one["kind"] for one in found(capsys, training.log_dir)} & FACTS
    assert status == bool(kinds)
    return kinds


def test_a_replaced_head_is_in_no_optimizer(
    training: Training, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert isinstance(training.model, nn.Sequential)
    training.model[-1] = nn.Linear(16, 10)
    with only_fact(training, capsys, "not_in_optimizer") as fact:
        assert (fact["parameter"], fact["value"], fact["since_step"]) == ("10.weight", 2, 0)
    said = [one for one in caplog.records if "10.weight" in one.getMessage()]
    assert [one.levelno for one in said] == [logging.WARNING] * 2  # once, and in the verdict


def test_gradients_that_are_never_cleared(
    training: Training, capsys: pytest.CaptureFixture[str]
) -> None:
    training.clears = False
    with only_fact(training, capsys, "gradients_not_cleared") as fact:
        assert fact["since_step"] == 1


def test_a_model_in_eval_mode(training: Training, capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(training.model, nn.Sequential)
    training.model.insert(8, nn.Dropout(0.1))
    training.model.eval()
    with only_fact(training, capsys, "eval_mode") as fact:
        assert fact["since_step"] == 0


def test_constant_images(training: Training, capsys: pytest.CaptureFixture[str]) -> None:
    training.images = torch.zeros_like
    with only_fact(training, capsys, "constant_images") as fact:
        assert fact["value"] == 8


def test_identical_images(training: Training, capsys: pytest.CaptureFixture[str]) -> None:
    training.images = lambda images: images[:1].expand_as(images).clone()
    with only_fact(training, capsys, "identical_images") as fact:
        assert fact["value"] == 8


def test_weights_that_are_restored_after_each_step(
    training: Training, capsys: pytest.CaptureFixture[str]
) -> None:
    weight = training.model.get_parameter("2.weight")
    kept = weight.detach().clone()

    def restore(step: int) -> None:
        with torch.no_grad():
            weight.copy_(kept)

    training.after_step = restore
    hook = training.optimizers[0].register_step_post_hook(lambda *_: restore(0))
    with only_fact(training, capsys, "unchanged_weights") as fact:
        assert fact["parameter"] == "2.weight"
    hook.remove()


def test_silencing_in_watch(
    training: Training, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    training.images = torch.zeros_like
    training.options = {"checks": {"constant_images": False}}
    training.run()
    assert "constant_images" not in caplog.text
    assert "constant_images" not in [one["kind"] for one in found(capsys, training.log_dir)]


def test_without_checks_nothing_is_recorded(
    training: Training, capsys: pytest.CaptureFixture[str]
) -> None:
    training.clears = False
    training.options = {"checks": False}
    training.run()
    status, output, _ = check(capsys, training.log_dir)
    assert status == 0
    assert "not checked: all checks (switched off)" in output
    assert "fmapboard_findings" not in read(training.log_dir).Tags()["tensors"]


def frozen_backbone(training: Training) -> None:
    training.model.get_submodule("0").requires_grad_(False)
    training.optimizers = [Sgd((p for p in training.model.parameters() if p.requires_grad), lr=0.1)]


def two_optimizers(training: Training) -> None:
    parameters = list(training.model.parameters())
    training.optimizers = [Sgd(parameters[:4], lr=0.01), Sgd(parameters[4:], lr=0.01)]


def tiny_rate(training: Training) -> None:
    training.optimizers = [torch.optim.AdamW(training.model.parameters(), lr=1e-6)]


def tiny_rate_with_sgd(training: Training) -> None:
    training.optimizers = [Sgd(training.model.parameters(), lr=1e-5)]


def warm_up_from_zero(training: Training) -> None:
    (group,) = training.optimizers[0].param_groups
    group["lr"] = 0.0

    def warm_up(step: int) -> None:
        group["lr"] = 0.001 * max(0, step - 4)

    training.after_step = warm_up


def two_forwards(training: Training) -> None:
    training.forwards = 2


def frozen_batchnorm(training: Training) -> None:
    assert isinstance(training.model, nn.Sequential)
    norm = nn.BatchNorm2d(8)
    training.model.insert(1, norm)
    norm.eval()
    training.optimizers = [Sgd(training.model.parameters(), lr=0.01)]


def clearing_by_the_model(training: Training) -> None:
    training.clears = False
    training.after_step = lambda step: training.model.zero_grad()


@pytest.mark.parametrize(
    "change",
    [
        frozen_backbone, two_optimizers, tiny_rate, tiny_rate_with_sgd, warm_up_from_zero,
        two_forwards, frozen_batchnorm, clearing_by_the_model,
    ],
)  # fmt: skip
def test_intended_cases_are_no_fact(
    change: Callable[[Training], None], training: Training, capsys: pytest.CaptureFixture[str]
) -> None:
    change(training)
    assert facts_of(training, capsys) == set()


def test_the_halves_of_a_gan_are_no_fact(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    generator = nn.Sequential(nn.ConvTranspose2d(4, 8, 4, 2), nn.ReLU(), nn.Conv2d(8, 3, 3))
    critic = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 1, 3))
    both = Sgd(generator.parameters(), lr=0.01), Sgd(critic.parameters(), lr=0.01)
    with (
        fmapboard.watch(generator, tmp_path / "g", optimizer=both[0], every=1),
        fmapboard.watch(critic, tmp_path / "d", optimizer=both[1], every=1),
    ):
        for _ in range(8):
            fake = generator(torch.randn(4, 4, 7, 7))
            both[1].zero_grad()
            (critic(fake.detach()).mean() - critic(torch.randn(4, 3, 14, 14)).mean()).backward()
            both[1].step()
            both[0].zero_grad()
            (-critic(fake).mean()).backward()
            both[0].step()
    assert [one for one in found(capsys, tmp_path) if one["class"] == "warning"] == []
