"""Attribution of the training step: LayerCAM of the loss, exactly as torch.autograd gives it."""

from __future__ import annotations

import copy
import logging
from typing import Any

import numpy as np
import pytest
import torch
from attributed_training import batch, reference, residual_network, train
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import fmapboard
from fmapboard.errors import ConfigurationError, LayerNotFound
from fmapboard.records import Attribution, LoggedStep
from fmapboard.writers.folder import MemoryWriter


def of_layer(step: LoggedStep, label: str) -> list[Attribution]:
    return [found for found in step.attributions if found.layer_call.label == label]


def shown(step: LoggedStep) -> list[str]:
    return list(dict.fromkeys(found.layer_call.label for found in step.attributions))


def assert_is_reference(step: LoggedStep, label: str, expected: tuple[Any, Any]) -> None:
    found = of_layer(step, label)
    assert found
    for one in found:
        np.testing.assert_allclose(one.heat, expected[0][one.sample], rtol=1e-4, atol=1e-8)
        assert one.gradient == pytest.approx(expected[1][one.sample], rel=1e-4)


def test_the_last_activation_of_each_resolution_is_shown_for_each_drawn_sample() -> None:
    (step,) = train(residual_network(), samples=3)
    assert shown(step) == ["1", "3.relu.call2"]
    assert [one.sample for one in of_layer(step, "1")] == [0, 1, 2]
    tags = [tagged.tag for tagged in step.pictures if tagged.kind == "attribution"]
    assert tags == [f"attribution/{n}/sample_{k}" for n in ("1", "3.relu.call2") for k in range(3)]


def test_the_maps_are_exact_also_where_an_in_place_operation_follows_or_overwrites() -> None:
    model = residual_network()
    first, last = reference(model, "1"), reference(model, "3.relu", call=2)
    (step,) = train(model)
    assert_is_reference(step, "1", first)
    assert_is_reference(step, "3.relu.call2", last)


def test_later_steps_are_as_exact_as_the_first_although_fewer_outputs_are_copied() -> None:
    torch.manual_seed(3)
    model = residual_network()
    twin = copy.deepcopy(model)
    steps = train(model, steps=3)
    train(twin, steps=2)
    assert_is_reference(steps[2], "3.relu.call2", reference(twin, "3.relu", call=2))
    assert shown(steps[2]) == shown(steps[0])


def test_images_of_another_size_get_maps_of_their_own() -> None:
    model, kept = residual_network(), MemoryWriter()
    x, y = batch()
    batches = [x, torch.cat([x, x, x], 3), x]
    expected = [
        (reference(model, "1", images=images), reference(model, "3.relu", call=2, images=images))
        for images in batches
    ]
    board = fmapboard.watch(model, writer=kept, every=1, samples=2, attribution=True)
    for number, images in enumerate(batches):
        with board.step(number):
            functional.cross_entropy(model(images), y).backward()
    board.close()
    for step, (first, last) in zip(kept.steps, expected, strict=True):
        assert_is_reference(step, "1", first)
        assert_is_reference(step, "3.relu.call2", last)


def test_an_output_is_copied_before_an_in_place_sum_behind_it() -> None:
    model = residual_network()
    expected = reference(model, "3.norm2")
    (step,) = train(model, attribution="3.norm2")
    assert_is_reference(step, "3.norm2", expected)


def test_a_glob_shows_every_activation_that_it_matches() -> None:
    (step,) = train(residual_network(), attribution="3*")
    assert shown(step) == ["3.relu", "3.relu.call2"]
    (step,) = train(residual_network(), attribution="3.conv?")
    assert shown(step) == ["3.conv1", "3.conv2"]


def test_without_the_option_nothing_is_shown() -> None:
    (step,) = train(residual_network(), attribution=False)
    assert step.attributions == ()
    assert [tag for tag in step.scalars if "attribution" in tag] == []


