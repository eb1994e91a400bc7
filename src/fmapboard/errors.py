"""The one tree of errors that fmapboard raises."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable
from types import ModuleType


class FmapboardError(Exception):
    """Anything fmapboard raises on purpose; its text is one line that names the way out."""

    exit_code = 1
    """What the command line exits with: 1 for a job that failed, 2 for a wrong request."""


class ConfigurationError(FmapboardError, ValueError):
    """What was asked for cannot be done as asked; raised at once, before anything runs."""

    exit_code = 2


class LayerNotFound(ConfigurationError):
    """A layer pattern matches nothing in the model."""


class NoConvolution(ConfigurationError):
    """The model has none of the layers that are watched by default."""


class UnknownModel(ConfigurationError):
    """A model name or factory that cannot be found."""


class ImageError(FmapboardError):
    """A file that cannot be read as an image."""


class CheckpointError(FmapboardError):
    """A file of weights that cannot be read, or that does not fit the model."""


class DownloadError(FmapboardError):
    """Weights that could not be fetched."""


class WriteError(FmapboardError):
    """A place that records cannot be written to."""


class CaptureError(FmapboardError):
    """Something inside a logged step failed; raised only with ``on_error="raise"``."""


class MissingExtra(FmapboardError, ImportError):
    """An optional library that is not installed."""

    exit_code = 2


def closest(name: str, known: Iterable[str], *, most: int = 5) -> str:
    """The known names that look most like ``name``, as text for an error message."""
    near = difflib.get_close_matches(name, list(known), n=most, cutoff=0.3)
    return ", ".join(near) if near else "none is close"


def optional(module: str, *, extra: str, why: str) -> ModuleType:
    """Import an optional library.

    Raises:
        MissingExtra: it is not installed; the text says what to install.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(
            f"{why} needs {module!r}. Run: pip install 'fmapboard[{extra}]'"
        ) from error
