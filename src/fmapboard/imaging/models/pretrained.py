"""Build torchvision and timm models; weights are downloaded only if the request asks for them."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import socket
import ssl
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlparse
from urllib.request import ProxyHandler, Request, build_opener, getproxies

import torch.hub
import torchvision.models
from torch import nn

from fmapboard.errors import (
    ConfigurationError,
    DownloadError,
    UnknownModel,
    closest,
    optional,
)
from fmapboard.imaging.messages import one_line
from fmapboard.imaging.models.preprocessing import WHOLE_SIDE, from_preset, from_timm
from fmapboard.imaging.models.request import LoadedModel, ModelRequest

_TIMEOUT = 20.0
"""Seconds without an answer after which a download fails."""


def build_torchvision(request: ModelRequest) -> LoadedModel:
    """A torchvision model with the requested weights, and its preprocessing.

    Weights from a file are not loaded here. The preprocessing is that of the named weights, or of
    the default ones, even if those are not loaded. A detector resizes its input itself; the shorter
    side is set to ``input_size``, by default 320 px.

    Raises:
        UnknownModel: torchvision has no such model.
        ConfigurationError: it has no such weights, is quantized, does not take single images, or
            rejects the arguments.
        DownloadError: the weights could not be downloaded or loaded.
    """
    call = request.call
    name = call.name.lower()
    if name not in torchvision.models.list_models():
        raise UnknownModel(_no_such(call.name, [*torchvision.models.list_models(), "demo"]))
    if name.startswith("quantized_"):
        raise ConfigurationError(
            f"{name!r} is a quantized model, whose 8-bit integer feature maps are not supported; "
            f"use {name.removeprefix('quantized_')!r}"
        )
    entry = _weights_entry(name, request)
    preset = entry.transforms()
    if type(preset).__name__ in ("VideoClassification", "OpticalFlow"):
        raise ConfigurationError(f"{name!r} takes clips or pairs of frames, not single images")
    source = repr(entry) if request.fetches else f"{entry!r} (its preprocessing only)"
    model = _fetched(name, entry, request) if request.fetches else _bare(name, request)
    _bound_detector(model, request.input_size or WHOLE_SIDE)
    classes = entry.meta.get("categories", ()) if request.fetches else ()
    return LoadedModel(model, request.spec, from_preset(preset, source), classes=classes)


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


def _fetched(name: str, entry: Any, request: ModelRequest) -> nn.Module:
    cached = Path(torch.hub.get_dir(), "checkpoints", Path(urlparse(entry.url).path).name)
    with fetching(name, cached), _accepting(request):
        model: nn.Module = torchvision.models.get_model(
            name, weights=entry, progress=sys.stderr.isatty(), **request.call.kwargs
        )
    return model


def _bare(name: str, request: ModelRequest) -> nn.Module:
    """A torchvision model with random weights; nothing is downloaded."""
    options: dict[str, Any] = {"weights": None}
    builder = torchvision.models.get_model_builder(name)
    if "weights_backbone" in inspect.signature(builder).parameters:
        options["weights_backbone"] = None  # otherwise the backbone's weights are downloaded
    if name in ("googlenet", "inception_v3"):
        # `transform_input` as for pretrained weights; an explicit `init_weights` avoids a warning.
        options |= {"init_weights": request.checkpoint is None, "transform_input": True}
    with _accepting(request):
        model: nn.Module = torchvision.models.get_model(name, **{**options, **request.call.kwargs})
    return model


def _bound_detector(model: nn.Module, side: int) -> None:
    """Set the shorter side of a detector's input, which it would resize to about 800 px."""
    resizer: Any = getattr(model, "transform", None)
    if hasattr(resizer, "min_size") and not getattr(resizer, "fixed_size", None):
        resizer.min_size = (side,)


