"""The page about hooks: what it says of TensorBoard, read back from the runs."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from page_results import RunPage, events, scalar_steps, steps
from PIL import Image
from torch import nn
from torch.utils.tensorboard import SummaryWriter
from torchvision.utils import make_grid

import fmapboard
from fmapboard.cli.main import run_visualize


def small_net() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(inplace=True), nn.Conv2d(8, 4, 3))


# make_grid and add_image


def test_the_recipe_draws_relu_outputs_and_one_layer_per_kernel_shape(hooks_page: RunPage) -> None:
    by_shape = hooks_page.names["by_shape"]
    assert len(by_shape) == 5
    assert all(outputs[0].min() == 0 for outputs in by_shape.values())
    maps = fmapboard.extract(hooks_page.names["alexnet"], hooks_page.names["photo"])
    assert all(output.min() < 0 for output in maps.values())
    groups = fmapboard.kernel_groups(hooks_page.names["resnet"])
    assert (len(groups), sum(map(len, groups.values()))) == (11, 36)


def picture_of(batch: int, directory: Path) -> Image.Image:
    """The recipe's picture of a batch whose first image is bright, the others are black."""
    maps = torch.zeros(batch, 4, 6, 6)
    maps[0] = torch.rand(4, 6, 6)
    with SummaryWriter(str(directory)) as writer:
        grid = make_grid(maps.transpose(0, 1), nrow=2, normalize=True, scale_each=True)
        writer.add_image("maps", grid, global_step=322)
    (event,) = events(directory).Images("maps")
    return Image.open(io.BytesIO(event.encoded_image_string))


def test_the_recipe_reads_a_batch_as_colours(tmp_path: Path) -> None:
    red, green, blue = picture_of(3, tmp_path / "three").split()
    assert np.asarray(red).max() == 255
    assert np.asarray(green).max() == np.asarray(blue).max() == 0
    assert picture_of(2, tmp_path / "two").mode == "LA"
    assert picture_of(4, tmp_path / "four").mode == "RGBA"
    with pytest.raises(TypeError):
        picture_of(5, tmp_path / "five")


def test_one_nan_makes_a_tile_of_the_recipe_black(tmp_path: Path) -> None:
    maps = torch.rand(1, 4, 6, 6) + 1
    maps[0, 0, 2, 2] = torch.nan
    grid = make_grid(maps.transpose(0, 1), nrow=2, normalize=True, scale_each=True)
    with SummaryWriter(str(tmp_path)) as writer, pytest.warns(RuntimeWarning):
        writer.add_image("maps", grid, global_step=322)
    (event,) = events(tmp_path).Images("maps")
    pixels = np.asarray(Image.open(io.BytesIO(event.encoded_image_string)))
    assert pixels[2:8, 2:8].max() == 0
    assert pixels[2:8, 10:16].max() == 255


ALEXNET = [
    "feature_maps_64x3x11x11/features.0",
    "feature_maps_192x64x5x5/features.3",
    "feature_maps_384x192x3x3/features.6",
    "feature_maps_256x384x3x3/features.8",
    "feature_maps_256x256x3x3/features.10",
]


def test_alexnets_five_pictures_are_at_step_322_and_no_hook_is_left(hooks_page: RunPage) -> None:
    run = hooks_page.run("alexnet")
    found = [tag for tag in run.Tags()["tensors"] if tag.startswith("feature_maps_")]
    assert sorted(found) == sorted(ALEXNET)
    assert f"`{ALEXNET[0]}`" in hooks_page.text
    assert [steps(run, tag) for tag in found] == [[322]] * 5
    assert steps(run, "kernels_64x3x11x11/features.0") == [322]
    assert not any(layer._forward_hooks for layer in hooks_page.names["alexnet"].modules())


def test_visualize_draws_the_same_layers_at_step_0(
    hooks_page: RunPage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (command,) = re.findall(r"```sh\n(.*)\n```", hooks_page.text)
    photo = tmp_path / "photo.png"
    Image.new("RGB", (80, 80), "teal").save(photo)
    words = [str(photo) if word == "photo.jpg" else word for word in command.split()[1:]]
    words = [str(tmp_path / "run") if word == "runs/photo" else word for word in words]
    with pytest.raises(SystemExit) as ended:
        run_visualize(words)
    assert ended.value.code == 0, capsys.readouterr().err
    run = events(tmp_path / "run")
    assert [steps(run, tag) for tag in ALEXNET] == [[0]] * 5


# SummaryWriter's options


def test_comment_and_suffix_end_the_names_as_in_summary_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    SummaryWriter(comment="_alexnet", filename_suffix=".maps").close()
    net = small_net()
    options = {"comment": "_lr0.01", "filename_suffix": ".maps"}
    with fmapboard.watch(net, **options, every=1) as board, board.step(0):
        net(torch.rand(2, 3, 32, 32))
    for comment in ("_alexnet", "_lr0.01"):
        (run,) = Path("runs").glob(f"*{comment}")
        (file,) = run.glob("*tfevents*")
        assert file.name.endswith(".maps")
    assert events(run).Tags()["tensors"]


def test_a_comment_has_no_effect_beside_a_directory(tmp_path: Path) -> None:
    SummaryWriter(str(tmp_path / "a"), comment="_x").close()
    fmapboard.watch(small_net(), tmp_path / "b", comment="_x").close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


# In the same run


def test_everything_is_in_one_run(hooks_page: RunPage) -> None:
    run = hooks_page.run("together")
    assert steps(run, "feature_maps_16x3x3x3/0") == [0, 1]
    assert steps(run, "activations/0") == steps(run, "weights/0.weight") == [0, 1]
    for tag in ("loss", "gradient_norm/total"):
        assert scalar_steps(run, tag) == [0, 1]
    assert "fmapboard/0" in run.PluginTagToContent("feature_maps")
    assert run.Tags()["graph"]
    assert "Sequential/0/conv2d" in str(run.Graph())
    assert steps(run, "class 1") == [2]
    assert list(run.PluginTagToContent("pr_curves")) == ["class 1"]


def test_embedding_and_hyperparameters_are_where_the_page_says(hooks_page: RunPage) -> None:
    together = hooks_page.directory / "runs" / "together"
    assert "00002" in (together / "projector_config.pbtxt").read_text()
    assert {path.name for path in (together / "00002").rglob("*.*")} >= {
        "metadata.tsv", "sprite.png", "tensors.tsv",
    }  # fmt: skip
    vectors = hooks_page.names["vectors"]
    assert tuple(vectors.shape) == (8, 16)
    hparams = hooks_page.run("together/hparams")
    assert scalar_steps(hparams, "hparam/loss")
    assert "_hparams_/session_start_info" in hparams.PluginTagToContent("hparams")
    assert len(list(together.glob("*tfevents*"))) == 1


@pytest.mark.filterwarnings(r"ignore:.*torch\.jit\.")  # deprecated; add_graph uses it
def test_watch_leaves_the_writer_open_and_a_graph_may_be_added_in_between(tmp_path: Path) -> None:
    net, images = small_net(), torch.rand(2, 3, 32, 32)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    with SummaryWriter(str(tmp_path)) as writer:
        with fmapboard.watch(net, writer=writer, optimizer=optimizer, every=1):
            for step in range(2):
                if step == 1:
                    writer.add_graph(net, images)
                net(images).sum().backward()
                optimizer.step()
        writer.add_scalar("after", 1.0, 2)
    run = events(tmp_path)
    assert steps(run, "feature_maps_8x3x3x3/0") == [0, 1]
    assert scalar_steps(run, "after") == [2]
    assert run.Tags()["graph"]
