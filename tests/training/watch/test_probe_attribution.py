"""Attribution of the probe: a second backward pass, which leaves the training as it is."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from attributed_training import batch, reference, residual_network, train
from module_hooks import hook_count
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import fmapboard
from fmapboard.errors import ConfigurationError
from fmapboard.writers.folder import MemoryWriter

PROBE, CLASSES = batch(seed=7, images=3)


def loss_on_probe(output: Tensor) -> Tensor:
    return functional.cross_entropy(output, CLASSES)


def test_it_is_layercam_of_the_loss_on_the_probe_in_eval_mode() -> None:
    model = residual_network()
    twin = copy.deepcopy(model)
    twin(batch()[0])  # the probe runs after the training's forward pass, which updates BatchNorm
    twin.eval()
    step = train(model, probe=PROBE, attribution_loss=loss_on_probe)[0]
    for label, layer, call in (("1", "1", 1), ("3.relu.call2", "3.relu", 2)):
        heat, norms = reference(
            twin, layer, call=call, images=PROBE, loss=lambda z, _: loss_on_probe(z)
        )
        found = [one for one in step.attributions if one.layer_call.label == label]
        assert [one.sample for one in found] == [0, 1, 2]  # all of the probe, though samples=2
        assert all(one.of_probe and one.batch == 3 for one in found)
        np.testing.assert_allclose([one.heat for one in found], heat, rtol=1e-4, atol=1e-9)
        np.testing.assert_allclose([one.gradient for one in found], norms, rtol=1e-4)


def test_it_is_drawn_over_the_probe_and_says_whose_loss_it_is() -> None:
    step = train(residual_network(), probe=PROBE, attribution_loss=loss_on_probe)[0]
    for one in step.attributions:
        assert one.image is not None
        np.testing.assert_array_equal(one.image.values, PROBE[one.sample].numpy())
    texts = [tagged.description for tagged in step.pictures if tagged.kind == "attribution"]
    assert len(texts) == 6
    assert all("LayerCAM of `attribution_loss` on the probe, in eval mode" in t for t in texts)


def test_a_loss_per_image_is_averaged_and_one_image_does_not_change_another() -> None:
    def one_loss(output: Tensor) -> Tensor:
        return functional.cross_entropy(output, CLASSES[: len(output)], reduction="none")

    model = residual_network()
    of_three = train(copy.deepcopy(model), probe=PROBE, attribution_loss=one_loss)[0].attributions
    of_one = train(copy.deepcopy(model), probe=PROBE[:1], attribution_loss=one_loss)[0].attributions
    first = [one for one in of_three if one.sample == 0]
    for ours, alone in zip(first, of_one, strict=True):
        np.testing.assert_allclose(ours.heat * 3, alone.heat, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("frozen", [False, True])
def test_the_model_has_the_gradients_modes_and_buffers_of_the_training(frozen: bool) -> None:
    left = []
    for options in ({}, {"probe": PROBE, "attribution_loss": loss_on_probe}):
        torch.manual_seed(0)
        model = residual_network()
        model[3].norm1.eval()
        if frozen:
            model[0].requires_grad_(False)
        train(model, steps=3, **options)
        modes = [module.training for module in model.modules()]
        left.append((model.state_dict(), [p.grad for p in model.parameters()], modes))
    torch.testing.assert_close(left[0], left[1], rtol=0, atol=0)


def test_unlogged_steps_have_no_hook_and_no_further_pass() -> None:
    model, calls, kept = residual_network(), [], MemoryWriter()
    x, y = batch()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def loss(output: Tensor) -> Tensor:
        calls.append(hooks[-1])
        return loss_on_probe(output)

    hooks = [hook_count(model)]
    with fmapboard.watch(
        model, writer=kept, optimizer=optimizer, every=2, attribution=True, probe=PROBE,
        attribution_loss=loss,
    ):  # fmt: skip
        for step in range(4):
            hooks.append(hook_count(model))
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            if step % 2:
                assert hooks[-1] == hooks[0]
    assert len(calls) == 2
    assert [bool(step.attributions) for step in kept.steps] == [True, True]


def test_an_error_in_the_loss_leaves_the_training_alone(
    errors_are_only_logged: None, caplog: pytest.LogCaptureFixture
) -> None:
    step, later = train(
        residual_network(), steps=2, probe=PROBE, attribution_loss=lambda output: output
    )
    assert step.attributions == later.attributions == ()
    assert "attribution_loss returned tensor [3, 4]" in caplog.text


def test_checkpointing_that_cannot_stop_at_the_images_leaves_the_training_alone(
    errors_are_only_logged: None,
) -> None:
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = residual_network()

        def forward(self, x: Tensor) -> Tensor:
            found: Tensor = checkpoint(self.net, x.requires_grad_(), use_reentrant=True)
            return found

    bare, seen = Checkpointed(), Checkpointed()
    seen.load_state_dict(bare.state_dict())
    train(bare, attribution=False)
    train(seen, probe=PROBE, attribution_loss=loss_on_probe)
    for a, b in zip(bare.parameters(), seen.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"attribution_loss": 3, "probe": PROBE, "attribution": True}, "attribution_loss=int"),
        ({"attribution_loss": loss_on_probe, "attribution": True}, "requires probe="),
        ({"attribution_loss": loss_on_probe, "probe": PROBE}, "requires attribution="),
    ],
)
def test_a_loss_that_cannot_be_used_is_refused(options: dict[str, object], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        fmapboard.watch(residual_network(), writer=MemoryWriter(), **options)
