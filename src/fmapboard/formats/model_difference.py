"""Stored format of the table that ``diff`` prints (record ``tags.MODEL_DIFFERENCE``): a JSON blob.

It is written with the first image of the run of differences.
"""

from __future__ import annotations

from dataclasses import dataclass

from fmapboard.formats.tab_records import read_json, reading, stored, typed, write_json

MAX_ROWS = 2000


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """A layer, or a place between two layers, as ``diff`` prints it.

    Attributes:
        name: of the layer, or of the place.
        type: class of the module; "" for a place.
        error_in: relative error of what it received; "–" if it was not compared.
        error_out: relative error of what it returned, likewise.
        added: relative error that it adds, likewise.
        note: what else differs, in words.
        is_different: it adds more than the tolerance.
    """

    name: str
    type: str
    error_in: str
    error_out: str
    added: str
    note: str
    is_different: bool


@dataclass(frozen=True, slots=True)
class DifferenceTable:
    """The table.

    Attributes:
        tolerance: relative error from which on a row is different.
        compared: number of rows that were compared.
        different: number of rows that are different.
        rows: the first `MAX_ROWS` ones in order of execution.
    """

    tolerance: float
    compared: int
    different: int
    rows: tuple[DifferenceRow, ...]


def pack_difference(table: DifferenceTable) -> tuple[bytes, ...]:
    """The blob of the record."""
    return (write_json(stored(table)),)


def unpack_difference(blob: bytes | None) -> DifferenceTable:
    """Parse and validate the blob of the record.

    Raises:
        FormatError: it is missing, too large, damaged, or of a newer format.
    """
    with reading("the table of differences is"):
        table: DifferenceTable = typed(DifferenceTable, read_json(blob))
        return table
