"""The exceptions that fmapboard raises, and warnings for the others."""

from __future__ import annotations

import contextlib
import difflib
import errno
import importlib
import logging
import os
import re
import shlex
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

ON_ERROR = "FMAPBOARD_ON_ERROR"
"""Environment variable; set it to ``raise`` to make errors inside fmapboard stop the training."""

log = logging.getLogger("fmapboard")

VERDICT_OF = "verdict_of"
"""Attribute of a record of `log` that is the verdict on a run: its directory."""


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, separators of lines, bidirectional overrides, and lone surrogates."""


def escaped(text: object, *, keep: str = "\t\n") -> str:
    r"""Text that cannot control a terminal: names from files may contain escape sequences.

    Args:
        text: Anything; its ``str``.
        keep: Control characters to leave; empty for a name that must stay on one line.

    Example:
        >>> print(escaped("cat\x1b[2J.jpg"))
        cat\x1b[2J.jpg
    """

    def escape(found: re.Match[str]) -> str:
        character = found[0]
        if character in keep:
            return character
        return character.encode("unicode_escape").decode()

    return _CONTROL.sub(escape, str(text))


def for_shell(*words: str) -> str:
    """A command line to paste: quoted for POSIX shells, or for cmd and PowerShell on Windows."""
    if sys.platform == "win32":
        from subprocess import list2cmdline

        return list2cmdline(words)
    return shlex.join(words)


def _for_any_terminal(record: logging.LogRecord) -> bool:
    """A filter: prefixes a message with the library's name and escapes control characters."""
    text = escaped(record.msg)
    record.msg = text if text.startswith(_PREFIX) else f"{_PREFIX}{text}"
    if isinstance(record.args, tuple):
        record.args = tuple(map(_escaped_argument, record.args))
    return True


def _escaped_argument(value: object) -> object:
    if isinstance(value, (str, BaseException, os.PathLike)):
        return escaped(value)
    return value


_PREFIX = "fmapboard: "
log.addFilter(_for_any_terminal)


class FmapboardError(Exception):
    """Base class of fmapboard's errors; the message is one line that says how to fix it."""

    exit_code = 1
    """The command line exits with 1 for a failed job, with 2 for bad usage or unreadable input."""


class ConfigurationError(FmapboardError, ValueError):
    """An invalid argument; raised immediately, before anything runs."""

    exit_code = 2


class LayerNotFound(ConfigurationError):
    """A layer pattern that matches nothing in the model."""


class NoConvolution(LayerNotFound):
    """The model has no convolution, or no layer, of the kind to watch."""


class UnknownModel(ConfigurationError):
    """A model name or factory that cannot be found."""


class ImageError(FmapboardError):
    """A file that cannot be read as an image."""

    exit_code = 2


class CheckpointError(FmapboardError):
    """A checkpoint that cannot be read or does not fit the model."""

    exit_code = 2


class DownloadError(FmapboardError):
    """Weights that could not be downloaded."""


class WriteError(FmapboardError):
    """A directory or file that cannot be written to."""


@contextlib.contextmanager
def writing(what: str) -> Iterator[None]:
    """Raise an `OSError` of the block as a `WriteError`: "cannot write", and what."""
    try:
        yield
    except OSError as error:
        raise not_written(what, error) from error


_ADVICE_TO_WRITE = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "; free some space there"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "; choose a directory of your own"),
    **dict.fromkeys((errno.EEXIST, errno.ENOTDIR), "; choose a path without a file in it"),
    errno.EFBIG: "; raise the limit on the size of files (ulimit -f)",
}
"""Number of a system's error -> the end of the message."""


def not_written(what: str, error: Exception) -> WriteError:
    """An error that says what cannot be written, why, and what to do."""
    why = getattr(error, "strerror", None) or error
    advice = _ADVICE_TO_WRITE.get(getattr(error, "errno", None) or 0, "")
    return WriteError(f"cannot write {what}: {why}{advice}")


