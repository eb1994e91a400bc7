"""The options of a model and its input that the commands share."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from fmapboard.errors import ConfigurationError
from fmapboard.imaging.models.load import LoadedModel, load_model
from fmapboard.imaging.models.preprocessing import Size

T = TypeVar("T")


def taken(kind: type[T], options: dict[str, Any]) -> T:
    """A dataclass made of the options that it has fields for, which are removed from ``options``.

    Example:
        >>> options = {"spec": "resnet34", "kernels": True}
        >>> taken(ModelRequest, options).spec, options
        ('resnet34', {'kernels': True})
    """
    names = [one.name for one in fields(kind) if one.name in options]  # type: ignore[arg-type]  # a dataclass
    return kind(**{name: options.pop(name) for name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """Command-line options; ``visualize --help`` describes them."""

    images: tuple[Path, ...] = ()
    spec: str = "demo"
    weights: str = "DEFAULT"
    checkpoint: Path | None = None
    checkpoint_key: str | None = None
    model_args: tuple[str, ...] = ()
    forward_args: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    input_size: int | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    resize: Size | None = None
    crop: Size | None = None
    device: str = "cpu"

    def load(self) -> LoadedModel:
        """Load the model as ``load_model`` does, with the options' preprocessing.

        Raises:
            FmapboardError: as ``load_model``, and if options exclude each other.
        """
        sized = [f"--{name}" for name in ("resize", "crop") if getattr(self, name) is not None]
        if self.input_size is not None and sized:
            raise ConfigurationError(f"--input-size and {sized[0]} are mutually exclusive")
        return load_model(
            self.spec,
            weights=self.weights,
            checkpoint=self.checkpoint,
            checkpoint_key=self.checkpoint_key,
            input_size=self.input_size,
            model_args=self.model_args,
            forward_args=self.forward_args,
            has_inputs=bool(self.inputs),
        ).preprocessed(mean=self.mean, std=self.std, resize=self.resize, crop=self.crop)
