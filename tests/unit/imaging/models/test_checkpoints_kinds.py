"""Checkpoints as training programs write them: with settings, averaged weights and wrappers."""

from __future__ import annotations

import argparse
import collections
import dataclasses
import datetime
import enum
import pathlib
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from checkpoint_states import network, saved, state
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from fmapboard.errors import CheckpointError, ConfigurationError
from fmapboard.imaging.models.checkpoints import load_checkpoint
from fmapboard.imaging.models.load import load_model
from fmapboard.imaging.models.request import ModelRequest
from fmapboard.imaging.models.weight_files import read_file

# -- settings next to the weights ----------------------------------------------------------------


def bias(model: nn.Module) -> float:
    value: Tensor = model.state_dict()["0.bias"][0]
    return value.item()


def filled(value: float) -> nn.Sequential:
    model = network()
    model.load_state_dict(state(value))
    return model


@pytest.fixture
def of_timm(tmp_path: Path) -> Path:
    """What timm's train.py saves with --model-ema: weights of 0.25, averages of 0.75."""
    pytest.importorskip("timm.utils")  # takes a second
    import timm.utils

    model, args = filled(0.25), argparse.Namespace(model="net", lr=0.1, data_dir=Path("/data"))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    average = timm.utils.ModelEmaV3(filled(0.75))
    folder = str(tmp_path)
    saver = timm.utils.CheckpointSaver(
        model, optimizer, args, average, checkpoint_dir=folder, recovery_dir=folder
    )
    saver.save_checkpoint(3, metric=np.float64(77.5))
    return tmp_path / "last.pth.tar"


def test_timms_own_checkpoint_is_loaded_and_its_averaged_weights_are_named(of_timm: Path) -> None:
    model = network()
    report = load_checkpoint(model, of_timm)
    assert str(report) == (
        "7 of 7 tensors loaded from 'state_dict'; "
        "to load other weights: --checkpoint-key state_dict_ema"
    )
    assert bias(model) == 0.25


def test_averaged_weights_are_loaded_by_their_name(of_timm: Path) -> None:
    model = network()
    assert str(load_checkpoint(model, of_timm, key="state_dict_ema")) == "7 of 7 tensors loaded"
    assert bias(model) == 0.75


def test_a_name_that_the_file_lacks_is_refused_with_a_list_of_its_names(of_timm: Path) -> None:
    text = r"has no 'ema'; closest: .*state_dict_ema.*; it holds state_dict, state_dict_ema, "
    with pytest.raises(CheckpointError, match=text):
        load_checkpoint(network(), of_timm, key="ema")


def test_a_key_without_a_file_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="give --checkpoint FILE"):
        load_model(ModelRequest("resnet18", weights="none", checkpoint_key="ema"))


def test_a_checkpoint_of_torchvisions_references_is_loaded(tmp_path: Path) -> None:
    model = filled(0.25)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    content = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "lr_scheduler": torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5).state_dict(),
        "epoch": 1,
        "args": argparse.Namespace(data_path="/data", weights=None),
        "model_ema": AveragedModel(filled(0.75)).state_dict(),
    }
    path = tmp_path / "checkpoint.pth"
    torch.save(content, path)
    model = network()
    assert load_checkpoint(model, path).others == ("model_ema",)
    assert bias(model) == 0.25
    load_checkpoint(model, path, key="model_ema")
    assert bias(model) == 0.75


def test_averaged_weights_under_a_prefix_are_chosen_by_it(tmp_path: Path) -> None:
    both = {f"online_model.{n}": t for n, t in state(1).items()}
    both |= {f"ema_model.{n}": t for n, t in state(2).items()}
    path, model = saved({"step": 3, "ema": both}, tmp_path / "a.pt"), network()
    assert load_checkpoint(model, path).others == ("ema.ema_model",)
    assert bias(model) == 1
    load_checkpoint(model, path, key="ema.ema_model")
    assert bias(model) == 2


@dataclasses.dataclass
class Settings:
    width: int = 3


class Colour(enum.Enum):
    RED = 1


class Attributes(dict[str, Any]):
    """A dictionary subclass, as configuration libraries have them."""


class Named(list[Any]):
    pass


