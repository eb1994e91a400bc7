"""The command, the tab, the report, the Text dashboard and the log say the same of a run."""

from __future__ import annotations

import base64
import gzip
import json
import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from checked_runs import check, found, network, why
from run_reader import read
from tab_client import open_tab
from tensorboard.util import tensor_util
from torch import nn

import fmapboard
from fmapboard.formats.tags import SUMMARY_FILE
from fmapboard.report.write import write_report

STEPS = 40
KEPT = 10
"""Steps that TensorBoard keeps if it is started without options."""


def noise() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for _ in range(STEPS):
        yield torch.randn(8, 3, 16, 16), torch.randint(0, 10, (8,))


def unscaled() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Images from 0 to 255."""
    for images, classes in noise():
        yield images.sigmoid() * 255, classes


def constant() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for images, classes in noise():
        yield images[:, :, :1, :1].expand_as(images).clone(), classes


def normalized() -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))


def leaky() -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, 8, 3), nn.LeakyReLU(), nn.Conv2d(8, 8, 3), nn.GELU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))


def spoil(model: nn.Module) -> None:
    model.get_parameter("4.weight")[0, 0, 0, 0] = float("nan")


def kill(model: nn.Module) -> None:
    model.get_parameter("0.bias").fill_(-100.0)


@dataclass(frozen=True)
class Case:
    """A training, and the kinds of its findings at its end."""

    kinds: set[str]
    make: Callable[[], nn.Module] = network
    batches: Callable[[], Iterator[tuple[torch.Tensor, torch.Tensor]]] = noise
    rate: float = 0.01
    leaves_out: str = ""
    fault: Callable[[nn.Module], None] = kill
    fault_at: int = -1

    def train(self, run: Path) -> None:
        torch.manual_seed(0)
        model = self.make()
        held = [p for name, p in model.named_parameters() if name != self.leaves_out]
        optimizer = torch.optim.SGD(held, lr=self.rate)
        with fmapboard.watch(model, run, optimizer=optimizer, every=1):
            for step, (images, classes) in enumerate(self.batches()):
                if step == self.fault_at:
                    with torch.no_grad():
                        self.fault(model)
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(images), classes).backward()
                optimizer.step()


CASES = {
    "healthy": Case(set()),
    "healthy_batchnorm": Case(set(), normalized, rate=0.05),
    "healthy_leaky": Case(set(), leaky),
    "unscaled": Case({"images_not_scaled"}, batches=unscaled, rate=1e-4),
    "steep": Case({"dead"}, rate=20.0),
    "rate_0": Case({"zero_rate"}, rate=0.0),
    "constant": Case({"constant_images"}, batches=constant),
    "left_out": Case({"not_in_optimizer"}, leaves_out="4.weight"),
    "nan": Case({"nonfinite"}, fault=spoil, fault_at=35),
    "dies": Case({"dead"}, fault_at=9),
}
OFTEN = {"healthy", "rate_0", "left_out", "nan", "dies"}
"""What CI trains: no finding, findings of the first step, and of a later one."""


def of_report(run: Path, page: Path) -> list[dict[str, Any]]:
    """The findings that a report embeds."""
    write_report([run], page)
    stored = re.findall(r'<script type="text/plain" id="(.).*?">(.*?)</script>', page.read_text())
    blobs = [(kind, base64.b64decode(text)) for kind, text in stored]
    plain = [gzip.decompress(blob) if kind == "z" else blob for kind, blob in blobs]
    (answer,) = (json.loads(blob) for blob in plain if b'"findings":' in blob[:400])
    listed: list[dict[str, Any]] = answer["findings"]
    return listed


def of_texts(run: Path) -> list[str]:
    """The newest text of the checks, one line per finding."""
    accumulator = read(run)
    if "fmapboard/checks" not in accumulator.Tags()["tensors"]:
        return []
    newest = accumulator.Tensors("fmapboard/checks")[-1]
    lines = tensor_util.make_ndarray(newest.tensor_proto)[()].decode().splitlines()
    return [] if lines == ["Nothing is found any more."] else lines


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in OFTEN else pytest.mark.sweep) for n in CASES]
)
def test_every_place_says_the_same_findings_in_the_same_words(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "fmapboard")
    CASES[name].train(tmp_path / name)
    said = found(capsys, tmp_path / name)
    if not said:
        _, text, _ = check(capsys, tmp_path / name)
        assert "  not known: nothing found in" in text
        assert f" × {STEPS} steps" in text
    assert {one["kind"] for one in said} >= CASES[name].kinds
    assert bool(said) == bool(CASES[name].kinds)
    if CASES[name].fault_at >= 0:
        assert min(one["since_step"] for one in said) == CASES[name].fault_at
    assert of_texts(tmp_path / name) == [
        f"{'  ' * ('follows' in one)}- **{one['class']}: {one['kind']}**: {one['message']}"
        for one in said
    ]
    listed = open_tab(tmp_path, KEPT).ask("data/findings", run=name)["findings"]
    assert [(one["class"], one["kind"], one["value"]) for one in listed] == [
        (one["class"], one["kind"], one["value"]) for one in said
    ]
    for own, line in zip(said, listed, strict=True):
        words = f"{line['message']}. {line['explanation']}".rstrip(". ")
        words = words.replace("the finding above", own.get("follows", ""))  # pages name no check
        assert own["message"].startswith(words)
    reported = of_report(tmp_path / name, tmp_path / "page.html")
    assert reported == listed
    logged = {one.getMessage().split(": ")[2] for one in caplog.records if "step " in one.msg}
    assert {one["kind"] for one in said} <= logged
    assert "first non-finite values" not in caplog.text  # the same in other words


def two_faults(log_dir: Path) -> None:
    """Dropout of 95 %, a last layer 60 times too large, and one infinite pixel at step 20."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for inputs, outputs in ((3, 8), (8, 8), (8, 16), (16, 16)):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU()]
    head = nn.Linear(16, 10)
    with torch.no_grad():
        head.weight.mul_(60)
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.95), head]
    model = nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with fmapboard.watch(model, log_dir, optimizer=optimizer, every=1):
        for step in range(30):
            images, classes = torch.randn(8, 3, 16, 16), torch.randint(0, 10, (8,))
            if step == 20:
                images[3, 1, 5, 5] = float("inf")
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), classes).backward()
            optimizer.step()


def test_a_nan_is_named_first_everywhere_also_where_something_else_explains_the_loss(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    run = tmp_path / "both"
    two_faults(run)
    assert "StopIteration" not in caplog.text
    status, text, errors = check(capsys, run)
    assert (status, errors) == (1, "")
    assert text.splitlines()[1].startswith("  warning: nonfinite: ")
    listed = found(capsys, run)
    assert [one["kind"] for one in listed][:2] == ["nonfinite", "dropout_high"]
    assert (listed[0]["since_step"], listed[0].get("follows")) == (20, None)
    status, text, _ = why(capsys, run)
    assert (status, text.splitlines()[1][:17]) == (1, "cause: nonfinite:")
    answer = json.loads(why(capsys, "--json", run)[1])
    stored = json.loads((run / SUMMARY_FILE).read_text())
    assert stored == answer
    assert (answer["verdict"], answer["cause"]["kind"]) == ("fault", "nonfinite")
    shown = open_tab(tmp_path).ask("data/findings", run="both")
    assert [one["kind"] for one in shown["findings"]] == [one["kind"] for one in listed]
    assert (shown["line"]["state"], shown["line"]["since"]) == ("fault", 20)
    assert of_report(run, tmp_path / "page.html") == shown["findings"]
    assert of_texts(run)[0].startswith("- **warning: nonfinite**: ")
