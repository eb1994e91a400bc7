"""When a model raises, the error names the layer and lists what ran before it, with shapes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from extracted_maps import random_images, untrained
from model_state import assert_unchanged, state_of
from module_hooks import hook_count
from torch import Tensor, nn

from fmapboard import ConfigurationError, ForwardError, extract, extract_batches, extract_gradients


class _Net(nn.Module):
    """A classifier with a wrong size between its convolutions and its last layer."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(inplace=True), nn.MaxPool2d(2))
        self.fc = nn.Linear(100, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(torch.flatten(self.features(x), 1))  # type: ignore[no-any-return]


def _gradients(model: nn.Module, x: Any) -> object:
    return extract_gradients(model, x, loss=Tensor.sum)


def _batches(model: nn.Module, x: Any) -> object:
    return list(extract_batches(model, [x]))


@pytest.mark.parametrize("run", [extract, _gradients, _batches])
def test_a_shape_mismatch_names_the_layer_and_lists_what_ran_before_it(run: Any) -> None:
    model, x = _Net(), random_images(10)
    before = state_of(model)
    with pytest.raises(ForwardError) as raised:
        run(model, x)
    assert str(raised.value).replace("addmm: ", "") == (  # torch 2.15 names the operation
        "fc (Linear) raised RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x128 and "
        "100x10) at test_call_trace.py:26 (return self.fc(torch.flatten(self.features(x), 1))"
        "  # type: ignore[no-any-return]); it received float32 [2, 128]\n"
        "ran before it:\n"
        "  features.0  8x3x3x3    float32 [2, 3, 10, 10]  →  float32 [2, 8, 8, 8]\n"
        "  features.1  ReLU       float32 [2, 8, 8, 8]    →  float32 [2, 8, 8, 8]\n"
        "  features.2  MaxPool2d  float32 [2, 8, 8, 8]    →  float32 [2, 8, 4, 4]"
    )
    assert raised.value.layer == "fc"
    assert isinstance(raised.value.__cause__, RuntimeError)
    assert hook_count(model) == 0
    assert_unchanged(before, state_of(model))


def test_an_error_in_functional_code_names_the_module_whose_forward_raised() -> None:
    model = untrained("resnet18")
    model.layer2[0].downsample = nn.Sequential(nn.Conv2d(64, 64, 1, stride=2))
    with pytest.raises(
        ForwardError, match=r"^layer2\.0 \(BasicBlock\) raised RuntimeError: The si"
    ):
        extract(model, random_images())
    with pytest.raises(ForwardError) as raised:
        extract(model, random_images(), "conv1")
    assert "(out += identity)" in raised.value.summary
    assert raised.value.summary.endswith("it received float32 [2, 64, 16, 16]")
    names = [line.split()[0] for line in raised.value.ran]
    assert names[:5] == ["conv1", "bn1", "relu", "maxpool", "layer1.0.conv1"]
    assert names[-2:] == ["layer2.0.bn2", "layer2.0.downsample.0"]
    assert "layer1" not in names  # only innermost layers


def test_an_exception_that_the_model_catches_is_not_the_one_that_is_named() -> None:
    class Tries(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Conv2d(1, 4, 1), nn.Conv2d(3, 4, 1)
            self.last = nn.Linear(5, 5)

        def forward(self, x: Tensor) -> Tensor:
            try:
                out = self.first(x)
            except RuntimeError:
                out = self.second(x)
            out = self.last(out) if self.training else out.view(7)
            return out

    for training, layer in ((True, "last"), (False, "Tries")):
        with pytest.raises(ForwardError) as raised:
            extract(Tries().train(training), random_images(4))
        assert raised.value.layer == layer
        assert [line.split()[0] for line in raised.value.ran] == ["second"]


def test_a_long_list_is_cut_in_the_message_and_whole_in_the_attribute() -> None:
    model = nn.Sequential(*[nn.Conv2d(3, 3, 1) for _ in range(70)], nn.Conv2d(1, 1, 1))
    with pytest.raises(ForwardError) as raised:
        extract(model, random_images(4))
    assert len(raised.value.ran) == 70
    lines = str(raised.value).splitlines()
    assert lines[2:4] == ["  (10 more)", f"  {raised.value.ran[10]}"]
    assert len(lines) == 63


def test_an_error_that_does_not_happen_again_is_reported_without_what_ran() -> None:
    class Once(nn.Conv2d):
        runs = 0

        def forward(self, x: Tensor) -> Tensor:
            type(self).runs += 1  # each pass has a copy of the model
            if self.runs == 1:
                raise ValueError("only once")
            return super().forward(x)

    with pytest.raises(ForwardError, match=r"^Once \(Once\) raised ValueError: only once at test"):
        extract(Once(3, 3, 1), random_images(4))


@pytest.mark.parametrize("error", [MemoryError(), ConfigurationError("ours")])
def test_a_lack_of_memory_and_errors_of_ours_pass_unchanged(error: Exception) -> None:
    runs = []

    class Raises(nn.Conv2d):
        def forward(self, x: Tensor) -> Tensor:
            runs.append(1)
            raise error

    with pytest.raises(type(error)) as raised:
        extract(Raises(3, 3, 1), random_images(4))
    assert raised.value is error
    assert runs == [1]
