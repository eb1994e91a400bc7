"""Experiments that change a part of the input or of the labels; each fault has a healthy twin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import fmapboard
from fmapboard.rehearsal import function_calls
from fmapboard.rehearsal.experiments import EXPERIMENTS
from fmapboard.rehearsal.result import Rehearsal

CLASSES = 4
DRAWN = torch.Generator().manual_seed(3)
COUNT = 96


def drawn(*shape: int) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(len(shape)))


LABELS = torch.randint(CLASSES, (COUNT,), generator=DRAWN)
PIXELS = torch.rand(COUNT, 3, 8, 8, generator=DRAWN)
PIXELS[torch.arange(COUNT), :, LABELS * 2] += 1.0
TEXT = torch.randint(2, 30, (COUNT, 12), generator=DRAWN)
FIRST = TEXT[:, 0] % CLASSES
LENGTHS = torch.randint(4, 13, (COUNT,), generator=DRAWN)
VALID = (torch.arange(12)[None] < LENGTHS[:, None]).long()
SERIES = torch.randn(COUNT, 17, 2, generator=DRAWN).cumsum(1) / 4


class Case(NamedTuple):
    """A training: its network, tensors of its batches, loss, and factor of the rate of the head."""

    model: nn.Module
    tensors: tuple[Tensor, ...]
    loss: Any = functional.cross_entropy
    keys: tuple[str, ...] = ()
    head_rate: float = 1.0
    decay: float = 0.0


class Net(nn.Module):
    """A network whose forward pass is a function of its layers and the input."""

    def __init__(self, layers: dict[str, nn.Module], run: Callable[..., Tensor]) -> None:
        super().__init__()
        for name, layer in layers.items():
            self.add_module(name, layer)
        self.run = run

    def forward(self, x: Tensor) -> Tensor:
        return self.run(self, x)


class Paired(Net):
    """The same with a second argument."""

    def forward(self, x: Tensor, other: Tensor) -> Tensor:  # type: ignore[override]
        return self.run(self, x, other)


def perceptron(outputs: int = CLASSES, inputs: int = 192) -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, 32), nn.ReLU(), nn.Linear(32, outputs))


def encoder(**layers: nn.Module) -> dict[str, nn.Module]:
    """An embedding with positions, one layer of a transformer, and a head."""
    return {
        "embed": nn.Embedding(30, 16),
        "place": nn.Embedding(16, 16),
        "body": nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True),
        "head": nn.Linear(16, CLASSES),
        **layers,
    }


def embedded(net: Any, tokens: Tensor) -> Tensor:
    return net.embed(tokens) + net.place(torch.arange(tokens.shape[1]))  # type: ignore[no-any-return]


def of_tokens(label: int) -> Callable[[Tensor, Any], Tensor]:
    """Cross-entropy of outputs [N, T, C] with one of the tensors of the batch."""
    return lambda o, b: functional.cross_entropy(o.flatten(0, 1), b[label].flatten())


def decoder(is_wrong: bool) -> Case:
    """Gets the tokens that it is to predict, and those before them otherwise."""
    layers = {"embed": nn.Embedding(30, 16), "body": nn.GRU(16, 16, batch_first=True)}
    layers["head"] = nn.Linear(16, 30)
    model = Paired(layers, lambda n, x, y: n.head(n.body(n.embed(y), n.body(n.embed(x))[1])[0]))
    target = TEXT.flip(1)
    if is_wrong:
        return Case(model, (TEXT, target, target), of_tokens(2))
    return Case(model, (TEXT, target[:, :-1], target[:, 1:]), of_tokens(2))


def language_model(is_wrong: bool, **shift: bool) -> Case:
    """Without a mask, or with labels that are the tokens before, where these are in the loss."""

    def run(net: Any, tokens: Tensor) -> Tensor:
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        is_open = is_wrong and not shift
        return net.head(net.body(embedded(net, tokens), src_mask=None if is_open else mask))  # type: ignore[no-any-return]

    def loss(output: Tensor, batch: Any) -> Tensor:
        tokens = batch[0]
        pair = (
            (output[:, 1:], tokens[:, :-1])
            if is_wrong and shift
            else (output[:, :-1], tokens[:, 1:])
        )
        return functional.cross_entropy(pair[0].flatten(0, 1), pair[1].flatten())

    return Case(Net(encoder(head=nn.Linear(16, 30)), run), (TEXT,), loss)


class Masked(nn.Conv2d):
    """A convolution over the pixels before, with or without its own."""

    def __init__(self, inputs: int, outputs: int, *, own: bool) -> None:
        super().__init__(inputs, outputs, 3, padding=1)
        kept = torch.tensor([[1.0, 1, 1], [1, float(own), 0], [0, 0, 0]])
        self.register_buffer("kept", kept)

    def forward(self, x: Tensor) -> Tensor:
        kept: Any = self.kept
        return functional.conv2d(x, self.weight * kept, self.bias, padding=1)


def pixels(is_wrong: bool) -> Case:
    model = nn.Sequential(Masked(1, 8, own=is_wrong), nn.ReLU(), Masked(8, 1, own=True))
    bright = (PIXELS[:, :1] > 0.7).float()
    return Case(
        model, (bright, LABELS), lambda o, b: functional.binary_cross_entropy_with_logits(o, b[0])
    )


def forecast(is_wrong: bool) -> Case:
    target = SERIES[:, 15 if is_wrong else 16, :1]
    return Case(perceptron(1, 32), (SERIES[:, :16], target), functional.mse_loss)


def causal_filter(is_wrong: bool) -> Case:
    pad = (1, 1) if is_wrong else (2, 0)

    def run(net: Any, x: Tensor) -> Tensor:
        return net.body(functional.pad(x.transpose(1, 2), pad)).transpose(1, 2)  # type: ignore[no-any-return]

    model = Net({"body": nn.Conv1d(2, 2, 3)}, run)
    return Case(model, (SERIES[:, :-1], SERIES[:, 1:]), functional.mse_loss)


def padded(is_wrong: bool) -> Case:
    def run(net: Any, tokens: Tensor, mask: Tensor) -> Tensor:
        ignored = None if is_wrong else mask == 0
        found = net.body(embedded(net, tokens), src_key_padding_mask=ignored)
        shares = mask[..., None] / mask.sum(1)[:, None, None]
        return net.head((found * shares).sum(1))  # type: ignore[no-any-return]

    return Case(
        Paired(encoder(), run),
        (TEXT * VALID, VALID, FIRST),
        lambda o, b: functional.cross_entropy(o, b[2]),
    )


def lengths(is_wrong: bool) -> Case:
    def run(net: Any, tokens: Tensor, lengths: Tensor) -> Tensor:
        states = net.body(net.embed(tokens))[0]
        last = states[:, -1] if is_wrong else states[torch.arange(len(tokens)), lengths - 1]
        return net.head(last)  # type: ignore[no-any-return]

    layers = encoder(body=nn.GRU(16, 16, batch_first=True))
    return Case(
        Paired(layers, run),
        (TEXT * VALID, LENGTHS, FIRST),
        lambda o, b: functional.cross_entropy(o, b[2]),
    )


def places_of_images(is_wrong: bool) -> Case:
    def run(net: Any, tokens: Tensor) -> Tensor:
        places = net.place(torch.arange(len(tokens) if is_wrong else tokens.shape[1]))
        found = net.embed(tokens) + (places[:, None] if is_wrong else places)
        return net.head(net.body(found).mean(1))  # type: ignore[no-any-return]

    return Case(Net(encoder(place=nn.Embedding(96, 16)), run), (TEXT, FIRST))


def patches(is_wrong: bool, *, views: bool = False) -> Case:
    def run(net: Any, x: Tensor) -> Tensor:
        cut = net.cut(x)  # [N, 24, 4, 4]
        tokens = cut.view(len(x), 16, 24) if views and is_wrong else cut.flatten(2).transpose(1, 2)
        if views or not is_wrong:
            tokens = tokens + net.place(torch.arange(16))
        return net.head(net.body(tokens).mean(1))  # type: ignore[no-any-return]

    layers = {
        "cut": nn.Conv2d(3, 24, 2, 2),
        "body": nn.TransformerEncoderLayer(24, 2, 32, 0.0, batch_first=True),
        "head": nn.Linear(24, CLASSES),
    }
    if views or not is_wrong:
        layers["place"] = nn.Embedding(16, 24)
    return Case(Net(layers, run), (PIXELS, LABELS))


def attention(is_wrong: bool, *, joins: bool = False) -> Case:
    """Attention of two heads: softmax over the queries, or heads joined without a transpose."""

    def run(net: Any, tokens: Tensor) -> Tensor:
        found = embedded(net, tokens)
        size, length, width = found.shape
        heads = net.body(found).view(size, length, 3, 2, 8).permute(2, 0, 3, 1, 4)
        queries, keys, values = heads.unbind(0)  # [N, 2, T, 8]
        scores = (queries @ keys.transpose(-1, -2)).softmax(-2 if is_wrong and not joins else -1)
        mixed = scores @ values
        if not (is_wrong and joins):
            mixed = mixed.transpose(1, 2)
        return net.head(mixed.reshape(size, length, width).mean(1))  # type: ignore[no-any-return]

    return Case(Net(encoder(body=nn.Linear(16, 48)), run), (TEXT, FIRST))


def steps(is_wrong: bool) -> Case:
    place = 0 if is_wrong else -1
    layers = encoder(body=nn.GRU(16, 16, batch_first=True))
    model = Net(layers, lambda n, x: n.head(n.body(n.embed(x))[0][:, place]))
    return Case(model, (TEXT, FIRST))


def second_argument(is_wrong: bool) -> Case:
    layers = {"body": perceptron(8), "other": nn.Linear(2, 8), "head": nn.Linear(8, CLASSES)}
    model = Paired(layers, lambda n, x, y: n.head(n.body(x) + n.other(y) * (not is_wrong)))
    return Case(
        model, (PIXELS, SERIES[:, 0], LABELS), lambda o, b: functional.cross_entropy(o, b[2])
    )


def crop(is_wrong: bool, *, colour: bool = False) -> Case:
    """Sees a quarter of the images, or one colour."""
    model = Net(
        {"body": perceptron(CLASSES, 64 if is_wrong and colour else 48 if is_wrong else 192)},
        lambda n, x: n.body(x if not is_wrong else x[:, :1] if colour else x[:, :, :4, :4]),
    )
    return Case(model, (PIXELS, LABELS))


def some_images(is_wrong: bool) -> Case:
    count = 8 if is_wrong else COUNT
    return Case(
        perceptron(),
        (PIXELS, LABELS),
        lambda o, b: functional.cross_entropy(o[:count], b[1][:count]),
    )


def ignored_class(is_wrong: bool) -> Case:
    return Case(
        perceptron(), (PIXELS, LABELS), nn.CrossEntropyLoss(ignore_index=0 if is_wrong else -100)
    )


def columns(is_wrong: bool) -> Case:
    count = 2 if is_wrong else 5
    targets = torch.stack([PIXELS[:, k % 3, k].mean(1) for k in range(5)], 1)
    return Case(
        perceptron(5),
        (PIXELS, targets),
        lambda o, b: functional.mse_loss(o[:, :count], b[1][:, :count]),
    )


def averages(is_wrong: bool) -> Case:
    def loss(output: Tensor, batch: Any) -> Tensor:
        if is_wrong:
            return (output.mean() - batch[1].mean()).square()
        return (output - batch[1]).square().mean()

    return Case(perceptron(1), (PIXELS, PIXELS.mean((1, 2, 3))[:, None]), loss)


def smoothed(is_wrong: bool) -> Case:
    loss = nn.CrossEntropyLoss(label_smoothing=1.0 if is_wrong else 0.1)
    return Case(perceptron(), (PIXELS, LABELS), loss)


def own_labels(is_wrong: bool) -> Case:
    def loss(output: Tensor, batch: Any) -> Tensor:
        return functional.cross_entropy(output, output.argmax(1) if is_wrong else batch[1])

    return Case(perceptron(), (PIXELS, LABELS), loss)


def masks(is_wrong: bool, *, turns: bool = False) -> Case:
    bright = (PIXELS.mean(1) > 0.9).long()
    other = bright.transpose(1, 2).contiguous() if turns else bright // 255
    return Case(nn.Conv2d(3, 2, 3, padding=1), (PIXELS, other if is_wrong else bright))


def loss_mask(is_wrong: bool) -> Case:
    def loss(output: Tensor, batch: Any) -> Tensor:
        weights = 1.0 - batch[2] if is_wrong else batch[2].float()
        losses = functional.cross_entropy(output.transpose(1, 2), batch[1], reduction="none")
        return (losses * weights).sum() / weights.sum()

    model = nn.Sequential(nn.Embedding(30, 16), nn.Linear(16, 5))
    labels = (TEXT % 4 + 1) * VALID
    return Case(model, (TEXT * VALID, labels, VALID), loss)


def several_labels(is_wrong: bool, *, softmax: bool = False) -> Case:
    targets = (PIXELS[:, 0, :6].mean(2) > 0.5).float()
    if softmax:
        last = nn.Softmax(1) if is_wrong else nn.Sigmoid()
        return Case(perceptron(6).append(last), (PIXELS, targets), nn.BCELoss())
    loss = functional.cross_entropy if is_wrong else functional.binary_cross_entropy_with_logits
    return Case(perceptron(6), (PIXELS, targets), loss)


def softmax_of_loss(is_wrong: bool) -> Case:
    def loss(output: Tensor, batch: Any) -> Tensor:
        return functional.nll_loss(output.log_softmax(0 if is_wrong else 1), batch[1])

    return Case(perceptron(), (PIXELS, LABELS), loss)


def divergence(is_wrong: bool) -> Case:
    last = nn.Softmax(1) if is_wrong else nn.LogSoftmax(1)
    targets = drawn(COUNT, CLASSES).softmax(1)
    loss = nn.KLDivLoss(reduction="batchmean")
    return Case(perceptron().append(last), (PIXELS, targets), loss)


def scaled(is_wrong: bool) -> Case:
    return Case(perceptron(), (PIXELS * (255 if is_wrong else 1), LABELS))


def scaled_columns(is_wrong: bool) -> Case:
    return Case(perceptron(), (PIXELS.flatten(1) * (1e5 if is_wrong else 1), LABELS))


def scaled_twice(is_wrong: bool) -> Case:
    return Case(perceptron(), (PIXELS / (255 if is_wrong else 1), LABELS))


def colours_apart(is_wrong: bool) -> Case:
    """Smooth images [N, H, W, 3] are made [N, 3, H, W] with view."""
    grey = functional.interpolate(PIXELS[:, :1, ::2, ::2], size=(32, 32), mode="bilinear")
    smooth = grey + torch.tensor([0.0, 0.1, 1.0])[:, None, None]
    by_pixel = smooth.permute(0, 2, 3, 1).contiguous()
    return Case(
        perceptron(CLASSES, 3072), (by_pixel.view(smooth.shape) if is_wrong else smooth, LABELS)
    )


class Frozen(nn.Module):
    """Normalizes with statistics that are loaded; ``mean`` is what they are without that."""

    def __init__(self, mean: float) -> None:
        super().__init__()
        self.register_buffer("running_mean", torch.full((192,), mean))
        self.register_buffer("running_var", torch.ones(192))

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = x - self.running_mean  # type: ignore[operator]
        return found


def no_statistics(is_wrong: bool) -> Case:
    norm = Frozen(0.0 if is_wrong else 0.5)
    return Case(nn.Sequential(nn.Flatten(), norm, perceptron()), (PIXELS, LABELS))


def likelihood(is_wrong: bool) -> Case:
    targets = PIXELS.mean((1, 2, 3))

    def loss(output: Tensor, batch: Any) -> Tensor:
        normal: Any = torch.distributions.Normal(output[:, 0], 1.0)
        likely: Tensor = normal.log_prob(batch[1]).mean()
        return likely if is_wrong else -likely

    return Case(perceptron(1), (PIXELS, targets), loss)


def overlap(is_wrong: bool) -> Case:
    """The Dice coefficient of masks, of which 1 is to be subtracted."""
    bright = (PIXELS.mean(1, keepdim=True) > 0.9).float()

    def loss(output: Tensor, batch: Any) -> Tensor:
        share = output.sigmoid()
        found: Tensor = 2 * (share * batch[1]).sum() / (share.sum() + batch[1].sum())
        return found if is_wrong else 1 - found

    return Case(nn.Conv2d(3, 1, 3, padding=1), (PIXELS, bright), loss)


def ignored_foreground(is_wrong: bool) -> Case:
    bright = (PIXELS.mean(1) > 0.9).long() * (255 if is_wrong else 1)
    loss = nn.CrossEntropyLoss(ignore_index=255)
    return Case(nn.Conv2d(3, 2, 3, padding=1), (PIXELS, bright), loss)


def head_rate(is_wrong: bool) -> Case:
    return Case(perceptron(), (PIXELS, LABELS), head_rate=0.0 if is_wrong else 1.0)


def second_output(is_wrong: bool) -> Case:
    layers = {"body": perceptron(8), "head": nn.Linear(8, CLASSES), "aux": nn.Linear(8, CLASSES)}
    model = Net(layers, lambda n, x: (n.head(n.body(x)), n.aux(n.body(x))))  # type: ignore[arg-type, return-value]

    def loss(output: Any, batch: Any) -> Tensor:
        both = [functional.cross_entropy(o, batch[1]) for o in output]
        return both[1] if is_wrong else both[0] + both[1]

    return Case(model, (PIXELS, LABELS), loss)


def never_called(is_wrong: bool) -> Case:
    layers = {"body": perceptron(8), "other": nn.Linear(8, 8), "head": nn.Linear(8, CLASSES)}
    model = Net(layers, lambda n, x: n.head(n.body(x) if is_wrong else n.other(n.body(x))))
    return Case(model, (PIXELS, LABELS))


def plain_tensor(is_wrong: bool) -> Case:
    model = Net({"body": perceptron()}, lambda n, x: n.body(x) * n.scale)
    scale = torch.ones(CLASSES)
    vars(model)["scale" if is_wrong else "unused"] = scale.requires_grad_(is_wrong)
    if not is_wrong:
        model.scale = nn.Parameter(scale)
    return Case(model, (PIXELS, LABELS))


def same_units(is_wrong: bool) -> Case:
    model = perceptron()
    layer: Any = model[1]
    if is_wrong:
        nn.init.constant_(layer.weight, 0.01)
        nn.init.zeros_(layer.bias)
        nn.init.constant_(model[3].weight, 0.1)  # type: ignore[arg-type]
    return Case(model, (PIXELS, LABELS))


def dropout_in_eval(is_wrong: bool) -> Case:
    layers = {"body": perceptron(32), "head": nn.Linear(32, CLASSES)}
    model = Net(
        layers,
        lambda n, x: n.head(functional.dropout(n.body(x), 0.3, is_wrong or n.training)),
    )
    return Case(model, (PIXELS, LABELS))


def decay(is_wrong: bool) -> Case:
    return Case(perceptron(), (PIXELS, LABELS), decay=30.0 if is_wrong else 0.0)


CASES: dict[str, tuple[str, Callable[[bool], Case]]] = {
    "decoder": ("target_is_hidden", decoder),
    "open mask": ("target_is_hidden", language_model),
    "labels before": ("target_is_hidden", lambda wrong: language_model(wrong, shift=True)),
    "own pixel": ("target_is_hidden", pixels),
    "target in the window": ("target_is_hidden", forecast),
    "next step": ("target_is_hidden", causal_filter),
    "mask not used": ("padding_is_ignored", padded),
    "last padded step": ("padding_is_ignored", lengths),
    "places of images": ("images_mix", places_of_images),
    "patches without places": ("input_reaches_output", patches),
    "view of patches": ("input_reaches_output", lambda wrong: patches(wrong, views=True)),
    "softmax over queries": ("input_reaches_output", attention),
    "heads joined": ("input_reaches_output", lambda wrong: attention(wrong, joins=True)),
    "first step alone": ("every_input_matters", steps),
    "second argument": ("every_input_matters", second_argument),
    "crop": ("every_input_matters", crop),
    "one colour": ("every_input_matters", lambda wrong: crop(wrong, colour=True)),
    "some images": ("labels_count", some_images),
    "ignored class": ("labels_count", ignored_class),
    "some columns": ("labels_count", columns),
    "averages": ("labels_count", averages),
    "label smoothing of 1": ("labels_count", smoothed),
    "own labels": ("labels_count", own_labels),
    "masks of 0": ("labels_count", masks),
    "inverted mask of the loss": ("labels_count", loss_mask),
    "transposed masks": ("labels_fit_images", lambda wrong: masks(wrong, turns=True)),
    "several labels": ("first_loss", several_labels),
    "softmax of several labels": ("first_loss", lambda wrong: several_labels(wrong, softmax=True)),
    "divergence": ("first_loss", divergence),
    "softmax over the batch in the loss": ("first_loss", softmax_of_loss),
    "images of 0 to 255": ("input_reaches_output", scaled),
    "images scaled twice": ("input_reaches_output", scaled_twice),
    "view of images": ("input_reaches_output", colours_apart),
    "large columns": ("first_loss", scaled_columns),
    "statistics not loaded": ("train_and_eval", no_statistics),
    "likelihood with a turned sign": ("first_loss", likelihood),
    "overlap with a turned sign": ("first_loss", overlap),
    "foreground ignored": ("labels_count", ignored_foreground),
    "head at rest": ("every_parameter_moves", head_rate),
    "output not in the loss": ("every_parameter_moves", second_output),
    "layer never called": ("every_parameter_moves", never_called),
    "tensor that is no parameter": ("every_parameter_moves", plain_tensor),
    "units that are the same": ("every_parameter_moves", same_units),
    "dropout in eval mode": ("train_and_eval", dropout_in_eval),
    "weight decay": ("one_batch_is_learnt", decay),
}


def rehearsed(case: Case, kind: str, patch: pytest.MonkeyPatch) -> Rehearsal:
    """One experiment, on batches of 32."""
    asked = tuple([experiment for experiment in EXPERIMENTS if experiment.kind == kind])
    patch.setattr("fmapboard.rehearsal.run.EXPERIMENTS", asked)
    parameters = list(case.model.parameters())
    groups: list[dict[str, Any]] = [
        {"params": parameters[:-2]},
        {"params": parameters[-2:], "lr": 0.05 * case.head_rate},
    ]
    optimizer = torch.optim.SGD(groups, lr=0.05, momentum=0.9, weight_decay=case.decay)
    batches = [tuple(t[k : k + 32] for t in case.tensors) for k in range(0, COUNT, 32)]
    return fmapboard.rehearse(case.model, batches, case.loss, optimizer, progress=False)


@pytest.mark.parametrize("name", CASES)
def test_a_fault_is_named_and_its_healthy_twin_has_none(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    kind, make = CASES[name]
    wrong = rehearsed(make(True), kind, monkeypatch)
    assert [outcome.kind for outcome in wrong.faults] == [kind], wrong
    right = rehearsed(make(False), kind, monkeypatch)
    assert right.faults == (), right
    assert "Error" not in right.outcomes[0].answer.text


def test_small_logits_in_front_of_binary_cross_entropy_are_no_probabilities(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = nn.Sequential(perceptron(1), nn.Linear(1, 1))
    head: Any = model[1]
    nn.init.constant_(head.weight, 0.1)
    nn.init.constant_(head.bias, 0.5)
    with torch.no_grad():
        outputs = model(PIXELS)
    assert 0 < float(outputs.min()) < float(outputs.max()) < 1
    labels = (LABELS % 2).float()[:, None]
    case = Case(model, (PIXELS, labels), functional.binary_cross_entropy_with_logits)
    assert rehearsed(case, "first_loss", monkeypatch).faults == ()


def test_batches_that_are_all_the_same_are_a_suspicion() -> None:
    model = perceptron()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    batches = [(PIXELS[:32].clone(), LABELS[:32].clone()) for _ in range(3)]
    found = fmapboard.rehearse(model, batches, functional.cross_entropy, optimizer, progress=False)
    assert [outcome.answer.text for outcome in found.suspicions] == ["all 3 batches are the same"]
    assert found.faults == ()


def test_one_batch_that_is_given_again_is_no_suspicion() -> None:
    model = perceptron()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    batches = [(PIXELS[:32], LABELS[:32])] * 3
    found = fmapboard.rehearse(model, batches, functional.cross_entropy, optimizer, progress=False)
    assert (found.faults, found.suspicions) == ((), ())
    assert found.outcomes[-1].answer.text == "all batches are one and the same"


@pytest.mark.parametrize(
    ("name", "helps"),
    [
        ("weight decay", " without weight_decay=30.0"),
        ("large columns", "with normalized inputs"),
    ],
)
def test_what_helps_is_named(name: str, helps: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    kind, make = CASES[name]
    (fault,) = rehearsed(make(True), kind, monkeypatch).faults
    assert helps in fault.answer.text
    assert "momentum" not in fault.answer.text  # which is as it should be


def test_an_autoencoder_may_see_its_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(nn.Conv2d(3, 3, 3, padding=1), (PIXELS,), lambda o, b: functional.mse_loss(o, b[0]))
    found = rehearsed(case, "target_is_hidden", monkeypatch)
    assert found.faults == ()
    assert found.outcomes[0].answer.text.startswith(
        "no output changes with its own target, or both"
    )


def test_an_interrupt_at_the_end_of_a_pass_leaves_no_function_mode(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[int] = []
    leave = function_calls._Calls.__exit__

    def interrupted(self: Any, *error: object) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt  # before its first line
        leave(self, *error)

    before = torch._C._len_torch_function_stack()
    monkeypatch.setattr(function_calls._Calls, "__exit__", interrupted)
    case = CASES["softmax over queries"][1](False)
    assert rehearsed(case, "input_reaches_output", monkeypatch).is_interrupted
    assert len(calls) == 2
    assert torch._C._len_torch_function_stack() == before
