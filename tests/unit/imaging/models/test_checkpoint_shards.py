"""Shards of a checkpoint are joined; pickled models are refused with a command to convert them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
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


@pytest.mark.parametrize(
    "name", ["", "model.safetensors.index.json", "model-00002-of-00002.safetensors"]
)
def test_shards_are_found_by_their_folder_their_index_or_one_of_them(
    sharded: Path, name: str
) -> None:
    assert str(load_checkpoint(network(), sharded / name)) == "7 of 7 tensors loaded"


def test_a_missing_shard_is_named(sharded: Path) -> None:
    (sharded / "model-00001-of-00002.safetensors").unlink()
    with pytest.raises(
        CheckpointError, match=r"incomplete: its shard 'model-00001-of.* is missing"
    ):
        load_checkpoint(network(), sharded)


@pytest.mark.parametrize("text", ["[]", "{}", '{"weight_map": 3}', "no json"])
def test_a_file_that_is_not_an_index_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.index.json").write_text(text)
    with pytest.raises(CheckpointError, match="is not an index of shards"):
        load_checkpoint(network(), tmp_path / "a.index.json")


def test_an_index_may_not_refer_to_another_folder(tmp_path: Path) -> None:
    (tmp_path / "a.index.json").write_text('{"weight_map": {"0.bias": "../b.safetensors"}}')
    with pytest.raises(CheckpointError, match="shards outside of its folder"):
        load_checkpoint(network(), tmp_path / "a.index.json")


def test_a_distributed_checkpoint_is_refused_with_the_command_that_converts_it(
    tmp_path: Path,
) -> None:
    (tmp_path / ".metadata").write_bytes(b"x")
    with pytest.raises(CheckpointError, match=rf"dcp_to_torch {tmp_path} {tmp_path.name}\.pt"):
        load_checkpoint(network(), tmp_path)


# -- whole models --------------------------------------------------------------------------------

ABSENT = """
import torch
from torch import nn
class DetectionModel(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.SiLU())
"""


@pytest.mark.slow
def test_ultralytics_checkpoint_is_refused_with_the_line_that_converts_it(tmp_path: Path) -> None:
    (tmp_path / "ultralytics").mkdir()
    (tmp_path / "ultralytics" / "tasks.py").write_text(ABSENT)

    def python(program: str) -> None:
        subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=120)

    python("import torch; from ultralytics.tasks import DetectionModel as Model;"
           "torch.save({'epoch': -1, 'model': None, 'ema': Model().half(), 'train_args': {}},"
           " 'yolo.pt')")  # fmt: skip
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(network(), tmp_path / "yolo.pt")
    message, line = str(caught.value).split(': python -c "')
    assert message == (
        f"'{tmp_path}/yolo.pt' holds a whole pickled model of ultralytics, which is not loaded, as "
        "that runs code. If you trust the file, convert it where 'ultralytics' is installed"
    )
    python(line.removesuffix('"'))
    assert load_checkpoint(network(), tmp_path / "yolo_weights.pt").matched == 7


@pytest.mark.slow
@pytest.mark.parametrize("zipped", [True, False])
def test_a_pickled_model_is_refused_with_the_line_that_converts_it(
    tmp_path: Path, zipped: bool
) -> None:
    path = tmp_path / "a.pt"
    torch.save({"model": network()}, path, _use_new_zipfile_serialization=zipped)
    with pytest.raises(CheckpointError, match="holds a whole pickled model, which is") as caught:
        load_checkpoint(network(), path)
    line = str(caught.value).split(': python -c "')[1].removesuffix('"')
    subprocess.run([sys.executable, "-W", "ignore", "-c", line], check=True, timeout=120)
    assert load_checkpoint(network(), tmp_path / "a_weights.pt").matched == 7


def test_a_loss_next_to_the_weights_is_not_mistaken_for_a_whole_model(tmp_path: Path) -> None:
    path = saved({"net": state(), "loss": nn.CrossEntropyLoss()}, tmp_path / "a.pt")
    assert load_checkpoint(network(), path).matched == 7
