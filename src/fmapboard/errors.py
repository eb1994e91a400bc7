"""The one tree of errors that fmapboard raises, and the reports of those that it does not."""

from __future__ import annotations

import difflib
import importlib
import logging
import os
from collections.abc import Iterable
from types import ModuleType

ON_ERROR = "FMAPBOARD_ON_ERROR"
"""Environment variable; ``raise`` makes errors of fmapboard end the training, for debugging."""

log = logging.getLogger("fmapboard")


class _SayWhoSpeaks(logging.Filter):
    """Every message begins with the name of the library, however it is printed."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep the record, its message prefixed."""
        if not str(record.msg).startswith(_WHO):
            record.msg = f"{_WHO}{record.msg}"
        return True


_WHO = "fmapboard: "
log.addFilter(_SayWhoSpeaks())


class FmapboardError(Exception):
    """Anything fmapboard raises on purpose; its text is one line that names the way out."""

    exit_code = 1
    """What the command line exits with: 1 for a job that failed, 2 for a wrong request."""


class ConfigurationError(FmapboardError, ValueError):
    """What was asked for cannot be done as asked; raised at once, before anything runs."""

    exit_code = 2


class LayerNotFound(ConfigurationError):
    """A layer pattern matches nothing in the model."""


class NoConvolution(LayerNotFound):
    """Convolutions were asked for and the model has none, or it has nothing to watch by default."""


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


class WorkerEnded(FmapboardError):
    """The thread that writes what is recorded ended or cannot start: nothing more is written."""


class CaptureError(FmapboardError):
    """Something inside a logged step failed; raised only with ``FMAPBOARD_ON_ERROR=raise``."""


class MissingExtra(FmapboardError, ImportError):
    """An optional library that is not installed."""

    exit_code = 2


def first_line(error: BaseException) -> str:
    """The first line of an error's text, or its type where it has none."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def closest(name: str, known: Iterable[str], *, most: int = 5) -> str:
    """The known names that look most like ``name``, as text for an error message."""
    near = difflib.get_close_matches(name, list(known), n=most, cutoff=0.3)
    return ", ".join(near) if near else "none is close"


_DISTRIBUTIONS = {"ignite": "pytorch-ignite", "transformers": "transformers accelerate"}
"""Extra -> the distributions that it stands for, where they are not called as the extra is."""


def optional(module: str, *, extra: str, why: str) -> ModuleType:
    """Import an optional library.

    Raises:
        MissingExtra: it is not installed; the text names the distributions to install.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        distributions = _DISTRIBUTIONS.get(extra, extra)
        raise MissingExtra(f"{why} needs {module!r}. Run: pip install {distributions}") from error


class WarnOnce:
    """Logs each problem once; where the environment asks for it, raises the first error later.

    A problem is identified by what it is about (a layer's name, ``"writing"``) and the kind of
    error.
    """

    def __init__(self) -> None:
        self._raises = os.environ.get(ON_ERROR) == "raise"
        self._said: set[tuple[str, str]] = set()
        self._first: str | None = None

    def error(self, about: str, error: Exception, consequence: str) -> None:
        """Report an error of ours; only its text is kept, since its traceback pins tensors."""
        text = f"{about}: {type(error).__name__}: {error}; {consequence}"
        self._first = self._first or text
        self.warn(about, text, kind=type(error).__name__)

    def warn(self, about: str, text: str, kind: str = "") -> None:
        """Log a warning unless it was logged before."""
        if (about, kind) not in self._said:
            self._said.add((about, kind))
            log.warning("%s", text)

    def raise_first(self) -> None:
        """With ``FMAPBOARD_ON_ERROR=raise``: raise the first error that was reported, once.

        Raises:
            CaptureError: there was one.
        """
        text, self._first = self._first, None
        if text is not None and self._raises:
            raise CaptureError(text)
