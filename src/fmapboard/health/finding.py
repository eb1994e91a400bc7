"""What a check says: one fault, with what was measured, since when, and what to do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from fmapboard.formats.checks import Class, StoredFinding


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
        picture: tag of the series of pictures that shows it, or "".
        model: name of the model, as in ``watch(name=...)``; "" for none. Set by `run_checks`.
    """

    kind: str = ""
    class_: Class = "note"
    picture: str = ""
    model: str = ""

    @property
    def link(self) -> str:
        """The command that prints what the docs say of the check; "" if it is not built in."""
        from fmapboard.health.run import BUILT_IN  # here: it imports this module

        documented = any(check.kind == self.kind for check in BUILT_IN)
        return f"`fmapboard docs checks#{self.kind}`" if documented else ""

    @property
    def sentence(self) -> str:
        """The model's name unless the message has it, the message, and the healthy values."""
        model = f"`{self.model}`: " if self.model and self.kind != "nonfinite" else ""
        healthy = f" (healthy: {self.healthy})" if self.healthy else ""
        return f"{model}{self.message}{healthy}"

    @property
    def text(self) -> str:
        """The whole finding in sentences: message, healthy values, meaning, advice, picture."""
        parts = [self.sentence]
        parts += [part.rstrip(".") for part in (self.meaning, self.advice) if part]
        if self.picture:
            parts.append(f"Picture: `{self.picture}`")
        return ". ".join([*parts, f"See {self.link}"] if self.link else parts)

    @property
    def explanation(self) -> str:
        """Meaning and advice as sentences; "" if it has none."""
        return " ".join(f"{part.rstrip('.')}." for part in (self.meaning, self.advice) if part)

    def as_json(self) -> dict[str, Any]:
        """An object for ``fmapboard check --json``; numbers that are not finite become null."""
        value = self.value
        place = "parameter" if self.parameter is not None and self.layer is None else "layer"
        return {
            "kind": self.kind,
            "class": self.class_,
            place: getattr(self, place),
            "since_step": self.since_step,
            "value": None if value is None or not math.isfinite(value) else value,
            "healthy": self.healthy or None,
            "message": self.text,
            **({"follows": self.follows} if self.follows else {}),
            **({"model": self.model} if self.model else {}),
        }


def named(names: list[str] | tuple[str, ...], total: int | None = None, most: int = 3) -> str:
    """The first names between backticks, and how many more there are.

    Example:
        >>> named(["a", "b", "c", "d"])
        '`a`, `b`, `c` and 1 more'
    """
    shown = ", ".join(f"`{name}`" for name in names[:most])
    more = (len(names) if total is None else total) - len(names[:most])
    return f"{shown} and {more} more" if more else shown
