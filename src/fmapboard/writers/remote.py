"""Log directories behind a URL, through the file layer of TensorBoard's own writer.

That is TensorFlow's where it is installed, else fsspec's (`tensorboard.compat`). Many stores cannot
append to an object (gs://, or s3:// without a copy), so objects are always put whole: the one that
grows is put again with each record, until it has 4 MiB and the next one is begun.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fmapboard.errors import ConfigurationError, MissingExtra, WriteError, first_line

_PACKAGES = {
    "s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "hdfs": "pyarrow",
    "abfs": "adlfs", "abfss": "adlfs", "az": "adlfs", "adl": "adlfs",
}  # fmt: skip
"""Scheme -> the package that fsspec needs for it."""

_MOST_BYTES = 4 * 2**20
"""An object is put again as long as it has less."""


@dataclass(frozen=True, slots=True)
class RemoteDirectory:
    """A directory by its URL, without a slash at the end."""

    url: str

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, name: str) -> RemoteDirectory:
        return RemoteDirectory(f"{self.url}/{name}")

    def make(self) -> None:
        """Make the directory, where the file system has directories.

        Raises:
            MissingExtra: a package for this kind of URL is not installed.
            ConfigurationError: no file system is known for it.
            WriteError: the file system refuses.
        """
        scheme = self.url.partition("://")[0]
        try:
            _gfile().makedirs(self.url)
        except ImportError as error:
            package = _PACKAGES.get(scheme)
            fix = f"pip install {package}" if package else first_line(error)
            raise MissingExtra(f"log_dir={self.url!r} needs {package or scheme}. Run: {fix}") from (
                error
            )
        except Exception as error:
            if _is_unknown(error):
                raise ConfigurationError(
                    f"log_dir={self.url!r}: no file system for {scheme}:// is known to "
                    "TensorBoard's file layer (fsspec, or TensorFlow where it is installed)"
                ) from error
            raise WriteError(f"cannot write to {self.url}: {first_line(error)}") from error

    def names(self) -> list[str]:
        """Names of the files in it; none where it cannot be listed."""
        gfile = _gfile()
        try:
            return list(gfile.listdir(self.url)) if gfile.isdir(self.url) else []
        except Exception:  # whatever the file system raises; writing will tell
            return []

    def put(self, name: str, content: bytes) -> None:
        """Store a file whole, in place of one that is there.

        Raises:
            WriteError: the file system refuses.
        """
        try:
            with _gfile().GFile(f"{self.url}/{name}", "wb") as file:
                file.write(content)
        except Exception as error:
            raise WriteError(f"cannot write {self.url}/{name}: {first_line(error)}") from error


class RemoteFile:
    """Records in objects that are put whole; not thread safe.

    Args:
        directory: is there.
        new_name: the name of the next object; later names sort behind earlier ones.
        head: the record with which each object begins.
    """

    def __init__(
        self, directory: RemoteDirectory, new_name: Callable[[], str], head: list[bytes]
    ) -> None:
        self._directory, self._new_name, self._head = directory, new_name, b"".join(head)
        self._name, self._content = new_name(), self._head

    @property
    def path(self) -> str:
        """The URL of the object that grows."""
        return f"{self._directory}/{self._name}"

    def append(self, record: list[bytes]) -> None:
        """Put the object with one more record.

        Raises:
            WriteError: the object has the records before, and can be appended to again.
        """
        content = b"".join([self._content, *record])
        self._directory.put(self._name, content)
        self._content = content
        if len(content) >= _MOST_BYTES:
            self._name, self._content = self._new_name(), self._head

    def is_gone(self) -> bool:
        """Never: an object that was deleted comes back with the next record."""
        return False

    def close(self) -> None:
        """Nothing is held open."""


def _gfile() -> Any:
    from tensorboard.compat import tf

    return tf.io.gfile


def _is_unknown(error: Exception) -> bool:
    """No file system takes the scheme: fsspec's, TensorBoard's and TensorFlow's way to say so."""
    return isinstance(error, ValueError) or type(error).__name__ == "UnimplementedError"
