"""The page about hooks runs, and what it says of snippets and of fmapboard is so."""

from __future__ import annotations

import copy
import gc
import io
import re
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from page_results import Result, python_blocks, run_block
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import Tensor, nn
from torch.utils.tensorboard import SummaryWriter
from torchvision.utils import make_grid

import fmapboard
from fmapboard.cli.main import run_visualize

PAGE = Path(__file__).parents[2] / "docs" / "from_hooks.md"


@dataclass(frozen=True, slots=True)
class Page:
    """The page after its blocks were run, in order, in one directory."""

    directory: Path
    scope: dict[str, Any]
    results: list[Result]

    def run(self, name: str) -> EventAccumulator:
        """What TensorBoard reads in ``runs/<name>``."""
        return EventAccumulator(str(self.directory / "runs" / name)).Reload()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    directory, scope = tmp_path_factory.mktemp("page"), {"__name__": "page"}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        patch.setenv("FMAPBOARD_ON_ERROR", "raise")
        results = [result for block in python_blocks(PAGE) for result in run_block(block, scope)]
    yield Page(directory, scope, results)


def small_net() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(inplace=True), nn.Conv2d(8, 4, 3))


def steps(run: EventAccumulator, tag: str) -> list[int]:
    return [event.step for event in run.Tensors(tag)]


def test_a_wrong_result_is_found() -> None:
    scope: dict[str, Any] = {}
    right = run_block("x = [3,\n     4]\nlen(x)  # 2\nx[2]  # IndexError: list index …\n", scope)
    assert [result.is_right for result in right] == [True, True]
    wrong = run_block("len(x)  # 3\nx[2]  # IndexError: something …\nx[0]  # ValueError: …", scope)
    assert [result.is_right for result in wrong] == [False, False, False]


def test_each_expression_has_the_result_that_the_page_states(page: Page) -> None:
    assert [result for result in page.results if not result.is_right] == []
    assert len(page.results) == 20


# Tensor hook


def test_the_wrong_gradient_of_retain_grad_is_that_of_the_relus_output(page: Page) -> None:
    net, images, kept = (page.scope[name] for name in ("net", "images", "kept"))
    maps = net[0](images)
    activated = maps.clone().relu().detach().requires_grad_()
    net[2](activated).sum().backward()
    maps.retain_grad()
    net[1:](maps).sum().backward()
    assert torch.equal(maps.grad, activated.grad)
    assert not torch.equal(activated.grad, kept[0])


def test_extract_gradients_leaves_grad_as_it_was() -> None:
    net, images = small_net(), torch.randn(2, 3, 32, 32)
    fmapboard.extract_gradients(net, images, loss=torch.sum)
    assert net[0].weight.grad is None
    net[1:](net[0](images)).sum().backward()
    assert net[0].weight.grad is not None


def test_activation_gradients_are_in_the_run_of_a_training(page: Page) -> None:
    run = page.run("gradients")
    for tag in ("gradients_of_maps_8x3x3x3/0", "activation_gradients/0", "gradients/0.weight"):
        assert steps(run, tag) == [0], tag
    assert [event.step for event in run.Scalars("gradient_norm/0.weight")] == [0]


# Module hooks


def test_arguments_given_by_keyword_are_missing_in_a_forward_pre_hook() -> None:
    layer, x, seen = nn.Conv2d(3, 8, 3), torch.rand(1, 3, 8, 8), []
    layer.register_forward_pre_hook(lambda layer, args: seen.append(args))
    layer.register_forward_pre_hook(
        lambda layer, args, kwargs: seen.append(kwargs), with_kwargs=True
    )
    layer(input=x)
    assert seen == [(), {"input": x}]


def test_inputs_are_in_the_run_of_a_training(tmp_path: Path) -> None:
    net = small_net()
    with fmapboard.watch(net, tmp_path, every=1, inputs=True) as board, board.step(0):
        net(torch.rand(2, 3, 32, 32))
    run = EventAccumulator(str(tmp_path)).Reload()
    assert steps(run, "inputs_4x8x3x3/2") == steps(run, "inputs/2") == [0]


@pytest.mark.parametrize("keep", [Tensor.detach, Tensor.cpu, Tensor.clone])
def test_of_what_a_forward_hook_keeps_only_a_clone_survives_an_in_place_relu(keep: Any) -> None:
    net, kept = small_net(), []
    net[0].register_forward_hook(lambda layer, args, output: kept.append(keep(output)))
    net(torch.randn(2, 3, 32, 32))
    assert bool(kept[0].min() < 0) == (keep is Tensor.clone)


