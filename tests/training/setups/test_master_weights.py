"""An optimizer may hold float32 copies of a model in half precision: one per parameter, or flat."""

from __future__ import annotations

import pytest
import torch
from recorded_facts import training_facts
from torch import Tensor, nn
from torch.nn import functional as F

import fmapboard
from fmapboard.gradients.optimizers import holds_copies
from fmapboard.writers.folder import MemoryWriter


class InFloat32(nn.BatchNorm2d):
    """Computes in float32, as apex O2 does."""

    def forward(self, maps: Tensor) -> Tensor:
        return super().forward(maps.to(self.weight.dtype)).to(maps.dtype)


def network(dtype: torch.dtype) -> nn.Sequential:
    torch.manual_seed(0)
    convolution, norm = nn.Conv2d(3, 8, 3), InFloat32(8)
    return nn.Sequential(convolution, norm, nn.Flatten(), nn.Linear(8 * 36, 5)).to(dtype)


class MasterWeights:
    """Copies of a model's parameters in float32, as mixed-precision trainers keep them."""

    def __init__(self, parameters: list[nn.Parameter], *, is_flat: bool) -> None:
        self.parameters, self._is_flat = parameters, is_flat
        copies = [p.detach().float() for p in parameters]
        if is_flat:
            copies = [torch.cat([copy.flatten() for copy in copies])]
        self.copies = [copy.clone().requires_grad_() for copy in copies]

    def take_gradients(self) -> None:
        gradients = [p.grad.float() for p in self.parameters if p.grad is not None]
        if self._is_flat:
            gradients = [torch.cat([gradient.flatten() for gradient in gradients])]
        for copy, gradient in zip(self.copies, gradients, strict=True):
            copy.grad = gradient

    @torch.no_grad()
    def write_back(self) -> None:
        parts: list[Tensor] = self.copies
        if self._is_flat:
            parts = list(self.copies[0].split([p.numel() for p in self.parameters]))
        for parameter, part in zip(self.parameters, parts, strict=True):
            parameter.copy_(part.view_as(parameter))
            parameter.grad = None


@pytest.mark.each_once
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("is_flat", [False, True], ids=["a copy each", "flat"])
@pytest.mark.parametrize("holds_norms", [False, True], ids=["all copied", "norms in float32"])
def test_an_optimizer_with_master_weights_is_not_called_another_one(
    dtype: torch.dtype, is_flat: bool, holds_norms: bool, caplog: pytest.LogCaptureFixture
) -> None:
    model = network(dtype)
    own = list(model[1].float().parameters()) if holds_norms else []
    masters = MasterWeights(
        [p for p in model.parameters() if all(p is not one for one in own)], is_flat=is_flat
    )
    optimizer, kept = torch.optim.SGD([*masters.copies, *own], lr=0.05), MemoryWriter()
    assert holds_copies(optimizer, dict(model.named_parameters()))
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1):
        for step in range(3):
            images = torch.randn(16, 3, 8, 8, generator=torch.Generator().manual_seed(step))
            output = model(images.to(dtype))
            F.cross_entropy(output.float(), torch.arange(16) % 5).backward()
            masters.take_gradients()
            optimizer.step()
            masters.write_back()
    assert not any("holds none of them" in text for text in caplog.messages)
    for facts in training_facts(kept.steps).values():
        assert not facts.not_in_optimizer
    if not holds_norms:
        (text,) = [text for text in caplog.messages if "gradient norms" in text]
        assert "float32 copies of the model's parameters (master weights)" in text
        logged = {tag.split("/")[0] for step in kept.steps for tag in step.scalars}
        missing = {"gradient_norm": "gradient norms", "update_ratio": "update ratios"}
        missing["learning_rate"] = "learning rates"
        assert all(words in text for words in missing.values())
        assert not logged & missing.keys()


def test_in_marked_steps_the_gradient_norms_of_the_model_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = network(torch.bfloat16)
    masters, kept = MasterWeights(list(model.parameters()), is_flat=True), MemoryWriter()
    optimizer = torch.optim.SGD(masters.copies, lr=0.05)
    with fmapboard.watch(model, writer=kept, every=1) as board, board.step(0):
        output = model(torch.randn(16, 3, 8, 8).bfloat16())
        F.cross_entropy(output.float(), torch.arange(16) % 5).backward()
        norm = float(model[0].weight.grad.double().norm())  # type: ignore[union-attr, operator]
        masters.take_gradients()
        optimizer.step()
        masters.write_back()
    assert kept.steps[0].scalars["gradient_norm/0.weight"] == pytest.approx(norm, rel=1e-2)
    assert caplog.messages == []


def test_an_optimizer_of_other_float32_parameters_holds_no_copies() -> None:
    model = network(torch.bfloat16)
    other = torch.optim.SGD(nn.Linear(3, 3).parameters(), lr=0.1)
    assert not holds_copies(other, dict(model.named_parameters()))
    of_float32 = dict(network(torch.float32).named_parameters())
    masters = MasterWeights(list(model.parameters()), is_flat=True)
    assert not holds_copies(torch.optim.SGD(masters.copies, lr=0.1), of_float32)
