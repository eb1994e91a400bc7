"""``fmapboard diff``: find the first layer in which two checkpoints differ."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from fmapboard.demo.bundled import PHOTOGRAPH
from fmapboard.errors import escaped
from fmapboard.imaging.forward_inputs import ImageArguments, inputs_from
from fmapboard.imaging.images import find_images
from fmapboard.imaging.models.load import device_named, load_model
from fmapboard.imaging.models.request import LoadedModel, ModelRequest
from fmapboard.imaging.read_images import ReadImages
from fmapboard.model.layers import Layers
from fmapboard.model_comparison.differences import ModelDifference, difference_table
from fmapboard.model_comparison.two_models import difference
from fmapboard.printing import console, note

_LEGEND = """\
Relative errors: norm of the difference / the larger of both norms. 0: equal; about 1.4: unrelated;
inf: not comparable; –: not compared. error in, error out: of what the layer receives and returns
when both models run on their own; added: of what it returns when B's layer receives A's input."""


def diff_checkpoints(
    request: ModelRequest,
    first: Path,
    second: Path,
    images: Sequence[Path],
    *,
    spec_b: str | None,
    checkpoint_key_b: str | None,
    tolerance: float | None,
    as_json: bool,
    out: Path | None,
    log_dir: Path | None,
    layers: Layers,
) -> bool:
    """Compare two checkpoints, print the result, and return True if a layer differs.

    Args:
        request: The network of both checkpoints, and how its input is prepared.
        first: The checkpoint to compare with.
        second: The other one.
        images: Image files and folders; empty for the bundled photograph.
        spec_b: The network of B, if it is another.
        checkpoint_key_b: The same for B, if it is another.
        tolerance: As in ``diff``, as are ``out``, ``log_dir`` and ``layers``.
        as_json: Print a JSON object with all layers.
        out: Likewise.
        log_dir: Likewise.
        layers: Likewise.

    Raises:
        FmapboardError: An option is invalid, or something failed; the message is one line.
    """
    files = find_images(images or [PHOTOGRAPH])
    device = device_named(request.device)
    inputs = inputs_from(request.inputs, len(files), request.forward_args)
    model_a = _load(replace(request, checkpoint=first))
    spec = spec_b or request.spec
    key = checkpoint_key_b or request.checkpoint_key
    model_b = _load(replace(request, checkpoint=second, spec=spec, checkpoint_key=key))
    inputs.check(model_a.model)
    model_a.model.to(device)
    model_b.model.to(device)
    note(f"preprocessing: {model_a.preprocessing}")
    read = ReadImages.of(files, model_a.preprocessing)
    batches = ImageArguments(model_a.model, read, inputs)
    found = difference(
        model_a.model, model_b.model, batches,
        tolerance=tolerance, layers=layers, out=out, log_dir=log_dir,
        normalization=read.normalization, name_of=lambda step: read.names[read.numbers[step]],
    )  # fmt: skip
    compared_on = _images_text(images, read)
    note(compared_on)
    if as_json:
        print(json.dumps(found.as_json(), indent=1))
    else:
        _print(found, compared_on)
    read.check_complete()
    return bool(found)


def _images_text(given: Sequence[Path], images: ReadImages) -> str:
    """What the models were compared on."""
    if not given:
        return f"compared on the bundled photograph {PHOTOGRAPH.name}, as no image was given"
    count = len(images.sources)
    read = len(images.numbers)
    if count == 1:
        return f"compared on {images.names[0]}"
    if read == count:
        return f"compared on {count} images"
    return f"compared on {read} of {count} images"


def _load(request: ModelRequest) -> LoadedModel:
    # Tensors that are in neither checkpoint get the same random values in both models.
    with torch.random.fork_rng(devices=[]):
        loaded = load_model(request)
    note(f"{request.checkpoint}: {loaded.report}")
    return loaded


def _print(found: ModelDifference, compared_on: str) -> None:
    out = console()
    out.print(difference_table(found))
    lines = (escaped(line, keep="") for line in (compared_on, found.summary))
    out.print("", _LEGEND, *lines, sep="\n", soft_wrap=True)
