"""The one function from the numbers of layers to the codes of their states."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from fmapboard.health import thresholds
from fmapboard.health.states import CODES, states, worst_states
from fmapboard.plugin.routes.health import STATES

STATIC = Path(__file__).parents[3] / "src" / "fmapboard" / "plugin" / "static"
NAN = float("nan")
DRAWN = np.array(False)  # no layer is an activation


def test_a_cell_has_the_most_severe_state_of_its_layer_at_its_step() -> None:
    columns = {
        "nonfinite": [0, 0.1, 0, 0, 0, 0, 0, 0, NAN, NAN],
        "minimum": [-1, -1, -2e4, -1, -1, -1, -1, -1, NAN, 0],
        "maximum": [1, 1, 1, 1, 1, 1, 1, 1, NAN, 0],
        "dead": [0, 0.9, 0.9, 0.5, 0.1, 0, 0.1, 0.09, NAN, NAN],
        "constant": [0, 0, 0, 0.6, 0.5, 0.1, 0, 0, NAN, NAN],
        "weights_change": [0.1, 0, 0, 0, 0, 0, 0, 0, NAN, NAN],
    }
    codes = worst_states({name: np.array([row]) for name, row in columns.items()}, DRAWN, (1, 10))
    assert codes.dtype == np.uint8
    assert [CODES[code] for code in codes[0]] == [
        "fine", "nonfinite", "large and dead", "mostly dead", "mostly constant", "constant", "dead",
        "unchanged", "unknown", "fine",
    ]  # fmt: skip


def test_a_dead_channel_is_off_if_each_step_is_another_image_and_large_values_stay_large() -> None:
    columns = {
        "minimum": np.array([-1, -2e4, -1, -1]),
        "maximum": np.ones(4),
        "dead": np.array([0.9, 0.9, 0.1, 0.05]),
        "constant": np.array([0, 0, 0.6, 0]),
    }
    codes = worst_states(columns, DRAWN, (4,), is_of_images=True)
    assert [CODES[code] for code in codes] == ["off", "large", "mostly constant", "fine"]


def test_a_dead_channel_of_an_activation_is_not_counted_as_constant_too() -> None:
    columns = {
        "nonfinite": np.zeros((1, 4)),
        "dead": np.array([[0.2, 0.2, 0.05, 0.1]]),
        "constant": np.array([[0.6, 0.6, 0.1, 0.1]]),
    }
    codes = worst_states(columns, np.array([False, True, True, True]), (1, 4))
    assert [CODES[code] for code in codes[0]] == ["mostly constant", "dead", "fine", "dead"]


def test_nothing_is_known_without_numbers() -> None:
    assert worst_states({}, DRAWN, (2, 3)).tolist() == [[0, 0, 0], [0, 0, 0]]


def test_a_layer_is_in_several_states_at_once_each_with_its_code() -> None:
    numbers = {
        "nonfinite": [0.5],
        "minimum": [-thresholds.LARGE.value],
        "maximum": [1.0],
        "dead": [0.5],
    }
    found = states({name: np.array(of) for name, of in numbers.items()}, DRAWN)
    assert {kind: CODES[codes[0]] for kind, codes in found.items()} == {
        "nonfinite": "nonfinite", "large": "large", "dead": "mostly dead",
    }  # fmt: skip


def test_a_share_of_whole_channels_reaches_its_threshold_whatever_its_rounding() -> None:
    for channels in range(4, 257):
        counts = np.arange(channels + 1)
        numbers = {
            "dead": np.zeros(channels + 1, np.float32),
            "constant": (counts / channels).astype(np.float32),
        }
        found = worst_states(numbers, DRAWN, counts.shape)
        minor, major = 10 * counts >= channels, 2 * counts >= channels
        assert [CODES[code] for code in found[minor & ~major]] == ["constant"] * sum(minor & ~major)
        assert [CODES[code] for code in found[major]] == ["mostly constant"] * sum(major)
        assert (found[~minor] == CODES.index("unknown")).all()  # no range is known


def test_the_front_end_has_the_same_codes() -> None:
    text = (STATIC / "model/health_states.js").read_text()
    codes = {name: int(code) for name, code in re.findall(r"^  ([A-Z_]+): (\d+),$", text, re.M)}
    assert codes == {code.upper().replace(" ", "_"): i for i, code in enumerate(CODES)}


def test_the_words_of_the_tab_have_the_thresholds() -> None:
    words = [words.word for words in STATES]
    assert len(words) == len(CODES)
    assert words[CODES.index("off")] == "≥ 10 % off"
    for state in ("constant", "dead"):
        assert words[CODES.index(state)] == f"≥ 10 % {state}"
        assert words[CODES.index(f"mostly {state}")] == f"≥ 50 % {state}"
    assert words[CODES.index("large and dead")] == "large, ≥ 50 % dead"
    assert STATES[CODES.index("large")].what == "|x| ≥ 10,000"
    large = f"{thresholds.LARGE.value:,.0f} or more"
    assert f"magnitude {large}" in (STATIC / "model" / "terms.js").read_text()