HOLDERS: dict[str, Any] = {
    "Namespace": argparse.Namespace(lr=0.1, betas=(1, 2)),
    "SimpleNamespace": types.SimpleNamespace(lr=0.1),
    "a dataclass": Settings(),
    "a dictionary's subclass": Attributes(lr=0.1),
    "a list's subclass": Named([1, 2]),
    "a class": Settings,
    "a member of an enum": Colour.RED,
    "a path": pathlib.PurePosixPath("/data"),
    "a date": datetime.datetime(2024, 1, 2),
    "defaultdict": collections.defaultdict(list, a=[1]),
    "deque": collections.deque([1]),
    "an array": np.arange(3),
    "numpy's number": np.float32(3),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_plain_containers_next_to_the_weights_do_no_harm(tmp_path: Path, holder: str) -> None:
    content = {"args": HOLDERS[holder], "model": state(), "more": [HOLDERS[holder]]}
    path = saved(content, tmp_path / "a.pt")
    assert load_checkpoint(network(), path).matched == 7


class Setter:
    """Ends the test if its class is used."""

    def __setstate__(self, given: Any) -> None:
        raise SystemExit("the class of the file was used")


def test_no_method_of_a_class_in_the_file_runs(tmp_path: Path) -> None:
    holder = Setter()
    holder.__dict__["value"] = 1
    path = saved({"args": holder, "model": state()}, tmp_path / "a.pt")
    assert load_checkpoint(network(), path).matched == 7
    assert type(read_file(path)["args"]) is not Setter


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Lightning's, of a run this small
def test_a_checkpoint_of_lightnings_trainer_is_loaded(tmp_path: Path) -> None:
    import lightning  # takes seconds, and only this test needs it
    from lightning.pytorch import callbacks

    class Lit(lightning.LightningModule):
        def __init__(self, settings: Settings, loss: nn.Module, folder: Path) -> None:
            super().__init__()
            self.save_hyperparameters()
            self.model = network()

        def training_step(self, batch: Tensor, _: int) -> Tensor:
            loss: Tensor = self.model(batch).square().mean()
            return loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), 0.1)

    # Averages of the weights are new in lightning 2.6.
    averaging = [callbacks.EMAWeightAveraging()] if hasattr(callbacks, "EMAWeightAveraging") else []
    trainer = lightning.Trainer(
        max_steps=2, accelerator="cpu", logger=False, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=tmp_path, callbacks=averaging,
    )  # fmt: skip
    trained = Lit(Settings(), nn.CrossEntropyLoss(), tmp_path)
    trainer.fit(trained, torch.utils.data.DataLoader([torch.rand(3, 8, 8)] * 4))  # type: ignore[arg-type]  # a list will do
    trainer.save_checkpoint(tmp_path / "last.ckpt")
    model = network()
    report = load_checkpoint(model, tmp_path / "last.ckpt")
    assert report.others == ("current_model_state.model",) * hasattr(
        callbacks, "EMAWeightAveraging"
    )
    own = torch.load(tmp_path / "last.ckpt", weights_only=False)["state_dict"]
    assert torch.equal(model.state_dict()["0.weight"], own["model.0.weight"])


# -- wrappers ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_compiled_and_parallel_models_state_dicts_are_loaded(tmp_path: Path) -> None:
    compiled = torch.compile(filled(2))
    parallel = [nn.DataParallel(model) for model in (filled(2), compiled)]
    for number, wrapped in enumerate((compiled, *parallel)):
        model = network()
        path = saved(wrapped.state_dict(), tmp_path / f"{number}.pt")
        assert str(load_checkpoint(model, path)) == "7 of 7 tensors loaded"
        assert bias(model) == 2


@pytest.mark.parametrize("wrapper", ["_fsdp_wrapped_module", "_checkpoint_wrapped_module"])
def test_the_names_of_other_wrappers_are_removed(tmp_path: Path, wrapper: str) -> None:
    wrapped = {name.replace(".", f".{wrapper}."): tensor for name, tensor in state().items()}
    assert load_checkpoint(network(), saved(wrapped, tmp_path / "a.pt")).matched == 7


# -- bad numbers ---------------------------------------------------------------------------------


def test_nan_in_loaded_weights_is_reported_with_its_count(tmp_path: Path) -> None:
    broken = state()
    broken["0.weight"][0, 0, 0, :2] = torch.nan
    broken["0.bias"][3] = torch.inf
    broken["1.running_mean"][1] = torch.nan
    report = load_checkpoint(network(), saved(broken, tmp_path / "a.pt"))
    assert str(report) == (
        "7 of 7 tensors loaded; 3 with NaN or infinity: 0.weight (2 of 108 values), "
        "0.bias (1 of 4 values), 1.running_mean (1 of 4 values)"
    )


def test_infinity_in_a_buffer_is_not_reported(tmp_path: Path) -> None:
    masked = state()
    masked["1.running_mean"][1] = -torch.inf
    assert load_checkpoint(network(), saved(masked, tmp_path / "a.pt")).nonfinite == ()