class WorkerEnded(FmapboardError):
    """The worker thread has ended or cannot start, so nothing more is written."""


class CaptureError(FmapboardError):
    """An error inside a logged step; raised only with ``FMAPBOARD_ON_ERROR=raise``."""


class ForwardError(CaptureError, RuntimeError):
    """The model raised an exception while ``extract`` or ``visualize`` ran it.

    Its message names the layer that raised and lists the layers that ran before it, with shapes;
    the model's own exception is its cause.

    Attributes:
        summary: One line: the layer, the exception, the line of code, and what the layer received.
        layer: Name of the innermost layer that was running; None if it is not known.
        ran: One line per layer that had returned, in order of execution.
    """

    def __init__(
        self, summary: str, layer: str | None, ran: tuple[str, ...], *, shown: int | None = None
    ) -> None:
        left_out = 0 if shown is None else max(0, len(ran) - shown)
        lines = list(ran[left_out:])
        if left_out:
            lines.insert(0, f"({left_out} more)")
        message = summary
        if ran:
            message += "\n  ".join(["\nran before it:", *lines])
        super().__init__(message)
        self.summary = summary
        self.layer = layer
        self.ran = ran


class MissingExtra(FmapboardError, ImportError):
    """An optional library is not installed."""

    exit_code = 2


def error_text(error: BaseException) -> str:
    """An error's type and message; the type alone if it has no message."""
    name = type(error).__name__
    text = str(error)
    return f"{name}: {text}" if text else name


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or the error's type if it has no message."""
    text = str(error)
    return text.splitlines()[0] if text else type(error).__name__


def one_line(error: BaseException, *, most: int = 160) -> str:
    """An error's type and text on one line, cut at a word boundary before ``most`` characters."""
    text = " ".join(str(error).split())
    if len(text) > most:
        text = text[:most].rsplit(" ", 1)[0] + " …"
    name = type(error).__name__
    return f"{name}: {text}" if text else name


def few(names: Collection[Any], most: int = 3) -> str:
    """The first ``most`` names, and the number of the others."""
    shown = ", ".join(map(str, list(names)[:most]))
    left_out = len(names) - most
    return f"{shown} and {left_out} more" if left_out > 0 else shown


_CLOSE = 0.7
_CLOSE_IF_SHORT = 0.6
"""Least similarity, as of `difflib.SequenceMatcher.ratio`, and that of names up to 4 characters."""


def closest(name: str, known: Iterable[str], *, most: int = 3, listed: int = 6) -> str:
    """The end of an error message about an unknown name: the names that were probably meant.

    A name counts if it is similar, or if it ends in ``name`` as ``layer1.0.conv1`` does in
    ``conv1``. For a glob such as ``layr1.*`` or ``*.covn1``, globs are suggested.

    Args:
        name: the unknown name, or a glob.
        known: the names there are.
        most: number of names to suggest.
        listed: number of known names up to which all are listed if none is close.

    Returns:
        ``"; closest: layer1"``, ``"; there are: a, b"``, or an empty string.

    Example:
        >>> closest("covn1", ["conv1", "conv2", "head"]), closest("x", ["conv1", "head"])
        ('; closest: conv1', '; there are: conv1, head')
        >>> closest("layr1.*", ["layer1.0.conv1", "layer2.0.conv1"]), closest("x", "abcdefgh")
        ('; closest: layer1.*, layer2.*', '')
    """
    names = list(dict.fromkeys(known))
    candidates = names + _globs(name, names)
    cutoff = _CLOSE_IF_SHORT if len(name) <= 4 else _CLOSE
    near = difflib.get_close_matches(name, candidates, n=most, cutoff=cutoff)
    at_end = re.compile(rf"[._:/-]{re.escape(name)}$")
    near += filter(at_end.search, names)
    near = list(dict.fromkeys(near))
    if near:
        return f"; closest: {', '.join(near[:most])}"
    if 0 < len(names) <= listed:
        return f"; there are: {', '.join(names)}"
    return ""


