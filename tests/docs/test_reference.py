"""Every public name is in the API reference, and everything in it exists."""

from __future__ import annotations

import dataclasses
import importlib
import re
import typing
from pathlib import Path
from typing import Any

import pytest

import fmapboard
from fmapboard import records

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
DIRECTIVE = re.compile(r"^\.\. auto(?:class|function|exception|data):: (\S+)$", re.M)
NAMES = [
    name for page in sorted(REFERENCE.glob("*.rst")) for name in DIRECTIVE.findall(page.read_text())
]
BESIDE = (
    "fmapboard.schedule.Every", "fmapboard.schedule.Schedule", "fmapboard.model.layers.Layers",
    "fmapboard.notebook.Grid", "fmapboard.notebook.LayerMaps",
    "fmapboard.capture.passes.CaptureListener", "fmapboard.writers.Writer",
    "fmapboard.writers.folder.MemoryWriter", "fmapboard.writers.folder.FolderWriter",
    "fmapboard.writers.tensorboard.TensorBoardWriter", "fmapboard.writers.WandbWriter",
    "fmapboard.integrations.lightning.FeatureMapCallback",
    "fmapboard.integrations.transformers.FeatureMapCallback",
    "fmapboard.integrations.ignite.FeatureMapHandler", "fmapboard.integrations.accelerate.watch",
    "fmapboard.report.result.Report", "fmapboard.report.inline.InlinePage",
    "fmapboard.checks.Check", "fmapboard.checks.Finding", "fmapboard.checks.RunRecord",
    "fmapboard.checks.Verdict",
)  # fmt: skip


def found(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def reached_from(kind: Any) -> set[str]:
    """The dataclasses and named types of `records` that a writer gets inside ``kind``."""
    if not (isinstance(kind, type) and kind.__module__.startswith(records.__name__)):
        return set().union(*(reached_from(part) for part in typing.get_args(kind)), set())
    fields: dict[str, Any] = {}
    if dataclasses.is_dataclass(kind):
        fields = typing.get_type_hints(kind, vars(importlib.import_module(kind.__module__)))
    return {kind.__name__}.union(*(reached_from(field) for field in fields.values()))


def test_every_name_of_the_package_is_there_once() -> None:
    assert [n for n in fmapboard.__all__ if NAMES.count(f"fmapboard.{n}") != 1] == []
    assert [n for n in BESIDE if NAMES.count(n) != 1] == []


def test_everything_that_a_writer_gets_is_there() -> None:
    reached = reached_from(records.LoggedStep) - {"KernelShape"}  # in the package itself
    assert {"LoggedStep", "Picture", "Histogram", "TabRecord", "LayerCall"} <= reached
    assert sorted(name for name in reached if f"fmapboard.records.{name}" not in NAMES) == []
    assert "fmapboard.records.PixelMark" in NAMES  # the values of `Planes.marks`


@pytest.mark.parametrize("name", NAMES)
def test_everything_in_the_reference_exists(name: str) -> None:
    assert found(name) is not None


@pytest.mark.parametrize(
    ("name", "members"),
    [
        (
            "fmapboard.FeatureMapLogger",
            (
                "step",
                "begin_step",
                "end_step",
                "before_clipping",
                "loss",
                "flush",
                "close",
                "groups",
            ),
        ),
        ("fmapboard.HookRegistry", ("listening", "arm", "disarm", "groups")),
        ("fmapboard.writers.Writer", ("write", "flush", "close")),
    ],
)
def test_the_members_that_the_reference_takes_from_docstrings_have_one(
    name: str, members: tuple[str, ...]
) -> None:
    assert [member for member in members if not getattr(found(name), member).__doc__] == []
