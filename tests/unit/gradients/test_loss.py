"""The loss is read from an output and its gradient, or nothing is read."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest
import torch
from loss_cases import NUMBERS, OF_LOGARITHMS, OTHERS, READABLE, Numbers, case_of, gradient
from torch import Tensor
from torch.nn import functional as F

from fmapboard.formats.training_facts import LossKind, OutputFacts
from fmapboard.gradients.loss import LEAST_ROWS, read
from fmapboard.gradients.output_facts import OutputReader
from fmapboard.gradients.outputs import PendingOutput

SINGLE, BRAIN, HALF = NUMBERS[:3]


@pytest.mark.parametrize("state", ["initial", "trained"])
@pytest.mark.parametrize("numbers", [SINGLE, BRAIN, HALF], ids=str)
@pytest.mark.parametrize("title", READABLE)
def test_a_loss_is_read_with_its_value(title: str, numbers: Numbers, state: str) -> None:
    known, case = READABLE[title], case_of(3, numbers, state, 10)
    output = known.prepare(case.logits[:, : known.units]).to(numbers.dtype)
    found = read(output, gradient(known.loss, output, case))
    assert found.kind == known.kind
    assert found.losses is not None
    assert not found.is_climbed
    value = float(known.value(output.double(), case.labels, torch.Generator().manual_seed(3)))
    limit = 1e-3 if numbers is SINGLE else 2e-2
    assert found.losses.mean() == pytest.approx(value, rel=limit)


@pytest.mark.parametrize("title", ["cross-entropy, mean", "class weights", "ignore_index"])
def test_the_labels_are_those_of_the_rows_with_a_gradient(title: str) -> None:
    case = case_of(0, SINGLE, "trained", 10)
    found = read(case.logits, gradient(READABLE[title].loss, case.logits, case))
    assert found.labels is not None
    assert found.labels.tolist() == case.labels[found.rows].tolist()
    assert len(found.rows) == (48 if title == "ignore_index" else 64)


@pytest.mark.parametrize("numbers", [SINGLE, BRAIN], ids=str)
@pytest.mark.parametrize("classes", [3, 10, 100])
def test_a_softmax_between_the_output_and_the_loss_is_seen(classes: int, numbers: Numbers) -> None:
    case = case_of(2, numbers, "trained", classes)
    output = case.logits.to(numbers.dtype).float().requires_grad_()
    F.cross_entropy(output.softmax(1), case.labels).backward()  # type: ignore[no-untyped-call]
    assert output.grad is not None
    found = read(output.detach(), output.grad)
    assert found.kind == LossKind.SOFTMAX_TWICE
    assert found.labels is not None
    assert found.losses is not None
    assert found.labels.tolist() == case.labels[found.rows].tolist()
    value = float(F.cross_entropy(output.detach().double().softmax(1), case.labels))
    assert found.losses.mean() == pytest.approx(value, rel=1e-3)
    of_step = PendingOutput("", tuple(output.shape), (1, 1), output.detach(), output.grad)
    facts = OutputReader().read(of_step).facts
    assert facts is not None
    assert facts.is_softmax_of_softmax
    assert facts.rows_are == "any"


EQUAL = {"bootstrapping, probabilities detached"}
"""Losses with the gradient of cross-entropy."""


@pytest.mark.parametrize("classes", [3, 10, 100])
@pytest.mark.parametrize("size", [0.05, 1.0, 8.0])
def test_the_logarithm_that_is_missing_in_front_of_nll_is_seen(classes: int, size: float) -> None:
    labels = case_of(2, SINGLE, "trained", classes).labels
    logits = size * torch.randn(64, classes, generator=torch.Generator().manual_seed(5))
    losses: dict[str, Callable[[Tensor], Tensor]] = {
        "softmax": lambda x: F.nll_loss(x.softmax(1), labels),
        "probabilities": lambda x: F.nll_loss(x, labels),
        "powers": lambda x: -(x.softmax(1).gather(1, labels[:, None]) ** 0.9).mean(),
        "logarithm": lambda x: F.nll_loss(x.log(), labels),
    }
    found = {}
    for name, loss in losses.items():
        own = logits.softmax(1) if name in ("probabilities", "logarithm") else logits
        output = own.clone().requires_grad_()
        loss(output).backward()  # type: ignore[no-untyped-call]
        assert output.grad is not None
        found[name] = read(output.detach(), output.grad)
    kinds = {name for name, one in found.items() if one.kind == LossKind.NLL_OF_PROBABILITIES}
    assert kinds == {"softmax", "probabilities"}
    output = logits.clone().requires_grad_()
    F.nll_loss(output, labels).backward()  # type: ignore[no-untyped-call]
    assert output.grad is not None
    found["logits"] = read(output.detach(), output.grad)
    assert found["logits"].kind == LossKind.NLL_OF_LOGITS
    for name in (*kinds, "logits"):
        assert found[name].losses is None
        assert (found[name].labels == labels.numpy()).all()


@pytest.mark.parametrize("classes", [3, 10, 100])
def test_a_score_that_is_maximized_is_no_nll(classes: int) -> None:
    for seed in range(8):
        logits = torch.randn(64, classes, generator=torch.Generator().manual_seed(seed))
        output = logits.requires_grad_()
        (-output.max(1).values.mean()).backward()
        assert output.grad is not None
        assert read(output.detach(), output.grad).kind == "not certain"


def facts_of(output: Tensor, loss: Callable[[Tensor], Tensor]) -> OutputFacts:
    output = output.clone().requires_grad_()
    loss(output).backward()  # type: ignore[no-untyped-call]
    of_step = PendingOutput("", tuple(output.shape), (1, 1), output.detach(), output.grad)
    facts = OutputReader().read(of_step).facts
    assert facts is not None
    return facts


def pulled(output: Tensor, loss: Callable[[Tensor], Tensor]) -> float:
    return facts_of(output, loss).pulled


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_labels_beyond_1_of_bce_are_seen(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    output = torch.randn(64, 1, 8, 8, generator=generator).to(dtype)
    mask = (torch.randn(64, 1, 8, 8, generator=generator) > 0).to(dtype)
    bce = partial(partial, F.binary_cross_entropy_with_logits)
    for top in (255, 2):
        found = facts_of(output, bce(target=top * mask))
        assert found.kind == LossKind.BEYOND_1
        assert max(dict(found.labels or ())) == pytest.approx(top, abs=1 if top == 255 else 0)
    assert facts_of(output, bce(target=mask)).kind == "BCE with logits"
    classes = torch.randint(5, (64, 1, 8, 8), generator=generator).to(dtype)
    found = facts_of(output, bce(target=classes))
    assert found.kind == LossKind.BEYOND_1
    assert dict(found.labels or ()) == Counter(int(label) for label in classes.flatten())
    for other in (0.9 * mask, classes + 0.5 * mask, 2000 * mask):
        assert facts_of(output, bce(target=other)).kind == "not certain"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_labels_of_minus_1_and_1_of_bce_are_seen(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    output = torch.randn(64, 1, generator=generator).to(dtype)
    signs = (torch.randn(64, 1, generator=generator) > 0).to(dtype) * 2 - 1
    bce = partial(partial, F.binary_cross_entropy_with_logits)
    found = facts_of(output, bce(target=signs))
    assert found.kind == LossKind.BELOW_0
    assert dict(found.labels or ()) == Counter(int(label) for label in signs.flatten())
    others = [
        lambda x: F.soft_margin_loss(x, signs),  # what these labels are for
        lambda x: F.mse_loss(x, signs),
        lambda x: F.hinge_embedding_loss(x, signs),
        lambda x: F.relu(1 - signs * x).mean(),
        lambda x: -(signs * x).mean(),
    ]
    for other in others:
        assert facts_of(output, other).kind != LossKind.BELOW_0


def test_the_factor_of_the_mean_loss_is_read() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(64, 10, generator=generator)
    classes = torch.randint(10, (64,), generator=generator)
    entropy = partial(partial, F.cross_entropy, target=classes)
    assert facts_of(logits, entropy()).factor == pytest.approx(1)
    assert facts_of(logits, entropy(reduction="sum")).factor == pytest.approx(64)
    assert facts_of(logits, lambda x: F.cross_entropy(x, classes) / 4).factor == pytest.approx(0.25)
    assert facts_of(logits, lambda x: F.cross_entropy(x, classes) * 65536).factor is None
    many = torch.randn(256, 10, generator=generator)  # 256 is a power of two, but their number
    of_many = torch.randint(10, (256,), generator=generator)
    summed = facts_of(many, lambda x: F.cross_entropy(x, of_many, reduction="sum"))
    assert summed.factor == pytest.approx(256)
    assert facts_of(many, lambda x: F.cross_entropy(x, of_many) * 512).factor is None
    pixels = torch.randn(8, 5, 4, 4, generator=generator)
    of_pixels = torch.randint(5, (8, 4, 4), generator=generator)
    summed = facts_of(pixels, lambda x: F.cross_entropy(x, of_pixels, reduction="sum"))
    assert summed.factor == pytest.approx(128)
    masks = (torch.randn(64, 3, generator=generator) > 0).float()
    bce = partial(F.binary_cross_entropy_with_logits, target=masks)
    assert facts_of(masks * 0 + logits[:, :3], bce).factor == pytest.approx(1)
    assert facts_of(logits, lambda x: F.mse_loss(x, logits + 1)).factor is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("share", "size", "least"), [(0.5, 25, 12), (0.1, 25, 12), (0.1, 0.01, 0)])
def test_the_absolute_error_is_no_bce_of_labels_beyond_1(
    dtype: torch.dtype, share: float, size: float, least: float
) -> None:
    generator = torch.Generator().manual_seed(0)
    output = (torch.rand(32, 1, generator=generator) * size + least).to(dtype)
    target = output + torch.randn(32, 1, generator=generator).to(dtype)

    def quantile(x: Tensor) -> Tensor:
        return torch.maximum(share * (x - target), (share - 1) * (x - target)).mean()

    assert facts_of(output, quantile).kind == "not certain"


def test_the_one_value_that_broadcast_targets_pull_outputs_to_is_found() -> None:
    generator = torch.Generator().manual_seed(0)
    output, targets = torch.randn(16, 1, generator=generator), torch.rand(16, generator=generator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # PyTorch says it too, but once
        found = facts_of(output, lambda x: F.mse_loss(x, targets)).target
        turned = facts_of(output[:, 0], lambda x: F.mse_loss(x, targets[:, None])).target
    assert [found, turned] == pytest.approx([float(targets.mean())] * 2, rel=1e-4)
    losses: dict[str, Callable[[Tensor], Tensor]] = {
        "right": lambda x: F.mse_loss(x[:, 0], targets),
        "variance": lambda x: x.var(),
        "mean": lambda x: x.mean(),
        "raised": lambda x: -F.mse_loss(x, torch.ones_like(x)),
        "far": lambda x: F.mse_loss(x, torch.full_like(x, 40.0)),
        "critic": lambda x: F.binary_cross_entropy(1 - 0.01 * x.sigmoid(), torch.ones_like(x)),
    }
    assert [name for name, loss in losses.items() if facts_of(output, loss).target] == []
    sure = 1 - 0.01 * torch.rand(16, 1, generator=generator)  # of a critic with a sigmoid
    loss = partial(F.binary_cross_entropy, target=torch.ones(16, 1))
    assert facts_of(sure, loss).target is None
    assert facts_of(output[:7], lambda x: x.square().sum()).target is None


def test_how_far_targets_are_that_differ_and_are_all_on_one_side() -> None:
    generator = torch.Generator().manual_seed(0)
    output, noise = (torch.rand(32, 1, generator=generator) for _ in range(2))
    far = facts_of(output, partial(F.mse_loss, target=200 + 50 * noise))
    assert far.away == pytest.approx(float((200 + 50 * noise - output).mean() / output.max()))
    assert not far.is_pulled_apart
    ahead = facts_of(output, partial(F.mse_loss, target=200 + 100 * output))
    assert ahead.away > 200  # of outputs that are already in the order of the targets
    maps, others = (torch.rand(32, 1, 8, 8, generator=generator) for _ in range(2))
    assert 140 < facts_of(maps, partial(F.mse_loss, target=100 + 99 * others)).away < 160
    gradient = (maps - 100 - 99 * others) * 2 / maps.numel()  # of which each second pixel is kept
    halved = PendingOutput("", (32, 1, 8, 8), (1, 1, 2, 1), maps[:, :, ::2], gradient[:, :, ::2])
    facts = OutputReader().read(halved).facts
    assert facts is not None
    assert 140 < facts.away < 160
    assert not facts_of(maps, partial(F.mse_loss, target=others)).is_pulled_apart  # no one unit
    around = facts_of(output, partial(F.mse_loss, target=noise))
    assert (around.away, around.is_pulled_apart) == (0.0, True)
    one = torch.ones(32, 1)
    critics: list[Callable[[Tensor], Tensor]] = [
        lambda x: -x.mean(),
        lambda x: F.softplus(-x).mean(),
        lambda x: F.mse_loss(x, 40 * one),
        lambda x: (2 - x).relu().mean(),
    ]
    for critic in critics:
        found = facts_of(output, critic)
        assert (found.away, found.is_pulled_apart) == (0.0, False)


@pytest.mark.parametrize("shape", [(64, 5), (4, 3, 12, 12)])
def test_values_at_an_end_that_the_loss_pulls_further_are_counted(shape: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    targets = torch.randn(shape, generator=generator)
    near = (targets + 0.1 * torch.randn(shape, generator=generator)).clamp(0, 1)
    mask = (targets > 0).float()
    sure = (mask + 0.02 * torch.randn(shape, generator=generator)).clamp(1e-3, 1 - 1e-3)
    assert pulled(near, lambda x: F.mse_loss(x, targets)) > 0.4
    assert pulled(-near, lambda x: F.smooth_l1_loss(x, -targets)) > 0.4
    assert pulled(near.clamp(min=0.2), lambda x: F.mse_loss(x, targets)) > 0.4
    assert pulled(near, lambda x: F.mse_loss(x, targets.clamp(0, 1))) == 0
    assert pulled(targets, lambda x: F.mse_loss(x, near)) < 0.1  # it has no end
    assert pulled(sure, lambda x: F.binary_cross_entropy(x, mask)) == 0
    assert pulled(sure, lambda x: F.l1_loss(x, mask)) == 0
    assert pulled(near, lambda x: F.mse_loss(x, targets) * float("inf")) == 0
    collapsed = 0.5 + 0.1 * near  # and no end
    assert pulled(collapsed, lambda x: F.mse_loss(x, targets)) == 0
    assert pulled(sure, lambda x: -2 * (x * mask).sum() / (x + mask).sum()) == 0


@pytest.mark.parametrize("title", sorted(OTHERS.keys() - EQUAL))
def test_no_value_is_read_of_another_loss(title: str) -> None:
    for numbers in (SINGLE, BRAIN):
        for state in ("initial", "trained", "1e-3"):
            case = case_of(1, numbers, state, 10)
            output = case.logits.to(numbers.dtype)
            assert read(output, gradient(OTHERS[title], output, case)).losses is None


@pytest.mark.parametrize("numbers", [SINGLE, BRAIN], ids=str)
def test_of_large_logits_the_loss_is_read_and_no_other_one(numbers: Numbers) -> None:
    case = case_of(1, numbers, "trained", 10)
    output = (10 * case.logits).to(numbers.dtype)
    found = read(output, gradient(READABLE["cross-entropy, mean"].loss, output, case))
    assert found.losses is not None
    expected = float(F.cross_entropy(output.double(), case.labels))
    assert found.losses.mean() == pytest.approx(expected, rel=1e-3)
    assert output.max() > 50
    for title in OTHERS.keys() - EQUAL:
        assert read(output, gradient(OTHERS[title], output, case)).losses is None, title


def test_large_logits_of_rows_without_a_gradient_are_not_read() -> None:
    case = case_of(1, SINGLE, "trained", 10)
    output, loss = case.logits.clone(), READABLE["cross-entropy, mean"].loss
    output[0] = 100 * F.one_hot(case.labels[0], 10)
    assert not gradient(loss, output, case)[0].any()
    assert read(output, gradient(loss, output, case)).losses is None


@pytest.mark.parametrize("title", OF_LOGARITHMS)
def test_no_value_is_read_of_another_loss_of_log_probabilities(title: str) -> None:
    for state in ("initial", "trained"):
        case = case_of(1, SINGLE, state, 10)
        output = case.logits.log_softmax(1)
        assert read(output, gradient(OF_LOGARITHMS[title], output, case)).losses is None


@pytest.mark.parametrize("title", ["focal", "weights per sample"])
def test_of_a_loss_in_the_same_direction_the_labels_are_read(title: str) -> None:
    case = case_of(0, SINGLE, "trained", 10)
    found = read(case.logits, gradient(OTHERS[title], case.logits, case))
    assert found.kind == "weighted per sample"
    assert found.labels is not None
    assert found.labels.tolist() == case.labels.tolist()


@pytest.mark.parametrize("classes", [2, 10])
def test_a_loss_that_is_climbed_is_named(classes: int) -> None:
    case = case_of(0, SINGLE, "trained", classes)
    found = read(case.logits, -gradient(READABLE["cross-entropy, mean"].loss, case.logits, case))
    assert (found.kind, found.is_climbed) == ("cross-entropy", True)


def test_labels_that_are_mixed_and_smoothed_are_read_as_mixed() -> None:
    def loss(output: torch.Tensor, labels: torch.Tensor, _: torch.Generator) -> torch.Tensor:
        first = F.cross_entropy(output, labels, label_smoothing=0.1)
        return 0.7 * first + 0.3 * F.cross_entropy(output, labels.flip(0), label_smoothing=0.1)

    case = case_of(0, SINGLE, "trained", 10)
    found = read(case.logits, gradient(loss, case.logits, case))
    assert found.kind == "cross-entropy, mixed labels"
    assert found.losses is not None
    value = float(loss(case.logits, case.labels, torch.Generator()))
    assert found.losses.mean() == pytest.approx(value, rel=1e-3)


def test_of_two_classes_no_weights_per_sample_are_claimed() -> None:
    case = case_of(0, SINGLE, "trained", 2)
    found = read(case.logits, gradient(OTHERS["policy gradient"], case.logits, case))
    assert found.kind == "not certain"


def test_probabilities_into_cross_entropy_are_read_as_what_they_are() -> None:
    case = case_of(0, SINGLE, "initial", 10)
    rows = case.logits.softmax(1)
    found = read(rows, gradient(READABLE["cross-entropy, mean"].loss, rows, case))
    assert found.kind == "cross-entropy"
    assert found.losses is not None
    assert found.losses.mean() == pytest.approx(float(F.cross_entropy(rows, case.labels)))


@pytest.mark.parametrize("rows", [0, LEAST_ROWS - 1])
def test_with_too_few_rows_nothing_is_read(rows: int) -> None:
    case = case_of(0, SINGLE, "trained", 10)
    given = gradient(READABLE["cross-entropy, mean"].loss, case.logits, case)
    assert read(case.logits[:rows], given[:rows]).kind == "not certain"


def test_a_gradient_that_is_not_finite_is_not_read() -> None:
    case = case_of(0, SINGLE, "trained", 10)
    given = gradient(READABLE["cross-entropy, mean"].loss, case.logits, case)
    given[3, 4] = float("inf")
    assert read(case.logits, given).kind == "not certain"
