"""The options of a model and its input that ``visualize`` and ``fmapboard diff`` share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fmapboard.cli.models.load import LoadedModel, load_model
from fmapboard.cli.options import Size
from fmapboard.errors import ConfigurationError


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
