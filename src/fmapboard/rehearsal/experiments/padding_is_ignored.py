"""Whether padding reaches the output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isnan
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from fmapboard.interrupts import raise_interrupt
from fmapboard.model.tensors import map_tensors
from fmapboard.rehearsal.compared import Outputs, named_inputs
from fmapboard.rehearsal.experiment import Answer, Experiment, fault, fine, not_judged
from fmapboard.rehearsal.setup import Setup


class Padding(NamedTuple):
    """Where sequences are padded.

    Attributes:
        places: which places are padding, bool [N, T].
        source: what says so, in words.
    """

    places: Tensor
    source: str


@dataclass(frozen=True, slots=True)
class PaddingIsIgnored(Experiment):
    """What stands in padded places is exchanged, in eval mode; outputs of the others must stay.

    Where the network gets a mask or lengths, these stay as they are. Without them, where it attends
    over tokens that end in the same one, a sample is cut to its own length. It costs up to seven
    forward passes of at most eight samples.

    A fault: outputs change with what is under the mask, and with how much of it there is: it is not
    used, inverted, of another axis, or an average counts padded places. A convolution that reaches
    over the end of a sample sees the same padding there whatever its amount.

    Not judged: batches without padding, and networks that get neither a mask nor lengths and do not
    attend.

    Attributes:
        tolerance: change of an output that counts, as a share of its standard deviation.
    """

    tolerance: float = 1e-4
    kind: ClassVar[str] = "padding_is_ignored"
    question: ClassVar[str] = "Does padding reach the output?"
    bound: ClassVar[str] = "no output changes with what stands in padded places"

    def run(self, setup: Setup) -> Answer:
        """See `Experiment.run`."""
        batch, _, axis, inputs = setup.samples()
        if axis or not inputs or not _is_sequence(inputs[0]):
            return not_judged("the input is no batch of sequences")
        sequences = inputs[0]
        named = named_inputs(setup, batch)
        padding = _given(sequences, named)
        if padding is not None:
            return self._by_content(setup, batch, sequences, padding)
        if sequences.is_floating_point() or not _attends(setup.make_copy().model):
            return not_judged("no mask, lengths or padding are known")
        lengths = _own_lengths(sequences)
        if lengths is None or any(t is not sequences for t in named.values() if t.dim() > 1):
            return not_judged("the sequences are not padded")
        return self._by_length(setup, batch, sequences, lengths)

    def _by_content(self, setup: Setup, batch: Any, sequences: Tensor, padding: Padding) -> Answer:
        places = padding.places
        other = sequences.clone()
        valid = sequences[~places]
        count = int(places.sum())
        chosen = torch.arange(count, device=sequences.device) % len(valid)
        other[places] = valid[chosen]
        if torch.equal(other, sequences):
            return not_judged("padded places hold what the others hold")
        changes = Outputs(setup, batch).changes({id(sequences): other})
        if changes is None:
            return not_judged("no output is known with other padding")
        share = max(_of_valid(change, places) for change in changes)
        if share <= self.tolerance:
            return fine("what stands in padded places makes no difference", share)
        by_length = _change_of_cut(setup, batch, places)
        if by_length is not None and by_length <= self.tolerance:
            return fine("samples that are cut to their length have the same output", by_length)
        return fault(
            f"outputs change with what stands in places that {padding.source} gives as padding",
            figure=share,
            advice="Look at how the mask is used: True means ignored in key_padding_mask, and "
            "seen in the mask of scaled_dot_product_attention; averages and the last state of a "
            "recurrent network must leave out padded places",
        )

    def _by_length(self, setup: Setup, batch: Any, tokens: Tensor, lengths: Tensor) -> Answer:
        """The samples with the shortest text alone, and cut to their length."""
        share = _change_of_cut(setup, batch, _behind(lengths, tokens.shape[1]))
        if share is None:
            return not_judged("no output is known of texts that are cut to their length")
        if share <= self.tolerance:
            return fine("texts that are cut to their length have the same output", share)
        return fault(
            f"the output of a text of {int(lengths.min())} tokens changes with the padding "
            "behind it",
            figure=share,
            advice="Pass a mask of the padding to attention, and leave padded places out of "
            "averages",
        )


def _change_of_cut(setup: Setup, batch: Any, places: Tensor) -> float | None:
    """By how much outputs change if the shortest samples are passed alone, without padding.

    Args:
        places: which ones are padding, at one end of each sample: bool [N, T].

    Returns:
        The largest change as a share of the standard deviation, NaN if outputs are not finite; None
        if the network refuses the cut samples, or an output is not one row per sample or place.
    """
    size, length = places.shape
    valid = (~places).sum(1)
    shortest = valid == valid.min()
    kept = ~places[shortest][0]

    def cut(tensor: Tensor) -> Tensor:
        if not tensor.dim() or len(tensor) != size:
            return tensor
        own = tensor[shortest]
        return own[:, kept] if tensor.shape[:2] == (size, length) else own

    whole = Outputs(setup, batch)
    try:
        alone = Outputs(setup, map_tensors(batch, cut))
    except Exception as error:
        raise_interrupt(error)
        return None
    found = []
    for old, new in zip(whole.tensors, alone.tensors, strict=True):
        expected = cut(old)
        if len(old) != size or expected.shape != new.shape:
            return None
        found.append(float((new - expected).abs().max() / old.std()))
    return max(found, default=None, key=lambda share: inf if isnan(share) else share)


def _is_sequence(tensor: Tensor) -> bool:
    if tensor.dim() == 2:
        return not tensor.is_floating_point() and tensor.shape[1] > 2
    return tensor.dim() == 3 and tensor.is_floating_point() and tensor.shape[1] > 2


def _given(sequences: Tensor, named: Mapping[str, Tensor]) -> Padding | None:
    """The padding that a mask or lengths among the arguments give; None if there is none."""
    size, length = sequences.shape[:2]
    for name, tensor in named.items():
        if tensor is sequences:
            continue
        if tensor.dim() == 1 and len(tensor) == size and not tensor.is_floating_point():
            if tensor.dtype is torch.bool or not 1 <= int(tensor.min()) < length:
                continue
            if int(tensor.max()) > length or int(tensor.min()) == int(tensor.max()):
                continue
            places = _behind(tensor, length)
            if _is_filled(sequences, places):
                return Padding(places, name)
        if tensor.shape == (size, length) and _is_binary(tensor):
            for places in (tensor == 0, tensor != 0):
                if _is_filled(sequences, places):
                    return Padding(places, name)
    return None


def _behind(lengths: Tensor, count: int) -> Tensor:
    """The places from each length on, of so many: bool [N, T]."""
    return torch.arange(count, device=lengths.device)[None] >= lengths[:, None]


def _is_binary(tensor: Tensor) -> bool:
    return tensor.dtype is torch.bool or bool(((tensor == 0) | (tensor == 1)).all())


def _is_filled(sequences: Tensor, places: Tensor) -> bool:
    """True if these places are at one end, and hold one value in all samples."""
    if not bool(places.any()) or bool(places.all(1).any()) or bool((~places).all(0).all()):
        return False
    held = sequences[places]
    if not bool((held == held[:1]).all()):
        return False
    steps = places.int().diff(dim=1)
    at_end = bool((steps >= 0).all())
    at_begin = bool((steps <= 0).all())
    return at_end or at_begin


def _own_lengths(tokens: Tensor) -> Tensor | None:
    """The length of each text [N], if all end in one token that is nowhere else."""
    last = tokens[:, -1]
    candidates = torch.unique(last)
    for token in candidates.tolist():
        is_padding = tokens == token
        lengths = (~is_padding).sum(1)
        places = _behind(lengths, tokens.shape[1])
        if not torch.equal(places, is_padding) or int(lengths.min()) < 1:
            continue
        if int((lengths < tokens.shape[1]).sum()) >= 2 and len(torch.unique(lengths)) > 1:
            found: Tensor = lengths
            return found
    return None


def _of_valid(change: Tensor, places: Tensor) -> float:
    """The largest change of an output, of places that are not padded where it has them."""
    if not change.numel():
        return 0.0
    if change.dim() >= 2 and change.shape[:2] == places.shape:
        valid = change[~places]
        return float(valid.max()) if valid.numel() else 0.0
    if change.dim() == 3 and change.shape[::2] == places.shape:
        valid = change.transpose(1, 2)[~places]
        return float(valid.max()) if valid.numel() else 0.0
    return float(change.max())


def _attends(model: nn.Module) -> bool:
    kinds = {type(module).__name__.lower() for module in model.modules()}
    return any("attention" in kind or "transformer" in kind for kind in kinds)
