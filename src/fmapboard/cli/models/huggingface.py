"""Build models with Hugging Face transformers, from the hub or from a folder."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from fmapboard.cli.models.checkpoints import LoadReport
from fmapboard.cli.models.messages import one_line
from fmapboard.cli.models.preprocessing import Preprocessing, assumed, from_huggingface
from fmapboard.cli.models.pretrained import (
    WHOLE_SIDE,
    Request,
    fetching,
    hub_offline_if_unreachable,
)
from fmapboard.errors import ConfigurationError, UnknownModel, closest, optional


def build_huggingface(request: Request) -> tuple[nn.Module, Preprocessing, LoadReport | None]:
    """Build a model with ``AutoModel`` from a name on the hub or a folder.

    Code in the model's repository is not run (``trust_remote_code`` stays off).

    Returns:
        The model, its preprocessing, and a report on the weights, None for random ones.

    Raises:
        MissingExtra: transformers is not installed.
        UnknownModel: there is no such folder.
        ConfigurationError: the model does not take images, or needs code from its repository.
        DownloadError: the configuration or the weights could not be fetched or read.
    """
    transformers = optional("transformers", extra="transformers", why=f"{request.spec!r}")
    name = request.spec.removeprefix("hf:")
    if name.startswith((".", "/", "~")):
        name = str(Path(name).expanduser())
        if not Path(name).is_dir():
            raise UnknownModel(f"no such folder: {name!r} (for {request.spec!r})")
    reach = contextlib.nullcontext() if Path(name).is_dir() else hub_offline_if_unreachable()
    with fetching(request.spec), reach, _quiet(transformers), _plain_errors(request):
        model, report = _build(transformers, name, request)
        processor = _processor(transformers, name)
    taken = getattr(model, "main_input_name", "pixel_values")
    if taken != "pixel_values":
        raise ConfigurationError(
            f"{request.spec!r} ({type(model).__name__}) takes {taken}, not images; if part of it "
            "takes images, name its class: --model transformers:CLASS.from_pretrained "
            f"--model-arg pretrained_model_name_or_path={name}"
        )
    if processor is None or not processor.get("image_mean"):
        return model, assumed(model), report
    source = "the model's image processor"
    return model, from_huggingface(processor, source, whole=WHOLE_SIDE), report


def _build(
    transformers: ModuleType, name: str, request: Request
) -> tuple[nn.Module, LoadReport | None]:
    config = transformers.AutoConfig.from_pretrained(name, **request.arguments)
    for argument in request.arguments:
        if not hasattr(config, argument):
            near = closest(argument, config.to_dict())
            raise ConfigurationError(
                f"--model-arg {argument}: {type(config).__name__} has no such attribute; "
                f"closest: {near}"
            )
    if not request.fetches:
        model: nn.Module = transformers.AutoModel.from_config(config)
        return model, None
    model, info = transformers.AutoModel.from_pretrained(
        name, config=config, output_loading_info=True
    )
    missing, unexpected = tuple(info["missing_keys"]), tuple(info["unexpected_keys"])
    matched = len(model.state_dict()) - len(missing)
    return model, LoadReport(missing, unexpected, matched)


def _processor(transformers: ModuleType, name: str) -> dict[str, Any] | None:
    """The settings of the model's image processor, or None if it cannot be loaded."""
    try:
        found: dict[str, Any] = transformers.AutoImageProcessor.from_pretrained(name).to_dict()
    except Exception:  # there is none, or its library is missing: ImageNet's values are assumed
        return None
    return found


@contextlib.contextmanager
def _quiet(transformers: ModuleType) -> Iterator[None]:
    """Silence the library's log and progress bars; the report has what matters."""
    logging: Any = transformers.utils.logging
    level = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        logging.enable_progress_bar()


@contextlib.contextmanager
def _plain_errors(request: Request) -> Iterator[None]:
    try:
        yield
    except ConfigurationError:
        raise
    except (ValueError, TypeError) as error:
        if "trust_remote_code" in str(error):
            raise ConfigurationError(
                f"{request.spec!r} needs code from its repository, which is not run; "
                "build it in a module of your own: --model package.module:callable"
            ) from error
        raise ConfigurationError(f"{request.spec!r} cannot be built: {one_line(error)}") from error