def _globs(glob: str, names: Iterable[str]) -> list[str]:
    """Globs of the same form that match something: ``layer1.*`` or ``*.conv1``."""
    count = glob.count(".")
    starts = list[str]()
    ends = list[str]()
    for name in names:
        parts = name.split(".")
        if len(parts) <= count:
            continue
        if glob.endswith(".*"):
            starts.append(".".join([*parts[:count], "*"]))
        if glob.startswith("*."):
            ends.append(".".join(["*", *parts[-count:]]))
    return list(dict.fromkeys(starts + ends))


_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(?=.)")  # a Windows drive has one letter


def nearby(path: Path) -> str:
    """The end of an error message about a missing file: what was probably meant.

    Returns:
        ``"; closest: cat.jpg"``, ``"; there is no folder 'photos'"``, ``"; there are: a.pt"``,
        or an empty string if nothing helps.
    """
    folder = path.parent
    if url_of(path):
        return "; URLs are not read: download the file first"
    if not folder.is_dir():
        return f"; there is no folder {str(folder)!r}"
    try:
        names = sorted(file.name for file in folder.iterdir())
    except OSError:  # not permitted
        return ""
    shown = [name for name in names if not name.startswith(".")]
    return closest(path.name, shown)


def url_of(path: Path) -> str:
    """The URL that a path was made of, which merges its slashes; empty if it is none."""
    text = str(path)
    return _URL.sub(r"\1://", text, count=1) if _URL.match(text) else ""


def instead_of_data(path: Path) -> str:
    """What a file is that has taken the place of the data, and what to do; empty if unknown."""
    try:
        with path.open("rb") as file:
            start = file.read(512).lstrip().lower()
    except OSError:
        return ""
    if start.startswith(b"version https://git-lfs.github.com"):
        return "a Git LFS pointer, not the data; fetch that with: git lfs pull"
    if start.startswith((b"<!doctype html", b"<html")):
        return "a web page, not the data; download the file itself: the page may ask for a login"
    return ""


_DISTRIBUTIONS = {"ignite": "pytorch-ignite", "transformers": "transformers accelerate"}
"""Extra -> distributions to install, where their names differ from the extra's."""


def optional(module: str, *, extra: str, why: str) -> ModuleType:
    """Import an optional library.

    Args:
        module: the module to import.
        extra: the extra of fmapboard that needs it.
        why: what needs the library; begins the error message.

    Raises:
        MissingExtra: it is not installed; the message names the distributions to install.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        distributions = _DISTRIBUTIONS.get(extra, extra)
        raise MissingExtra(f"{why} needs {module!r}. Run: pip install {distributions}") from error


class WarnOnce:
    """Logs each problem once, and can raise the first error later.

    A problem is identified by its subject (a layer's name, ``"writing"``) and the type of error.
    """

    def __init__(self) -> None:
        self._raises = os.environ.get(ON_ERROR) == "raise"
        self._logged = set[tuple[str, str]]()
        self._first: str | None = None

    def error(self, about: str, error: BaseException, consequence: str) -> None:
        """Report one of fmapboard's errors.

        Only the text is kept: the traceback would keep tensors alive.

        Args:
            about: the subject.
            error: what went wrong.
            consequence: what is lost.
        """
        text = f"{about}: {error_text(error)}; {consequence}"
        self._first = self._first or text
        self.warn(about, text, kind=type(error).__name__)

    def warn(self, about: str, text: str, kind: str = "") -> None:
        """Log a warning, unless the same subject and kind were logged before."""
        problem = (about, kind)
        if problem not in self._logged:
            self._logged.add(problem)
            log.warning("%s", text)

    def raise_first(self) -> None:
        """With ``FMAPBOARD_ON_ERROR=raise``, raise the first reported error, once.

        Raises:
            CaptureError: an error was reported.
        """
        text = self._first
        self._first = None
        if text is not None and self._raises:
            raise CaptureError(text)
