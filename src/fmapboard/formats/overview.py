"""Stored format of a run's overview series, shared by writer and plugin.

One record per logged step in the series ``tags.OVERVIEW``, with numbers of every layer call whose
feature maps were measured, drawn or not. Blob 0 is a JSON header as in ``tab_records``, with the
keys ``format``, ``step``, ``steps_written``, ``columns``, ``since``, ``layers`` and ``arrays``;
blob 1 holds one array, ``numbers`` [layers, columns] of float32; blob 2 is a zlib-compressed JSON
list of what is known about each layer (``LayerFacts``), in the order of calls. ``layers`` is
``digest`` of blob 2, so that a reader of many steps need not read the same list again. A reader
takes columns by name, and ignores columns and keys that it does not know. The first step of each
start of a run is also in the series ``tags.FIRST_OVERVIEW``, which TensorBoard keeps in any case.
The optional key ``input`` has the numbers of `OverviewStep.network_input`, and ``source`` has
`OverviewStep.source`::

    blobs = pack_overview(OverviewStep(step, steps_written, layers, numbers, since))
    unpack_overview(blobs).numbers["dead"]   # float [layers]
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, cast, get_args

import numpy as np
import numpy.typing as npt

from fmapboard.formats.tab_records import Floats, FormatError, pack, reading, stored, typed, unpack

_MAX_LAYERS_TEXT = 16 * 2**20
"""Maximum size in bytes of blob 2 after decompression: about 60,000 layers."""


@dataclass(frozen=True, slots=True)
class LayerFacts:
    """What is known about a layer call besides its numbers.

    Attributes:
        label: name of the layer, and of the call if it is not the first.
        layer: name of the layer.
        type: class of the module.
        kernel_shape: shape of the kernels; None for layers without.
        call: number of the call within the forward pass, from 1.
        position: position in the order of calls.
        channels: number of channels.
        values: number of values per channel over the whole batch; of a record, at the first step
            with these layers (see the column of that name).
        drawn: number of channels drawn; 0 if the layer has no pictures.
        samples: number of samples drawn.
        roles: kinds of pictures.
        activation: label of the activation that directly follows, or None.
        transposed_stride: stride of a transposed convolution; None for other layers.
        followed_by: see `records.LayerCall`.
        shape: of a part of a block, such as ``Attention 12×64``; empty for others.
        unit: what a channel is: a ``channel``, a ``feature`` of tokens, a ``unit`` of an MLP.
    """

    label: str
    layer: str
    type: str
    kernel_shape: tuple[int, ...] | None
    call: int
    position: int
    channels: int
    values: int
    drawn: int = 0
    samples: int = 1
    roles: tuple[str, ...] = ()
    activation: str | None = None
    transposed_stride: tuple[int, ...] | None = None
    followed_by: tuple[str, ...] = ()
    shape: str = ""
    unit: str = "channel"


def pack_layers(layers: Sequence[LayerFacts]) -> bytes:
    """Blob 2 of a record."""
    text = json.dumps(stored(layers), separators=(",", ":"), ensure_ascii=False)
    return zlib.compress(text.encode(), 6)


def digest(blob: bytes) -> str:
    """Tells blob 2 apart from others, for ``layers`` in the header."""
    return f"{zlib.crc32(blob):08x}-{len(blob)}"


@lru_cache(maxsize=8)  # the steps of a run mostly have the same layers
def unpack_layers(blob: bytes) -> tuple[LayerFacts, ...]:
    """Parse blob 2 of a record.

    Raises:
        FormatError: it is damaged.
    """
    with reading("the overview's layers are"):
        layers = json.loads(_decompressed(blob))
        return tuple([typed(LayerFacts, raw) for raw in layers])


def _decompressed(blob: bytes) -> bytes:
    """Decompress at most `_MAX_LAYERS_TEXT` bytes, so that a hostile record cannot fill memory."""
    engine = zlib.decompressobj()
    text = engine.decompress(blob, _MAX_LAYERS_TEXT)
    if engine.unconsumed_tail or not engine.eof:
        raise ValueError("the list of layers is too long, or cut off")
    return text


COLUMNS = (
    "minimum", "maximum", "mean", "std",
    "nonfinite", "constant", "dead", "dead_lasting", "change", "weights_change",
    "nan", "positive_infinity", "negative_infinity", "counted", "change_steps", "weights_steps",
    "values", "missed", "spread",
)  # fmt: skip
"""Numbers of a layer at one step; NaN where a number is not known.