def build_timm(request: ModelRequest) -> LoadedModel:
    """A timm model with pretrained or random weights, and its preprocessing.

    Raises:
        MissingExtra: timm is not installed.
        UnknownModel: timm has no such model.
        ConfigurationError: it has no pretrained weights, does not take images, or rejects the
            arguments.
        DownloadError: the weights could not be downloaded or loaded.
    """
    call = request.call
    timm = optional("timm", extra="timm", why=f"the model {call.name!r}")
    name = call.name.removeprefix("timm:")
    known = timm.list_models()
    if name not in known and name not in (tagged := timm.list_models(include_tags=True)):
        raise UnknownModel(_no_such(call.name, [f"timm:{n}" for n in known + tagged]))
    if request.fetches and not timm.is_model_pretrained(name):
        raise ConfigurationError(
            f"timm has no pretrained weights for {name!r}; use --weights none or --checkpoint FILE"
        )
    with contextlib.ExitStack() as stack:
        if request.fetches:
            stack.enter_context(fetching(call.name))
            stack.enter_context(hub_offline_if_unreachable())
        stack.enter_context(_accepting(request))
        model = timm.create_model(name, pretrained=request.fetches, **call.kwargs)
    config = importlib.import_module("timm.data").resolve_model_data_config(model)
    channels, *side = config["input_size"]
    size = call.kwargs.get("img_size", side)
    sides = [size, size] if isinstance(size, int) else list(size)
    channels = call.kwargs.get("in_chans", channels)
    preprocessing = from_timm({**config, "input_size": (channels, *sides)})
    return LoadedModel(model, request.spec, preprocessing)


@contextlib.contextmanager
def hub_offline_if_unreachable() -> Iterator[None]:
    """Make huggingface_hub use its cache without retries if the hub does not answer.

    By default it requests every file six times, 45 s in total, before it uses the cache.
    """
    constants: Any = importlib.import_module("huggingface_hub.constants")
    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = before or not _answers(constants.ENDPOINT)
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


def _answers(url: str) -> bool:
    """True if the server of a URL answers, through the proxy that is set for it; within seconds."""
    opener = build_opener(ProxyHandler(getproxies()))
    try:
        opener.open(Request(url, method="HEAD"), timeout=_TIMEOUT / 4).close()
    except HTTPError as error:
        return error.code < 500
    except OSError as error:  # Python may lack the certificates that the hub's library has
        return isinstance(getattr(error, "reason", None), ssl.SSLCertVerificationError)
    return True


@contextlib.contextmanager
def _accepting(request: ModelRequest) -> Iterator[None]:
    """Turn a constructor's error into a `ConfigurationError` if ``--model-arg`` was given."""
    try:
        yield
    except (TypeError, ValueError, AssertionError) as error:
        call = request.call
        if not call.kwargs:
            raise
        given = ", ".join(f"{name}={value!r}" for name, value in call.kwargs.items())
        advice = "; pretrained weights may not allow it: try --weights none" * request.fetches
        raise ConfigurationError(
            f"{call.name!r} cannot be built with {given}: {one_line(error)}{advice}"
        ) from error


def _no_such(spec: str, known: Iterable[str]) -> str:
    module, dot, name = spec.rpartition(".")
    own = f"for your own code: {module}:{name}; " if dot else ""
    return (
        f"no model {spec!r}{closest(spec, known)}; {own}"
        "also accepted: timm:NAME, hf:NAME, a folder of save_pretrained and package.module:callable"
    )


@contextlib.contextmanager
def fetching(name: str, cached: Path | None = None) -> Iterator[None]:
    """Run code that may download weights, with a timeout and its output on stderr.

    Args:
        name: the model, for the error.
        cached: the file that torchvision caches the weights in; named in the error if it exists.

    Raises:
        DownloadError: the code raised an exception other than a `ConfigurationError`.
    """
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(_TIMEOUT)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except ConfigurationError:
        raise
    except Exception as error:  # OSError, RuntimeError, errors of httpx and pickle, and others
        if cached is not None and cached.exists():
            happened = f"could not load the weights of {name!r}; delete {str(cached)!r} to retry"
        else:
            happened = f"could not download the weights of {name!r}"
        raise DownloadError(
            f"{happened} ({one_line(error)}); use --weights FILE or --checkpoint FILE "
            "for local weights, or --weights none for random ones"
        ) from error
    finally:
        socket.setdefaulttimeout(before)
