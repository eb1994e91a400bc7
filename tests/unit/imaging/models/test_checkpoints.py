"""Weights are found in any usual nesting, loaded, and reported where they do not fit the model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torchvision.models
from checkpoint_states import OWN, network, prefixed, saved, state
from safetensors.torch import save_file
from torch import nn

from fmapboard.errors import CheckpointError
from fmapboard.imaging.models.checkpoints import LoadReport, find, load_checkpoint, read_state_dict

# -- unwrapping ----------------------------------------------------------------------------------


NESTINGS: dict[str, Callable[[], dict[str, Any]]] = {
    "plain": state,
    "state_dict": lambda: {"epoch": 3, "state_dict": state(), "best": 0.9},
    "model_state_dict": lambda: {"model_state_dict": state(), "loss": torch.ones(())},
    "model": lambda: {"model": state(), "optimizer": {"state": {0: {"step": torch.ones(())}}}},
    "net": lambda: {"net": state()},
    "ema": lambda: {"ema": state()},
    "ema in ema": lambda: {"ema": {"decay": 0.9, "module": state()}},
    "state_dict_ema": lambda: {"state_dict_ema": state()},
    "DataParallel": lambda: prefixed("module."),
    "compiled": lambda: prefixed("_orig_mod."),
    "compiled and parallel": lambda: {"state_dict": prefixed("_orig_mod.module.")},
    "parallel and compiled": lambda: {"model": prefixed("module._orig_mod.")},
    "Lightning": lambda: {"state_dict": {**prefixed("model."), "loss.weight": torch.ones(3)}},
    "Lightning's net": lambda: {"state_dict": prefixed("net."), "hyper_parameters": {"lr": 0.1}},
    "Lightning, compiled, parallel": lambda: {"state_dict": prefixed("module.model._orig_mod.")},
    "Lightning, compiled inside": lambda: {
        f"model.{name.replace('.', '._orig_mod.')}": tensor for name, tensor in state().items()
    },
    "an unusual name": lambda: {"teacher": prefixed("backbone.")},
    "compiled inside": lambda: {
        name.replace("0.", "0._orig_mod.").replace("1.", "1.module."): tensor
        for name, tensor in state().items()
    },
}


@pytest.mark.parametrize("nesting", NESTINGS)
def test_the_usual_nestings_are_unwrapped(tmp_path: Path, nesting: str) -> None:
    model = network()
    report = load_checkpoint(model, saved(NESTINGS[nesting](), tmp_path / "a.pt"))
    assert report.matched == 7
    assert report.missing == ()
    assert all(
        (tensor == torch.full_like(tensor, 0.5)).all() for tensor in model.state_dict().values()
    )


def test_a_name_that_matches_several_layers_is_loaded_into_none() -> None:
    expected = {"a.weight", "b.weight"}
    assert list(find({"weight": torch.ones(1)}, expected).tensors) == ["weight"]


def test_tensors_next_to_the_model_are_reported_as_unexpected(tmp_path: Path) -> None:
    path = saved(NESTINGS["Lightning"](), tmp_path / "a.ckpt")
    report = load_checkpoint(network(), path)
    assert report == LoadReport((), ("loss.weight",), 7, place="state_dict.model")


def test_the_nesting_that_fits_best_is_taken(tmp_path: Path) -> None:
    generator = {"x.weight": torch.ones(1), "0.weight": torch.ones(4, 3, 3, 3)}
    found = find({"model": generator, "discriminator": state()}, OWN)
    assert found.tensors.keys() == set(OWN)


def test_plain_weights_are_preferred_over_averaged_ones_that_fit_equally_well() -> None:
    found = find({"ema": state(2), "epoch": 1, "state_dict": state(1)}, OWN)
    assert found.tensors["0.bias"].tolist() == [1, 1, 1, 1]


def test_a_layer_that_is_called_module_keeps_its_name() -> None:
    names = {"module.weight": torch.ones(1), "other.weight": torch.ones(2)}
    assert find(names, names.keys()).tensors == names


def test_a_layer_that_is_called_module_keeps_its_name_after_a_prefix() -> None:
    found = find({"model.module.weight": torch.ones(1)}, {"module.weight"})
    assert list(found.tensors) == ["module.weight"]


def test_of_two_tensors_with_one_name_the_one_with_the_prefix_is_taken() -> None:
    names = {"model.a": torch.ones(1), "model.b": torch.ones(1), "a": torch.zeros(1)}
    assert find(names, {"a", "b"}).tensors["a"].tolist() == [1]


def test_nothing_is_found_in_a_checkpoint_without_tensors() -> None:
    assert find({"epoch": 3, "args": {"lr": 0.1}}, OWN).tensors == {}


def test_without_expected_names_the_largest_reading_is_taken(tmp_path: Path) -> None:
    path = saved({"mean": torch.ones(3), "state_dict": state()}, tmp_path / "a.pt")
    assert read_state_dict(path, (), key=None).tensors.keys() == set(OWN)


def test_the_version_of_a_layers_format_survives_a_prefix(tmp_path: Path) -> None:
    # MNASNet refuses weights whose version it does not learn.
    model = torchvision.models.mnasnet0_5(weights=None)
    path = saved(nn.DataParallel(model).state_dict(), tmp_path / "a.pt")
    assert load_checkpoint(torchvision.models.mnasnet0_5(weights=None), path).missing == ()


def test_a_version_that_the_file_does_not_state_is_taken_as_current(tmp_path: Path) -> None:
    model = torchvision.models.mnasnet0_5(weights=None)
    path = tmp_path / "a.safetensors"
    save_file(model.state_dict(), path)
    assert load_checkpoint(torchvision.models.mnasnet0_5(weights=None), path).missing == ()


# -- fitting -------------------------------------------------------------------------------------


def test_missing_and_unexpected_names_are_reported(tmp_path: Path) -> None:
    partial = state()
    del partial["1.weight"], partial["1.bias"]
    path = saved({**partial, "head.weight": torch.ones(2)}, tmp_path / "a.pt")
    report = load_checkpoint(network(), path)
    assert report == LoadReport(("1.weight", "1.bias"), ("head.weight",), 5)
    assert str(report) == (
        "5 of 7 tensors loaded; 2 missing: 1.weight, 1.bias; 1 unexpected: head.weight"
    )


def test_a_long_report_is_shortened() -> None:
    report = LoadReport(("a", "b", "c", "d", "e"), (), 2)
    assert str(report) == "2 of 7 tensors loaded; 5 missing: a, b, c and 2 more"


def test_a_file_of_another_model_is_refused(tmp_path: Path) -> None:
    path = saved({"fc.kernel": torch.ones(1)}, tmp_path / "a.pt")
    text = (
        r"a\.pt' does not fit: none of its 1 names \(fc\.kernel\) is among the model's 7 "
        r"\(0\.weight, 0\.bias and 5 more\); give the network that the file was saved from as --mod"
    )
    with pytest.raises(CheckpointError, match=text):
        load_checkpoint(network(), path)


def test_other_shapes_are_refused(tmp_path: Path) -> None:
    other = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4))
    text = (
        r"a\.pt' does not fit: .*mismatch for 0\.weight.*\[4, 1, 3, 3\].*\[4, 3, 3, 3\].*; if the "
        r"model was built with another number of classes: --model-arg num_classes=N"
    )
    with pytest.raises(CheckpointError, match=text) as caught:
        load_checkpoint(network(), saved(other.state_dict(), tmp_path / "a.pt"))
    assert "\n" not in str(caught.value)


def test_lazy_layers_take_the_shapes_of_the_file(tmp_path: Path) -> None:
    model = nn.Sequential(nn.LazyConv2d(4, 3))
    weights = nn.Sequential(nn.Conv2d(5, 4, 3)).state_dict()
    report = load_checkpoint(model, saved(weights, tmp_path / "a.pt"))
    assert report.matched == 2
    assert tuple(model[0].weight.shape) == (4, 5, 3, 3)


def test_the_error_of_a_model_that_refuses_its_weights_is_one_line(tmp_path: Path) -> None:
    class Refusing(nn.Linear):
        def _load_from_state_dict(self, *args: Any) -> None:
            raise ValueError("version should be\n1 or 2")

    path = saved(Refusing(1, 1).state_dict(), tmp_path / "a.pt")
    with pytest.raises(CheckpointError, match=r"fit: ValueError: version should be 1 or 2;"):
        load_checkpoint(Refusing(1, 1), path)


def test_half_precision_weights_are_converted_to_the_models_dtype(tmp_path: Path) -> None:
    halves = {name: tensor.half() for name, tensor in state().items()}
    model = network()
    load_checkpoint(model, saved(halves, tmp_path / "a.pt"))
    assert model[0].weight.dtype == torch.float32
    assert model[0].bias.tolist() == [0.5, 0.5, 0.5, 0.5]


def test_a_real_network_is_restored_from_a_file(tmp_path: Path) -> None:
    first, second = (torchvision.models.squeezenet1_1(weights=None) for _ in range(2))
    report = load_checkpoint(second, saved(first.state_dict(), tmp_path / "a.pth"))
    assert str(report) == "52 of 52 tensors loaded"
    own = first.state_dict()
    assert all(torch.equal(own[name], now) for name, now in second.state_dict().items())
