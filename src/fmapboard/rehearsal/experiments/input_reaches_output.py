"""Whether the output depends on the input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from fmapboard.rehearsal.batches import input_tensors, size_of, with_tensors
from fmapboard.rehearsal.experiment import Answer, Experiment, fault, fine, not_judged
from fmapboard.rehearsal.setup import Pass, Setup
from fmapboard.rehearsal.training_copy import TrainingCopy

_ATTENTION = ("attention", "attn", "transformerencoderlayer", "transformerdecoderlayer")


@dataclass(frozen=True, slots=True)
class InputReachesOutput(Experiment):
    """Other images, another order of tokens, in eval mode: the output must change.

    It costs three to eight forward passes of at most eight images, and ten steps if all outputs are
    the same.

    A fault: all images have the same output, also after ten steps, and the answer says behind which
    layer; frames of a clip that are all the same; a network that predicts the next token sees it,
    or predicts the token that it gets, or the one after the next; tokens that see no other one;
    attention without positions, for which the order of tokens makes no difference; images that are
    reshaped so that colours are apart.

    Not judged: a last layer that starts at zero, as long as ten steps change that. That colours or
    the order make no difference is reported, and is no fault in a network without attention.

    Attributes:
        spread: of outputs over images, as a share of their magnitude, below which they are equal.
        tolerance: change of an output that counts, as a share of its standard deviation.
    """

    spread: float = 1e-6
    tolerance: float = 1e-5
    kind: ClassVar[str] = "input_reaches_output"
    question: ClassVar[str] = "Does the output depend on the input?"
    bound: ClassVar[str] = "other images, other outputs"

    def run(self, setup: Setup) -> Answer:
        """See `Experiment.run`."""
        batch = setup.few()
        size, axis = size_of(batch, setup.task)
        if size < 2:
            return not_judged("the batch has no second image")
        inputs = input_tensors(batch, setup.task)
        wrong = _wrong_inputs(inputs, size, axis)
        if wrong is not None:
            return wrong
        copy = setup.make_copy()
        seen = setup.forward(copy, batch, training=False)
        spreads = _spreads(seen.outputs, size)
        if not spreads:
            return not_judged("no output has one row per image")
        if max(spreads) <= self.spread:
            return self._same_outputs(setup, batch, size)
        scrambled = _scrambled(setup, batch)
        if scrambled is not None:
            return scrambled
        leaking = _wrong_shift(setup, copy, batch) or self._next_token(setup, copy, batch, seen)
        if leaking is not None:
            return leaking
        return self._order(setup, copy, batch, seen, max(spreads))

    def _same_outputs(self, setup: Setup, batch: Any, size: int) -> Answer:
        training = setup.trained(1.0, 10, seconds=setup.remaining() / 4)
        seen = setup.forward(training.copy, batch, training=False)
        spreads = _spreads(seen.outputs, size)
        if spreads and max(spreads) > self.spread:
            return not_judged("at first all outputs are the same, and ten steps change that")
        place, layer = self._where(seen, size)
        return fault(
            f"all images have the same output, also after ten steps: the same from {place}",
            figure=max(spreads, default=0.0),
            layer=layer,
            advice="Look at that layer: a ReLU whose inputs are all negative, a softmax over one "
            "class, an average over the wrong axis, or weights of zero do this",
        )

    def _where(self, seen: Pass, size: int) -> tuple[str, str]:
        """The first layer behind which all images are the same."""
        last = ""
        for call in seen.calls:
            before = _spreads(call.inputs, size)
            after = _spreads(call.outputs, size)
            if not after:
                continue
            if max(after) > self.spread:
                last = call.name
                continue
            if before and max(before) <= self.spread:
                where = f"{call.name} on, and before it" if not last else f"what follows {last}"
                return where, call.name
            name = call.name or "the network"
            return f"{name} ({call.kind}) on", call.name
        return "the last layer on", ""

    def _next_token(
        self, setup: Setup, copy: TrainingCopy, batch: Any, seen: Pass
    ) -> Answer | None:
        """A fault if the output for a token depends on the one that it predicts."""
        inputs = input_tensors(batch, setup.task)
        tokens = inputs[0]
        label = setup.task.parts(batch).label
        if not _predicts_next(tokens, label) or not seen.outputs:
            return None
        length = tokens.shape[1]
        output = seen.outputs[0]
        if output.dim() != 3 or output.shape[:2] != tokens.shape:
            return None
        if output.shape[2] == length:  # tokens and classes cannot be told apart
            return None
        other = tokens.clone()
        other[:, -1] = tokens[:, 0] if length > 1 else tokens[:, -1]
        differs = (other[:, -1] != tokens[:, -1]).nonzero().flatten()
        if not len(differs):
            return None
        changed = setup.forward(copy, with_tensors(batch, {id(tokens): other}), training=False)
        change = (changed.outputs[0].double() - output.double()).abs()
        earlier = float(change[differs, :-1].max())
        share = earlier / float(output.double().std())
        if share <= self.tolerance:
            return None
        return fault(
            "the outputs for earlier tokens change with the last one, which they are to predict",
            figure=share,
            advice="Mask attention to later tokens (is_causal=True), and check the sign and the "
            "axes of the mask",
        )

    def _order(
        self, setup: Setup, copy: TrainingCopy, batch: Any, seen: Pass, spread: float
    ) -> Answer:
        """The answer about the order of tokens and about colours."""
        inputs = input_tensors(batch, setup.task)
        first = inputs[0]
        text = "other images have other outputs"
        output = seen.outputs[0]
        if _is_tokens(first):
            if self._tokens_are_apart(setup, copy, batch):
                after = setup.trained(1.0, 10, seconds=setup.remaining() / 4).copy
                if self._tokens_are_apart(setup, after, batch):
                    return fault(
                        "no token sees another one: attention changes with none of them",
                        figure=0.0,
                        advice="Look at the padding mask: in torch, True in key_padding_mask means "
                        "ignored, and in the mask of scaled_dot_product_attention means seen",
                    )
            share = self._change(setup, copy, batch, first, _shuffled(first), output)
            if share is not None and share <= self.tolerance:
                if _attends(copy.model) and _is_embedded(copy.model):
                    return fault(
                        "the order of the tokens makes no difference to the output",
                        figure=share,
                        advice="Add positions to the embeddings: attention does not see order",
                    )
                text += "; the order of tokens makes no difference"
        elif first.dim() == 4 and first.shape[1] == 3 and first.is_floating_point():
            grey = first.mean(1, keepdim=True).expand_as(first).contiguous()
            if not torch.allclose(grey, first, atol=1e-3):
                share = self._change(setup, copy, batch, first, grey, output)
                if share is not None and share <= self.tolerance:
                    text += "; colours make no difference"
        return fine(text, spread)

    def _tokens_are_apart(self, setup: Setup, copy: TrainingCopy, batch: Any) -> bool:
        """True if a network attends over tokens, and none has changed with another one."""
        tokens = input_tensors(batch, setup.task)[0]
        samples, length = tokens.shape
        other = tokens.clone()
        other[:, 1] = tokens[:, 2]
        rows = (other[:, 1] != tokens[:, 1]).nonzero().flatten()
        if samples == length or not len(rows):
            return False
        before = setup.forward(copy, batch, training=False)
        after = setup.forward(copy, with_tensors(batch, {id(tokens): other}), training=False)
        attends = False
        for call, changed in zip(before.calls, after.calls, strict=False):
            for old, new in zip(call.outputs, changed.outputs, strict=False):
                if old.shape != new.shape or old.dim() != 3:
                    continue
                if old.shape[:2] == (length, samples):
                    old, new = old.transpose(0, 1), new.transpose(0, 1)
                if old.shape[:2] != (samples, length):
                    continue
                attends = attends or any(name in call.kind.lower() for name in _ATTENTION)
                change = (new - old)[rows].double().abs()
                change[:, 1] = 0.0
                if float(change.nan_to_num().max()) > self.tolerance * float(old.double().std()):
                    return False
        return attends

    def _change(
        self,
        setup: Setup,
        copy: TrainingCopy,
        batch: Any,
        old: Tensor,
        new: Tensor,
        output: Tensor,
    ) -> float | None:
        if torch.equal(old, new):
            return None
        changed = setup.forward(copy, with_tensors(batch, {id(old): new}), training=False)
        other = changed.outputs[0]
        scale = float(output.double().std())
        if other.shape != output.shape or not scale > 0:
            return None
        if output.dim() == 3 and output.shape[1] == old.shape[1]:  # one row per token
            output, other = output[:, -1], other[:, -1]
        return float((other.double() - output.double()).abs().max()) / scale


def _wrong_inputs(inputs: Sequence[Tensor], size: int, axis: int) -> Answer | None:
    """A fault if the images themselves are the same, constant or not finite."""
    first = inputs[0]
    if not first.is_floating_point() or first.dim() < 2 or first.shape[axis] != size:
        return None
    if not bool(torch.isfinite(first).all()):
        return fault("the images hold values that are not finite", advice="Clean the data")
    rows = first.transpose(0, axis).flatten(1)  # [N, values]
    if bool((rows == rows[:1]).all()):
        return fault(
            "all images of the batch are the same",
            figure=0.0,
            advice="Look at the data set and its index: does __getitem__ use its argument?",
        )
    time = 1 if first.dim() == 5 and first.shape[2] in (1, 3) else 2
    if first.dim() == 5 and first.shape[time] > 3:
        frames = first.movedim(time, 0)  # [T, N, ...]
        if bool((frames == frames[:1]).all()):
            return fault(
                f"all {len(frames)} frames of each clip are the same",
                figure=0.0,
                advice="Look at the index of the frames where a clip is read",
            )
    return None


def _scrambled(setup: Setup, batch: Any) -> Answer | None:
    """A fault if an image was reshaped so that colours are apart, or of different pixels.

    In place of the values of the pixels, the network gets their numbers.
    """
    first = input_tensors(batch, setup.task)[0]
    if first.dim() != 4 or first.dtype is not torch.float32 or 3 not in first.shape[1::2]:
        return None
    count = first[0].numel()
    numbers = torch.arange(count, device=first.device)  # [C*H*W]
    given = numbers.reshape(1, *first.shape[1:]).expand_as(first).to(first.dtype).contiguous()
    changed = with_tensors(batch, {id(first): given})
    is_colour_first = first.shape[1] == 3
    for call in setup.forward(setup.make_copy(), changed, training=False).calls:
        for tensor in call.inputs:
            if not call.name or tensor.dim() not in (3, 4) or len(tensor) != len(first):
                continue
            held = tensor[0].detach().flatten()
            if held.numel() != count or not torch.equal(held.sort()[0], numbers.to(held.dtype)):
                continue
            own = tensor[0].detach().long()
            pixels = own % (count // 3) if is_colour_first else own // 3
            if tensor.dim() == 3:  # [T, values of a token]
                ordered = pixels.sort(1)[0]
                if bool((ordered[:, 1:] != ordered[:, :-1]).all()):
                    return fault(
                        f"{call.name} gets tokens that hold no pixel in all its colours: the image "
                        "is reshaped where its axes are to be exchanged",
                        layer=call.name,
                        advice="Cut patches with permute() before reshape(), or with a convolution",
                    )
            if tensor.shape[1] == 3 and tensor.dim() == 4 and bool((pixels != pixels[:1]).any()):
                return fault(
                    f"{call.name} gets colours of different pixels as one: the image is reshaped "
                    "where its axes are to be exchanged",
                    layer=call.name,
                    advice="Use permute() in place of view() or reshape()",
                )
    return None


def _spreads(tensors: Sequence[Tensor], size: int) -> list[float]:
    """Of each tensor with one row per image the largest standard deviation over the images.

    As a share of the largest magnitude.
    """
    found = []
    for tensor in tensors:
        if tensor.shape[0] % size or tensor.numel() == 0:
            continue
        rows = tensor.detach().double().reshape(size, -1)
        largest = float(rows.abs().max())
        deviation = float(rows.std(0).max())
        found.append(deviation / largest if largest > 0 else 0.0)
    return found


def _is_tokens(tensor: Tensor) -> bool:
    """True for numbers of tokens [N, T]."""
    return tensor.dim() == 2 and not tensor.is_floating_point() and tensor.shape[1] > 2


def _wrong_shift(setup: Setup, copy: TrainingCopy, batch: Any) -> Answer | None:
    """A fault if a token is to predict itself, or the one after the next."""
    tokens = input_tensors(batch, setup.task)[0]
    label = setup.task.parts(batch).label
    if not _is_tokens(tokens) or not isinstance(label, Tensor) or label.shape != tokens.shape:
        return None
    is_counted = label >= 0  # others, such as -100, have no loss
    is_itself = bool(is_counted.any()) and torch.equal(label[is_counted], tokens[is_counted])
    if not is_itself and not _predicts_next(tokens, label):
        return None
    seen = setup.forward(copy, batch, training=False, needs_loss=True)
    output = seen.outputs[0] if seen.outputs else None
    if output is None or output.dim() != 3 or output.shape[:2] != tokens.shape or seen.loss is None:
        return None
    if int(label.max()) >= output.shape[2]:
        return None
    loss = float(seen.loss)
    if is_itself and _is_loss(output, label, loss):
        hidden = "those that the network does not get: -100 elsewhere"
        return fault(
            "the label of each token is the token itself, which the network gets",
            figure=loss,
            advice="Shift the labels by one, so that each token predicts the next one"
            if bool(is_counted.all())
            else f"The labels of hidden tokens must be {hidden}",
        )
    if not is_itself and _is_loss(output[:, :-1], label[:, 1:], loss):
        return fault(
            "labels are shifted twice: each token is to predict the one after the next",
            figure=loss,
            advice="The network shifts its labels itself: pass the tokens as labels",
        )
    return None


def _is_loss(output: Tensor, label: Tensor, loss: float) -> bool:
    """True if a loss is the cross-entropy of outputs [N, T, C] with labels [N, T]."""
    flat = label.flatten()
    known = flat >= 0
    own = float(functional.cross_entropy(output.flatten(0, 1)[known], flat[known]))
    return abs(own - loss) <= 1e-5 * abs(own)


def _predicts_next(tokens: Tensor, label: Any) -> bool:
    """True if the label of each token is the one that follows."""
    if not _is_tokens(tokens) or not isinstance(label, Tensor) or label.shape != tokens.shape:
        return False
    is_shifted = torch.equal(label[:, :-1], tokens[:, 1:])
    return is_shifted and not torch.equal(label, tokens)


def _shuffled(tokens: Tensor) -> Tensor:
    """Tokens in another order, the first and the last one apart."""
    inner = tokens[:, 1:-1].flip(1)
    return torch.cat([tokens[:, :1], inner, tokens[:, -1:]], dim=1)


def _attends(model: nn.Module) -> bool:
    kinds = {type(module).__name__.lower() for module in model.modules()}
    return any(name in kind for kind in kinds for name in _ATTENTION)


def _is_embedded(model: nn.Module) -> bool:
    return any(isinstance(module, nn.Embedding) for module in model.modules())