def test_a_hook_that_is_registered_twice_stores_every_pass_twice() -> None:
    net, kept = small_net(), []
    for _ in range(2):
        net[0].register_forward_hook(lambda layer, args, output: kept.append(output))
    net(torch.randn(2, 3, 32, 32))
    assert len(kept) == 2


@pytest.mark.parametrize("name", ["alexnet", "vgg11"])
def test_a_full_backward_hook_breaks_models_with_in_place_relus(name: str) -> None:
    model = torchvision.models.get_model(name, weights=None, num_classes=2)
    convolutions = [i for i, layer in enumerate(model.features) if isinstance(layer, nn.Conv2d)]
    for index in convolutions:
        assert model.features[index + 1].inplace
        handle = model.features[index].register_full_backward_hook(lambda *_: None)
        with pytest.raises(RuntimeError, match="is being modified inplace"):
            model.features(torch.rand(1, 3, 64, 64))
        handle.remove()


def test_the_first_layer_has_no_grad_input_in_a_full_backward_hook() -> None:
    net, kept = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()), []
    net[0].register_full_backward_hook(lambda layer, ins, outs: kept.append(ins))
    net(torch.rand(1, 3, 8, 8)).sum().backward()
    assert kept == [(None,)]


# SaveOutput


def test_the_outputs_of_save_output_keep_the_activations_of_their_pass(page: Page) -> None:
    model = torchvision.models.resnet34(weights=None).eval()
    alive: list[weakref.ref[Tensor]] = []
    model.bn1.register_forward_hook(lambda layer, args, output: alive.append(weakref.ref(output)))
    save_output = page.scope["SaveOutput"]()
    handle = model.layer4[2].conv2.register_forward_hook(save_output)
    model(page.scope["image"])
    handle.remove()
    maps = fmapboard.extract(model, page.scope["image"])
    gc.collect()
    assert [reference() is None for reference in alive] == [False, True]
    assert len(save_output.outputs) == 1
    assert len(maps) == 36


def test_a_copy_of_the_hooked_model_raises_and_one_after_extract_does_not(page: Page) -> None:
    with pytest.raises(RuntimeError, match="support the deepcopy protocol"):
        copy.deepcopy(page.scope["hooked"])
    copy.deepcopy(page.scope["resnet"])
    assert not any(layer._forward_hooks for layer in page.scope["resnet"].modules())


# make_grid and add_image


def test_the_recipe_draws_what_the_relu_left_and_one_layer_per_kernel_shape(page: Page) -> None:
    by_shape = page.scope["by_shape"]
    assert len(by_shape) == 5
    assert all(outputs[0].min() == 0 for outputs in by_shape.values())
    maps = fmapboard.extract(page.scope["alexnet"], page.scope["photo"])
    assert all(output.min() < 0 for output in maps.values())
    groups = fmapboard.kernel_groups(page.scope["resnet"])
    assert (len(groups), sum(map(len, groups.values()))) == (11, 36)


def picture_of(batch: int, directory: Path) -> Image.Image:
    """The recipe's picture of a batch whose first image is bright, the others are black."""
    maps = torch.zeros(batch, 4, 6, 6)
    maps[0] = torch.rand(4, 6, 6)
    with SummaryWriter(str(directory)) as writer:
        grid = make_grid(maps.transpose(0, 1), nrow=2, normalize=True, scale_each=True)
        writer.add_image("maps", grid, global_step=322)
    (event,) = EventAccumulator(str(directory)).Reload().Images("maps")
    return Image.open(io.BytesIO(event.encoded_image_string))


def test_the_recipe_reads_a_batch_as_colours(tmp_path: Path) -> None:
    red, green, blue = picture_of(3, tmp_path / "three").split()
    assert np.asarray(red).max() == 255
    assert np.asarray(green).max() == np.asarray(blue).max() == 0
    assert picture_of(4, tmp_path / "four").mode == "RGBA"
    for batch in (2, 5):
        with pytest.raises(TypeError):
            picture_of(batch, tmp_path / str(batch))


def test_one_nan_makes_a_tile_of_the_recipe_black(tmp_path: Path) -> None:
    maps = torch.rand(1, 4, 6, 6) + 1
    maps[0, 0, 2, 2] = torch.nan
    with SummaryWriter(str(tmp_path)) as writer, pytest.warns(RuntimeWarning):
        grid = make_grid(maps.transpose(0, 1), nrow=2, normalize=True, scale_each=True)
        writer.add_image("maps", grid, global_step=322)
    (event,) = EventAccumulator(str(tmp_path)).Reload().Images("maps")
    pixels = np.asarray(Image.open(io.BytesIO(event.encoded_image_string)))
    assert pixels[2:8, 2:8].max() == 0
    assert pixels[2:8, 10:16].max() == 255


