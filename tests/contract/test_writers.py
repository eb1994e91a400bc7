"""The contract of a writer, for every built-in writer and for those of a user."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import nn
from torch.utils.tensorboard import SummaryWriter
from writer_cases import Adapter, Case, Events, Folder, Memory, Pixels, Wandb, rgb_of, step_of

import fmapboard
from fmapboard.errors import ConfigurationError
from fmapboard.records import LoggedStep, Picture, TaggedPictures
from fmapboard.writers import Writer
from fmapboard.writers.tensorboard import SummaryWriterAdapter, as_writer


@pytest.fixture(params=[Memory, Folder, Events, Adapter, Wandb], ids=lambda case: case.__name__)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Case]:
    case: Case = request.param(tmp_path / "place")
    yield case
    case.end()


def assert_same(found: Pixels, expected: Pixels) -> None:
    assert found.keys() == expected.keys()
    for tag, pictures in expected.items():
        assert len(found[tag]) == len(pictures), tag
        assert all(map(np.array_equal, found[tag], pictures)), tag


def test_a_built_in_writer_satisfies_the_protocol(case: Case) -> None:
    assert isinstance(case.writer, Writer)


def test_every_picture_of_every_step_can_be_read_after_flush(case: Case) -> None:
    for number in (0, 7):
        case.writer.write(step_of(number))
        case.writer.flush()
        assert_same(case.pictures(number), rgb_of(step_of(number)))
    case.writer.close()
    for number in (0, 7):
        assert_same(case.pictures(number), rgb_of(step_of(number)))


def test_flush_and_close_may_be_called_at_any_time_and_twice(case: Case) -> None:
    case.writer.flush()
    case.writer.write(step_of(0))
    for _ in range(2):
        case.writer.flush()
    for _ in range(2):
        case.writer.close()
    case.writer.flush()
    assert_same(case.pictures(0), rgb_of(step_of(0)))


def test_an_empty_step_is_no_error(case: Case) -> None:
    case.writer.write(LoggedStep(0, 0.0))
    case.writer.write(step_of(1))
    case.writer.flush()
    assert_same(case.pictures(1), rgb_of(step_of(1)))


def test_a_real_logged_step_is_written(case: Case) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(inplace=True))
    if isinstance(case, Folder):
        case.writer.per_step = False
    with fmapboard.watch(model, writer=case.writer) as board, board.step(0):
        model(torch.randn(1, 3, 70, 70))
    if isinstance(case, Memory):
        assert [p.tag for p in case.writer.steps[0].pictures] == [
            "feature_maps_4x3x3x3/0", "kernels_4x3x3x3/0", "network_input/sample_0",
        ]  # fmt: skip
    elif isinstance(case, Folder):
        assert sorted(p.name for p in case.place.iterdir()) == [
            "0.png", "kernels_0.png", "network_input_sample_0.png",
        ]  # fmt: skip
        with Image.open(case.place / "0.png") as image:
            assert image.size == (2 + 2 * 36, 2 + 2 * 36)
    else:
        assert set(case.pictures(0)) == {
            "feature_maps_4x3x3x3/0", "kernels_4x3x3x3/0", "network_input/sample_0",
        }  # fmt: skip


def test_a_users_summary_writer_stays_open_and_gets_our_steps_next_to_its_own(
    tmp_path: Path,
) -> None:
    with SummaryWriter(str(tmp_path)) as users:
        writer = as_writer(users)
        assert isinstance(writer, SummaryWriterAdapter)
        users.add_scalar("loss", 1.0, 0)
        writer.write(step_of(0))
        writer.close()
        users.add_scalar("loss", 0.5, 1)
    assert len(list(tmp_path.glob("*tfevents*"))) == 1
    accumulator = EventAccumulator(str(tmp_path)).Reload()
    assert [e.step for e in accumulator.Scalars("loss")] == [0, 1]
    (event,) = accumulator.Scalars("gradient_norm/total")
    assert (event.step, event.wall_time, event.value) == (0, 1000.0, 2.5)


@pytest.mark.parametrize("given", ["runs/x", 7, object()])
def test_anything_but_a_writer_is_refused(given: Any) -> None:
    with pytest.raises(ConfigurationError) as error:
        as_writer(given)
    assert str(error.value) == (
        f"writer={type(given).__name__}: expected a torch.utils.tensorboard.SummaryWriter "
        "or an object with write, flush and close"
    )


def test_an_object_with_the_three_methods_is_used_as_it_is() -> None:
    class Mine:
        def write(self, step: LoggedStep) -> None: ...

        def flush(self) -> None: ...

        def close(self) -> None: ...

    mine = Mine()
    assert as_writer(mine) is mine


@pytest.mark.parametrize("kind", [Events, Adapter])
def test_a_step_that_cannot_be_encoded_leaves_the_next_one_readable(
    kind: type[Events], tmp_path: Path
) -> None:
    case = kind(tmp_path)
    empty = TaggedPictures(
        "network_input/sample_0", "network_input", (Picture(np.empty((0, 4), np.uint8)),)
    )
    broken = LoggedStep(0, 0.0, pictures=(*step_of(0).pictures[:2], empty))
    with pytest.raises(ValueError, match="0×4 px cannot be a PNG"):
        case.writer.write(broken)
    case.writer.write(step_of(1))
    case.end()
    assert_same(case.pictures(1), rgb_of(step_of(1)))
