"""The stored findings of the checks: read back as written; damaged and newer ones are refused."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from fmapboard.formats.checks import (
    LargestUpdate,
    LostSpread,
    OutputProgress,
    Proof,
    Seen,
    StoredChecks,
    StoredFinding,
    pack_checks,
    unpack_checks,
)
from fmapboard.formats.tab_records import FormatError
from fmapboard.health.finding import Finding

WARNING = Finding(
    kind="mine",
    class_="warning",
    message="a `fault`",
    layer="conv1",
    since_step=3,
    meaning="It is",
    advice="Do",
    parameter="conv1.weight",
    parameters=("conv1.weight", "conv1.bias"),
    value=0.5,
    healthy="0 to 0.1",
)


def packed(finding: Finding = WARNING) -> bytes:
    """The blob of a record with one finding."""
    return pack_checks(StoredChecks((finding,)))[0]


def test_a_finding_is_read_back() -> None:
    (read,) = unpack_checks(packed()).findings
    assert Finding(**asdict(read)) == WARNING


def test_the_keys_are_those_of_format_1() -> None:
    whole = json.loads(packed())
    assert whole["format"] == 1
    assert set(whole["findings"][0]) == {
        "kind", "class", "message", "healthy", "meaning", "advice", "layer", "parameter",
        "parameters", "since", "value", "follows", "docs", "picture",
    }  # fmt: skip
    assert set(whole) == {"format", "findings"}


def test_what_was_not_checked_is_read_back_and_what_earlier_writers_lack_is_not_known() -> None:
    not_checked = {"dead": "needs x"}
    (blob,) = pack_checks(StoredChecks(not_checked=not_checked))
    assert unpack_checks(blob).not_checked == not_checked
    whole = json.loads(packed(replace(WARNING, follows="dead")))
    assert unpack_checks(json.dumps(whole).encode()).findings[0].follows == "dead"
    for later in ("follows", "docs", "picture"):
        del whole["findings"][0][later]
    read = unpack_checks(json.dumps(whole).encode())
    assert (read.not_checked, read.seen, read.findings[0].follows) == (None, None, "")
    (blob,) = pack_checks(StoredChecks((WARNING,), off=("dead", "eval_mode")))
    off = unpack_checks(blob)
    assert (off.off, off.findings[0].kind, read.off) == (("dead", "eval_mode"), WARNING.kind, ())
    for wrong in ("dead", [3], {"dead": 1}, None):
        with pytest.raises(FormatError, match="not in fmapboard's format"):
            unpack_checks(json.dumps({**whole, "off": wrong}).encode())
    for damaged in ([], "a", {"dead": 3}, {"dead": None}):
        with pytest.raises(FormatError, match="not in fmapboard's format"):
            unpack_checks(json.dumps({**whole, "not_checked": damaged}).encode())


SEEN = Seen(
    layers=3,
    steps=9,
    last_step=80,
    usual_update=0.01,
    largest_update=LargestUpdate("head.weight", 4, 2.5),
    outputs=(
        OutputProgress(
            "", loss=((0, 2.3), (80, 1.5)), classes=10, guess=2.3, late=1.6, learns=True
        ),
        OutputProgress("aux"),
    ),
    rates=(0.1, 0.2),
    batch=32,
    no_loss={"aux": "too few rows"},
    lost_spread=LostSpread("conv1", 0.31, "conv2", 0.002),
)


def test_what_was_looked_at_is_read_back() -> None:
    (blob,) = pack_checks(StoredChecks(not_checked={}, seen=SEEN))
    assert unpack_checks(blob).seen == SEEN


@pytest.mark.parametrize(
    "change",
    [
        {"layers": "3"}, {"steps": -1}, {"outputs": [{"name": 3}]}, {"outputs": {"a": 1}},
        {"rates": [0.1]}, {"largest_update": [1]}, {"outputs": [{"name": "", "learns": "no"}]},
        {"no_loss": {"aux": 3}}, {"lost_spread": {"last": 1}},
    ],
)  # fmt: skip
def test_what_was_looked_at_is_refused_if_it_is_damaged(change: dict[str, object]) -> None:
    whole = json.loads(pack_checks(StoredChecks(seen=SEEN))[0])
    whole["seen"] |= change
    with pytest.raises(FormatError, match="not in fmapboard's format"):
        unpack_checks(json.dumps(whole).encode())


@pytest.mark.parametrize(
    "change",
    [
        {"class": "worse"}, {"since": -1}, {"since": True}, {"since": 2**60}, {"value": "1"},
        {"kind": 3}, {"message": "\ud800"}, {"layer": 5}, {"parameter": []}, {"parameters": "a"},
        {"parameters": [1]},
    ],
)  # fmt: skip
def test_damaged_findings_are_refused(change: dict[str, object]) -> None:
    whole = json.loads(packed())
    whole["findings"][0] |= change
    with pytest.raises(FormatError, match="not in fmapboard's format"):
        unpack_checks(json.dumps(whole).encode())


@pytest.mark.parametrize(
    "blob",
    [
        None, b"", b"{}", b"[3]", b"[" * 10**5, b" " * 2**21, b"\xff", b'{"format": 1}',
        b'{"format": "1", "findings": []}', b'{"format": 1, "findings": [3]}',
    ],
)  # fmt: skip
def test_blobs_that_are_no_record_are_refused(blob: bytes | None) -> None:
    with pytest.raises(FormatError):
        unpack_checks(blob)


def test_a_newer_format_says_what_to_do() -> None:
    with pytest.raises(FormatError, match="written by a newer fmapboard, in format 2"):
        unpack_checks(b'{"format": 2, "findings": []}')


def test_values_that_are_not_finite_are_stored_as_unknown() -> None:
    (read,) = unpack_checks(packed(replace(WARNING, value=float("inf")))).findings
    assert read.value is None


def test_a_name_that_cannot_be_sent_is_replaced() -> None:
    (read,) = unpack_checks(packed(replace(WARNING, layer="a\ud800b"))).findings
    assert read.layer == "a?b"


def test_a_proof_is_stored_and_a_finding_without_one_takes_no_bytes() -> None:
    finding = StoredFinding(kind="dead", class_="note", message="")
    assert b"proof" not in pack_checks(StoredChecks((finding,)))[0]
    proof = Proof("refuted", "lower_rate", 50, (2.5, None), (2.5, 2.25), without=("eval_mode",))
    proven = replace(finding, proof=proof, cure="lower_rate")
    (read,) = unpack_checks(pack_checks(StoredChecks((proven,)))[0]).findings
    assert read == proven
