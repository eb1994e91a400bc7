"""The pages of the docs that are made from the built-in rules.

One per group in ``docs/checks``, the lists of ``docs/checks.md``, from its section "Warnings" on,
and the table "Values" of ``docs/how_we_know.md``.

After a change of a rule's docstring, its fields or `health.thresholds`, run::

    PYTHONPATH=src python tests/helpers/check_pages.py
"""

from __future__ import annotations

import ast
import importlib
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
PAGES = {rule.kind: f"{group_of(rule)}.md" for rule in BUILT_IN}
"""Kind -> its page, in ``docs/checks``."""

FACTS = tuple(
    f"fmapboard.health.{name}"
    for name in (
        *("layer_findings", "copies", "gradient_ratios", "gradient_cuts", "signal", "attention"),
        *("saturation", "output_sources", "updates"),
    )
)
"""Modules of what rules look at besides `Evidence`."""

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
        "![a layer with one channel all NaN](../pictures/nonfinite.png)",
        "![a healthy layer](../pictures/healthy.png)",
    ),
    "copied_channels": (
        "all weights started at 0.02",
        "![a layer whose channels are all the same](../pictures/copied.png)",
        "![a healthy layer before training](../pictures/healthy_before.png)",
    ),
}
"""Kind -> the fault, and the pictures of a layer with it and without."""
FURTHER = {
    "dead": "[How it looks](../reading_the_pictures.md#dead).",
    "exploding": "[How it looks](../reading_the_pictures.md#exploding).",
    "updates_too_large": "The ratios are [estimated](../what_is_written.md) from sampled rows.",
    "uneven_upsampling": "[How it looks](../reading_the_pictures.md#checkerboard).",
}
"""Kind -> a further paragraph."""
_LISTED = 5
"""Maximum number of rules that are listed as effects of another one."""
_GROWN = "values that grow"
_FADING = "signals, gradients, updates or answers that fade or are all alike"

