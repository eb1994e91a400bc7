"""Log directories at a URL, through the file system layer of TensorBoard's own writer.

That layer is TensorFlow's if it is installed, otherwise fsspec's (``tensorboard.compat``). Many
stores cannot append to an object (gs://, or s3:// without a copy), so objects are always uploaded
whole: the current object is uploaded again with each record until it reaches 4 MiB, then the next
one is begun.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from fmapboard.errors import ConfigurationError, MissingExtra, WriteError, first_line, writing
from fmapboard.interrupts import raise_interrupt

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
        start = "file:///" if scheme == "file" else f"{scheme}://"
        url = start + rest.lstrip("/\\")
        raise ConfigurationError(
            f"{given!r} looks like a URL without its second slash, which pathlib.Path "
            f"leaves out; give a string: {url!r}"
        )
    if scheme == "file":
        return Path(rest)
    return RemoteDirectory(text.rstrip("/"))


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


def make_directory(directory: Path) -> None:
    """Create a local directory, unless it exists.

    Raises:
        WriteError: It cannot be created.
    """
    with writing(f"to {directory}"):
        directory.mkdir(parents=True, exist_ok=True)


_PACKAGES = {
    "s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "hdfs": "pyarrow",
    "abfs": "adlfs", "abfss": "adlfs", "az": "adlfs", "adl": "adlfs",
}  # fmt: skip
"""URL scheme -> the package that fsspec needs for it."""

_MAX_BYTES = 4 * 2**20
"""Size in bytes at which an object is complete."""


@dataclass(frozen=True, slots=True)
class RemoteDirectory:
    """A directory given by its URL.

    Attributes:
        url: The URL, without a trailing slash.
    """

    url: str

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, name: str) -> RemoteDirectory:
        return RemoteDirectory(f"{self.url}/{name}")

    def make(self) -> None:
        """Create the directory, if the file system has directories.

        Raises:
            MissingExtra: A package that this URL scheme needs is not installed.
            ConfigurationError: The URL scheme is unknown.
            WriteError: The file system refuses.
        """
        scheme = self.url.partition("://")[0]
        try:
            _gfile().makedirs(self.url)
        except ImportError as error:
            package = _PACKAGES.get(scheme)
            fix = f"pip install {package}" if package else first_line(error)
            text = f"log_dir={self.url!r} needs {package or scheme}. Run: {fix}"
            raise MissingExtra(text) from error
        except Exception as error:
            # By these, fsspec, TensorBoard and TensorFlow report an unknown scheme.
            if isinstance(error, ValueError) or type(error).__name__ == "UnimplementedError":
                raise ConfigurationError(
                    f"log_dir={self.url!r}: no file system for {scheme}:// is known to "
                    "TensorBoard's file layer (fsspec, or TensorFlow where it is installed); "
                    "install the package of fsspec for it, or give another log_dir"
                ) from error
            raise _not_written(f"to {self.url}", error) from error

    def names(self) -> list[str]:
        """Names of the files in the directory; empty if it cannot be listed."""
        gfile = _gfile()
        try:
            return list(gfile.listdir(self.url)) if gfile.isdir(self.url) else []
        except Exception as error:  # any file system's error; if it matters, writing fails too
            raise_interrupt(error)
            return []

    def read(self, name: str) -> bytes:
        """The content of a file in the directory; empty if it cannot be read."""
        gfile = _gfile()
        try:
            with gfile.GFile(f"{self.url}/{name}", "rb") as file:
                return bytes(file.read())
        except Exception as error:
            raise_interrupt(error)
            return b""

    def put(self, name: str, content: bytes) -> None:
        """Store a whole file, replacing an existing one.

        Raises:
            WriteError: The file system refuses.
        """
        try:
            with _gfile().GFile(f"{self.url}/{name}", "wb") as file:
                file.write(content)
        except Exception as error:
            raise _not_written(f"{self.url}/{name}", error) from error


def _not_written(what: str, error: Exception) -> WriteError:
    advice = "check the address and your permissions there"
    return WriteError(f"cannot write {what}: {first_line(error)}; {advice}")


class RemoteFile:
    """A series of objects to which records are appended by uploading them again; not thread-safe.

    Args:
        directory: Created if the file system has directories.
        new_name: Returns the name of the next object; names must sort in the order of creation.
        head: The record that begins each object, in parts.

    Raises:
        MissingExtra, ConfigurationError, WriteError: As ``RemoteDirectory.make``.
    """

    def __init__(
        self, directory: RemoteDirectory, new_name: Callable[[], str], head: list[bytes]
    ) -> None:
        directory.make()
        self._directory = directory
        self._new_name = new_name
        self._head = b"".join(head)
        self._begin()
        self.append([])

    def _begin(self) -> None:
        """Begin the next object, which is uploaded with its first record."""
        self._name = self._new_name()
        self._content = self._head

    @property
    def path(self) -> str:
        """URL of the object being written."""
        return f"{self._directory}/{self._name}"

    def append(self, record: list[bytes]) -> None:
        """Upload the object with one more record.

        Raises:
            WriteError: The upload failed; the object still has the earlier records and can be
                appended to again.
        """
        content = b"".join([self._content, *record])
        self._directory.put(self._name, content)
        self._content = content
        if len(content) >= _MAX_BYTES:
            self._begin()

    def is_gone(self) -> bool:
        """Always False: a deleted object is restored by the next record."""
        return False

    def close(self) -> None:
        """Do nothing: no connection is kept open."""


def _gfile() -> Any:
    from tensorboard.compat import tf

    return tf.io.gfile
