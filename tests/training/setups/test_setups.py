"""Many kinds of training loops: the logged gradients are those that the optimizer used."""

from __future__ import annotations

import math

import pytest
import torch
from gradient_norms import images, logged_norms, loss_of, true_norms
from logged_step import picture_tags
from networks import NetWithUnusedLayer
from torch import Tensor, nn

import fmapboard
from fmapboard.writers.folder import MemoryWriter

SGD = torch.optim.SGD


@pytest.mark.parametrize("fused", [False, True])
def test_norms_under_a_grad_scaler_are_unscaled(fused: bool) -> None:
    model, kept, x = NetWithUnusedLayer(), MemoryWriter(), images()
    optimizer = torch.optim.AdamW(model.parameters(), fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    expected = true_norms(model, x)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, scaler=scaler):
        scaler.scale(loss_of(model, x)).backward()
        scaler.step(optimizer)
        scaler.update()
    assert logged_norms(kept.steps[0]) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("fused", [False, True])
def test_a_step_that_the_scaler_skips_is_replaced_by_the_next_one(fused: bool, given: bool) -> None:
    model, kept = NetWithUnusedLayer(), MemoryWriter()
    optimizer = torch.optim.AdamW(model.parameters(), fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    board = fmapboard.watch(
        model, writer=kept, optimizer=optimizer, scaler=scaler if given else None, every=1
    )
    for bad in (True, False, False):
        optimizer.zero_grad()
        scaler.scale(loss_of(model, images()) * (math.inf if bad else 1.0)).backward()
        scaler.step(optimizer)
        scaler.update()
    board.close()
    assert [step.step for step in kept.steps] == [0, 1]
    assert all(math.isfinite(logged_norms(step)["total"]) for step in kept.steps)
    if given:
        assert [s.scalars["fmapboard/skipped_steps"] for s in kept.steps] == [1.0, 1.0]


@pytest.mark.parametrize("given", [True, False])
def test_a_skipped_step_marked_by_hand_has_no_norm(
    given: bool, caplog: pytest.LogCaptureFixture
) -> None:
    model, kept = NetWithUnusedLayer(), MemoryWriter()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    board = fmapboard.watch(model, writer=kept, scaler=scaler if given else None)
    with board.step(0):
        scaler.scale(loss_of(model, images()) * math.inf).backward()
        scaler.step(optimizer)
        scaler.update()
    board.close()
    assert logged_norms(kept.steps[0]) == {}
    assert kept.steps[0].scalars.get("fmapboard/skipped_steps") == (1.0 if given else None)
    assert caplog.messages == []


def test_accumulated_gradients_are_logged_once_as_their_sum() -> None:
    model, kept = NetWithUnusedLayer(), MemoryWriter()
    optimizer = SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1):
        for _ in range(2):
            for seed in range(3):
                loss_of(model, images(seed)).backward()
            expected = model.conv.weight.grad.norm().item()
            optimizer.step()
            optimizer.zero_grad()
    assert [step.step for step in kept.steps] == [0, 1]
    assert logged_norms(kept.steps[1])["conv.weight"] == pytest.approx(expected)


def test_the_logged_norm_is_the_norm_after_clipping() -> None:
    model, kept = NetWithUnusedLayer(), MemoryWriter()
    optimizer = SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer):
        loss_of(model, images()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        optimizer.step()
    assert logged_norms(kept.steps[0])["total"] == pytest.approx(1e-3, rel=1e-2)


@pytest.mark.parametrize("given", ["first", "last", "by hand"])
def test_two_optimizers_of_one_model_share_one_logged_step(
    given: str, caplog: pytest.LogCaptureFixture
) -> None:
    model, kept = NetWithUnusedLayer(), MemoryWriter()
    one = SGD(model.conv.parameters(), lr=0.1)
    other = SGD(model.head.parameters(), lr=0.1)
    optimizer = {"first": one, "last": other, "by hand": None}[given]
    board = fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1)
    expected = []
    for number in range(3):
        expected.append(true_norms(model, images(number)))

        def train(number: int = number) -> None:
            model.zero_grad()
            loss_of(model, images(number)).backward()
            one.step()
            other.step()

        if optimizer is None:
            with board.step(number):
                train()
        else:
            train()
    board.close()
    for step, true in zip(kept.steps, expected, strict=True):
        found = logged_norms(step)
        found.pop("total")
        assert found == pytest.approx({name: true[name] for name in found})
        assert ("head.weight" in found) == (given != "first")
        assert "feature_maps_4x3x3x3/conv" in picture_tags(step)
    said = [m for m in caplog.messages if "pass the one that steps last" in m]
    assert len(said) == (given == "first")


