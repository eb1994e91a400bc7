"""Constant and identical images are found on the CPU and on an accelerator alike."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from simulated_device import moved, simulated_device
from torch import Tensor

from fmapboard.capture.inputs import MAX_IMAGES, compared, image_batch

Found = tuple[tuple[int, ...] | None, tuple[tuple[int, int], ...] | None]


def on_the_cpu(images: Tensor) -> Found:
    return compared(images).to_host()[:2]


def on_an_accelerator(images: Tensor, kind: str = "cuda") -> Found:
    with simulated_device() as machine:
        found = compared(moved(images, kind))
        assert machine.waits == []
        assert found.extremes is not None
        low, high = (end.cpu() for end in found.extremes)
        sums = tuple(one.cpu() for one in found.sums)
    return found._replace(extremes=(low, high), sums=sums).to_host()[:2]


BOTH = pytest.mark.parametrize("find", [on_the_cpu, on_an_accelerator], ids=["cpu", "accelerator"])
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.uint8]


@BOTH
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("last", [False, True], ids=["contiguous", "channels_last"])
@pytest.mark.parametrize("shape", [(6, 3, 9, 11), (6, 1, 1, 2), (6, 3, 32, 32)], ids=str)
def test_constant_and_identical_images_are_found(
    find: Callable[[Tensor], Found], dtype: torch.dtype, shape: tuple[int, ...], last: bool
) -> None:
    images = (torch.rand(shape) * 250).to(dtype)
    images[:, 0, 0, 0] = torch.arange(6)  # none are alike by chance
    images[:, 0, 0, 1] = 9
    images[2] = torch.arange(shape[1])[:, None, None]  # one colour
    images[5] = images[1]
    if last:
        images = images.to(memory_format=torch.channels_last)
    assert find(images) == ((2,), ((1, 5),))


@BOTH
def test_images_in_any_other_order_in_memory_are_compared(find: Callable[[Tensor], Found]) -> None:
    images = torch.rand(8, 3, 6, 4)[::2].transpose(2, 3)
    assert find(images) == ((), ())
    repeated = images[:1].expand(3, -1, -1, -1)
    assert find(repeated) == ((), ((0, 1), (0, 2)))


@BOTH
@pytest.mark.parametrize("side", [8, 28, 64])
def test_a_dot_at_another_place_makes_another_image(
    find: Callable[[Tensor], Found], side: int
) -> None:
    number = min(side * side, 1024)
    places = torch.randperm(side * side)[:number]
    images = torch.zeros(number, 1, side * side)
    images[torch.arange(number), 0, places] = 1.0
    assert find(images.view(number, 1, side, side)) == ((), ())


@BOTH
def test_patterns_with_equal_rows_and_columns_are_not_identical(
    find: Callable[[Tensor], Found],
) -> None:
    board = (torch.arange(16)[:, None] + torch.arange(16)) % 2
    stripes = (torch.arange(16)[:, None] + torch.zeros(16)) % 2
    patterns = [board, 1 - board, stripes, 1 - stripes, stripes.T, 1 - stripes.T]
    assert find(torch.stack([p.float() for p in patterns])[:, None]) == ((), ())


@BOTH
def test_one_value_makes_the_difference(find: Callable[[Tensor], Found]) -> None:
    images = torch.rand(1, 3, 20, 20).repeat(5, 1, 1, 1)
    for number, place in enumerate([(0, 0, 0), (2, 19, 19), (1, 7, 13), (0, 19, 0)], 1):
        images[number][place] = images[number][place].nextafter(torch.tensor(2.0))
    assert find(images) == ((), ())
    flat = torch.ones(2, 1, 20, 20)
    flat[1, 0, 19, 19] = torch.tensor(1.0).nextafter(torch.tensor(2.0))
    assert find(flat) == ((0,), ())


@BOTH
def test_images_with_nan_are_not_constant(find: Callable[[Tensor], Found]) -> None:
    images = torch.full((2, 1, 4, 4), torch.nan)
    images[1, 0, 0, 0] = 0
    assert find(images)[0] == ()


def test_a_single_image_is_not_compared() -> None:
    assert on_the_cpu(torch.zeros(1, 3, 4, 4)) == (None, None)
    assert compared(torch.zeros(1, 3, 4, 4)).size == 1


def test_of_a_list_of_images_the_first_one_is_no_batch() -> None:
    one, boxes = torch.rand(3, 8, 9), {"boxes": torch.rand(2, 4)}
    batch = image_batch(([one], [boxes]), sequences=False)
    assert batch is not None
    assert batch.shape == (1, 3, 8, 9)
    assert image_batch(([one, torch.rand(3, 9, 8)], [boxes] * 2), sequences=False) is None


def test_of_a_large_batch_the_first_images_are_compared() -> None:
    images = torch.zeros(MAX_IMAGES + 2, 1, 2, 2)
    found = compared(images)
    assert found.size == MAX_IMAGES + 2
    assert found.known.constant == tuple(range(MAX_IMAGES))


@pytest.mark.parametrize("kind", ["mps", "xpu"])
def test_an_accelerator_without_float64_compares_too(kind: str) -> None:
    assert on_an_accelerator(torch.zeros(2, 3, 4, 4), kind) == ((0, 1), ((0, 1),))
