"""Attention that sees the tokens that the network is to predict."""

from __future__ import annotations

from check_records import LAST, record

from fmapboard.checks import Finding
from fmapboard.formats.training_facts import OutputFacts, TrainingFacts
from fmapboard.health.rules import MissingCausalMaskCheck


def found(*weights: dict[str, float], only_text: bool = False) -> list[Finding]:
    output = OutputFacts("", (2, 5, 9), labels_ahead=1, only_text=only_text)
    facts = [TrainingFacts(next_key=at_step, outputs=(output,)) for at_step in weights]
    return list(MissingCausalMaskCheck()(record(facts=facts)))


def test_every_layer_that_sees_the_next_token_is_a_warning() -> None:
    (warning,) = found({}, *[{"0.attn.rows": 0.02, "1.attn.rows": 0.5}] * (LAST - 1))
    assert warning.message == (
        "attention gives weight to the next token, which the network is to predict, in each of 2 "
        "layers with attention: 0.5 or more in a head of `1.attn.rows`"
    )
    assert (warning.class_, warning.since_step, warning.layer) == ("warning", 10, "1.attn.rows")
    (one,) = found({"attn.rows": 0.02}, {"attn.rows": 0.02})
    assert "in the only layer with attention: 0.02 or more" in one.message


def test_a_layer_that_hides_it_makes_it_a_decoder() -> None:
    assert found(*[{"encoder.rows": 0.02, "decoder.rows": 0.0}] * LAST) == []
    assert found(*[{"encoder.rows": 0.02, "decoder.rows": 1e-6}] * LAST) == []
    assert found(*[{"encoder.rows": 0.02, "decoder.rows": 1.1e-6}] * LAST) != []


def test_without_an_encoder_one_layer_that_sees_it_is_enough() -> None:
    weights = {"0.attn.rows": 0.0, "1.attn.rows": 0.5, "2.attn.rows": 0.1}
    (warning,) = found(*[weights] * LAST, only_text=True)
    assert "in 2 of 3 layers with attention: 0.5 or more in a head of `1.attn.rows`" in (
        warning.message
    )
    assert found(*[dict.fromkeys(weights, 0.0)] * LAST, only_text=True) == []


def test_one_logged_step_tells_nothing() -> None:
    assert found({"attn.rows": 0.02}) == []
    assert found({"attn.rows": 0.02}, {"attn.rows": 0.0}) == []
