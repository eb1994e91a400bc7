"""The options of a model and its input that ``visualize`` and ``fmapboard diff`` share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from fmapboard.errors import ConfigurationError
from fmapboard.imaging.models.load import LoadedModel, load_model
from fmapboard.imaging.models.preprocessing import Size


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """Command-line options; ``visualize --help`` describes them."""

    images: tuple[Path, ...] = ()
    model_args: tuple[str, ...] = ()
    forward_args: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    checkpoint_key: str | None = None
    input_size: int | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    resize: Size | None = None
    crop: Size | None = None
    device: str = "cpu"

    def load(
        self,
        spec: str,
        checkpoint: Path | None,
        *,
        weights: str = "DEFAULT",
        checkpoint_key: str | None = None,
    ) -> LoadedModel:
        """Load a model as ``load_model`` does, with the options' preprocessing.

        Raises:
            FmapboardError: as ``load_model``, and if options exclude each other.
        """
        sized = [f"--{name}" for name in ("resize", "crop") if getattr(self, name) is not None]
        if self.input_size is not None and sized:
            raise ConfigurationError(f"--input-size and {sized[0]} are mutually exclusive")
        return load_model(
            spec,
            weights=weights,
            checkpoint=checkpoint,
            checkpoint_key=checkpoint_key,
            input_size=self.input_size,
            model_args=self.model_args,
            forward_args=self.forward_args,
            has_inputs=bool(self.inputs),
        ).preprocessed(mean=self.mean, std=self.std, resize=self.resize, crop=self.crop)


def device_named(name: str) -> torch.device:
    """The torch device with this name.

    Raises:
        ConfigurationError: it cannot be used.
    """
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigurationError(f"--device {name!r} cannot be used: {reason}") from error
    return device