def test_the_two_models_of_a_gan_have_their_own_norms() -> None:
    models = {"generator": NetWithUnusedLayer(2), "critic": NetWithUnusedLayer(4)}
    models["generator"].head = nn.Linear(4, 4 * 8 * 8)
    generator, critic = models.values()
    kept = {name: MemoryWriter() for name in models}
    optimizers = {name: SGD(m.parameters(), lr=0.1) for name, m in models.items()}
    boards = [
        fmapboard.watch(m, writer=kept[n], optimizer=optimizers[n], every=1, name=n)
        for n, m in models.items()
    ]
    expected: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(3):
        fake = generator(torch.randn(2, 2, 8, 8)).view(2, 4, 8, 8)
        for name, score in (
            ("critic", lambda fake=fake: critic(fake.detach()) - critic(torch.randn(2, 4, 8, 8))),
            ("generator", lambda fake=fake: -critic(fake)),
        ):
            optimizers[name].zero_grad()
            score().sum().backward()
            gradients = [p.grad for p in models[name].parameters() if p.grad is not None]
            expected[name].append(math.hypot(*(g.norm().item() for g in gradients)))
            optimizers[name].step()
    for board in boards:
        board.close()
    for name, writer in kept.items():
        totals = [step.scalars[f"{name}.gradient_norm/total"] for step in writer.steps]
        assert totals == pytest.approx(expected[name])
        assert all(any("feature_maps" in tag for tag in picture_tags(s)) for s in writer.steps)


def test_optimizers_that_step_inside_the_backward_pass_have_norms() -> None:
    model, kept, x = NetWithUnusedLayer(), MemoryWriter(), images()
    optimizers = {p: SGD([p], lr=0.1) for p in model.parameters()}

    def step_now(parameter: Tensor) -> None:
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(step_now)
    expected = true_norms(model, x)
    probe = torch.zeros(1, 3, 8, 8)
    board = fmapboard.watch(model, writer=kept, probe=probe, activation_gradients=True)
    with board.step(0):
        loss_of(model, x).backward()
    board.close()
    assert logged_norms(kept.steps[0]) == pytest.approx(expected)
    assert picture_tags(kept.steps[0]) == {
        "feature_maps_4x3x3x3/conv",
        "gradients_of_maps_4x3x3x3/conv",
        "kernels_4x3x3x3/conv",
        "network_input/sample_0",
    }


def test_frozen_and_unused_parameters_have_histograms_of_weights_but_no_norm() -> None:
    model, kept = NetWithUnusedLayer(), MemoryWriter()
    model.conv.requires_grad_(False)
    optimizer = SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, activation_gradients=True):
        loss_of(model, images()).backward()
        optimizer.step()
    (step,) = kept.steps
    assert set(logged_norms(step)) == {"total", "head.weight", "head.bias"}
    assert {"weights/conv.weight", "weights/conv.bias"} < {h.tag for h in step.histograms}
    assert "gradients/conv.weight" not in {h.tag for h in step.histograms}
    assert "feature_maps_4x3x3x3/conv" in picture_tags(step)


def test_sparse_gradients_have_the_norm_of_their_dense_form() -> None:
    class Words(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(6, 48, sparse=True)
            self.conv = nn.Conv2d(3, 4, 3)

        def forward(self, index: Tensor) -> Tensor:
            return self.conv(self.words(index).view(-1, 3, 4, 4))

    model, kept = Words(), MemoryWriter()
    optimizer = torch.optim.SparseAdam([model.words.weight])
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, layers=nn.Embedding):
        model(torch.tensor([1, 1, 5])).square().sum().backward()
        dense = model.words.weight.grad.to_dense()
        optimizer.step()
    (step,) = kept.steps
    assert logged_norms(step)["words.weight"] == pytest.approx(dense.norm().item())
    sampled = next(h for h in step.histograms if h.tag == "gradients/words.weight")
    assert sampled.counts.sum() == 2 * 48  # the rows that have a gradient
