"""Shards are joined; of pickled models, the weights are read, and no code is run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import warm_python
from checkpoint_states import network, saved, state
from safetensors.torch import save_file
from torch import nn

from fmapboard.errors import CheckpointError
from fmapboard.imaging.models.checkpoints import load_checkpoint

# -- shards --------------------------------------------------------------------------------------


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    """Two shards and their index, as Hugging Face writes them."""
    names = [f"model-0000{n}-of-00002.safetensors" for n in (1, 2)]
    own = list(state().items())
    for name, part in zip(names, (own[:3], own[3:]), strict=True):
        save_file(dict(part), tmp_path / name)
    listed = {name: names[number > 2] for number, (name, _) in enumerate(own)}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": listed}))
    return tmp_path


@pytest.mark.parametrize("name", ["", "model.safetensors.index.json"])
def test_shards_are_found_by_their_folder_or_their_index(sharded: Path, name: str) -> None:
    assert str(load_checkpoint(network(), sharded / name)) == "7 of 7 tensors loaded"


def test_a_missing_shard_is_named(sharded: Path) -> None:
    (sharded / "model-00001-of-00002.safetensors").unlink()
    with pytest.raises(
        CheckpointError, match=r"model-00001-of-00002\.safetensors' is missing.* copy it"
    ):
        load_checkpoint(network(), sharded)


@pytest.mark.parametrize("text", ["[]", "{}", '{"weight_map": 3}', "no json"])
def test_a_file_that_is_not_an_index_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.index.json").write_text(text)
    with pytest.raises(CheckpointError, match="no weight_map; give the file of weights, or"):
        load_checkpoint(network(), tmp_path / "a.index.json")


def test_an_index_may_not_refer_to_another_folder(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    save_file(state(), tmp_path / "b.safetensors")
    index = tmp_path / "in" / "a.index.json"
    index.write_text('{"weight_map": {"0.bias": "../b.safetensors"}}')
    with pytest.raises(CheckpointError, match=r"in/b\.safetensors' is missing"):
        load_checkpoint(network(), index)


# -- whole models --------------------------------------------------------------------------------

ABSENT = """
import torch
from torch import nn
class DetectionModel(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.SiLU())
        self.register_buffer("mask", torch.ones(2), persistent=False)
open("imported", "a").write("!")
"""


@pytest.mark.slow
def test_weights_of_a_model_of_a_library_that_is_not_installed_are_read(tmp_path: Path) -> None:
    """As ultralytics saves its models."""
    (tmp_path / "detectors_of_others.py").write_text(ABSENT)
    program = (
        "import torch; from detectors_of_others import DetectionModel as Model; model = Model();"
        "torch.nn.init.constant_(model[0].bias, 3);"
        "torch.save({'epoch': -1, 'model': None, 'ema': model.half(), 'args': {}}, 'yolo.pt')"
    )
    assert warm_python.run(program, cwd=tmp_path).returncode == 0
    model = network()
    assert str(load_checkpoint(model, tmp_path / "yolo.pt")) == "7 of 7 tensors loaded"
    assert model[0].bias.tolist() == [3, 3, 3, 3]
    assert (tmp_path / "imported").read_text() == "!"  # by the program that saved it


@pytest.mark.parametrize("nested", [True, False])
def test_weights_of_a_pickled_model_are_read_under_the_names_of_its_state_dict(
    tmp_path: Path, nested: bool
) -> None:
    theirs = nn.ModuleDict({"net": network()})
    path = saved({"model": theirs} if nested else theirs, tmp_path / "a.pt")
    model = nn.ModuleDict({"net": network()})
    assert str(load_checkpoint(model, path)) == "7 of 7 tensors loaded"
    expected, found = theirs.state_dict(), model.state_dict()
    assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())


def test_a_loss_next_to_the_weights_does_no_harm(tmp_path: Path) -> None:
    path = saved({"net": state(), "loss": nn.CrossEntropyLoss()}, tmp_path / "a.pt")
    assert load_checkpoint(network(), path).matched == 7