WARNINGS = (
    "What is wrong for certain, whatever the network. A page per group of rules says what each of "
    "them sees, why that hurts, when it is silent, and its thresholds."
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


def pages() -> dict[str, str]:
    """Place of each page below ``docs`` -> its text."""
    made = {
        "checks.md": checks_page((DOCS / "checks.md").read_text()),
        "how_we_know.md": values_page((DOCS / "how_we_know.md").read_text()),
    }
    for group, rules in groups().items():
        made[f"checks/{group}.md"] = group_page(rules)
    return made


def groups() -> dict[str, list[Rule]]:
    """Group -> its rules; a rule without one is a group of its own."""
    found: dict[str, list[Rule]] = {}
    for rule in BUILT_IN:
        found.setdefault(group_of(rule), []).append(rule)
    return found


def checks_page(page: str) -> str:
    """The page of the checks: what stands before the rules as it is, and the lists of the rules."""
    parts = [page.partition("\n## Warnings\n")[0].rstrip("\n")]
    introductions = (("Warnings", WARNINGS, True), ("Notes", NOTES, False))
    for title, introduction, are_warnings in introductions:
        rows = [["rule", "what it sees"]]
        for group, rules in groups().items():
            if any(map(_warns, rules)) != are_warnings:
                continue
            for rule in rules:
                first = _paragraphs(rule)[0].replace("``", "`")
                rows.append([f"[`{rule.kind}`](checks/{group}.md#{rule.kind})", first])
        parts += [f"## {title}", _filled(introduction), _table(rows)]
    return "\n\n".join(parts) + "\n"


def group_page(rules: Sequence[Rule]) -> str:
    """The page of a group: of a single rule its section, else a section per rule."""
    group = group_of(rules[0])
    if len(rules) == 1:
        return "\n\n".join(_section(rules[0], level=1)) + "\n"
    kinds = [rule.kind for rule in rules]
    # A heading per name: a group that has the name of one of its rules is headed by all of them.
    title = ", ".join(kinds) if group in kinds else group
    text = f'`checks={{"{group}": False}}` switches off {_kinds(kinds, "and")}.'
    parts = [f"# {title}", _filled(text)]
    for rule in rules:
        parts += _section(rule, level=2)
    return "\n\n".join(parts) + "\n"


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
        rules = ", ".join(f"[`{kind}`](checks/{PAGES[kind]}#{kind})" for kind in shown[key])
        known = [threshold.healthy, threshold.faulty, threshold.source]
        rows.append([rules, _number(threshold.value), threshold.unit, *known])
    first = "The thresholds of the rules for which healthy and faulty runs were measured:"
    return f"{first}\n\n{_table(rows)}"


def limits_of(rule: Rule) -> list[Limit]:
    """The thresholds that a rule names, and the facts it imports, each once, in that order."""
    options: dict[str, str] = {}
    source = "\n".join([inspect.getsource(_module(rule)), *_sources_of_facts(rule)])
    for option, name in re.findall(r"^    (\w+): \w+ = thresholds\.(\w+)\.value$", source, re.M):
        options[name] = option
    limits: list[Limit] = []
    for name in dict.fromkeys(re.findall(r"\bthresholds\.([A-Z]\w*)", source)):
        threshold = getattr(thresholds, name)
        if isinstance(threshold, Threshold):
            limits.append(Limit(options.get(name, ""), threshold))
    return limits


def _sources_of_facts(rule: Rule) -> Iterator[str]:
    """What a rule imports from `FACTS`, with what that needs of its own module, as source."""
    for node in ast.parse(inspect.getsource(_module(rule))).body:
        if not isinstance(node, ast.ImportFrom) or node.module not in FACTS:
            continue
        text = inspect.getsource(importlib.import_module(node.module))
        parts = {name: part for part in ast.parse(text).body for name in _names_set_by(part)}
        waiting = [alias.name for alias in node.names]
        used: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name not in parts or name in used:
                continue
            used.add(name)
            waiting += [n.id for n in ast.walk(parts[name]) if isinstance(n, ast.Name)]
        yield from (ast.unparse(part) for name, part in parts.items() if name in used)


def _names_set_by(part: ast.stmt) -> Iterator[str]:
    """The names that a statement of a module defines."""
    if isinstance(part, ast.FunctionDef | ast.ClassDef):
        yield part.name
    elif isinstance(part, ast.Assign):
        yield from (target.id for target in part.targets if isinstance(target, ast.Name))


def _described(rule: Rule) -> tuple[str, str]:
    """The docstring of a rule: what stands before its section Attributes, and that section."""
    body, _, attributes = (inspect.getdoc(type(rule)) or "").partition("\n\nAttributes:\n")
    return body, attributes


def _paragraphs(rule: Rule) -> list[str]:
    """The paragraphs of a rule's docstring, each in one line."""
    return [" ".join(paragraph.split()) for paragraph in _described(rule)[0].split("\n\n")]


def _section(rule: Rule, level: int) -> Iterator[str]:
    """The paragraphs about a rule, below a heading of this level."""
    yield f"{'#' * level} {rule.kind}"
    for text in _paragraphs(rule):
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
        tries = "[`prove=True`](../prove.md) tries whether a copy learns if"
        yield _filled(f"**Proof:** {tries} {CURES[rule.cure].change}.")
    options = _options(_described(rule)[1])
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
        yield f"![{PICTURES[rule.kind]}](../{file})"
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
        return _link(kind) if kind in PAGES and kind != own else match[0]

    return re.sub(r"`(\w+)`", link, text)


def _link(kind: str) -> str:
    return f"[`{kind}`]({PAGES[kind]}#{kind})"


def _kinds(kinds: Iterable[str], last: str) -> str:
    """Links to rules, as a list in a sentence."""
    links = [_link(kind) for kind in kinds]
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
    """Write the pages, and remove those of groups that are gone."""
    made = pages()
    for page in (DOCS / "checks").glob("*.md"):
        if f"checks/{page.name}" not in made:
            page.unlink()
    for place, text in made.items():
        (DOCS / place).parent.mkdir(exist_ok=True)
        (DOCS / place).write_text(text)


if __name__ == "__main__":
    write()