@pytest.mark.parametrize("value", [3, None, ["layer4"]])
def test_another_value_is_refused(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="True, False, or a glob on layer names"):
        fmapboard.watch(residual_network(), writer=MemoryWriter(), attribution=value)


def test_a_glob_that_matches_nothing_is_refused_with_similar_names() -> None:
    with pytest.raises(LayerNotFound, match=r"attribution='3.rely' matches none of .*3\.relu"):
        fmapboard.watch(residual_network(), writer=MemoryWriter(), attribution="3.rely")
    with pytest.raises(LayerNotFound, match=r"modules; for the names: fmapboard\.layers\(model\)$"):
        fmapboard.watch(residual_network(), writer=MemoryWriter(), attribution="xyzzy")


class Functional(nn.Module):
    """No activation modules: functional ReLUs, one of them in place."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 6, 3, padding=1)
        self.head = nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.max_pool2d(functional.relu_(self.conv1(x)), 2)
        found: Tensor = self.head(functional.relu(self.conv2(x)).mean((2, 3)))
        return found


def test_without_activation_modules_outputs_are_shown_and_the_log_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = Functional()
    expected = reference(model, "conv2")
    with caplog.at_level(logging.WARNING, "fmapboard"):
        steps = train(model, steps=2)
    assert shown(steps[0]) == ["conv1", "conv2"]
    assert_is_reference(steps[0], "conv2", expected)
    assert caplog.text.count("no activation module runs behind these layers") == 1
    assert "conv1, conv2" in caplog.text


def test_behind_a_functional_relu_the_map_is_that_of_the_relus_own_output() -> None:
    model = Functional()
    x, y = batch()
    maps = functional.max_pool2d(functional.relu(model.conv1(x)), 2)
    active = functional.relu(model.conv2(maps))
    loss = functional.cross_entropy(model.head(active.mean((2, 3))), y)
    (gradient,) = torch.autograd.grad(loss, [active])
    heat = (torch.relu(-gradient) * active.detach()).sum(1).numpy()
    (step,) = train(model)
    for one in of_layer(step, "conv2"):
        np.testing.assert_allclose(one.heat, heat[one.sample], rtol=1e-4, atol=1e-8)


def test_the_scale_of_a_grad_scaler_is_divided_out() -> None:
    x, y = batch()
    model = residual_network()
    expected = reference(model, "3.relu", call=2)
    optimizer, kept = torch.optim.SGD(model.parameters(), lr=0.1), MemoryWriter()
    scaler = torch.amp.GradScaler("cpu", init_scale=4096.0)
    with fmapboard.watch(
        model, writer=kept, optimizer=optimizer, scaler=scaler, every=1, samples=2,
        attribution=True,
    ):  # fmt: skip
        scaler.scale(functional.cross_entropy(model(x), y)).backward()
        scaler.step(optimizer)
        scaler.update()
    assert_is_reference(kept.steps[0], "3.relu.call2", expected)


def test_under_autocast_the_products_are_computed_in_float32() -> None:
    model = residual_network()

    def mixed(images: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found: Tensor = residual(images)
        return found.float()

    residual = model
    x, y = batch()
    optimizer, kept = torch.optim.SGD(model.parameters(), lr=0.1), MemoryWriter()
    expected = reference(model, "3.relu", call=2)
    with fmapboard.watch(
        model, writer=kept, optimizer=optimizer, every=1, samples=2, attribution=True
    ):
        functional.cross_entropy(mixed(x), y).backward()
        optimizer.step()
    for one in of_layer(kept.steps[0], "3.relu.call2"):
        assert one.heat.dtype == np.float32
        correlation = np.corrcoef(one.heat.ravel(), expected[0][one.sample].ravel())[0, 1]
        assert correlation > 0.99


@pytest.mark.parametrize("reentrant", [False, True])
def test_under_checkpointing_the_maps_are_those_of_the_recorded_pass(reentrant: bool) -> None:
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem, self.body = nn.Conv2d(3, 8, 3, padding=1), residual_network()[3]
            self.relu, self.head = nn.ReLU(), nn.Linear(8, 4)

        def forward(self, x: Tensor) -> Tensor:
            x = checkpoint(self.body, self.relu(self.stem(x)), use_reentrant=reentrant)
            found: Tensor = self.head(x.mean((2, 3)))
            return found

    model = Checkpointed()
    expected = reference(model, "relu")
    (step,) = train(model, attribution="relu")
    assert_is_reference(step, "relu", expected)
    if not reentrant:  # inside a reentrant checkpoint outputs have no gradient
        expected = reference(model, "body.relu", call=2)
        assert_is_reference(train(model)[0], "body.relu.call2", expected)


def test_with_accumulation_the_maps_are_those_of_the_first_micro_batch() -> None:
    model = residual_network()
    x, y = batch()
    other, _ = batch(seed=7)
    expected = reference(model, "3.relu", call=2)
    optimizer, kept = torch.optim.SGD(model.parameters(), lr=0.1), MemoryWriter()
    with fmapboard.watch(
        model, writer=kept, optimizer=optimizer, every=1, samples=2, attribution=True
    ):
        for images in (x, other):
            functional.cross_entropy(model(images), y).backward()
        optimizer.step()
    assert_is_reference(kept.steps[0], "3.relu.call2", expected)


def test_a_pass_without_backward_leaves_no_map() -> None:
    model = residual_network()
    x, y = batch()
    other, _ = batch(seed=7)
    expected = reference(model, "1")
    optimizer, kept = torch.optim.SGD(model.parameters(), lr=0.1), MemoryWriter()
    with fmapboard.watch(
        model, writer=kept, optimizer=optimizer, every=1, samples=2, attribution=True
    ):
        abandoned = model.eval()(other)
        model.train()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    assert abandoned.shape == (5, 4)
    assert_is_reference(kept.steps[0], "1", expected)


def test_a_loss_of_zero_gives_grey_pictures_not_noise() -> None:
    def no_loss(logits: Tensor, labels: Tensor) -> Tensor:
        return functional.cross_entropy(logits, labels) * 1e-9

    (step,) = train(residual_network(), loss=no_loss)
    pictures = [tagged for tagged in step.pictures if tagged.kind == "attribution"]
    for tagged in pictures:
        assert np.unique(tagged.samples[0].pixels).tolist() == [128]
        assert "(map negligible: grey)" in tagged.description
    assert len(pictures) == 4


def test_the_description_says_what_is_shown_and_how_large_the_gradient_is() -> None:
    (step,) = train(residual_network())
    found = of_layer(step, "1")[0]
    (tagged,) = [t for t in step.pictures if t.tag == "attribution/1/sample_0"]
    assert "a larger activation lowers the loss here" in tagged.description
    assert f"{found.gradient:.3g}" in tagged.description
    assert "expla" not in tagged.description
    assert step.scalars["attribution_gradient/1/sample_0"] == found.gradient
    assert tagged.samples[0].pixels.shape == (16, 12, 3)  # the input's aspect


def test_without_images_nothing_is_shown_and_the_log_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = nn.Sequential(nn.Conv2d(5, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    (step,) = train(model, images=torch.randn(5, 5, 16, 12))
    assert step.attributions == ()
    assert "no attribution is logged" in caplog.text


def test_with_a_probe_the_maps_are_over_the_images_of_the_training_batch() -> None:
    model = residual_network()
    expected = reference(model, "1")
    probe = torch.zeros(1, 3, 16, 12)
    (step,) = train(model, probe=probe)
    assert_is_reference(step, "1", expected)
    image = of_layer(step, "1")[1].image
    assert image is not None
    np.testing.assert_array_equal(image.values, batch()[0][1].numpy())
    assert [t.tag for t in step.pictures if t.kind == "network_input"] == ["network_input/sample_0"]
