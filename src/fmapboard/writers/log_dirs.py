"""Resolve a user's log directory: a local path or the URL of a remote directory."""

from __future__ import annotations

import re
from os import PathLike, fspath
from pathlib import Path

from fmapboard.errors import ConfigurationError
from fmapboard.writers.remote import RemoteDirectory

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+):(//)?")  # a Windows drive has one letter


def log_directory(given: str | PathLike[str] | RemoteDirectory) -> Path | RemoteDirectory:
    """The directory that the user means; a ``file://`` URL is a local path.

    Raises:
        ConfigurationError: The URL has lost a slash by going through ``pathlib.Path``.

    Example:
        >>> log_directory("s3://bucket/run/")
        RemoteDirectory(url='s3://bucket/run')
    """
    if isinstance(given, RemoteDirectory):
        return given
    text = fspath(given)
    found = _SCHEME.match(text)
    if found is None:
        return Path(text)
    scheme, slashes = found.groups()
    rest = text[found.end() :]
    if slashes is None:
        if not rest.startswith(("/", "\\")):
            return Path(text)  # a folder with a colon in its name
        url = f"{scheme}://{rest.lstrip('/' + chr(92))}".replace("file://", "file:///")
        raise ConfigurationError(
            f"{given!r} looks like a URL without its second slash, which pathlib.Path "
            f"leaves out; give a string: {url!r}"
        )
    return Path(rest) if scheme == "file" else RemoteDirectory(text.rstrip("/"))


def local_directory(given: str | PathLike[str], why: str) -> Path:
    """A directory that must be local.

    Args:
        given: The directory as the user wrote it.
        why: What needs the directory, for the error message.

    Raises:
        ConfigurationError: The directory is remote, or a URL that has lost a slash.
    """
    directory = log_directory(given)
    if isinstance(directory, RemoteDirectory):
        raise ConfigurationError(f"{why} must be a local folder, not {fspath(given)!r}")
    return directory
