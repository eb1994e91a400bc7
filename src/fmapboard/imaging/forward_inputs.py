"""What a model's ``forward`` takes in addition to images, or instead of them."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fmapboard.errors import CaptureError, ConfigurationError, FmapboardError, nearby, one_line
from fmapboard.imaging.models.request import imported, parse_arguments
from fmapboard.imaging.read_images import ReadImages
from fmapboard.model.given import described
from fmapboard.model.layers import unwrap
from fmapboard.model.tensors import map_tensors, tensors
from fmapboard.model_comparison.layer_calls import Arguments

_RETURNS = (
    "expected a tensor, a tuple of positional arguments, a dict of keyword arguments, or a pair of "
    "such a tuple and dict"
)
_AS_FUNCTION = "from a function of images: --input package.module:function or inputs=function"


@dataclass(slots=True)
class ForwardInputs:
    """Makes the arguments of ``forward`` from a batch of images.

    Attributes:
        named: Keyword arguments. The first axis of each tensor in them counts images: one row is
            passed with every image; with as many rows as there are images, each image gets its own.
        function: Turns a batch of images [B, C, H, W] into all other arguments of ``forward``; None
            passes the images themselves.
        images: Number of images.
        number: Of the image whose rows are passed, from 0.

    Raises:
        ConfigurationError: The number of rows of a tensor is neither 1 nor the number of images.
    """

    named: Mapping[str, Any] = field(default_factory=dict)
    function: Callable[[Tensor], Any] | None = None
    images: int = 1
    number: int = 0

    def __post_init__(self) -> None:
        several = f" or {self.images} (one row per image)" if self.images > 1 else ""
        for name, value in self.named.items():
            for tensor in tensors(value):
                if tensor.dim() and len(tensor) not in (1, self.images):
                    raise ConfigurationError(
                        f"the input {name!r} has shape {list(tensor.shape)}: its first axis counts "
                        f"images, expected 1 (the same for every image){several}; tensor[None] "
                        f"adds such an axis, and tensors of any shape may come {_AS_FUNCTION}"
                    )

    @classmethod
    def of(
        cls, inputs: Mapping[str, Any] | Callable[[Tensor], Any] | None, images: int
    ) -> ForwardInputs:
        """The inputs that were passed to ``fmapboard.visualize``.

        Raises:
            ConfigurationError: They are of another type.
        """
        if inputs is None or isinstance(inputs, Mapping):
            return cls(dict(inputs or {}), None, images)
        if callable(inputs):
            return cls({}, inputs, images)
        raise ConfigurationError(
            f"inputs={described(inputs)}: expected a dict of arguments of forward, or a function "
            "from a batch of images to them"
        )

    @property
    def per_image(self) -> bool:
        """True if each image has rows of its own; images are then run one at a time."""
        if self.images <= 1:
            return False
        return any(tensor.dim() > 0 and len(tensor) > 1 for tensor in tensors(self.named))

    def check(self, model: nn.Module) -> None:
        """Check from its signature that ``forward`` can be called with these arguments.

        Raises:
            ConfigurationError: It lacks one of them, needs more, or takes none; the text says what
                to do.
        """
        model = unwrap(model)
        signature = _signature(model)
        if signature is None or self.function is not None:
            return
        keyword = _image_keyword(model, self.named)
        try:
            if keyword is None:
                signature.bind(None, **self.named)  # None for the images
            else:
                signature.bind(**{keyword: None, **self.named})
        except TypeError as error:
            takes = ", ".join(signature.parameters) or "nothing"
            raise ConfigurationError(
                f"{type(model).__name__}.forward() takes {takes}: {error}; what it takes in "
                "addition to images comes from --forward-arg NAME=VALUE, --input NAME=FILE, "
                f"inputs={{'NAME': …}}, or {_AS_FUNCTION}"
            ) from error

    @contextlib.contextmanager
    def applied(self, model: nn.Module) -> Iterator[None]:
        """Inside the block, calling the model with images calls ``forward`` with its arguments."""
        model = unwrap(model)
        if not self.named and self.function is None and _image_keyword(model, ()) is None:
            yield
            return
        handle = model.register_forward_pre_hook(self._replaced, with_kwargs=True)
        try:
            yield
        finally:
            handle.remove()

    def _replaced(self, model: nn.Module, args: Sequence[Any], kwargs: dict[str, Any]) -> Arguments:
        made, named = self.arguments(model, args[0])
        return made, {**kwargs, **named}

    def arguments(self, model: nn.Module, images: Tensor) -> Arguments:
        """The arguments of ``forward`` for a batch of images.

        Tensors are copied to the device of the images, floating-point ones to their dtype.

        Args:
            model: Its ``forward`` names the arguments.
            images: [B, C, H, W]; B is 1 if ``per_image``, and this the image of ``number``.

        Raises:
            CaptureError: The function raises an error or returns something else.
        """

        def row(tensor: Tensor) -> Tensor:
            if tensor.dim() == 0:
                return like(tensor)
            own = tensor
            if len(tensor) > 1:
                own = tensor[self.number : self.number + 1]
            return like(own.repeat_interleave(len(images), 0))

        def like(tensor: Tensor) -> Tensor:
            if tensor is images:
                return images
            dtype = images.dtype if tensor.is_floating_point() else None
            return tensor.to(images.device, dtype)

        args, kwargs = map_tensors(self._called(model, images), like)
        for name, value in self.named.items():
            kwargs[name] = map_tensors(value, row)
        return args, kwargs

    def _called(self, model: nn.Module, images: Tensor) -> Arguments:
        if self.function is None:
            keyword = _image_keyword(model, self.named)
            if keyword is None:
                return (images,), {}
            return (), {keyword: images}
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        try:
            made = self.function(images)
        except FmapboardError:
            raise
        except Exception as error:
            raise CaptureError(
                f"{name}() raised {one_line(error)} (images of shape {list(images.shape)}); for "
                "the traceback, call it with a tensor of this shape"
            ) from error
        if isinstance(made, Tensor):
            return (made,), {}
        if isinstance(made, Mapping):
            return (), dict(made)
        if isinstance(made, tuple):
            if len(made) == 2 and isinstance(made[0], tuple) and isinstance(made[1], Mapping):
                return made[0], dict(made[1])
            return made, {}
        raise CaptureError(f"{name}() returned a {type(made).__name__}: {_RETURNS}")


def _signature(model: nn.Module) -> inspect.Signature | None:
    """The signature of ``forward``; None if it has none, as in scripted modules."""
    try:
        return inspect.signature(unwrap(model).forward)
    except (TypeError, ValueError):
        return None


def _image_keyword(model: nn.Module, given: Collection[str]) -> str | None:
    """The keyword with which ``forward`` takes images; None if they are the first argument.

    The images are ``pixel_values`` if there is such an argument, as in transformers, otherwise the
    first one that is not given.
    """
    signature = _signature(model)
    known = [] if signature is None else list(signature.parameters)
    free = [name for name in known if name not in given]
    if not free:
        return None
    chosen = "pixel_values" if "pixel_values" in free else free[0]
    return None if chosen == known[0] else chosen


_EXPECTED = "expected NAME=FILE, such as depth=depth.pt, or package.module:function"


def inputs_from(given: Sequence[str], images: int, forward_args: Sequence[str]) -> ForwardInputs:
    """What the values of ``--input`` and ``--forward-arg`` name.

    Args:
        given: ``NAME=FILE``, a tensor of ``torch.save`` or ``numpy.save``; or
            ``package.module:function``, at most once.
        images: Number of images.
        forward_args: ``NAME=VALUE``; a value that is not a Python literal is text.

    Raises:
        ConfigurationError: A value is invalid, a file cannot be read (code in it is not run), or a
            tensor has another number of rows.
        UnknownModel: There is no such function.
    """
    named = parse_arguments(forward_args, "--forward-arg")
    function: Callable[[Tensor], Any] | None = None
    for text in given:
        name, equals, file = text.partition("=")
        is_given = name in named if equals else function is not None
        if is_given:
            raise ConfigurationError(f"--input {text!r}: it is given already; give it once")
        if name.isidentifier() and file:
            named[name] = _read(Path(file).expanduser(), text)
        elif ":" in text and not equals:
            function = imported(text, "function")
        else:
            raise ConfigurationError(f"--input {text!r}: {_EXPECTED}")
    return ForwardInputs(named, function, images)


def _read(path: Path, text: str) -> Any:
    if not path.is_file():
        advice = nearby(path) or "; check the path"
        raise ConfigurationError(f"--input {text!r}: no such file: {str(path)!r}{advice}")
    try:
        if path.suffix.lower() == ".npy":
            value = torch.from_numpy(np.load(path, allow_pickle=False))
        else:
            value = torch.load(path, map_location="cpu", weights_only=True)
        if not tensors(value):
            raise ValueError("without tensors; --forward-arg NAME=VALUE takes numbers and text")
    except Exception as error:  # damaged files make the unpickler raise nearly anything
        raise ConfigurationError(
            f"--input {text!r}: {str(path)!r} cannot be read as tensors; code in it is not run, "
            f"save them with torch.save(tensor, 'FILE.pt') ({one_line(error, most=80)})"
        ) from error
    return value


@dataclass(frozen=True, slots=True)
class ImageArguments:
    """Image files as a model takes them, each on its own: memory does not grow with their number.

    Attributes:
        model: Its ``forward`` takes them.
        read: The files, which are read again in each iteration.
        inputs: What the model takes in addition to images.
    """

    model: nn.Module
    read: ReadImages
    inputs: ForwardInputs

    def __len__(self) -> int:
        return len(self.read.sources)

    def __contains__(self, file: object) -> bool:
        return file in self.read.sources

    def __iter__(self) -> Iterator[Arguments]:
        with contextlib.closing(self.read.tensors()) as images:
            for image in images:
                batch = self.read.prepare(image[None])
                self.inputs.number = self.read.numbers[-1]
                yield self.inputs.arguments(self.model, batch)
