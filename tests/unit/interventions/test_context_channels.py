"""`silence`, `scale`, `replace` and `add`: which values change, and which errors say why not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fmapboard import ConfigurationError, add, intervene, replace, scale, silence
from fmapboard.interventions.context import ChannelChange

NAN, INF = float("nan"), float("inf")


def maps() -> Tensor:
    return torch.randn(2, 4, 3, 5)


@pytest.mark.parametrize("channels", [[1, 3], (3, 1), range(1, 4, 2), torch.tensor([1, 3])])
def test_only_the_chosen_channels_are_silenced(channels: Any) -> None:
    before = maps()
    kept = before.clone()
    after = silence(channels).apply(before, 1)
    assert torch.equal(after[:, [1, 3]], torch.zeros(2, 2, 3, 5))
    assert torch.equal(after[:, [0, 2]], before[:, [0, 2]])
    assert torch.equal(before, kept)  # not modified


@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_what_is_not_finite_is_silenced_too(value: float) -> None:
    assert torch.equal(silence().apply(torch.full((1, 2, 2, 2), value), 1), torch.zeros(1, 2, 2, 2))
    assert silence(0).apply(torch.full((1, 2), value), 1).tolist()[0][0] == 0.0


def test_one_channel_a_slice_and_all_of_them_can_be_chosen() -> None:
    before = maps()
    for channels, index in ((2, [2]), (slice(1, None), [1, 2, 3]), (None, [0, 1, 2, 3]), ([], [])):
        after = scale(2, channels).apply(before, 1)
        expected = before.clone()
        expected[:, index] *= 2
        assert torch.equal(after, expected)


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_the_channels_are_on_the_given_axis(axis: int) -> None:
    before = maps()
    after = replace(7.0, [1]).apply(before, axis)
    assert torch.equal(after.select(axis, 1), torch.full_like(after.select(axis, 1), 7.0))
    assert torch.equal(after.select(axis, 0), before.select(axis, 0))


def test_channel_axis_comes_before_the_inferred_axis() -> None:
    before = maps()
    after = silence(4, channel_axis=-1).apply(before, 1)
    assert not after[..., 4].any()
    assert torch.equal(after[..., :4], before[..., :4])


def test_a_value_may_be_a_number_one_per_channel_or_a_tensor_that_broadcasts() -> None:
    before, whole = maps(), torch.randn(2, 2, 3, 5)
    chosen = before[:, [0, 3]]
    for value, fitted in (
        (0.5, torch.tensor(0.5)),
        (torch.tensor(0.5), torch.tensor(0.5)),
        (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0]).reshape(1, 2, 1, 1)),
        (whole[:1], whole[:1]),
        (whole, whole),
    ):
        for operation, expected in (
            (scale, chosen * fitted),
            (replace, fitted.expand_as(chosen)),
            (add, chosen + fitted),
        ):
            after = operation(value, [0, 3]).apply(before, 1)
            assert torch.equal(after[:, [0, 3]], expected)
            assert torch.equal(after[:, [1, 2]], before[:, [1, 2]])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_the_dtype_stays(dtype: torch.dtype) -> None:
    before = maps().to(dtype)
    for change in (silence(0), scale(0.3), replace(torch.tensor([0.1]), 0), add(torch.ones(4))):
        assert change.apply(before, 1).dtype == dtype


def test_the_memory_format_stays() -> None:
    before = maps().to(memory_format=torch.channels_last)
    for change in (silence(0), silence(), scale(0.3, 1), add(torch.ones(4))):
        after = change.apply(before, 1)
        assert after.is_contiguous(memory_format=torch.channels_last)


def test_gradients_of_silenced_and_replaced_channels_are_zero_and_others_pass() -> None:
    for change, factor in ((silence([1]), 0.0), (replace(3.0, [1]), 0.0), (scale(0.5, [1]), 0.5)):
        before = maps().requires_grad_()
        change.apply(before, 1).sum().backward()
        expected = torch.ones(2, 4, 3, 5)
        expected[:, 1] = factor
        assert torch.equal(before.grad, expected)


def test_without_channels_a_silenced_tensor_stays_in_the_graph() -> None:
    before = maps().requires_grad_()
    silence().apply(before, 1).sum().backward()
    assert torch.equal(before.grad, torch.zeros(2, 4, 3, 5))


def test_a_gradient_reaches_the_value_that_is_added() -> None:
    value = torch.zeros(2, requires_grad=True)
    add(value, [0, 1]).apply(maps(), 1).sum().backward()
    assert value.grad.tolist() == [30.0, 30.0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (silence([1, 9, 12]), "no channel 9, 12: there are 4 channels, 0…3 (shape [2, 4, 3, 5], "),
        (silence(0, channel_axis=4), "channel_axis=4 is out of range for shape [2, 4, 3, 5]"),
        (add(torch.ones(3), [0, 1]), "a value of shape [3] does not fit the chosen channels"),
        (add(torch.ones(5)), "one value per channel [4], or a tensor that broadcasts to [2, 4, 3"),
        (replace(torch.ones(3, 2, 3, 5), [0, 1]), "a value of shape [3, 2, 3, 5] does not fit"),
        (scale(torch.ones(1, 2, 2, 3, 5), [0, 1]), "a value of shape [1, 2, 2, 3, 5] does not"),
    ],
)
def test_what_does_not_fit_the_tensor_is_an_error(change: ChannelChange, said: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        change.apply(maps(), 1)
    assert said in str(error.value)


@pytest.mark.parametrize("channels", [-1, [0, -2], "3", 1.5, [0.5], True, torch.ones(3).bool()])
def test_channels_that_are_no_numbers_from_0_are_refused(channels: Any) -> None:
    with pytest.raises(ConfigurationError, match="expected numbers of channels, counted from 0"):
        silence(channels)


def test_other_invalid_arguments_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="a channel is listed twice; list each one once"):
        silence([3, 17, 3])
    with pytest.raises(ConfigurationError, match=r"scale\('2'\): expected a number or a tensor"):
        scale("2")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"add\(None\): expected a number or a tensor"):
        add(None)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"channel_axis=1\.0: expected the number of an"):
        silence(0, channel_axis=1.0)  # type: ignore[arg-type]


def test_a_change_is_printed_as_it_was_written() -> None:
    changes = [silence(), silence([3, 17]), scale(0.5, 2), add(torch.ones(2)), silence(slice(3))]
    assert [repr(change) for change in changes] == [
        "silence()", "silence([3, 17])", "scale(0.5, [2])", "add(tensor [2])",
        "silence(slice(None, 3, None))",
    ]  # fmt: skip
    assert repr(silence(1, channel_axis=2)) == "silence([1], channel_axis=2)"


def test_an_intervention_is_printed_with_its_layers_and_changes() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.ReLU(), nn.Conv2d(4, 2, 1))
    assert repr(intervene(model, {"0": silence([1])}, inputs={"2": scale(2)})) == (
        "Intervention(Sequential, 0: silence([1]), 2: scale(2))"
    )
