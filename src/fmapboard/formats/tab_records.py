"""Stored format of the Feature maps tab's records, shared by writer and plugin.

A record is a sequence of blobs. Blob 0 is a JSON header. Blob 1 holds the arrays that the header
lists, one after another, as little-endian float32. A layer's first-step record also has one PNG
blob per picture and sample, in the header's order. Readers ignore unknown keys, so that fields may
be added; none is removed or changes its meaning under the same `FORMAT`.

Header keys: ``format``, ``layer``, ``type``, ``kernel_shape`` (list or null), ``call``,
``position``, ``step``, ``steps_written``, ``training_thread_ms``, ``pictures`` and ``arrays``; and
if an activation with an off value directly follows the layer, ``activation`` ({``label``,
``type``}); and of a part of a block ``shape``, such as ``Attention 12×64``, and ``unit``, what its
channels are (see ``records.LayerPart``). ``change_since`` ({name: step}) says which logged step
each array ``<name>.change`` compares with; it is missing if there is none. ``estimated_updates``
lists those of the layer's own parameters whose update ratio is an estimate, such as ``weight``; it
is missing if there is none. ``kernels`` is the picture of the layer's kernels at an earlier
``step`` that still shows them: they have changed by less than 5 % of their norm; it is missing if
they are drawn, or were not read. Its ``peak_now`` is the ``peak`` of those of this step: if it is
the last one, they are in the Images series at this step, too. ``tokens`` is a list per drawn sample
of the names of the tokens that rows of attention are over, one name per key: the last axis of
``shape``. It is stored once per step, with the first rows over a text; the records of other rows
have ``tokens_of``, the label of the layer whose record of the same step has it. Without the option
``tokens`` both are missing.

Keys of a picture: ``role`` (a ``records.TensorKind``), ``tag`` (in the Images dashboard), ``shape``
(of the whole tensor), ``channels`` (of the whole tensor), ``drawn`` (channels 0 … drawn - 1 are
drawn), ``samples`` (drawn samples), ``tile`` ([height, width] px), ``columns`` (tiles per row),
``padding`` (px), ``block`` (side in px of the square averaged into one pixel), ``view`` (how the
tensor was converted to maps, and that an output is what the next layer receives), ``palette`` and
``scale``; and ``counted``, only if it is false: the counts of NaN and infinite values are lower
bounds (see ``records.Statistics``). A picture of kernels has ``role``, ``tag``, ``padding``,
``palette``, ``peak`` (the largest magnitude; its scale is -peak … peak), ``tile`` ([height, width]
of a kernel, the depth slices of a 3-D one side by side), ``outputs`` and ``inputs`` (each [drawn,
all] of the weight's axes, as drawn: those of a regular convolution are [out, in / groups], of a
transposed one [out / groups, in]), ``groups``, only if it is not 1, and ``transposed``, only if it
is true.

A picture of the maps of a volume has ``slices``, the indices of further depth slices, and
``depth``, that of the drawn one; ``view`` does not say it then. They are in the record itself,
behind its other blobs: a PNG per slice and sample, the first slice of all samples first, of the
same size. Each is on its own scale, in the arrays ``slices.lo`` and ``slices.hi`` [slices *
samples, drawn].

A picture is a grid of tiles, unless it has the key ``layout`` with the value ``"rows"``: then it is
one picture of sequences [C, L], with one row of pixels per channel and one column per position (or
per ``block`` positions, averaged); ``tile`` is then [1, number of columns], ``columns`` is 1 and
``padding`` is 0. A picture of kernels with ``"rows"`` shows 1-D kernels: a matrix of tiles, each
1 px high, with one row per output and one column per input.

Keys of an array: ``name`` and ``shape``. ``<role>.lo`` and ``<role>.hi`` are [samples, drawn];
``<role>.flat`` is [samples, drawn] with 0 or 1; ``<role>.<statistic>`` is [drawn], with the
statistics of ``records.Statistics`` (counts are float32 too, exact up to 2^24).
``attention.entropy``, ``attention.logit`` and ``attention.first`` [drawn] are the numbers of
``records.HeadNumbers``, in records of rows of attention. ``activation.dead`` [drawn] marks channels
for which the following activation returned only its off value. ``<role>.change`` [drawn] is how
much the maps of the same images changed since an earlier step, in standard deviations;
``weights.change`` [drawn], or [1] for the whole layer, how much the layer's weight did, relative to
its norm (see ``summary.change``). Flags and counts that are 0 throughout are omitted, as is
``dead`` for layers that are not activations.

The first picture of a series of attribution is stored again in a record without arrays, with the
PNG as blob 2. Header keys: ``layer``, ``type``, ``position``, ``step``, ``size`` ([height, width]
of the layer's maps), ``gradient`` (norm, null if it is not finite) and ``of`` (whose gradient it
is): ``"loss"`` of the training step, ``"probe"`` (``attribution_loss``) or ``"score"`` of a class.

A record of patches (``fmapboard patches``) has the keys ``layer``, ``type``, ``call``,
``position``, ``step``, ``channels``, ``searched`` (channels 0 … searched - 1), ``k`` (crops per
channel), ``one_per_image``, ``images`` (number of images), ``names`` (of those with a crop),
``lost_at`` (an operation because of which the field is given as the whole image, or null) and
``picture``: ``tag`` (in the Images dashboard), ``rows`` (channels per picture) and, in px, ``cell``
([height, width] of a crop), ``left`` and ``top`` of the first, ``across`` and ``down`` to the next,
and ``factor`` (px of the picture per px of a crop, in both directions).
Its arrays are [searched, k] or [searched, k, n], NaN where there is no crop: ``value``, ``image``
(index in ``names``), ``field`` (top, left, bottom, right in px of the image that the network saw),
``size`` (height, width of that), ``place`` (index in the layer's output) and, if it is not 0
throughout, ``nan`` [searched], the number of NaN values, which are left out.
"""

