"""The loss is read from the output of the training pass and its gradient, with the user's value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from recorded_facts import training_facts
from torch import Tensor, nn
from torch.nn import functional as F

import fmapboard
from fmapboard.formats.training_facts import HeldLoss
from fmapboard.writers.folder import MemoryWriter

IMAGES, CLASSES, STEPS = 16, 4, 3


class Network(nn.Module):
    """Convolution and two heads, whose outputs are arranged by a function."""

    def __init__(self, arrange: Callable[[Tensor, Tensor], Any] = lambda a, b: a) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2))
        self.head, self.other = nn.Linear(32, CLASSES), nn.Linear(32, CLASSES)
        self.arrange = arrange

    def forward(self, images: Tensor) -> Any:
        hidden = self.body(images).flatten(1)
        return self.arrange(self.head(hidden), self.other(hidden))


def data(step: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(step)
    labels = torch.randint(0, CLASSES, (IMAGES,), generator=generator)
    return torch.randn(IMAGES, 3, 12, 12, generator=generator), labels


def trained(
    model: nn.Module,
    loss: Callable[[Any, Tensor], Tensor],
    call: Callable[[Any, Tensor], Any] = lambda model, images: model(images),
    **options: Any,
) -> tuple[MemoryWriter, list[float]]:
    """Train for a few logged steps; the values of the loss."""
    kept, values = MemoryWriter(), list[float]()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1, **options):
        for step in range(STEPS):
            images, labels = data(step)
            optimizer.zero_grad()
            value = loss(call(model, images), labels)
            value.backward()
            optimizer.step()
            values.append(float(value.detach()))
    return kept, values


def scalars(kept: MemoryWriter, tag: str) -> dict[int, float]:
    """Step -> value, with those that were written at a later step."""
    found: dict[int, float] = {}
    for step in kept.steps:
        for at, values in {**step.earlier, step.step: step.scalars}.items():
            found |= {at: values[tag]} if tag in values else {}
    return found


READ = "loss/read_from_gradient"


def test_the_loss_that_is_read_is_the_users() -> None:
    kept, values = trained(Network(), F.cross_entropy)
    assert scalars(kept, READ) == pytest.approx(dict(enumerate(values)), rel=1e-5)
    assert all(0 <= share <= 1 for share in scalars(kept, "loss/accuracy").values())
    assert list(scalars(kept, "output/spread")) == list(range(STEPS))
    assert list(kept.steps[1].earlier) == [0]


def test_at_the_first_step_nothing_is_certain_and_at_the_second_both_are() -> None:
    kept, values = trained(Network(), F.cross_entropy)
    first, second, third = (one.outputs[0] for one in training_facts(kept.steps).values())
    assert (first.kind, first.loss, first.labels, first.classes) == ("not certain", None, None, 4)
    assert (second.kind, third.kind) == ("cross-entropy", "cross-entropy")
    assert isinstance(second.held, HeldLoss)
    assert second.held.step == 0
    assert second.held.loss == pytest.approx(values[0], rel=1e-5)
    assert third.held is None
    labels = data(2)[1]
    assert dict(third.labels or ()) == Counter(labels.tolist())
    assert third.label_changes == int((labels[1:] != labels[:-1]).sum())


def test_with_a_scaled_loss_the_value_is_that_of_the_unscaled_one() -> None:
    kept, values = trained(Network(), lambda out, labels: F.cross_entropy(out, labels) / 4)
    expected = {step: 4 * value for step, value in enumerate(values)}
    assert scalars(kept, READ) == pytest.approx(expected, rel=1e-5)


def test_of_another_loss_only_the_spread_is_written() -> None:
    kept, _ = trained(Network(), lambda out, labels: out.square().mean())
    assert scalars(kept, READ) == {}
    assert training_facts(kept.steps)[2].outputs[0].kind == "not certain"
    assert kept.steps[0].scalars["output/spread"] > 0


def test_a_loss_that_is_climbed_is_named() -> None:
    kept, _ = trained(Network(), lambda out, labels: -F.cross_entropy(out, labels))
    found = training_facts(kept.steps)[2].outputs[0]
    assert (found.kind, found.is_climbed) == ("cross-entropy", True)


def test_a_softmax_before_the_loss_is_named() -> None:
    model = Network(lambda out, _: out.softmax(1))
    kept, _ = trained(model, F.cross_entropy)
    found = training_facts(kept.steps)[2].outputs[0]
    assert (found.rows_are, found.is_softmax_of_softmax) == ("probabilities", True)


def test_each_of_several_outputs_has_its_name_in_the_tags() -> None:
    model = Network(lambda out, other: {"out": out, "aux": [other]})

    def loss(found: Any, labels: Tensor) -> Tensor:
        auxiliary = F.cross_entropy(found["aux"][0], labels)
        return F.cross_entropy(found["out"], labels) + 0.4 * auxiliary

    kept, values = trained(model, loss)
    read, auxiliary = scalars(kept, f"{READ}/out"), scalars(kept, f"{READ}/aux.0")
    total = {step: read[step] + 0.4 * auxiliary[step] for step in range(STEPS)}
    assert total == pytest.approx(dict(enumerate(values)), rel=1e-5)


@dataclass
class Output:
    loss: Tensor
    logits: Tensor
    unused: Tensor


def test_a_loss_that_the_model_returns_is_the_loss() -> None:
    class WithLoss(Network):
        def forward(self, images: Tensor) -> Output:
            logits = super().forward(images)
            return Output(logits.square().mean(), logits, self.other(torch.ones(IMAGES, 32)))

    kept, values = trained(WithLoss(), lambda out, labels: out.loss)
    assert scalars(kept, f"{READ}/loss") == pytest.approx(dict(enumerate(values)))
    names = [one.name for one in training_facts(kept.steps)[2].outputs]
    assert names == ["loss", "logits"]  # the third has no gradient


def test_where_parts_are_called_instead_of_the_model_the_last_is_the_output() -> None:
    def call(model: Network, images: Tensor) -> Tensor:
        return model.head(model.body(images).flatten(1).clone())  # type: ignore[no-any-return]

    kept, values = trained(Network(), F.cross_entropy, call)
    assert scalars(kept, READ) == pytest.approx(dict(enumerate(values)), rel=1e-5)
    assert [one.shape for one in training_facts(kept.steps)[2].outputs] == [(IMAGES, CLASSES)]


class Doubled(nn.Module):
    """As an augmentation: a module without parameters."""

    def forward(self, images: Tensor) -> Tensor:
        return images * 2


def test_where_parts_are_called_the_first_with_parameters_receives_the_input() -> None:
    model = Network()
    model.body.insert(1, nn.BatchNorm2d(8))
    model.augment = Doubled()

    def call(model: Network, images: Tensor) -> Tensor:
        with torch.no_grad():
            model.body(images[:2])  # as that of a teacher
        return model.head(model.body(model.augment(images)).flatten(1))  # type: ignore[no-any-return]

    kept, values = trained(model, F.cross_entropy, call)
    whole, _ = trained(Network(), F.cross_entropy, lambda model, images: model(2 * images))
    own, expected = training_facts(kept.steps)[2], training_facts(whole.steps)[2]
    assert own.batch == expected.batch == IMAGES
    assert own.batch_digest == expected.batch_digest is not None
    assert "network_input/sample_0" in [tagged.tag for tagged in kept.steps[2].pictures]
    assert scalars(kept, "batchnorm_gap/body.1").keys() == set(range(STEPS))
    assert scalars(kept, READ) == pytest.approx(dict(enumerate(values)), rel=1e-5)


def test_where_two_heads_are_called_both_are_outputs() -> None:
    def call(model: Network, images: Tensor) -> tuple[Tensor, Tensor]:
        hidden = model.body(images).flatten(1)
        return model.head(hidden), model.other(hidden)

    def loss(found: tuple[Tensor, Tensor], labels: Tensor) -> Tensor:
        return F.cross_entropy(found[0], labels) + F.cross_entropy(found[1], labels)

    kept, values = trained(Network(), loss, call)
    first, second = scalars(kept, f"{READ}/head"), scalars(kept, f"{READ}/other")
    total = {step: first[step] + second[step] for step in range(STEPS)}
    assert total == pytest.approx(dict(enumerate(values)), rel=1e-5)


def test_of_accumulated_batches_the_first_counts() -> None:
    model, kept, expected = Network(), MemoryWriter(), {}
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1):
        for step in range(STEPS):
            for part in range(2):
                images, labels = data(2 * step + part)
                value = F.cross_entropy(model(images), labels)
                (value / 2).backward()
                if not part:
                    expected[step] = float(value.detach())
            optimizer.step()
            optimizer.zero_grad()
    assert scalars(kept, READ) == pytest.approx(expected, rel=1e-5)


def test_a_pass_whose_gradient_is_the_sum_of_two_is_read() -> None:
    def loss(out: Tensor, labels: Tensor) -> Tensor:
        (0.5 * F.cross_entropy(out, labels)).backward(retain_graph=True)
        return F.cross_entropy(out, labels)

    kept, values = trained(Network(), loss)
    assert scalars(kept, READ) == pytest.approx(dict(enumerate(values)), rel=1e-5)


def test_the_output_of_a_compiled_model_is_that_of_the_training_pass() -> None:
    model = torch.compile(Network(), backend="eager")
    kept, values = trained(model, F.cross_entropy)  # type: ignore[arg-type]
    assert scalars(kept, READ) == pytest.approx(dict(enumerate(values)), rel=1e-5)


def test_without_checks_no_output_is_recorded() -> None:
    kept, _ = trained(Network(), F.cross_entropy, checks=False)
    written = {tag for one in kept.steps for tag in one.scalars}
    assert not any(tag.startswith(("loss/", "output/")) for tag in written)


def test_training_is_bitwise_the_same() -> None:
    def weights(*, watched: bool) -> list[Tensor]:
        torch.manual_seed(0)
        model = Network(lambda out, other: {"out": out, "aux": other})
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        board = None
        if watched:
            board = fmapboard.watch(model, writer=MemoryWriter(), optimizer=optimizer, every=1)
        for step in range(STEPS):
            images, labels = data(step)
            optimizer.zero_grad()
            found = model(images)
            (F.cross_entropy(found["out"], labels) + F.mse_loss(*found.values())).backward()
            optimizer.step()
        if board is not None:
            board.close()
        return list(model.state_dict().values())

    for alone, seen in zip(weights(watched=False), weights(watched=True), strict=True):
        assert torch.equal(alone, seen)


def hardest(kept: MemoryWriter) -> dict[int, tuple[str, tuple[int, ...]]]:
    """Step -> description and size of the picture of the images with the highest loss."""
    return {
        step.step: (tagged.description, tagged.samples[0].pixels.shape)
        for step in kept.steps
        for tagged in step.pictures
        if tagged.tag == "network_input/highest_loss"
    }


def test_the_images_with_the_highest_loss_are_drawn_once_the_loss_is_certain() -> None:
    model, seen = Network(), list[Tensor]()

    def loss(out: Tensor, labels: Tensor) -> Tensor:
        seen.append(F.cross_entropy(out.detach(), labels, reduction="none"))
        return F.cross_entropy(out, labels)

    kept, _ = trained(model, loss)
    found = hardest(kept)
    assert list(found) == [1, 2]
    highest = ", ".join(str(n) for n in seen[2].topk(8).indices.tolist())
    assert f"samples {highest} of this step" in found[2][0]
    assert found[2][1][2] == 3


def test_of_a_loss_that_is_not_read_no_images_are_drawn() -> None:
    kept, _ = trained(Network(), lambda out, labels: out.square().mean())
    assert hardest(kept) == {}


def test_images_that_were_overwritten_are_not_drawn() -> None:
    def call(model: Network, images: Tensor) -> Tensor:
        found: Tensor = model(images)
        images.zero_()
        return found

    model = Network()
    model.body[0].weight.requires_grad_(False)  # the images are not needed in the backward pass
    model.body[0].bias.requires_grad_(False)  # type: ignore[union-attr]
    kept, _ = trained(model, F.cross_entropy, call)
    assert len(scalars(kept, READ)) == STEPS
    assert hardest(kept) == {}


def test_a_loss_and_labels_that_are_given_are_logged_as_they_are() -> None:
    model, kept, expected = Network(), MemoryWriter(), dict[int, float]()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=2) as board:
        for step in range(5):
            images, labels = data(step)
            out = model(images)
            each = (out - F.one_hot(labels, CLASSES)).square().sum(1)
            board.loss(each, labels)
            board.loss(0.0)  # the first counts
            expected |= {step: float(each.detach().mean())} if step % 2 == 0 else {}
            optimizer.zero_grad()
            each.mean().backward()
            optimizer.step()
    assert scalars(kept, "loss/given") == pytest.approx(expected)
    assert scalars(kept, READ) == {}
    assert len(scalars(kept, "loss/accuracy")) == 3
    found = training_facts(kept.steps)[4].outputs[0]
    assert (found.given, found.kind, found.shape) == (True, "not certain", (IMAGES, CLASSES))
    assert dict(found.labels or ()) == Counter(data(4)[1].tolist())


def test_a_loss_that_is_given_stands_in_for_the_one_that_is_read() -> None:
    model, kept = Network(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1) as board:
        for step in range(STEPS):
            images, labels = data(step)
            loss = F.cross_entropy(model(images), labels)
            board.loss(step + 1.0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert scalars(kept, "loss/given") == {0: 1.0, 1: 2.0, 2: 3.0}
    assert scalars(kept, READ) == {}
    assert training_facts(kept.steps)[2].outputs[0].kind == "cross-entropy"
