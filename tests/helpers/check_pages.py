"""The pages of the docs that are made from the built-in rules: ``docs/checks.md``, from its section
"Warnings" on, and the table "Values" of ``docs/how_we_know.md``.

After a change of a rule's docstring, its fields or `health.thresholds`, run::

    PYTHONPATH=src python tests/helpers/check_pages.py
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from fmapboard.checks import BUILT_IN
from fmapboard.health import thresholds
from fmapboard.health.cures import CURES
from fmapboard.health.effects import GROWN
from fmapboard.health.rule import Rule
from fmapboard.health.rules import group_of
from fmapboard.health.thresholds import Threshold

DOCS = Path(__file__).parents[2] / "docs"
WIDTH = 120
"""Columns of a line of the pages; rows of tables may be longer."""
KINDS = [rule.kind for rule in BUILT_IN]

PICTURES = {
    "not_in_optimizer": "change of three weights: that of the new head, 17.weight, stays 0",
    "gradients_not_cleared": "norm of all gradients: without zero_grad it grows to 60",
    "eval_mode": "running variance of three BatchNorm layers: in eval mode it stays 1",
    "constant_images": "eight images of one colour, and eight crops of photographs",
    "identical_images": "one crop eight times, and eight different crops",
    "unchanged_weights": "change of three weights: 0 if an old copy is written back each step",
    "dead": "share of dead channels: above 0.5 in four of five layers at a learning rate of 0.03",
    "vanishing": "gradient ratio: 1e-7 in a network of ten sigmoids, 1 to 20 in the healthy one",
    "updates_too_large": "update ratios: near 10 at step 0 at a learning rate of 0.3",
    "batchnorm_gap": "gap of three BatchNorm layers: up to 2 at a momentum of 1e-4",
}
"""Kind -> what its picture shows, ``check_<kind>.png`` or that of a group of another name."""
PAIRS = {
    "nonfinite": (
        "one weight is NaN",
        "![a layer with one channel all NaN](pictures/nonfinite.png)",
        "![a healthy layer](pictures/healthy.png)",
    ),
    "copied_channels": (
        "all weights started at 0.02",
        "![a layer whose channels are all the same](pictures/copied.png)",
        "![a healthy layer before training](pictures/healthy_before.png)",
    ),
}
"""Kind -> the fault, and the pictures of a layer with it and without."""
FURTHER = {
    "dead": "[How it looks](reading_the_pictures.md#dead).",
    "exploding": "[How it looks](reading_the_pictures.md#exploding).",
    "updates_too_large": "The ratios are [estimated](what_is_written.md) from sampled rows.",
    "uneven_upsampling": "[How it looks](reading_the_pictures.md#checkerboard).",
}
"""Kind -> a further paragraph."""
_LISTED = 5
"""Maximum number of rules that are listed as effects of another one."""
_GROWN = "values that grow"
_FADING = "signals, gradients, updates or answers that fade or are all alike"

WARNINGS = (
    "What is wrong for certain, whatever the network. In the pictures the left one is faulty, the "
    "right one healthy. Rules without a group come first."
)
NOTES = "Numbers that healthy runs seldom have. [How we know](how_we_know.md#values)."


class Limit(NamedTuple):
    """A threshold that the module of a rule uses.

    Attributes:
        option: the rule's field that has it as its default; "" if none does.
        threshold: the number.
    """

    option: str
    threshold: Threshold[float]


def checks_page(page: str) -> str:
    """The page of the checks: what stands before the rules as it is, and the rules."""
    written = page.partition("\n## Warnings\n")[0].rstrip("\n")
    return f"{written}\n\n{rules_text()}\n"


def rules_text() -> str:
    """All rules: warnings, then notes, of each the single ones and then the groups."""
    groups: dict[str, list[Rule]] = {}
    for rule in BUILT_IN:
        groups.setdefault(group_of(rule), []).append(rule)
    parts: list[str] = []
    introductions = (("Warnings", WARNINGS, True), ("Notes", NOTES, False))
    for title, introduction, are_warnings in introductions:
        chosen = [rules for rules in groups.values() if any(map(_warns, rules)) == are_warnings]
        parts.append(f"## {title}\n\n{_filled(introduction)}")
        for rules in chosen:
            if len(rules) == 1:
                parts += _section(rules[0])
        for rules in chosen:
            if len(rules) > 1:
                parts.append(_group(rules))
                for rule in rules:
                    parts += _section(rule)
    return "\n\n".join(parts)


def values_page(page: str) -> str:
    """The page of measurements, with the table of the thresholds that have ranges."""
    start, heading, rest = page.partition("\n## Values\n")
    _, next_heading, end = rest.partition("\n## ")
    return f"{start}{heading}\n{values_text()}\n{next_heading}{end}"


def values_text() -> str:
    """The thresholds with healthy and faulty ranges, and the rules that use them."""
    rows = [["rule", "value", "unit", "healthy", "faulty", "from"]]
    shown: dict[int, list[str]] = {}
    limits: dict[int, Threshold[float]] = {}
    for rule in BUILT_IN:
        for limit in limits_of(rule):
            if limit.threshold.healthy and limit.threshold.faulty:
                limits[id(limit.threshold)] = limit.threshold
                shown.setdefault(id(limit.threshold), []).append(rule.kind)
    for key, threshold in limits.items():
        rules = ", ".join(f"[`{kind}`](checks.md#{kind})" for kind in shown[key])
        known = [threshold.healthy, threshold.faulty, threshold.source]
        rows.append([rules, _number(threshold.value), threshold.unit, *known])
    first = "The thresholds of the rules for which healthy and faulty runs were measured:"
    return f"{first}\n\n{_table(rows)}"


def limits_of(rule: Rule) -> list[Limit]:
    """The thresholds that the module of a rule names, each once, in the order of the names."""
    module = _module(rule)
    options: dict[str, str] = {}
    source = inspect.getsource(module)
    for option, name in re.findall(r"^    (\w+): \w+ = thresholds\.(\w+)\.value$", source, re.M):
        options[name] = option
    limits: list[Limit] = []
    for name in dict.fromkeys(re.findall(r"\bthresholds\.([A-Z]\w*)", source)):
        threshold = getattr(thresholds, name)
        if isinstance(threshold, Threshold):
            limits.append(Limit(options.get(name, ""), threshold))
    return limits


def _section(rule: Rule) -> Iterator[str]:
    """The paragraphs about a rule."""
    yield f"### {rule.kind}"
    body, _, attributes = inspect.getdoc(type(rule)).partition("\n\nAttributes:\n")  # type: ignore[union-attr]  # each has one
    for paragraph in body.split("\n\n"):
        text = " ".join(paragraph.split())
        label = re.match(r"(Why it hurts|Silent|Example|Source): (.)", text)
        if label is not None:
            text = f"**{label[1]}:** {label[2].upper()}{text[label.end() :]}"
        yield _filled(_linked(text, rule.kind))
    yield from _shown(rule)
    if rule.unless:
        yield _filled(f"**Left out** if {_kinds(rule.unless, 'or')} was found, which is the cause.")
    if rule.leads_to:
        yield _filled(f"**May lead to** {_effects(rule.leads_to)}.")
    if rule.cure:
        tries = "[`prove=True`](prove.md) tries whether a copy learns if"
        yield _filled(f"**Proof:** {tries} {CURES[rule.cure].change}.")
    options = _options(attributes)
    if options:
        name = type(rule).__name__
        yield f"**Options** of `{name}`:"
        yield "\n".join(_item(option, text, rule.kind) for option, text in options.items())
    limits = limits_of(rule)
    if limits:
        rows = [["option", "value", "unit", "healthy", "faulty", "from"]]
        for option, threshold in limits:
            shown = f"`{option}`" if option else ""
            known = [threshold.healthy, threshold.faulty, threshold.source]
            rows.append([shown, _number(threshold.value), threshold.unit, *known])
        yield _table(rows)


def _shown(rule: Rule) -> Iterator[str]:
    """What shows the fault of a rule beside a healthy run."""
    if rule.kind in PICTURES:
        file = f"pictures/check_{rule.kind}.png"
        if not (DOCS / file).is_file():
            file = f"pictures/check_{group_of(rule)}.png"
        yield f"![{PICTURES[rule.kind]}]({file})"
    if rule.kind in PAIRS:
        fault, faulty, healthy = PAIRS[rule.kind]
        yield _table([[f"faulty: {fault}", "healthy"], [faulty, healthy]])
    if rule.kind in FURTHER:
        yield FURTHER[rule.kind]


def _effects(kinds: Sequence[str]) -> str:
    """What may follow from a finding: the rules, or of many the first and the last of each part."""
    if len(kinds) <= _LISTED:
        return _kinds(kinds, "and")
    grown = [kind for kind in kinds if kind in GROWN]
    fading = [kind for kind in kinds if kind not in GROWN]
    parts = []
    for words, own in ((_GROWN, grown), (_FADING, fading)):
        if len(own) > 1:
            parts.append(f"{words}, {_kinds((own[0], own[-1]), 'to')}")
        elif own:
            parts.append(_kinds(own, ""))
    return ", and to ".join(parts)


def _group(rules: Sequence[Rule]) -> str:
    """Heading and first sentence of a group of several rules."""
    group = group_of(rules[0])
    kinds = [rule.kind for rule in rules]
    # A heading per name: a group that has the name of one of its rules is headed by all of them.
    heading = f"## {', '.join(kinds)}" if group in kinds else f"## {group}"
    text = f'`checks={{"{group}": False}}` switches off {_kinds(kinds, "and")}.'
    return f"{heading}\n\n{_filled(text)}"


def _options(attributes: str) -> dict[str, str]:
    """The entries of a docstring's section Attributes."""
    options: dict[str, str] = {}
    name = ""
    for line in textwrap.dedent(attributes).splitlines():
        begins = re.match(r"(\w+): (.*)", line)
        if begins is not None:
            name = begins[1]
            options[name] = begins[2]
        elif name:
            options[name] += f" {line.strip()}"
    return options