from __future__ import annotations

import contextlib
import json
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Literal, NoReturn, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from fmapboard.errors import FmapboardError

Floats = npt.NDArray[np.floating[Any]]
FORMAT = 1
"""Version of everything that is stored; readers refuse a higher one."""
_MAX_HEADER = 16 * 2**20
"""Maximum size in bytes of a header: parsed, a hostile one takes many times the memory."""
_MAX_READ = 4096
"""Maximum number of entries that are read per list."""
_INVALID = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    zlib.error,
)
"""What parsing a damaged record may raise."""
PLUGIN_NAME = "feature_maps"
Signed = Annotated[int, "may be negative"]
"""A whole number as the type of a field, such as a label; others are not negative."""
Reader = Callable[[Any], Any]
"""Reads a JSON value as a type, or raises what `typed` may raise."""


class FormatError(FmapboardError):
    """A stored record that this version cannot read."""


def refuse_newer(version: Any) -> None:
    """Check the ``format`` of a stored record.

    Raises:
        FormatError: it is higher than `FORMAT`.
        TypeError: it is no version.
    """
    if type(version) is not int or version < 1:
        raise TypeError(f"format is {version!r:.80}, not a whole number from 1")
    if version > FORMAT:
        raise FormatError(
            f"the record was written by a newer fmapboard, in format {version}; this fmapboard "
            f"reads formats up to {FORMAT}: upgrade it"
        )


def pack(
    header: Mapping[str, Any], arrays: Mapping[str, Floats], more: Sequence[bytes] = ()
) -> tuple[bytes, ...]:
    """Pack a header and arrays into blobs.

    Args:
        header: The header without ``format`` and ``arrays``.
        arrays: Name -> array, of any shape.
        more: Blobs to append unchanged.

    Raises:
        ValueError: The header contains NaN or infinity, which JSON cannot represent.
    """
    listed = []
    parts = []
    with np.errstate(over="ignore"):  # a float64 model's values beyond float32 become infinite
        for name, array in arrays.items():
            listed.append({"name": name, "shape": list(array.shape)})
            numbers = np.ascontiguousarray(array, "<f4")
            parts.append(numbers.tobytes())
    whole_header = write_json({**header, "arrays": listed})
    return (whole_header, b"".join(parts), *more)


def unpack(blobs: Sequence[bytes]) -> tuple[dict[str, Any], dict[str, Floats]]:
    """The header and arrays of a stored record; the arrays are read-only views of blob 1.

    Raises:
        FormatError: The record is damaged, or its format is newer than this version supports.
    """
    with reading("the record is"):
        header = read_json(blobs[0], _MAX_HEADER)
        arrays = {}
        offset = 0
        for entry in header["arrays"]:
            shape = entry["shape"]
            if not all(isinstance(side, int) and side >= 0 for side in shape):
                raise ValueError(f"invalid array shape {shape}")
            flat = np.frombuffer(blobs[1], "<f4", math.prod(shape), offset)
            arrays[entry["name"]] = flat.reshape(shape)
            offset += flat.nbytes
    return header, arrays


@contextlib.contextmanager
def reading(what: str) -> Iterator[None]:
    """Raise FormatError for everything that parsing a damaged record may raise.

    Args:
        what: what is parsed, with its verb.
    """
    try:
        yield
    except _INVALID as error:
        raise FormatError(f"{what} not in fmapboard's format: {error}") from error


def write_json(raw: Mapping[str, Any]) -> bytes:
    """A blob with a JSON object and its ``format``.

    Raises:
        ValueError: a number is not finite.
    """
    whole = {"format": FORMAT, **raw}
    text = json.dumps(whole, separators=(",", ":"), allow_nan=False)
    return text.encode()


