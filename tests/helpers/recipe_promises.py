"""What the page of each recipe promises about the run of its script, and a check of it."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from recipe_runs import names_of
from same_training import series

from fmapboard.demo.photographs import Photographs


@dataclass(frozen=True, slots=True)
class Promise:
    """What must be on disk.

    Attributes:
        layers: label -> type.
        place: the run, relative to the log directory.
        input_tag: the network's input, drawn at each step.
        clipping: norms before clipping are logged.
        view: how the view of the feature maps must begin.
        has_slices: further depth slices of the feature maps are stored.
    """

    layers: Mapping[str, str]
    place: str = "."
    input_tag: str | None = "network_input/sample_0"
    clipping: bool = False
    view: str = ""
    has_slices: bool = False


PROMISES = {
    "gan": Promise(
        {
            "generator.0": "ConvTranspose2d",
            "generator.9": "ConvTranspose2d",
            "discriminator.0": "Conv2d",
            "discriminator.8": "Conv2d",
        },
        input_tag="discriminator.network_input/sample_0",
    ),
    "diffusion": Promise(
        {"conv_in": "Conv2d", "up_blocks.0.upsamplers.0.conv": "Conv2d", "conv_out": "Conv2d"},
        place="ddpm/fmapboard",
        clipping=True,
    ),
    "segmentation": Promise(
        {
            "encoder.conv1": "Conv2d",
            "decoder.blocks.0.conv1.0": "Conv2d",
            "segmentation_head.0": "Conv2d",
        }
    ),
    "detection": Promise(
        {
            "backbone.body.conv1": "Conv2d",
            "backbone.fpn.layer_blocks.0.0": "Conv2d",
            "rpn.head.cls_logits": "Conv2d",
            "rpn.head.cls_logits.call5": "Conv2d",
            "roi_heads.mask_predictor.conv5_mask": "ConvTranspose2d",
        }
    ),
    "timm_loop": Promise(
        {"stem.0": "Conv2d", "stages.0.blocks.0.conv_dw": "Conv2d"}, clipping=True
    ),
    "ultralytics_yolo": Promise({"model.0.conv": "Conv2d", "model.23.cv2.0.2": "Conv2d"}),
    "monai_3d": Promise(
        {"model.0.conv.unit0.conv": "Conv3d", "model.2.0.conv": "ConvTranspose3d"},
        input_tag=None,
        has_slices=True,
    ),
    "audio": Promise(
        {"conv1": "Conv1d", "conv4": "Conv1d"}, input_tag=None, view="one row of pixels per channel"
    ),
}


def check(recipe: str, logdir: Path, expected: list[int]) -> dict[str, list[tuple[int, Any]]]:
    """Check a run against its page; return every series of the run.

    Raises:
        AssertionError: something that the page promises is missing.
    """
    promise = PROMISES[recipe]
    found = series(logdir / promise.place)
    steps = {tag: [step for step, _ in values] for tag, values in found.items()}
    for label, kind in promise.layers.items():
        record = _record_tag(label, set(found))
        assert steps[record] == expected, record
        header = found[record][0][1][0]
        assert header["type"] == kind, (record, header["type"])
        maps = [picture for picture in header["pictures"] if picture["role"] == "feature_maps"]
        assert [p["view"][: len(promise.view)] for p in maps] == [promise.view], record
        assert ["slices" in p for p in maps] == [promise.has_slices], record
        assert steps[maps[0]["tag"]] == expected, maps[0]["tag"]
    norms = [tag for tag in found if tag.endswith("gradient_norm/total")]
    assert len(norms) == (2 if recipe == "gan" else 1)
    if promise.clipping:
        norms.append("gradient_norm_before_clipping/total")
    if promise.input_tag:
        norms.append(promise.input_tag)
    assert {tag: steps[tag] for tag in norms} == dict.fromkeys(norms, expected)
    _check_input(recipe, found)
    return found


def _record_tag(label: str, tags: set[str]) -> str:
    """``fmapboard/<label>``, or ``<name>.fmapboard/<label>`` for a model with a name."""
    name, _, rest = label.partition(".")
    named = f"{name}.fmapboard/{rest}"
    return named if named in tags else f"fmapboard/{label}"


def _check_input(recipe: str, found: Mapping[str, list[tuple[int, Any]]]) -> None:
    """Check that the drawn input is the batch of the step, for a GAN the real one."""
    batch = {
        "gan": lambda names, *given: names["real_batch"](*given),
        "segmentation": lambda names, *given: names["scenes"](*given)[0],
    }.get(recipe)
    tag = PROMISES[recipe].input_tag
    if batch is None or tag is None:
        return
    names, photographs = names_of(recipe), Photographs.load()
    for step, value in found[tag]:
        drawn = np.asarray(Image.open(io.BytesIO(value[2])).convert("RGB"))
        true = batch(names, photographs, step)[0]
        assert correlation(drawn, true) > 0.99, (tag, step)


def correlation(drawn: npt.NDArray[np.uint8], true: torch.Tensor) -> float:
    """Correlation of a picture [H, W, 3] with an image [3, H, W]; 1 if they are equal."""
    values = true.permute(1, 2, 0).numpy()  # [H, W, 3]
    assert drawn.shape == values.shape
    return float(np.corrcoef(drawn.ravel(), values.ravel())[0, 1])
