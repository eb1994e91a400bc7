"""The page about hooks: its results, what it says of hooks, and of TensorBoard."""

from __future__ import annotations

import copy
import gc
import io
import re
import warnings
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from module_hooks import hook_count
from page_results import RunPage, events, run_block, run_page, scalar_steps, steps
from PIL import Image
from torch import Tensor, nn
from torch.utils.tensorboard import SummaryWriter
from torchvision.utils import make_grid

import fmapboard
from fmapboard.cli.main import run_visualize

HOOKS = Path(__file__).parents[2] / "docs" / "hooks.md"


@pytest.fixture(scope="module")
def hooks_page(tmp_path_factory: pytest.TempPathFactory) -> RunPage:
    """docs/hooks.md, run once."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.filterwarnings("ignore", r".*torch\.jit\.")  # deprecated; add_graph uses it
        patch.chdir(tmp_path_factory.mktemp("hooks"))
        patch.setenv("FMAPBOARD_ON_ERROR", "raise")
        return run_page(HOOKS)


def small_net() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(inplace=True), nn.Conv2d(8, 4, 3))


def test_a_wrong_result_is_found() -> None:
    scope: dict[str, Any] = {}
    right = run_block("x = [3,\n     4]\nlen(x)  # 2\nx[2]  # IndexError: list index …\n", scope)
    assert [result.is_right for result in right] == [True, True]
    wrong = run_block("len(x)  # 3\nx[0]  # ValueError: …\nx[2]  # IndexError: tuple …", scope)
    assert [result.is_right for result in wrong] == [False, False, False]


def test_a_block_ends_where_it_raises_as_a_cell_does() -> None:
    block = (
        "import contextlib\nwith contextlib.nullcontext():\n    [][0]  # IndexError: list…\n1  # 1"
    )
    (result,) = run_block(block, {})
    assert (result.source, result.is_right) == ("[][0]", True)
    with pytest.raises(IndexError):
        run_block("[][0]", {})


def test_each_expression_has_the_result_that_the_page_states(hooks_page: RunPage) -> None:
    assert [result for result in hooks_page.results if not result.is_right] == []
    assert len(hooks_page.results) == 31


def test_each_row_leads_to_a_section_that_calls_fmapboard(hooks_page: RunPage) -> None:
    sections = {
        heading.lower().replace(" ", "-"): body
        for heading, body in re.findall(
            r"^## (.*?)\n(.*?)(?=^## |\Z)", hooks_page.text, re.M | re.S
        )
    }
    assert re.findall(r"^\| \[.*?\]\(#(.*?)\) \|", hooks_page.text, re.M) == list(sections)
    assert len(sections) >= 14
    for anchor, body in sections.items():
        code = "".join(re.findall(r"```python\n(.*?)```", body, re.S))
        assert "fmapboard." in code or anchor == "gradients-of-layers", anchor


def test_only_the_model_that_the_page_hooks_to_show_it_keeps_hooks(hooks_page: RunPage) -> None:
    models = {n: m for n, m in hooks_page.names.items() if isinstance(m, nn.Module)}
    assert [name for name, model in models.items() if hook_count(model)] == ["hooked"]
    assert {path.name for path in hooks_page.directory.iterdir()} == {"runs"}


# Tensor hook


def test_retain_grad_keeps_the_gradient_of_the_relus_output() -> None:
    net, images = small_net(), torch.randn(2, 3, 32, 32)
    found = fmapboard.extract_gradients(net, images, loss=torch.sum)["0"].grad_output[0]
    maps = net[0](images)
    activated = maps.clone().relu().detach().requires_grad_()
    net[2](activated).sum().backward()
    maps.retain_grad()
    net[1:](maps).sum().backward()
    assert torch.equal(maps.grad, activated.grad)
    assert not torch.equal(activated.grad, found)


def test_extract_gradients_leaves_grad_as_it_was() -> None:
    net, images = small_net(), torch.randn(2, 3, 32, 32)
    fmapboard.extract_gradients(net, images, loss=torch.sum)
    assert net[0].weight.grad is None
    net[1:](net[0](images)).sum().backward()
    assert net[0].weight.grad is not None


def test_activation_gradients_are_in_the_run_of_a_training(tmp_path: Path) -> None:
    net = small_net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    with fmapboard.watch(net, tmp_path, optimizer=optimizer, every=1, activation_gradients=True):
        net(torch.randn(2, 3, 32, 32)).sum().backward()
        optimizer.step()
    run = events(tmp_path)
    for tag in ("gradients_of_maps_8x3x3x3/0", "activation_gradients/0", "gradients/0.weight"):
        assert steps(run, tag) == [0], tag
    assert scalar_steps(run, "gradient_norm/0.weight") == [0]


# Module hooks


def test_arguments_given_by_keyword_are_missing_in_a_forward_pre_hook() -> None:
    layer, x, seen = nn.Conv2d(3, 8, 3), torch.rand(1, 3, 8, 8), []
    layer.register_forward_pre_hook(lambda layer, args: seen.append(args))
    layer.register_forward_pre_hook(
        lambda layer, args, kwargs: seen.append(kwargs), with_kwargs=True
    )
    layer(input=x)
    assert seen == [(), {"input": x}]


def test_extract_returns_an_argument_given_by_keyword() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 8, 3)

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.conv(input=x)
            return out

    x = torch.rand(1, 3, 8, 8)
    assert torch.equal(fmapboard.extract(Net(), x, side="input")["conv"], x)


def test_inputs_are_in_the_run_of_a_training(tmp_path: Path) -> None:
    net = small_net()
    with fmapboard.watch(net, tmp_path, every=1, inputs=True) as board, board.step(0):
        net(torch.rand(2, 3, 32, 32))
    run = events(tmp_path)
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


def vgg_features() -> nn.Sequential:
    return torchvision.models.vgg.make_layers(torchvision.models.vgg.cfgs["A"])


def alexnet_features() -> nn.Sequential:
    return torchvision.models.alexnet(weights=None, num_classes=2).features


@pytest.mark.parametrize("features", [alexnet_features, vgg_features])
def test_a_full_backward_hook_breaks_models_with_in_place_relus(features: Any) -> None:
    layers = features()
    convolutions = [i for i, layer in enumerate(layers) if isinstance(layer, nn.Conv2d)]
    assert len(convolutions) in (5, 8)
    for index in convolutions:
        assert layers[index + 1].inplace
        handle = layers[index].register_full_backward_hook(lambda *_: None)
        with pytest.raises(RuntimeError, match="is being modified inplace"):
            layers(torch.rand(1, 3, 64, 64))
        handle.remove()


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")  # no input requires gradients
def test_the_first_layer_has_no_grad_input_in_a_full_backward_hook() -> None:
    net, kept = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()), []
    net[0].register_full_backward_hook(lambda layer, ins, outs: kept.append(ins))
    net(torch.rand(1, 3, 8, 8)).sum().backward()
    assert kept == [(None,)]


# SaveOutput


def test_stored_outputs_keep_the_activations_of_their_pass_alive(hooks_page: RunPage) -> None:
    model, image = hooks_page.names["resnet"], hooks_page.names["image"]
    alive: list[weakref.ref[Tensor]] = []
    last = model.layer4[2].conv2
    save_output = hooks_page.names["SaveOutput"]()
    handles = [
        model.bn1.register_forward_hook(lambda *args: alive.append(weakref.ref(args[2]))),
        last.register_forward_hook(save_output),
    ]
    model(image)
    handles.pop().remove()
    maps = fmapboard.extract(model, image)
    handles.pop().remove()
    gc.collect()
    assert [reference() is None for reference in alive] == [False, True]
    assert len(save_output.outputs) == 1
    assert len(maps) == 36


def test_the_hooked_model_cannot_be_copied_and_one_after_extract_can(hooks_page: RunPage) -> None:
    with pytest.raises(RuntimeError, match="support the deepcopy protocol"):
        copy.deepcopy(hooks_page.names["hooked"])
    copy.deepcopy(hooks_page.names["resnet"])
    assert not any(layer._forward_hooks for layer in hooks_page.names["resnet"].modules())


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
