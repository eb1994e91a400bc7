"""What one logged step collects on the training thread."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch
from guards import keeping_guard, strict_guard
from reduced_maps import CALL, CONV

from fmapboard.capture import collector
from fmapboard.capture.collector import ActivationCollector
from fmapboard.capture.guard import ERRORS_UNTIL_DISABLED
from fmapboard.measure.layout import Sequences
from fmapboard.measure.reducer import Reducer
from fmapboard.records import LayerCall


def _collector(
    failures: list[tuple[str, Exception]] | None = None, **options: Any
) -> ActivationCollector:
    guard = strict_guard() if failures is None else keeping_guard(failures)
    return ActivationCollector(**{"reduce": Reducer(), "guard": guard, **options})


@pytest.mark.parametrize(
    ("shape", "kept", "dtype"),
    [
        ((2, 3, 8, 9), (3, 8, 9), torch.float32),
        ((2, 1, 8, 9), (1, 8, 9), torch.float32),
        ((3, 8, 9), (3, 8, 9), torch.float32),
        ((1, 3, 8, 9), (3, 8, 9), torch.uint8),
        ((1, 3, 300, 512), (3, 150, 256), torch.float32),
    ],
)
def test_the_networks_input_image_is_kept_as_a_copy(
    shape: tuple[int, ...], kept: tuple[int, ...], dtype: torch.dtype
) -> None:
    x = (torch.rand(shape) * (255 if dtype == torch.uint8 else 1)).to(dtype)
    seen = _collector()
    seen.begin((x,), {})
    expected = x.float().reshape(-1, *x.shape[-3:])[0].numpy().copy()
    x.zero_()
    images = [image.to_host() for image in seen.inputs]
    assert [image.values.shape for image in images] == [kept]
    if kept == expected.shape:
        assert (seen.inputs[0].values == expected).all()


@pytest.mark.parametrize(
    "x",
    [
        torch.ones(2, 4, 8, 8),
        torch.ones(2, 7),
        torch.zeros(0, 3, 8, 8),
        torch.ones(1, 3, 4, 4) + 0j,
        torch.zeros(1, 3, 8, 8, device="meta"),
        "text",
    ],
    ids=["four channels", "vectors", "empty", "complex", "meta", "text"],
)
def test_an_input_that_is_not_an_image_is_skipped(x: Any) -> None:
    seen = _collector()
    seen.begin((x,), {})
    assert seen.inputs == []


def test_a_batch_of_three_sequences_is_not_mistaken_for_a_colour_image() -> None:
    seen = _collector(reduce=Reducer(sequences=Sequences(channels_last=False)))
    seen.begin((torch.rand(3, 2, 9),), {})
    assert seen.inputs == []


def test_images_after_labels_are_found_and_tokens_after_latents_are_not_images() -> None:
    images = torch.rand(2, 3, 8, 8)
    seen = _collector()
    seen.begin(({"labels": torch.rand(5), "img": images},), {})
    assert [image.values.shape for image in seen.inputs] == [(3, 8, 8)]
    assert (seen.inputs[0].values == images[0]).all()
    seen.begin((torch.rand(1, 4, 8, 8), torch.rand(1), torch.rand(1, 77, 64)), {})
    assert seen.inputs == []


def test_an_image_passed_by_keyword_is_found() -> None:
    seen = _collector(inputs_drawn=2)
    seen.begin((), {"image": torch.rand(4, 3, 8, 8)})
    assert [image.sample for image in seen.inputs] == [0, 1]


@pytest.mark.parametrize(
    "value", [None, "text", (), torch.zeros(0, 1, 3, 3), torch.ones(1, 1, 2, 2, dtype=torch.long)]
)
def test_an_output_without_floating_point_values_is_skipped(value: Any) -> None:
    seen = _collector()
    seen.captured(CALL, "output", value, CONV)
    assert seen.pending == []


def test_the_first_floating_point_tensor_in_a_structure_is_measured() -> None:
    seen = _collector()
    maps = torch.rand(1, 2, 4, 4)
    seen.captured(CALL, "output", {"index": torch.ones(3).long(), "maps": [maps]}, CONV)
    assert seen.pending[0].to_host().planes.shape == (1, 2, 4, 4)  # type: ignore[union-attr]


def test_a_generator_is_not_consumed() -> None:
    seen = _collector()
    value = (torch.ones(1) for _ in range(2))
    seen.captured(CALL, "output", value, CONV)
    assert len(list(value)) == 2


def test_the_gradients_of_two_backward_passes_are_recorded_as_one_sum_with_its_sign() -> None:
    seen = _collector(gradients=True)
    maps = torch.rand(1, 1, 2, 2, requires_grad=True) * 1
    seen.begin((), {})
    seen.captured(CALL, "output", maps, CONV)
    loss = (maps.relu_() * torch.tensor([[1.0, -2.0], [3.0, 4.0]])).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    assert [part.kind for part in seen.pending] == ["feature_maps", "gradients_of_maps"]
    gradient = seen.pending[1].to_host().sample
    assert gradient is not None
    assert gradient.values.tolist() == [2.0, -4.0, 6.0, 8.0]


def test_gradients_of_half_precision_are_summed_in_single_precision() -> None:
    seen = _collector(gradients=True)
    maps = torch.rand(1, 1, 2, 2, dtype=torch.float16, requires_grad=True) * 1
    seen.begin((), {})
    seen.captured(CALL, "output", maps, CONV)
    for _ in range(2):
        maps.backward(torch.full_like(maps, 6e4), retain_graph=True)
    assert seen.pending[1].to_host().statistics.maximum == [120_000]  # type: ignore[union-attr]


@pytest.mark.parametrize("end", ["discard", "begin"])
def test_a_backward_pass_after_the_step_or_of_an_aborted_forward_pass_is_ignored(end: str) -> None:
    seen = _collector(gradients=True)
    maps = torch.rand(1, 1, 2, 2, requires_grad=True) * 1
    seen.captured(CALL, "output", maps, CONV)
    seen.discard() if end == "discard" else seen.begin((), {})
    before = len(seen.pending)
    maps.sum().backward()
    assert len(seen.pending) == before


def test_an_error_names_its_layer_and_a_layer_that_keeps_failing_is_disabled() -> None:
    failures: list[tuple[str, Exception]] = []

    def fails(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("cannot reduce")

    fails.sequences = Sequences()  # type: ignore[attr-defined]
    seen = _collector(failures, reduce=fails)
    for _ in range(ERRORS_UNTIL_DISABLED + 2):
        seen.captured(CALL, "output", torch.rand(1, 1, 2, 2), CONV)
    reported = [(layer, str(error)) for layer, error in failures]
    assert reported == [("conv", "cannot reduce")] * ERRORS_UNTIL_DISABLED
    seen.captured(LayerCall("other", "Conv2d"), "output", torch.rand(1, 1, 2, 2), CONV)
    assert failures[-1][0] == "other"


def test_capturing_inside_the_users_autocast_and_graph_changes_neither() -> None:
    seen = _collector(gradients=True)
    maps = torch.rand(1, 1, 2, 2, requires_grad=True) * 1
    version, graph = maps._version, maps.grad_fn
    with torch.autocast("cpu", dtype=torch.bfloat16):
        seen.captured(CALL, "output", maps, CONV)
        assert torch.is_autocast_enabled("cpu")
        assert torch.is_autocast_cache_enabled()
    assert torch.is_grad_enabled()
    assert (maps._version, maps.grad_fn) == (version, graph)
    assert not any(tensor.requires_grad for tensor in (seen.pending[0].drawn.maps,))  # type: ignore[union-attr]


def test_nested_timed_blocks_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    guard = keeping_guard([])
    with guard("outer"):
        now += 0.02
        with guard("inner"):
            now += 0.01
        assert guard.stopwatch.ms == 0.0
    assert guard.stopwatch.ms == pytest.approx(30.0)


def test_the_time_spent_on_a_layer_counts_even_if_it_fails() -> None:
    failures: list[tuple[str, Exception]] = []
    seen = _collector(failures, reduce=None)
    seen.captured(CALL, "output", torch.rand(1, 1, 4, 4), CONV)
    assert [layer for layer, _ in failures] == ["conv"]
    assert seen.guard.stopwatch.ms > 0.0


def test_the_number_of_bytes_is_passed_on_so_that_several_threads_may_read_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[tuple[object, ...]] = []
    real = collector.aside
    monkeypatch.setattr(collector, "aside", lambda *args: calls.append(args) or real(*args))
    maps = torch.rand(2, 3, 5, 7)
    _collector().captured(CALL, "output", maps, CONV)
    assert calls == [("cpu", maps.nbytes)]
