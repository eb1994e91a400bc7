"""Weights come out of any usual file, code in it never runs, and what does not fit is said."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torchvision.models
from safetensors.torch import save_file
from torch import Tensor, nn

from fmapboard.cli.models.checkpoints import LoadReport, load_checkpoint, read_state_dict, unwrap
from fmapboard.errors import CheckpointError, MissingExtra


def network() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))


OWN = (
    "0.weight",
    "0.bias",
    "1.weight",
    "1.bias",
    "1.running_mean",
    "1.running_var",
    "1.num_batches_tracked",
)


def state(value: float = 0.5) -> dict[str, Tensor]:
    return {name: torch.full_like(tensor, value) for name, tensor in network().state_dict().items()}


def prefixed(prefix: str) -> dict[str, Tensor]:
    return {prefix + name: tensor for name, tensor in state().items()}


def saved(content: Any, path: Path) -> Path:
    torch.save(content, path)
    return path


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


def test_what_lies_beside_the_model_is_unexpected(tmp_path: Path) -> None:
    path = saved(NESTINGS["Lightning"](), tmp_path / "a.ckpt")
    assert load_checkpoint(network(), path) == LoadReport((), ("loss.weight",), 7)


def test_the_nesting_that_fits_best_is_taken(tmp_path: Path) -> None:
    generator = {"x.weight": torch.ones(1), "0.weight": torch.ones(4, 3, 3, 3)}
    found = unwrap({"model": generator, "discriminator": state()}, OWN)
    assert found.keys() == set(OWN)


def test_of_equal_nestings_the_plain_weights_come_before_the_averaged() -> None:
    found = unwrap({"ema": state(2), "epoch": 1, "state_dict": state(1)}, OWN)
    assert found["0.bias"].tolist() == [1, 1, 1, 1]


def test_a_layer_that_is_called_module_keeps_its_name() -> None:
    names = {"module.weight": torch.ones(1), "other.weight": torch.ones(2)}
    assert unwrap(names, names.keys()) == names


def test_a_layer_that_is_called_module_keeps_its_name_behind_a_prefix() -> None:
    found = unwrap({"model.module.weight": torch.ones(1)}, {"module.weight"})
    assert list(found) == ["module.weight"]


def test_of_two_namesakes_the_one_with_the_prefix_is_taken() -> None:
    names = {"model.a": torch.ones(1), "model.b": torch.ones(1), "a": torch.zeros(1)}
    assert unwrap(names, {"a", "b"})["a"].tolist() == [1]


def test_nothing_in_a_checkpoint_without_tensors() -> None:
    assert unwrap({"epoch": 3, "args": {"lr": 0.1}}, OWN) == {}


def test_without_expected_names_the_largest_reading_is_taken(tmp_path: Path) -> None:
    path = saved({"mean": torch.ones(3), "state_dict": state()}, tmp_path / "a.pt")
    assert read_state_dict(path).keys() == set(OWN)


def test_the_version_of_a_layers_format_survives_a_prefix(tmp_path: Path) -> None:
    # MNASNet refuses weights whose version it does not learn.
    model = torchvision.models.mnasnet0_5(weights=None)
    path = saved(nn.DataParallel(model).state_dict(), tmp_path / "a.pt")
    assert load_checkpoint(torchvision.models.mnasnet0_5(weights=None), path).missing == ()


def test_a_version_that_the_file_does_not_tell_is_taken_as_new(tmp_path: Path) -> None:
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


def test_a_report_that_is_long_is_cut() -> None:
    report = LoadReport(("a", "b", "c", "d", "e"), (), 2)
    assert str(report) == "2 of 7 tensors loaded; 5 missing: a, b, c and 2 more"


def test_a_file_of_another_model_is_refused(tmp_path: Path) -> None:
    path = saved({"fc.kernel": torch.ones(1)}, tmp_path / "a.pt")
    text = (
        r"a\.pt' does not fit: none of its 1 names \(fc\.kernel\) is one of the model's 7 "
        r"\(0\.weight, 0\.bias and 5 more\)"
    )
    with pytest.raises(CheckpointError, match=text):
        load_checkpoint(network(), path)


def test_other_shapes_are_refused_and_the_model_stays_as_it_was(tmp_path: Path) -> None:
    other = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4))
    model = network()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    text = r"a\.pt' does not fit: 0\.weight is 4x1x3x3 in the file and 4x3x3x3 in the model$"
    with pytest.raises(CheckpointError, match=text):
        load_checkpoint(model, saved(other.state_dict(), tmp_path / "a.pt"))
    assert all(torch.equal(before[name], now) for name, now in model.state_dict().items())


def test_a_scalar_of_another_shape_is_refused(tmp_path: Path) -> None:
    other = {**state(), "1.num_batches_tracked": torch.ones(2)}
    with pytest.raises(CheckpointError, match="is 2 in the file and a single number in the model"):
        load_checkpoint(network(), saved(other, tmp_path / "a.pt"))


def test_lazy_layers_take_the_shapes_of_the_file(tmp_path: Path) -> None:
    model = nn.Sequential(nn.LazyConv2d(4, 3))
    weights = nn.Sequential(nn.Conv2d(5, 4, 3)).state_dict()
    report = load_checkpoint(model, saved(weights, tmp_path / "a.pt"))
    assert report.matched == 2
    assert tuple(model[0].weight.shape) == (4, 5, 3, 3)


def test_a_model_that_refuses_its_weights_makes_one_line(tmp_path: Path) -> None:
    class Refusing(nn.Linear):
        def _load_from_state_dict(self, *args: Any) -> None:
            raise ValueError("version should be\n1 or 2")

    path = saved(Refusing(1, 1).state_dict(), tmp_path / "a.pt")
    with pytest.raises(CheckpointError, match=r"fit: ValueError: version should be 1 or 2$"):
        load_checkpoint(Refusing(1, 1), path)


def test_half_precision_is_loaded_into_the_models_own(tmp_path: Path) -> None:
    halves = {name: tensor.half() for name, tensor in state().items()}
    model = network()
    load_checkpoint(model, saved(halves, tmp_path / "a.pt"))
    assert model[0].weight.dtype == torch.float32
    assert model[0].bias.tolist() == [0.5, 0.5, 0.5, 0.5]


def test_a_real_network_goes_through_a_file(tmp_path: Path) -> None:
    first, second = (torchvision.models.squeezenet1_1(weights=None) for _ in range(2))
    report = load_checkpoint(second, saved(first.state_dict(), tmp_path / "a.pth"))
    assert str(report) == "52 of 52 tensors loaded"
    own = first.state_dict()
    assert all(torch.equal(own[name], now) for name, now in second.state_dict().items())


def test_safetensors_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_file(state(), path)
    assert str(load_checkpoint(network(), path)) == "7 of 7 tensors loaded"


def test_without_safetensors_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.safetensors"
    save_file(state(), path)
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    with pytest.raises(MissingExtra, match=r"pip install 'fmapboard\[safetensors\]'"):
        read_state_dict(path)


@pytest.mark.parametrize("zipped", [True, False])
def test_both_formats_of_torch_are_read(tmp_path: Path, zipped: bool) -> None:
    path = tmp_path / "a.pt"
    torch.save(state(), path, _use_new_zipfile_serialization=zipped)
    assert read_state_dict(path)["0.bias"].tolist() == [0.5, 0.5, 0.5, 0.5]


# -- files that are refused ----------------------------------------------------------------------


class Exploit:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("zipped", [True, False])
def test_code_in_a_checkpoint_does_not_run(tmp_path: Path, zipped: bool) -> None:
    path = tmp_path / "evil.pt"
    content = {"state_dict": state(), "extra": Exploit(tmp_path / "owned")}
    torch.save(content, path, _use_new_zipfile_serialization=zipped)
    with pytest.raises(CheckpointError) as caught:
        read_state_dict(path)
    assert not (tmp_path / "owned").exists()
    assert str(caught.value) == (
        f"'{path}' holds more than weights ({os.mkdir.__module__}.mkdir) and is not loaded, as "
        "that could run code; make a file that does not with torch.save(model.state_dict(), file)"
    )


def test_objects_in_a_checkpoint_are_named(tmp_path: Path) -> None:
    content = {"model": state(), "args": argparse.Namespace(lr=0.1)}
    with pytest.raises(CheckpointError, match=r"more than weights \(argparse\.Namespace\)"):
        read_state_dict(saved(content, tmp_path / "a.pt"))


def test_a_whole_model_is_not_loaded(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"more than weights \(torch\.nn\.modules"):
        read_state_dict(saved(network(), tmp_path / "a.pt"))


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("kept", [0.01, 0.1, 0.5, 0.9, 0.99])
def test_a_truncated_checkpoint_is_refused_in_one_line(
    tmp_path: Path, zipped: bool, kept: float
) -> None:
    path = tmp_path / "cut.pt"
    torch.save({"0.weight": torch.ones(64, 3, 7, 7)}, path, _use_new_zipfile_serialization=zipped)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * kept)])
    with pytest.raises(
        CheckpointError, match=r"cut\.pt' is not a checkpoint, or is truncated"
    ) as e:
        read_state_dict(path)
    assert "\n" not in str(e.value)
    assert len(str(e.value)) < 400


def test_truncated_safetensors_are_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "cut.safetensors"
    save_file(state(), path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(CheckpointError, match=r"cut\.safetensors' is not a checkpoint") as caught:
        read_state_dict(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"hello, I am a text", b"\x89PNG\r\n\x1a\n", bytes(range(256))]
)
def test_other_files_are_no_checkpoints(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.pt"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"a\.pt' is not a checkpoint") as caught:
        read_state_dict(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"hello, I am a text", b"\x80\x02\xff"])
def test_what_torch_says_of_no_pickle_is_left_out(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.pt").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"damaged \(not a file of torch\.save\)$"):
        read_state_dict(tmp_path / "a.pt")


def test_an_empty_file_is_said_to_be_empty(tmp_path: Path) -> None:
    (tmp_path / "a.pt").touch()
    with pytest.raises(CheckpointError, match=r"a\.pt' is empty: 0 bytes"):
        read_state_dict(tmp_path / "a.pt")


def test_a_missing_file_is_said_with_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "last.ckpt").touch()
    with pytest.raises(
        CheckpointError, match=r"no such checkpoint: .*lst\.ckpt'; closest: last\.ck"
    ):
        read_state_dict(tmp_path / "lst.ckpt")


def test_a_folder_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="is a folder, not a checkpoint file"):
        read_state_dict(tmp_path)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (torch.ones(3), "holds a Tensor, not a state dict"),
        ([torch.ones(3)], "holds a list, not a state dict"),
        ({"epoch": 3}, "holds no named tensors; its keys: epoch"),
        ({}, "holds no named tensors"),
    ],
)
def test_a_file_without_a_state_dict_is_refused(tmp_path: Path, content: Any, text: str) -> None:
    with pytest.raises(CheckpointError, match=text):
        read_state_dict(saved(content, tmp_path / "a.pt"))
