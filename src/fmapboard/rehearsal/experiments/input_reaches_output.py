"""Whether the output depends on the input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from fmapboard.rehearsal.batches import input_tensors, with_tensors
from fmapboard.rehearsal.experiment import Answer, Experiment, fault, fine, not_judged
from fmapboard.rehearsal.input_images import wrong_images
from fmapboard.rehearsal.setup import Pass, Setup
from fmapboard.rehearsal.training_copy import TrainingCopy
from fmapboard.rehearsal.wrong_axes import wrong_axes

_ATTENTION = ("attention", "attn", "transformerencoderlayer", "transformerdecoderlayer")


@dataclass(frozen=True, slots=True)
class InputReachesOutput(Experiment):
    """Other images, another order of tokens, in eval mode: the output must change.

    It costs three to eight forward passes of at most eight images, and ten steps if all outputs are
    the same.

    A fault: all images have the same output, also after ten steps, and the answer says behind which
    layer; frames of a clip that are all the same; tokens that see no other one; attention without
    positions, for which the order of tokens, of patches, or of time steps that follow each other
    makes no difference, unless no sample holds a token twice, as sets do; images that are reshaped
    so that colours are apart, and features that are reshaped where their axes are to be exchanged;
    a softmax over the queries of attention.

    Not judged: a last layer that starts at zero, as long as ten steps change that. That colours or
    the order make no difference is reported, and is no fault in a network without attention.

    Attributes:
        spread: of outputs over images, as a share of their magnitude, below which they are equal.
        tolerance: change of an output that counts, as a share of its standard deviation.
        ordered: the same for patches in another order, which are added in another order.
    """

    spread: float = 1e-6
    tolerance: float = 1e-5
    ordered: float = 1e-4
    kind: ClassVar[str] = "input_reaches_output"
    question: ClassVar[str] = "Does the output depend on the input?"
    bound: ClassVar[str] = "other images, other outputs"

    def run(self, setup: Setup) -> Answer:
        """See `Experiment.run`."""
        batch, size, axis, inputs = setup.samples()
        if size < 2:
            return not_judged("the batch has no second image")
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
        scrambled = wrong_images(inputs[0], seen) or _scrambled(setup, batch)
        if scrambled is not None:
            return scrambled
        wrong = wrong_axes(setup) or self._patches(setup, copy, batch, seen)
        if wrong is not None:
            return wrong
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

    def _patches(self, setup: Setup, copy: TrainingCopy, batch: Any, seen: Pass) -> Answer | None:
        """A fault if a network attends over patches or time steps whose order it does not see."""
        first = input_tensors(batch, setup.task)[0]
        if not first.is_floating_point() or not _attends(copy.model):
            return None
        output = seen.outputs[0]
        if first.dim() == 3 and _is_in_order(first) and output.dim() == 2:
            axis = 1 if first.shape[1] >= first.shape[2] else 2
            inner = first.narrow(axis, 1, first.shape[axis] - 2).flip(axis)
            ends = [first.narrow(axis, place, 1) for place in (0, first.shape[axis] - 1)]
            turned = torch.cat([ends[0], inner, ends[1]], axis)
            what = "time steps"
        elif first.dim() == 4:
            found = _patches_turned(copy.model, first)
            if found is None:
                return None
            turned = found
            what = "patches"
        else:
            return None
        share = self._change(setup, copy, batch, first, turned, output)
        if share is None or share > self.ordered:
            return None
        return fault(
            f"the order of the {what} makes no difference to the output",
            figure=share,
            advice="Add positions to the embeddings: attention does not see order",
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
                if _attends(copy.model) and _is_embedded(copy.model) and not _are_sets(first):
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
                    old = old.transpose(0, 1)
                    new = new.transpose(0, 1)
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
            output = output[:, -1]
            other = other[:, -1]
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


def _are_sets(tokens: Tensor) -> bool:
    """True if no sample holds a token twice, as sets do; texts do."""
    ordered = tokens.sort(1)[0]
    return not bool((ordered[:, 1:] == ordered[:, :-1]).any())


def _shuffled(tokens: Tensor) -> Tensor:
    """Tokens in another order, the first and the last one apart."""
    inner = tokens[:, 1:-1].flip(1)
    return torch.cat([tokens[:, :1], inner, tokens[:, -1:]], dim=1)


def _is_in_order(sequences: Tensor) -> bool:
    """True if time steps are more like their neighbours than like others: no set of points."""
    axis = 1 if sequences.shape[1] >= sequences.shape[2] else 2
    steps = sequences.movedim(axis, 1).flatten(2).double()  # [N, T, F]
    length = steps.shape[1]
    if length < 8:
        return False
    near = (steps[:, 1:] - steps[:, :-1]).square().mean((1, 2))
    far = (steps.roll(length // 2, 1) - steps).square().mean((1, 2))
    return bool((near < 0.5 * far).double().mean() > 0.9)


def _patches_turned(model: nn.Module, images: Tensor) -> Tensor | None:
    """The images with their patches in reverse order; None if none are cut."""
    channels, rows, columns = images.shape[1:]
    sides = []
    for module in model.modules():
        if isinstance(module, nn.Conv2d) and module.in_channels == channels:
            if module.kernel_size == module.stride and module.kernel_size[0] > 1:
                sides.append(int(module.kernel_size[0]))
        elif isinstance(module, nn.Linear) and module.in_features % channels == 0:
            side = round((module.in_features // channels) ** 0.5)
            if side > 1 and side * side * channels == module.in_features:
                sides.append(side)
    for side in sides:
        if rows % side or columns % side or rows // side * (columns // side) < 4:
            continue
        shape = (len(images), channels, rows // side, side, columns // side, side)
        cut = images.reshape(shape).flip(2, 4)
        return cut.reshape(images.shape)
    return None


def _attends(model: nn.Module) -> bool:
    kinds = {type(module).__name__.lower() for module in model.modules()}
    return any(name in kind for kind in kinds for name in _ATTENTION)


def _is_embedded(model: nn.Module) -> bool:
    return any(isinstance(module, nn.Embedding) for module in model.modules())