def tags_of_the_table() -> list[str]:
    return re.findall(r"^\| `(feature_maps_[^`]+)` \|$", PAGE.read_text(), re.MULTILINE)


def test_alexnets_five_pictures_are_at_step_322_and_no_hook_is_left(page: Page) -> None:
    run = page.run("alexnet")
    found = [tag for tag in run.Tags()["tensors"] if tag.startswith("feature_maps_")]
    assert sorted(found) == sorted(tags_of_the_table())
    assert len(found) == 5
    assert [steps(run, tag) for tag in found] == [[322]] * 5
    assert steps(run, "kernels_64x3x11x11/features.0") == [322]
    assert not any(layer._forward_hooks for layer in page.scope["alexnet"].modules())


def test_visualize_draws_the_same_layers_at_step_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (command,) = re.findall(r"```sh\n(.*)\n```", PAGE.read_text())
    photo = tmp_path / "photo.png"
    Image.new("RGB", (80, 80), "teal").save(photo)
    words = [str(photo) if word == "photo.jpg" else word for word in command.split()[1:]]
    words = [str(tmp_path / "run") if word == "runs/photo" else word for word in words]
    with pytest.raises(SystemExit) as ended:
        run_visualize(words)
    assert ended.value.code == 0, capsys.readouterr().err
    run = EventAccumulator(str(tmp_path / "run")).Reload()
    assert [steps(run, tag) for tag in tags_of_the_table()] == [[0]] * 5


# SummaryWriter's options


def test_comment_and_suffix_end_the_names_as_in_summary_writer(page: Page) -> None:
    runs = page.directory / "runs"
    for comment in ("_alexnet", "_lr0.01"):
        (run,) = runs.glob(f"*{comment}")
        (file,) = run.iterdir()
        assert "tfevents" in file.name
        assert file.name.endswith(".maps")
    assert EventAccumulator(str(run)).Reload().Tags()["tensors"]


def test_a_comment_has_no_effect_beside_a_directory(tmp_path: Path) -> None:
    SummaryWriter(str(tmp_path / "a"), comment="_x").close()
    fmapboard.watch(small_net(), tmp_path / "b", comment="_x").close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_summary_writer_has_nothing_on_disk_before_flush(tmp_path: Path) -> None:
    writer = SummaryWriter(str(tmp_path))
    writer.add_scalar("loss", 1.0, 0)
    assert EventAccumulator(str(tmp_path)).Reload().Tags()["scalars"] == []
    writer.flush()
    assert EventAccumulator(str(tmp_path)).Reload().Tags()["scalars"] == ["loss"]
    writer.close()


# In the same run


def test_everything_stands_in_one_run(page: Page) -> None:
    run = page.run("together")
    assert steps(run, "feature_maps_64x3x7x7/conv1") == [0, 1]
    assert steps(run, "activations/conv1") == steps(run, "weights/conv1.weight") == [0, 1]
    for tag in ("loss", "gradient_norm/total"):
        assert [event.step for event in run.Scalars(tag)] == [0, 1]
    assert "fmapboard/conv1" in run.PluginTagToContent("feature_maps")
    assert run.Tags()["graph"]
    assert "conv1" in str(run.Graph())
    assert steps(run, "class 1") == [2]
    assert list(run.PluginTagToContent("pr_curves")) == ["class 1"]


def test_embedding_and_hyperparameters_are_where_the_page_says(page: Page) -> None:
    together = page.directory / "runs" / "together"
    assert "00002" in (together / "projector_config.pbtxt").read_text()
    assert {path.name for path in (together / "00002").rglob("*.*")} >= {
        "metadata.tsv", "sprite.png", "tensors.tsv",
    }  # fmt: skip
    vectors = page.scope["vectors"]
    assert tuple(vectors.shape) == (8, 512)
    hparams = page.run("together/hparams")
    assert [event.step for event in hparams.Scalars("hparam/loss")]
    assert "_hparams_/session_start_info" in hparams.PluginTagToContent("hparams")
    assert len(list(together.glob("*tfevents*"))) == 1


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
    run = EventAccumulator(str(tmp_path)).Reload()
    assert steps(run, "feature_maps_8x3x3x3/0") == [0, 1]
    assert [event.step for event in run.Scalars("after")] == [2]
    assert run.Tags()["graph"]
