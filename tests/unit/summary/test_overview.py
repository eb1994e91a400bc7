"""The run's overview: numbers of all layers, and which are in which state since when."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from composed_steps import kernels_of

from fmapboard.formats.overview import (
    LASTING,
    LayerFacts,
    OverviewStep,
    pack_overview,
    unpack_overview,
)
from fmapboard.formats.tab_records import FormatError
from fmapboard.records import (
    InputImage,
    KernelShape,
    LayerCall,
    LayerMeasurement,
    Normalization,
    Parameter,
    Planes,
    Sample,
    Statistics,
    StepData,
)
from fmapboard.summary.build import SummaryBuilder

CONV = LayerCall("conv", "Conv2d", KernelShape((4, 3, 1, 1)))
RELU = LayerCall("relu", "ReLU", position=1, pictures=False, floor=0.0)
TAG, FIRST = "fmapboard_overview", "fmapboard_overview_first"


def layer(call: LayerCall = CONV, channels: int = 4, **changes: Any) -> LayerMeasurement:
    """A healthy layer of a batch of 2 images with 9 values per channel each."""
    zeros, none = np.zeros(channels, np.int64), np.zeros(channels, bool)
    numbers: dict[str, Any] = {
        "minimum": np.full(channels, -1.0), "maximum": np.ones(channels),
        "mean": np.arange(channels, dtype=float), "std": np.ones(channels),
        "nan": zeros, "positive_infinity": zeros, "negative_infinity": zeros, "constant": none,
    }  # fmt: skip
    if call.floor is not None:
        unknown = np.full(channels, math.nan)
        numbers |= {"mean": unknown, "std": unknown, "dead": none}
    planes = None
    if call.pictures:
        pixels, lo = np.zeros((1, channels, 3, 3), np.uint8), np.zeros((1, channels))
        shape = (2, channels, 3, 3)
        planes = Planes(pixels, None, np.zeros((1, channels), bool), lo, lo + 1, shape, channels)
    statistics = Statistics(**{**numbers, **changes})
    return LayerMeasurement(call, "feature_maps", planes, statistics, shape=(2, channels, 3, 3))


def flags(*of: int) -> np.ndarray:
    return np.array(of, bool)


@dataclass
class Run:
    """Builds the steps 0, 10, 20 …"""

    builder: SummaryBuilder = field(default_factory=SummaryBuilder)
    step: int = -10

    def __call__(self, *measured: LayerMeasurement, **content: Any) -> OverviewStep:
        return unpack_overview(self.blobs(*measured, **content)[TAG])

    def blobs(self, *measured: LayerMeasurement, **content: Any) -> dict[str, tuple[bytes, ...]]:
        self.step += 10
        built = self.builder(StepData(self.step, 1000.0, measured, **content))
        return {r.tag: r.blobs for r in built.records if TAG in r.tag}


def numbers(of: OverviewStep, index: int = 0) -> dict[str, float]:
    return {name: float(column[index]) for name, column in of.numbers.items()}


def test_every_measured_layer_is_in_the_overview_with_what_is_known_about_it() -> None:
    of = Run()(layer(), layer(RELU), kernels=(kernels_of(4, 3, 1, 1, layer_call=CONV),))
    assert (of.step, of.steps_written, of.since) == (0, 1, {})
    assert of.layers == (
        LayerFacts(
            "conv", "conv", "Conv2d", (4, 3, 1, 1), 1, 0, channels=4, values=18, drawn=4, samples=1,
            roles=("feature_maps", "kernels"), activation="relu",
        ),
        LayerFacts("relu", "relu", "ReLU", None, 1, 1, channels=4, values=18),
    )  # fmt: skip


def test_the_numbers_of_a_layer_are_those_of_all_its_channels() -> None:
    part = layer(
        minimum=np.array([-3.0, math.nan, -1.0, 0.0]), maximum=np.array([1.0, math.nan, 2.0, 0.0]),
        mean=np.array([1.0, math.nan, 3.0, 5.0]), std=np.array([1.0, math.nan, 2.0, 0.0]),
        nan=np.array([0, 18, 1, 0]), positive_infinity=np.array([0, 0, 2, 0]),
        constant=flags(0, 0, 0, 1), counted=False,
    )  # fmt: skip
    found = numbers(Run()(layer(LayerCall("other", "Conv2d")), part), 1)
    assert (found["minimum"], found["maximum"], found["mean"]) == (-3.0, 2.0, 3.0)
    assert found["std"] == pytest.approx(math.sqrt((1 + 4 + 0) / 3 + (4 + 0 + 4) / 3))
    assert (found["nonfinite"], found["constant"]) == (0.5, 0.25)
    assert [found[name] for name in ("nan", "positive_infinity", "negative_infinity")] == [19, 2, 0]
    assert (found["counted"], found["values"], found["missed"]) == (0, 18, 0)
    assert math.isnan(found["dead"])


def test_the_mean_and_std_of_a_layer_that_is_not_drawn_are_not_known() -> None:
    found = numbers(Run()(layer(RELU, mean=np.zeros(4), std=np.ones(4))))
    assert math.isnan(found["mean"])
    assert math.isnan(found["std"])


def test_the_share_of_dead_channels_is_that_of_the_activation_that_follows() -> None:
    last = LayerCall("last", "Conv2d", position=2)
    of = Run()(layer(), layer(RELU, dead=flags(1, 0, 0, 0)), layer(last))
    assert of.numbers["dead"].tolist() == [0.25, 0.25, pytest.approx(math.nan, nan_ok=True)]
    other = Run()(layer(), layer(RELU, channels=2, dead=flags(1, 0)))
    assert other.layers[0].activation is None
    assert other.numbers["dead"].tolist() == [pytest.approx(math.nan, nan_ok=True), 0.5]


def test_a_channel_is_lastingly_dead_after_four_logged_steps_in_a_row() -> None:
    run = Run()
    steps = [(1, 1, 0, 0), (1, 1, 0, 0), (1, 0, 1, 0), (1, 1, 1, 0), (1, 1, 1, 0), (1, 1, 1, 1)]
    found = [run(layer(), layer(RELU, dead=flags(*dead))) for dead in steps]
    assert LASTING == 4
    assert [of.numbers["dead_lasting"].tolist() for of in found] == [
        [0, 0], [0, 0], [0, 0], [0.25, 0.25], [0.25, 0.25], [0.5, 0.5],
    ]  # fmt: skip


def test_channels_stay_lastingly_dead_while_other_layers_come_and_go() -> None:
    run, dead = Run(), layer(RELU, dead=flags(1, 0, 0, 0))
    extra = layer(LayerCall("extra", "ReLU", pictures=False, floor=0.0), dead=flags(1, 1, 1, 1))
    run(dead)
    run(extra, dead)
    run(extra)  # not called at this step, which does not end its time
    run(extra, dead)
    of = run(dead)
    assert of.numbers["dead_lasting"].tolist() == [0.25]
    assert run(layer(RELU, channels=2, dead=flags(1, 1))).numbers["dead_lasting"].tolist() == [0]


STATES = [
    ("nonfinite", {"nan": np.array([0, 1, 0, 0])}),
    ("large", {"maximum": np.array([1e4, 0, 0, 0])}),
    ("large", {"minimum": np.array([-1e4, 0, 0, 0])}),
    ("constant", {"constant": flags(1, 0, 0, 0)}),
]


@pytest.mark.parametrize(("kind", "fault"), STATES)
def test_a_state_is_listed_with_the_first_step_since_which_it_lasts(kind: str, fault: Any) -> None:
    run = Run()
    bad, healthy = layer(**fault), layer()
    assert [run(part).since for part in (healthy, bad, bad, healthy, healthy, bad)] == [
        {}, {kind: {0: 10}}, {kind: {0: 10}}, {}, {}, {kind: {0: 50}},
    ]  # fmt: skip


def test_dead_channels_of_an_activation_are_no_constant_ones_besides() -> None:
    run, dead = Run(), flags(1, 0, 0, 0)
    of = run(layer(), layer(RELU, dead=dead, constant=dead))
    assert of.since == {"dead": {0: 0, 1: 0}}
    assert of.numbers["constant"].tolist() == [0, 0.25]
    other = run(layer(), layer(RELU, dead=dead, constant=flags(1, 1, 0, 0)))
    assert other.since == {"dead": {0: 0, 1: 0}, "constant": {1: 10}}


def test_less_than_a_tenth_of_dead_or_constant_channels_is_no_state() -> None:
    part = layer(channels=11, constant=np.arange(11) == 0)
    assert Run()(part).since == {}


def weights(*values: float) -> tuple[Parameter, ...]:
    return (Parameter("conv.weight", Sample(np.array(values * 3, np.float32), 12), norm=1.0),)


def test_unchanged_weights_are_listed_with_the_step_since_which_they_are_the_same() -> None:
    run, same = Run(), {"parameters": weights(1, 2, 3, 4)}
    first = run(layer(), **same)
    assert math.isnan(numbers(first)["weights_change"])
    assert first.since == {}
    second, third = run(layer(), **same), run(layer(), **same)
    assert [of.since for of in (second, third)] == [{"unchanged": {0: 0}}] * 2
    assert (numbers(third)["weights_change"], numbers(third)["weights_steps"]) == (0, 10)
    assert run(layer()).since == {}  # at this step no optimizer stepped
    assert run(layer(), **same).since == {"unchanged": {0: 0}}
    changed = run(layer(), parameters=weights(1, 2, 3, 5))
    assert numbers(changed)["weights_change"] == pytest.approx(
        (1 / math.sqrt(21) + 1 / math.sqrt(26) + 1 / math.sqrt(29)) / 4
    )
    assert changed.since == {}
    assert run(layer(), parameters=weights(1, 2, 3, 5)).since == {"unchanged": {0: 50}}


def test_weights_of_which_some_are_nan_are_not_unchanged() -> None:
    run, partly = Run(), {"parameters": weights(1, math.nan, 3, 4)}
    run(layer(), **partly)
    of = run(layer(), **partly)
    assert math.isnan(numbers(of)["weights_change"])
    assert of.since == {}


def test_a_step_that_was_not_stored_is_forgotten() -> None:
    run, bad = Run(), layer(RELU, dead=flags(1, 0, 0, 0))
    run(bad)
    run(bad)
    stored = run.builder.state
    run.blobs(layer(RELU), layer())
    run.builder.state = stored
    of = run(bad)
    assert (of.steps_written, of.since) == (3, {"dead": {0: 0}})
    assert of.numbers["dead_lasting"].tolist() == [0]
    assert run(bad).numbers["dead_lasting"].tolist() == [0.25]
    assert run(layer()).numbers["missed"].tolist() == [4]


def test_the_first_step_is_stored_twice_even_if_it_was_not_stored_at_first() -> None:
    run = Run(SummaryBuilder(name="gan"))
    stored = run.builder.state
    assert set(run.blobs(layer())) == {f"gan.{TAG}", f"gan.{FIRST}"}
    run.builder.state = stored
    again = run.blobs(layer())
    assert again[f"gan.{TAG}"] == again[f"gan.{FIRST}"]
    assert set(run.blobs(layer())) == {f"gan.{TAG}"}


def test_a_layer_counts_the_steps_without_a_picture_of_it() -> None:
    run, late = Run(), LayerCall("late", "Conv2d", position=1)
    run(layer())
    assert run(layer(), layer(late)).numbers["missed"].tolist() == [0, 1]
    run(layer())
    assert run(layer(), layer(late)).numbers["missed"].tolist() == [0, 2]


def test_a_step_without_feature_maps_has_no_overview() -> None:
    assert Run().blobs(parameters=weights(1, 2, 3, 4)) == {}


def test_the_list_of_layers_is_packed_again_only_if_it_changes() -> None:
    run = Run()
    packed = [run.blobs(layer(), layer(RELU))[TAG][2] for _ in range(3)]
    assert packed[0] is packed[1] is packed[2]
    assert run.blobs(layer())[TAG][2] != packed[0]


def test_the_overview_is_the_last_record_of_a_step() -> None:
    built = SummaryBuilder()(StepData(0, 0.0, (layer(), layer(RELU))))
    assert [record.tag for record in built.records][-2:] == [TAG, FIRST]


@pytest.mark.parametrize(
    "broken",
    [
        lambda b: (None, *b[1:]),
        lambda b: b[:2],
        lambda b: (b[0], b[1][:-4], b[2]),
        lambda b: (b[0], b[1], b"no zlib"),
        lambda b: (b[0], b[1], b[2][:-3]),
        lambda b: (b[0], b[1], zlib.compress(zlib.decompress(b[2]) + b" " * 2**24)),
        lambda b: (b[0].replace(b'"step":0', b'"step":-1'), *b[1:]),
        lambda b: (b[0].replace(b'"since":{}', b'"since":{"dead":{"0":[7]}}'), *b[1:]),
        lambda b: (b[0].replace(b'"since":{}', b'"since":[]'), *b[1:]),
        lambda b: (b[0].replace(b'"columns"', b'"rows"'), *b[1:]),
        lambda b: (b[0].replace(b'"format":1', b'"format":9'), *b[1:]),
    ],
)
def test_a_damaged_overview_is_an_error_of_the_format(broken: Any) -> None:
    of = OverviewStep(0, 1, (LayerFacts("a", "a", "Conv2d", None, 1, 0, 2, 4),), {}, {})
    blobs = pack_overview(of)
    assert unpack_overview(blobs).layers == of.layers
    with pytest.raises(FormatError):
        unpack_overview(broken(blobs))


def test_a_step_at_which_a_state_is_not_known_is_no_interruption() -> None:
    run, unknown = Run(), np.full(4, math.nan)
    large = layer(maximum=np.full(4, 1e5))
    lost = layer(minimum=unknown, maximum=unknown, nan=np.full(4, 18))
    found = [run(part).since for part in (large, lost, large, layer(), large)]
    assert found == [
        {"large": {0: 0}},
        {"nonfinite": {0: 10}},
        {"large": {0: 0}},
        {},
        {"large": {0: 40}},
    ]


def test_values_of_the_input_that_are_not_finite_are_counted() -> None:
    def of(*images: list[float]) -> dict[str, float]:
        values = [np.array(image, np.float32).reshape(1, 1, -1) for image in images]
        inputs = tuple(InputImage(n, each) for n, each in enumerate(values))
        return dict(Run()(layer(), inputs=inputs).network_input)

    healthy = {"minimum": 1.0, "maximum": 3.0, "mean": 2.0, "std": 1.0, "stretched": 1.0}
    assert of([1.0, 3.0]) == {**healthy, "nonfinite": 0}
    assert of([1.0, 3.0], [math.nan, math.inf]) == {**healthy, "nonfinite": 2}
    assert of([math.nan, -math.inf]) == {"nonfinite": 2}
    assert of() == {}


def test_colours_are_stretched_where_images_were_normalized_and_how_is_not_known() -> None:
    def of(lo: float, hi: float, normalization: Normalization | None = None) -> float:
        values = np.linspace(lo, hi, 12, dtype=np.float32).reshape(3, 2, 2)
        image = InputImage(0, values, normalization)
        return Run()(layer(), inputs=(image,)).network_input["stretched"]

    assert [of(0, 1), of(0.2, 0.7), of(-0.1, 1), of(0, 1.1), of(-2, 2)] == [0, 0, 1, 1, 1]
    assert of(-2, 2, ((0.5,) * 3, (0.25,) * 3)) == 0


def test_colours_that_take_turns_in_a_row_are_told_from_photographs() -> None:
    generator = np.random.default_rng(0)
    grey = np.cumsum(generator.normal(size=(96, 49)), 1)  # and little colour
    smooth = grey + 0.1 * generator.normal(size=(3, 96, 49))

    def of(pixels: npt.NDArray[np.float64], block: int = 1) -> float | None:
        image = InputImage(0, pixels.astype(np.float32), block=block)
        return Run()(layer(), inputs=(image,)).network_input.get("interleaved")

    for coloured in (smooth, smooth + 9 * np.arange(3).reshape(3, 1, 1)):
        viewed = coloured.transpose(1, 2, 0).reshape(smooth.shape)
        near, far = of(viewed), of(coloured)
        assert near is not None
        assert far is not None
        assert near < 0.6
        assert far > 0.8
    unknown = smooth[:1], smooth[:, :, :7], np.ones((3, 24, 24)), smooth.repeat(3, 2)
    assert [of(pixels) for pixels in unknown] == [None] * 4
    assert of(viewed, block=2) is None