def read_json(blob: bytes | None, max_bytes: int = 2**20) -> dict[str, Any]:
    """The JSON object of a blob, in a format that this version reads.

    Raises:
        FormatError: it is missing, too large, or of a newer format.
        TypeError, ValueError, LookupError, RecursionError: it is damaged.
    """
    if blob is None:
        raise FormatError("the record can no longer be read")
    if len(blob) > max_bytes:
        raise FormatError(f"the record has {len(blob)} bytes; expected {max_bytes} at most")
    raw: dict[str, Any] = json.loads(blob)
    refuse_newer(raw["format"])
    return raw


def stored(value: Any) -> Any:
    """A value as JSON has it, for `typed` to read: a dataclass as an object, a tuple as a list.

    Lone surrogates in text, which readers refuse, become question marks.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, (tuple, list)):
        return [stored(entry) for entry in value]
    if isinstance(value, dict):
        return {stored(name): stored(entry) for name, entry in value.items()}
    if not is_dataclass(value):
        return value
    record = {}
    for field in fields(value):
        record[field.name] = stored(getattr(value, field.name))
    return record


def typed(kind: Any, raw: Any) -> Any:
    """A JSON value as a type annotation has it: a list as a tuple, an object as a dataclass.

    Whole numbers are not negative unless they are `Signed`, other numbers finite. Keys that a
    dataclass does not have are ignored; those that are missing have its defaults.

    Raises:
        TypeError, ValueError, ArithmeticError, AttributeError: it is of another type.
    """
    return _reader(kind)(raw)


@cache
def _reader(kind: Any) -> Reader:
    """The function that reads values of a type, made once: looking at annotations is slow."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    if isinstance(kind, type):
        if is_dataclass(kind):
            return _record_reader(kind)
        if hasattr(kind, "_fields"):
            return _named_tuple_reader(kind)
    origin = get_origin(kind)
    arguments = get_args(kind)
    if origin is Literal:
        return lambda raw: raw if raw in arguments else _refuse(raw, kind)
    readers = [_reader(argument) for argument in arguments if argument not in (type(None), ...)]
    if type(None) in arguments:
        return lambda raw: None if raw is None else readers[0](raw)
    if origin is Mapping:
        return _mapping_reader(readers[1])
    if origin is tuple and arguments[-1] is ...:
        return lambda raw: tuple(map(readers[0], _listed(raw)))
    if origin is tuple:
        return lambda raw: tuple(_each(readers, _listed(raw)))
    raise TypeError(f"{kind}: no JSON value is read as this type")


def _hints(kind: Any) -> dict[str, Any]:
    """Field -> its type, `Signed` as such."""
    return get_type_hints(kind, include_extras=True)


def _record_reader(kind: Any) -> Reader:
    readers = {name: _reader(hint) for name, hint in _hints(kind).items()}

    def read(raw: Any) -> Any:
        known = {}
        for name, value in raw.items():
            if name in readers:
                known[name] = readers[name](value)
        return kind(**known)

    return read


def _named_tuple_reader(kind: Any) -> Reader:
    readers = [_reader(hint) for hint in _hints(kind).values()]
    return lambda raw: kind(*_each(readers, raw))


def _mapping_reader(read_value: Reader) -> Reader:
    def read(raw: Any) -> Any:
        read_entries = {}
        for name, value in _few(raw).items():
            read_entries[_text(name)] = read_value(value)
        return read_entries

    return read


def _text(raw: Any) -> str:
    raw.encode()  # raises for what is no text, and for a lone surrogate, which cannot be sent
    return raw  # type: ignore[no-any-return]


def _whole(raw: Any) -> int:
    if type(raw) is int and 0 <= raw < 2**53:
        return raw
    _refuse(raw, int)


def _signed(raw: Any) -> int:
    if type(raw) is int and abs(raw) < 2**53:
        return raw
    _refuse(raw, int)


def _number(raw: Any) -> float:
    is_number = isinstance(raw, (int, float)) and not isinstance(raw, bool)
    if is_number and math.isfinite(raw):
        return float(raw)
    _refuse(raw, float)


def _truth(raw: Any) -> bool:
    if isinstance(raw, bool):
        return raw
    _refuse(raw, bool)


_PLAIN: Mapping[Any, Reader] = {
    str: _text,
    int: _whole,
    Signed: _signed,
    float: _number,
    bool: _truth,
}


def _each(readers: Sequence[Reader], raw: Any) -> Iterator[Any]:
    for read, value in zip(readers, raw, strict=True):
        yield read(value)


def _listed(raw: Any) -> Any:
    if not isinstance(raw, list):
        _refuse(raw, list)
    return _few(raw)


def _few(raw: Any) -> Any:
    if len(raw) > _MAX_READ:
        _refuse(raw, type(raw))
    return raw


def _refuse(raw: Any, kind: Any) -> NoReturn:
    name = getattr(kind, "__name__", kind)
    raise TypeError(f"{raw!r:.80} does not fit {name}")