``minimum`` and ``maximum`` are those of all finite values, ``mean`` and ``std`` of all channels
with equal weight. ``nonfinite``, ``constant`` and ``dead`` are shares of all channels of the layer,
0 to 1; ``dead`` is that of the activation that directly follows, if there is one, and is NaN if the
layer is not followed by an activation and is none. ``dead_lasting`` is the share of channels that
were dead at each of the last `LASTING` logged steps. ``change`` is the mean change of the drawn
maps, in standard deviations, and ``weights_change`` that of the weights, relative to their norm
(see ``summary.change``); ``change_steps`` and ``weights_steps`` are how many steps before
the logged step that is which they were compared with. ``nan``, ``positive_infinity`` and
``negative_infinity`` are numbers of values, exact if ``counted`` is 1, otherwise lower bounds.
``values`` is the number of values per channel at this step, and ``missed`` how many of the logged
steps so far have no pictures of the layer. ``spread`` is how much the images of the batch differ
(see ``records.Statistics``).
"""
KINDS = ("nonfinite", "large", "dead", "constant", "unchanged")
"""States that are faults, the most severe first; also the keys of ``since``."""
LASTING = 4
"""Number of logged steps after which a dead channel is lastingly dead."""
INPUT_NUMBERS = ("minimum", "maximum", "mean", "std", "nonfinite", "interleaved", "stretched")
"""Numbers of the drawn images that the network received: four of their finite values, how many
values are NaN or infinite and, of images of three channels, the mean difference of neighbours in a
row by their place modulo 3, the least over the largest: near 1, unless colours take turns; and 1 if
they are drawn in other colours than they had before they were normalized, otherwise 0."""
Flags = npt.NDArray[np.bool_]


Kind = Literal["image", "checkpoint"]


@dataclass(frozen=True, slots=True)
class StepSource:
    """What a step of ``visualize`` shows.

    Attributes:
        kind: ``"image"`` if each step is another image, ``"checkpoint"`` if each is the same image
            with other weights.
        name: name of the image's or the checkpoint's file.
    """

    kind: Kind
    name: str


def source_text(source: StepSource | None, step: int) -> str:
    """A step in words.

    Example:
        >>> source_text(StepSource("image", "cat.jpg"), 3)
        'image 3 (cat.jpg)'
        >>> source_text(StepSource("checkpoint", "ckpt_20.pt"), 20), source_text(None, 20)
        ('step 20 (ckpt_20.pt)', 'step 20')
    """
    if source is None:
        return f"step {step}"
    kind = "image" if source.kind == "image" else "step"
    if source.name.isdecimal():  # the name of an image that was given as a tensor
        return f"{kind} {step}"
    return f"{kind} {step} ({source.name})"


def is_of_images(sources: Mapping[int, StepSource | None]) -> bool:
    """True if every step is another image, so that nothing is before or after anything else."""
    if not sources:
        return False
    return all(source is not None and source.kind == "image" for source in sources.values())


def parsed_source(raw: Any) -> StepSource | None:
    """The source in a header; None if there is none, or a kind that this version does not know."""
    if not isinstance(raw, Mapping) or raw.get("kind") not in get_args(Kind):
        return None
    return StepSource(cast(Kind, raw["kind"]), str(raw.get("name", "")))


@dataclass(frozen=True, slots=True)
class OverviewStep:
    """The overview at one logged step.

    Attributes:
        step: number of the step.
        steps_written: number of steps logged so far.
        layers: facts about each layer.
        numbers: column -> its value for each layer, float [layers].
        since: kind of `KINDS` -> index of each layer in that state now -> first of the logged steps
            at which it has been in that state without interruption; for ``"unchanged"``, the step
            since which the weights are the same. Steps at which the layer was not measured, or the
            state not known, are no interruption.
        network_input: `INPUT_NUMBERS` of the drawn input images; empty if they are not known.
        source: what the step shows; None for a step of a training.
    """

    step: int
    steps_written: int
    layers: tuple[LayerFacts, ...]
    numbers: Mapping[str, Floats]
    since: Mapping[str, Mapping[int, int]]
    network_input: Mapping[str, float] = field(default_factory=dict)
    source: StepSource | None = None


def pack_overview(overview: OverviewStep, layers: bytes | None = None) -> tuple[bytes, ...]:
    """The three blobs of a record; columns that are missing in ``numbers`` are stored as NaN.

    Args:
        overview: the overview.
        layers: ``pack_layers(overview.layers)``, for a caller that packs the same layers again.
    """
    packed = pack_layers(overview.layers) if layers is None else layers
    table = np.full((len(overview.layers), len(COLUMNS)), np.nan)
    for column, name in enumerate(COLUMNS):
        if name in overview.numbers:
            table[:, column] = overview.numbers[name]
    since: dict[str, dict[str, list[int]]] = {}
    for kind, layers_in_state in overview.since.items():
        for index, step in sorted(layers_in_state.items()):
            by_step = since.setdefault(kind, {})
            by_step.setdefault(str(step), []).append(index)
    header = {
        "step": overview.step,
        "steps_written": overview.steps_written,
        "columns": list(COLUMNS),
        "since": since,
        "layers": digest(packed),
    }
    if overview.network_input:
        header["input"] = dict(overview.network_input)
    if overview.source:
        header["source"] = stored(overview.source)
    return pack(header, {"numbers": table}, [packed])


def unpack_overview(blobs: Sequence[bytes | None]) -> OverviewStep:
    """Parse and validate the blobs of a record.

    Raises:
        FormatError: a blob is None or damaged, or the record's format is newer.
    """
    if len(blobs) < 3 or any(blob is None for blob in blobs):
        raise FormatError("the overview can no longer be read")
    header, arrays = unpack([blob for blob in blobs if blob is not None])
    layers = unpack_layers(blobs[2] or b"")
    with reading("the overview is"):
        columns = header["columns"]
        table = arrays["numbers"]
        if table.shape != (len(layers), len(columns)):
            raise ValueError(f"numbers have shape {table.shape}, of {len(layers)} layers")
        if not all(isinstance(name, str) for name in columns):
            raise ValueError("a column's name is not a string")
        return OverviewStep(
            step=typed(int, header["step"]),
            steps_written=typed(int, header["steps_written"]),
            layers=layers,
            numbers=dict(zip(columns, table.T, strict=True)),
            since=_parsed_since(header["since"], len(layers)),
            network_input=_parsed_input(header.get("input") or {}),
            source=parsed_source(header.get("source")),
        )


def _parsed_since(raw: Any, layers: int) -> dict[str, dict[int, int]]:
    """``OverviewStep.since`` of that many layers, from its header."""
    since = dict[str, dict[int, int]]()
    for kind, by_step in raw.items():
        if kind not in KINDS:
            continue
        since[kind] = {}
        for step, indices in by_step.items():
            first = typed(int, int(step))
            for raw_index in indices:
                index = typed(int, raw_index)
                if index >= layers:
                    raise ValueError("a state is of a layer that is not listed")
                since[kind][index] = first
    return since


def _parsed_input(raw: Any) -> dict[str, float]:
    """``OverviewStep.network_input`` from its header."""
    numbers = dict[str, float]()
    for name in INPUT_NUMBERS:
        if name in raw:
            number = float(raw[name])
            if math.isfinite(number):
                numbers[name] = number
    return numbers
