"""Errors of loading a model with transformers, from a folder or the hub, in one line each."""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Iterator
from typing import Any

from fmapboard.cli.models.messages import one_line
from fmapboard.cli.models.pretrained import Request, fetching
from fmapboard.errors import (
    CheckpointError,
    ConfigurationError,
    DownloadError,
    FmapboardError,
    UnknownModel,
)


@contextlib.contextmanager
def folder_errors(request: Request) -> Iterator[None]:
    """Turn errors of loading a folder into one line.

    Raises:
        ConfigurationError: as for ``hub_errors``.
        CheckpointError: a file in the folder is missing, damaged, or does not fit the model.
    """
    try:
        with _plain_errors(request):
            yield
    except FmapboardError:
        raise
    except Exception as error:  # OSError, SafetensorError, RuntimeError and others
        advice = "; --weights none needs only the configuration" if request.fetches else ""
        raise CheckpointError(
            f"the folder {request.spec!r} cannot be loaded ({one_line(error)}){advice}"
        ) from error


@contextlib.contextmanager
def hub_errors(request: Request) -> Iterator[None]:
    """Turn errors of loading a model of the hub into one line.

    Raises:
        ConfigurationError: the model cannot be built, or needs code from its repository.
        UnknownModel: the hub has no such model, or requires a login for it.
        DownloadError: the model is not in the cache, and could not be downloaded.
    """
    constants: Any = importlib.import_module("huggingface_hub.constants")
    name = request.spec.removeprefix("hf:")
    folder = "a folder written by save_pretrained: --model FOLDER"
    try:
        with fetching(request.spec), _plain_errors(request):
            yield
    except DownloadError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and constants.HF_HUB_OFFLINE:
            said = os.environ.get("HF_HUB_OFFLINE") or os.environ.get("TRANSFORMERS_OFFLINE")
            why = "HF_HUB_OFFLINE is set" if said else f"{constants.ENDPOINT} does not answer"
            raise DownloadError(
                f"offline: {why}, and {name!r} is neither a folder here nor complete in the cache "
                f"{str(constants.HF_HUB_CACHE)!r}; connect once to download it, or name {folder}"
            ) from cause
        if isinstance(cause, OSError) and "valid model identifier" in str(cause):
            raise UnknownModel(
                f"the hub has no model {name!r}, or requires a login for it (hf auth login), and "
                f"there is no such folder; expected the name of a model, or {folder}"
            ) from cause
        raise DownloadError(
            f"could not download {name!r} ({one_line(cause or error)}); try again, or name {folder}"
        ) from cause


@contextlib.contextmanager
def _plain_errors(request: Request) -> Iterator[None]:
    try:
        yield
    except FmapboardError:
        raise
    except ImportError as error:  # of a library that this kind of model needs
        raise ConfigurationError(f"{request.spec!r} cannot be built: {one_line(error)}") from error
    except (ValueError, TypeError) as error:
        if "trust_remote_code" in str(error):
            raise ConfigurationError(
                f"{request.spec!r} needs code from its repository, which is not run; "
                "build it in a module of your own: --model package.module:callable"
            ) from error
        raise ConfigurationError(f"{request.spec!r} cannot be built: {one_line(error)}") from error
    except RuntimeError as error:
        if "mismatch" not in str(error) or not request.arguments:
            raise
        given = ", ".join(f"{name}={value!r}" for name, value in request.arguments.items())
        raise ConfigurationError(
            f"the weights of {request.spec!r} do not fit with {given}; try --weights none"
        ) from error