def _item(option: str, text: str, kind: str) -> str:
    return _filled(f"- `{option}`: {_linked(text, kind)}", indent="  ")


def _linked(text: str, own: str) -> str:
    """Markdown of a docstring's paragraph: names of other rules are links."""
    text = text.replace("``", "`")

    def link(match: re.Match[str]) -> str:
        kind = match[1]
        return f"[`{kind}`](#{kind})" if kind in KINDS and kind != own else match[0]

    return re.sub(r"`(\w+)`", link, text)


def _kinds(kinds: Iterable[str], last: str) -> str:
    """Links to rules, as a list in a sentence."""
    links = [f"[`{kind}`](#{kind})" for kind in kinds]
    if len(links) == 1:
        return links[0]
    return f"{', '.join(links[:-1])} {last} {links[-1]}"


def _filled(text: str, indent: str = "") -> str:
    return textwrap.fill(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _table(rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, without the columns that are empty below their heading."""
    columns = [cells for cells in zip(*rows, strict=True) if any(cells[1:])]
    head, *body = zip(*columns, strict=True)
    lines = [" | ".join(head), "|".join(["---"] * len(head))]
    lines += [" | ".join(cell.replace("|", "\\|") for cell in cells) for cells in body]
    return "\n".join(f"|{line}|" if "---" in line else f"| {line} |" for line in lines)


def _number(value: float) -> str:
    """A number as a person writes it: "0.72", "10,000", "1e-4"."""
    if value == int(value):
        return f"{int(value):,}"
    if abs(value) >= 1e-3:
        return f"{value:.3g}"
    digits, _, power = f"{value:.2e}".partition("e")
    return f"{digits.rstrip('0').rstrip('.')}e{int(power)}"


def _warns(rule: Rule) -> bool:
    """True if the module of a rule makes warnings."""
    return '"warning"' in inspect.getsource(_module(rule))


def _module(rule: Rule) -> ModuleType:
    return sys.modules[type(rule).__module__]


def write() -> None:
    """Write both pages."""
    for name, made in (("checks.md", checks_page), ("how_we_know.md", values_page)):
        path = DOCS / name
        path.write_text(made(path.read_text()))


if __name__ == "__main__":
    write()
