"""A log directory is a path or a URL, and never a local folder with a URL's name."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from fmapboard.errors import ConfigurationError
from fmapboard.writers.remote import RemoteDirectory, local_directory, log_directory


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("runs/exp1", Path("runs/exp1")),
        (Path("runs"), Path("runs")),
        (r"C:\runs", Path(r"C:\runs")),
        ("C:/runs", Path("C:/runs")),
        ("lr:0.1/run", Path("lr:0.1/run")),
        ("file:///tmp/a b/run", Path("/tmp/a b/run")),
        ("file://runs/exp1", Path("runs/exp1")),
        ("s3://bucket/run/", RemoteDirectory("s3://bucket/run")),
        ("memory://run", RemoteDirectory("memory://run")),
    ],
)
def test_a_log_directory_is_read_as_a_path_or_a_url(given: Any, expected: Any) -> None:
    assert log_directory(given) == expected


@pytest.mark.parametrize(
    ("given", "url"),
    [
        (PurePosixPath("gs://bucket/run"), "gs://bucket/run"),
        ("s3:/bucket", "s3://bucket"),
        (PurePosixPath("file:///tmp/run"), "file:///tmp/run"),
    ],
)
def test_a_url_that_has_lost_a_slash_is_refused(given: Any, url: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        log_directory(given)
    assert str(error.value) == (
        f"{given!r} looks like a URL without its second slash, which pathlib.Path leaves "
        f"out; give a string: {url!r}"
    )


def test_a_url_is_refused_where_a_local_folder_is_required() -> None:
    assert local_directory("runs", "--out") == Path("runs")
    with pytest.raises(ConfigurationError) as error:
        local_directory("s3://bucket/run", "--out")
    assert str(error.value) == "--out must be a local folder, not 's3://bucket/run'"
