"""What a check says: one fault, what was measured, what to do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from fmapboard.formats.checks import Class, StoredFinding
from fmapboard.formats.tab_records import stored
from fmapboard.health.cures import proof_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(StoredFinding):
    """One fault of a run.

    Attributes:
        kind: what was found, such as ``"dead"``; "" becomes the kind of the check.
        class_: ``"warning"`` for what is wrong for certain, whatever the network; ``"note"`` for a
            number that healthy runs seldom have.
        message: what was measured, where and since which step, as a sentence without its full stop;
            names are between backticks.
        since_step: first logged step with it; None if it does not begin at a step.
        layer: label of the layer, or None.
        parameter: name of the parameter, or None.
        parameters: names of all parameters that it is about, if it is about several.
        value: the number that was measured; None if there is none.
        follows: kind of the finding from which it may follow; "" if it is a cause. Set by
            `run_checks`, as its meaning then is.
        healthy: the values that healthy runs have, in words; "" for warnings.
        meaning: what it may mean, as a sentence.
        advice: what to do, as a sentence.
        docs: page and heading of the docs about it, such as ``"checks#dead"``; "" for none. Set by
            `run_checks`.
        picture: tag of the series of pictures that shows it, or "".
        cure: what takes the cause away from a copy of the network, a key of `cures.CURES`; "" for
            nothing. None becomes that of the rule.
        proof: what such a copy's training showed; None if none was asked for.
        model: name of the model, as in ``watch(name=...)``; "" for none. Set by `run_checks`.
    """

    kind: str = ""
    class_: Class = "note"
    model: str = ""

    @property
    def link(self) -> str:
        """The command that prints what the docs say of it; "" if they say nothing."""
        return f"`fmapboard docs {self.docs}`" if self.docs else ""

    @property
    def sentence(self) -> str:
        """The model's name unless the message has it, the message, and the healthy values."""
        model = f"`{self.model}`: " if self.model and self.kind != "nonfinite" else ""
        healthy = f" (healthy: {self.healthy})" if self.healthy else ""
        return f"{model}{self.message}{healthy}"

    @property
    def proved(self) -> str:
        """The outcome of an experiment and its figures; "" if there was none."""
        return "" if self.proof is None else proof_text(self.proof)

    @property
    def text(self) -> str:
        """The finding in sentences: message, healthy values, meaning, proof, advice, picture."""
        parts = [self.sentence, *self._explained()]
        if self.picture:
            parts.append(f"Picture: `{self.picture}`")
        if self.link:
            parts.append(f"See {self.link}")
        return ". ".join(parts)

    @property
    def explanation(self) -> str:
        """Cause, meaning, proof and advice as sentences; "" if it has none."""
        return " ".join(f"{part}." for part in self._explained())

    def _explained(self) -> list[str]:
        follows = f"May follow from {self.follows}" if self.follows else ""
        proved = self.proved[:1].upper() + self.proved[1:]
        parts = (follows, self.meaning, proved, self.advice)
        return [part.rstrip(".") for part in parts if part]

    def as_json(self) -> dict[str, Any]:
        """An object for ``fmapboard check --json``; numbers that are not finite become null."""
        place: dict[str, str | None] = {"layer": self.layer}
        if self.layer is None and self.parameter is not None:
            place = {"parameter": self.parameter}
        value = self.value
        if value is not None and not math.isfinite(value):
            value = None
        answer: dict[str, Any] = {
            "kind": self.kind,
            "class": self.class_,
            **place,
            "since_step": self.since_step,
            "value": value,
            "healthy": self.healthy or None,
            "message": self.text,
        }
        if self.follows:
            answer["follows"] = self.follows
        if self.proof is not None:
            answer["proof"] = stored(self.proof)
        if self.model:
            answer["model"] = self.model
        return answer


def percent(share: float) -> str:
    """A share in percent with two digits: "0.84 %", "57 %"."""
    return f"{rounded(100 * share)} %"


def times(ratio: float, *, is_estimate: bool = False) -> str:
    """The size of an update beside that of its weight: "0.25 %", "≈ 2.6 times its norm"."""
    text = f"{rounded(ratio)} times its norm" if ratio >= 1 else percent(ratio)
    return f"≈ {text}" if is_estimate else text


def whole_percent(share: float) -> str:
    """A share in whole percent: "57 %"."""
    return f"{100 * share:.0f} %"


def rounded(value: float) -> str:
    """Two digits of a number, as a person writes them.

    >>> [rounded(value) for value in (0, 5.6e-7, 17.3, 99.7, 929.0, 12345, 1.4e7)]
    ['0', '5.6e-07', '17', '100', '930', '12,000', '1.4e+07']
    """
    digits = f"{value:.2g}"
    if 100 <= float(digits) < 1e6:
        return f"{float(digits):,.0f}"
    return digits


def named(names: list[str] | tuple[str, ...], total: int | None = None, most: int = 3) -> str:
    """The first names between backticks, and how many more there are.

    Example:
        >>> named(["a", "b", "c", "d"])
        '`a`, `b`, `c` and 1 more'
    """
    if total is None:
        total = len(names)
    shown = [f"`{name}`" for name in names[:most]]
    text = ", ".join(shown)
    more = total - len(shown)
    return f"{text} and {more} more" if more else text
