"""Build torchvision and timm models; weights are downloaded only if the request asks for them."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import socket
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch.hub
import torchvision.models

from fmapboard.errors import (
    ConfigurationError,
    DownloadError,
    FmapboardError,
    UnknownModel,
    closest,
    one_line,
    optional,
)
from fmapboard.imaging.models.preprocessing import WHOLE_SIDE, from_preset, from_timm
from fmapboard.imaging.models.request import LoadedModel, ModelRequest

_TIMEOUT = 20.0
"""Seconds without an answer after which a download fails."""


def torchvision_names() -> list[str]:
    """The networks of torchvision that take single images: not videos, nor 8-bit numbers."""
    models = torchvision.models
    packages = (models, models.detection, models.segmentation)
    return [name for package in packages for name in models.list_models(package)]


def build_torchvision(request: ModelRequest) -> LoadedModel:
    """A torchvision model with the requested weights, and its preprocessing.

    Weights from a file are not loaded here. The preprocessing is that of the named weights, or of
    the default ones, even if those are not loaded. A detector resizes its input itself; the shorter
    side is set to ``input_size``, by default 320 px.

    Raises:
        UnknownModel: torchvision has no such model for single images.
        ConfigurationError: it has no such weights, or rejects the arguments.
        DownloadError: the weights could not be downloaded or loaded.
    """
    call = request.call
    name = call.name.lower()
    if name not in torchvision_names():
        raise UnknownModel(_no_such(call.name, [*torchvision_names(), "demo"]))
    entry = _weights_entry(name, request)
    options: dict[str, Any] = {"weights": None}
    builder = torchvision.models.get_model_builder(name)
    if request.fetches:
        options = {"weights": entry, "progress": sys.stderr.isatty()}
    elif "weights_backbone" in inspect.signature(builder).parameters:
        options["weights_backbone"] = None  # otherwise the backbone's weights are downloaded
    elif name in ("googlenet", "inception_v3"):
        # `transform_input` as for pretrained weights; an explicit `init_weights` avoids a warning.
        options |= {"init_weights": request.checkpoint is None, "transform_input": True}
    cached = Path(torch.hub.get_dir(), "checkpoints", entry.url.rpartition("/")[2])
    with building(request, cached):
        model = torchvision.models.get_model(name, **{**options, **call.kwargs})
    resizer: Any = getattr(model, "transform", None)  # of a detector
    if hasattr(resizer, "min_size") and not getattr(resizer, "fixed_size", None):
        resizer.min_size = (request.input_size or WHOLE_SIDE,)  # otherwise about 800 px
    source = repr(entry) if request.fetches else f"{entry!r} (its preprocessing only)"
    preprocessing = from_preset(entry.transforms(), source)
    return LoadedModel(model, request.spec, preprocessing, classes=entry.meta.get("categories", ()))


def _weights_entry(name: str, request: ModelRequest) -> Any:
    """The requested member of the model's weights enum, or its default."""
    entries = torchvision.models.get_model_weights(name)
    if request.weights in ("DEFAULT", "none"):
        return entries.DEFAULT
    member = request.weights.removeprefix(f"{entries.__name__}.")
    if member not in entries.__members__:
        raise ConfigurationError(
            f"no weights {request.weights!r} for {name!r}: neither a file nor one of "
            f"{', '.join([*entries.__members__, 'none'])}"
        )
    return entries[member]


def build_timm(request: ModelRequest) -> LoadedModel:
    """A timm model with pretrained or random weights, and its preprocessing.

    Raises:
        MissingExtra: timm is not installed.
        UnknownModel: timm has no such model.
        ConfigurationError: it does not take images, or rejects the arguments.
        DownloadError: it has no pretrained weights, or they could not be downloaded or loaded.
    """
    call = request.call
    timm = optional("timm", extra="timm", why=f"the model {call.name!r}")
    name = call.name.removeprefix("timm:")
    known = [*timm.list_models(), *timm.list_models(include_tags=True)]
    if name not in known:
        raise UnknownModel(_no_such(call.name, [f"timm:{one}" for one in known]))
    if request.fetches:
        go_offline_if_unreachable()
    with building(request):
        model = timm.create_model(name, pretrained=request.fetches, **call.kwargs)
    config = importlib.import_module("timm.data").resolve_model_data_config(model)
    channels, *side = config["input_size"]
    size = call.kwargs.get("img_size", side)
    sides = [size, size] if isinstance(size, int) else list(size)
    channels = call.kwargs.get("in_chans", channels)
    preprocessing = from_timm({**config, "input_size": (channels, *sides)})
    return LoadedModel(model, request.spec, preprocessing)


def go_offline_if_unreachable() -> None:
    """Make huggingface_hub use its cache, in this process, if the hub does not answer in seconds.

    By default it requests every file six times, 45 s in total, before it uses the cache.
    """
    constants: Any = importlib.import_module("huggingface_hub.constants")
    session: Any = importlib.import_module("huggingface_hub").get_session()
    try:
        answers = session.head(constants.ENDPOINT, timeout=_TIMEOUT / 4).status_code < 500
    except Exception:  # of httpx or requests: the hub's library has used both
        answers = False
    constants.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE or not answers


def _no_such(spec: str, known: Iterable[str]) -> str:
    if Path(spec).is_file():
        return (
            f"{spec!r} is a file; name the network as --model, such as nets:Net for the class Net "
            "in nets.py, and give a file of weights as --checkpoint"
        )
    return (
        f"no model {spec!r}{closest(spec, known)}; also accepted: timm:NAME, hf:NAME, a folder of "
        "save_pretrained and package.module:callable"
    )


@contextlib.contextmanager
def building(
    request: ModelRequest,
    cached: Path | None = None,
    *,
    failed: type[FmapboardError] = DownloadError,
) -> Iterator[None]:
    """Run a library's code that builds a model; its errors become one line.

    A download fails after some time without an answer. What the library prints goes to stderr.

    Args:
        request: The model.
        cached: The file that torchvision caches the weights in; named in the error if it exists.
        failed: Raised if the weights cannot be downloaded or loaded.

    Raises:
        ConfigurationError: the library rejects the name or the arguments.
        FmapboardError: of type ``failed``, for all other errors of the library.
    """
    call, before = request.call, socket.getdefaulttimeout()
    socket.setdefaulttimeout(_TIMEOUT)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except FmapboardError:
        raise
    except Exception as error:
        given = ", ".join(f"{name}={value!r}" for name, value in call.kwargs.items())
        said = f"{call.name!r} with {given}" if given else repr(call.name)
        advice = "; use --weights FILE or --checkpoint FILE for local weights, or --weights none "
        advice = f"{advice}for random ones" * request.fetches
        rejected = isinstance(error, (TypeError, ValueError, AssertionError, ImportError))
        if rejected or "mismatch" in str(error):
            raise ConfigurationError(f"cannot build {said}: {one_line(error)}{advice}") from error
        if cached is not None and cached.exists():
            advice = f"{advice}; delete {str(cached)!r} to download it again"
        raise failed(f"could not load the weights of {said} ({one_line(error)}){advice}") from error
    finally:
        socket.setdefaulttimeout(before)
