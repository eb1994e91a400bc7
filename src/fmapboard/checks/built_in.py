"""The built-in checks, the choice of checks by ``checks=``, and running them over a record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

# ``numpy.median`` imports it. On the worker thread, a process that is forked meanwhile, such as a
# DataLoader's worker, would inherit the lock of the import, and hang where it imports it itself.
import numpy.ma  # noqa: F401

from fmapboard.checks.finding import Finding, order
from fmapboard.checks.growth import ExplodingCheck, VanishingCheck
from fmapboard.checks.input_scale import InputScaleCheck
from fmapboard.checks.layer_values import (
    CopiedChannelsCheck,
    DeadCheck,
    UnevenUpsamplingCheck,
)
from fmapboard.checks.nonfinite import NonfiniteCheck
from fmapboard.checks.run_record import Check, NotRecorded, RunRecord
from fmapboard.checks.training_facts import (
    ConstantImagesCheck,
    EvalModeCheck,
    GradientsNotClearedCheck,
    IdenticalImagesCheck,
    NotInOptimizerCheck,
)
from fmapboard.checks.unchanged_weights import UnchangedWeightsCheck
from fmapboard.checks.usual_range import BatchnormGapCheck, UpdateRatioCheck
from fmapboard.errors import ConfigurationError, closest, first_line

Checks: TypeAlias = bool | Mapping[str, bool | Check] | Sequence[Check]
"""What ``checks=`` of ``watch`` takes (see `chosen`)."""
BUILT_IN: tuple[Check, ...] = (
    NotInOptimizerCheck(),
    GradientsNotClearedCheck(),
    EvalModeCheck(),
    ConstantImagesCheck(),
    IdenticalImagesCheck(),
    NonfiniteCheck(),
    UnchangedWeightsCheck(),
    DeadCheck(),
    VanishingCheck(),
    ExplodingCheck(),
    UpdateRatioCheck(),
    BatchnormGapCheck(),
    CopiedChannelsCheck(),
    InputScaleCheck(),
    UnevenUpsamplingCheck(),
)
"""Every built-in check: those of warnings first."""


@dataclass(frozen=True, slots=True)
class Report:
    """What the checks said of one model.

    Attributes:
        record: what they read.
        findings: warnings first; of each class, the earliest first.
        not_recorded: kind of a check -> what the run lacks for it.
        failed: kind of a check -> the error that it raised.
    """

    record: RunRecord
    findings: tuple[Finding, ...]
    not_recorded: Mapping[str, str]
    failed: Mapping[str, str]


def run_checks(record: RunRecord, checks: Sequence[Check] = BUILT_IN) -> Report:
    """Run checks over the record of a model; an error in one of them does not stop the others."""
    found: list[Finding] = []
    lacking: dict[str, str] = {}
    failed: dict[str, str] = {}
    for check in checks:
        try:
            found += [replace(each, model=record.name) for each in check(record)]
        except NotRecorded as missing:
            lacking[check.kind] = str(missing)
        except Exception as error:
            failed[check.kind] = f"{type(error).__name__}: {first_line(error)}"
    return Report(record, tuple(sorted(found, key=order)), lacking, failed)


def chosen(checks: Any) -> tuple[Check, ...]:
    """The checks that ``checks=`` of ``watch`` asks for.

    Example:
        >>> [check.kind for check in chosen({"dead": False})][7]
        'vanishing'

    Args:
        checks: True for the built-in ones, False for none; a mapping that replaces built-in ones by
            kind, or silences them with False, or adds others; or a sequence of further checks.

    Raises:
        ConfigurationError: it is none of these, or names a kind that does not exist.
    """
    if checks is True:
        return BUILT_IN
    if checks is False:
        return ()
    if isinstance(checks, Mapping):
        return _mapped(checks)
    if isinstance(checks, Iterable) and not isinstance(checks, (str, bytes)):
        return (*BUILT_IN, *(_checked(check) for check in checks))
    raise ConfigurationError(
        f'checks={checks!r:.80}: expected True, False, a mapping such as {{"dead": False}}, or a '
        "list of checks such as [MyCheck()]"
    )


def _mapped(changes: Mapping[Any, Any]) -> tuple[Check, ...]:
    by_kind: dict[str, Check] = {check.kind: check for check in BUILT_IN}
    for kind, change in changes.items():
        if kind not in by_kind and (isinstance(change, bool) or not isinstance(kind, str)):
            near = closest(str(kind), by_kind)
            raise ConfigurationError(f"checks: no check {kind!r}{near}")
        if change is False:
            del by_kind[kind]
        elif change is not True:
            by_kind[kind] = _checked(change)
    return tuple(by_kind.values())


def _checked(check: Any) -> Check:
    kind = getattr(check, "kind", None)
    if isinstance(check, type) or not callable(check) or not isinstance(kind, str) or not kind:
        raise ConfigurationError(
            f"checks: {check!r:.80} is no check: expected an object such as MyCheck() with a "
            "string `kind` that is called with a RunRecord"
        )
    known: Check = check
    return known
