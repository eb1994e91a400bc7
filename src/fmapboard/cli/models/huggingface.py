"""Build models with Hugging Face transformers, from the hub or from a folder."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from fmapboard.cli.models.checkpoints import LoadReport
from fmapboard.cli.models.hub_errors import folder_errors, hub_errors
from fmapboard.cli.models.preprocessing import Preprocessing, assumed, from_huggingface
from fmapboard.cli.models.pretrained import WHOLE_SIDE, Request, hub_offline_if_unreachable
from fmapboard.cli.models.saved_folders import is_path, saved_folder
from fmapboard.cli.models.slow_loading import loading
from fmapboard.errors import ConfigurationError, UnknownModel, closest, optional

_NO_CODE = {"trust_remote_code": False}
"""Without it, transformers asks on the terminal whether to run the code, and waits for 15 s."""


def build_huggingface(request: Request) -> tuple[nn.Module, Preprocessing, LoadReport | None]:
    """Build a model of transformers from a name on the hub or a folder of ``save_pretrained``.

    The class is the one that was saved, with its head, if it is a class of transformers, otherwise
    that of ``AutoModel``. Code in the model's repository is not run (``trust_remote_code`` stays
    off).

    Args:
        request: Its spec is ``hf:NAME``, ``hf:FOLDER`` or a folder.

    Returns:
        The model, its preprocessing, and a report on the weights, None for random ones.

    Raises:
        MissingExtra: transformers is not installed.
        UnknownModel: there is no such folder, or no such model on the hub.
        ConfigurationError: the model does not take images, or needs code from its repository.
        DownloadError: the model is not in the cache, and could not be downloaded.
        CheckpointError: the folder cannot be loaded.
    """
    name = request.spec.removeprefix("hf:")
    if not name:
        raise UnknownModel(f"{request.spec!r}: expected hf:NAME, such as hf:microsoft/resnet-50")
    is_folder = is_path(name) or Path(name).is_dir()
    if is_folder:
        name = saved_folder(name)
    transformers = optional("transformers", extra="transformers", why=f"{request.spec!r}")
    reading = folder_errors(request) if is_folder else hub_errors(request)
    reach = loading(Path(name)) if is_folder else hub_offline_if_unreachable()
    with reach, reading, _quiet(transformers):
        model, report = _build(transformers, name, request)
        processor = _processor(transformers, name)
    if "pixel_values" not in inspect.signature(model.forward).parameters:
        raise ConfigurationError(
            f"{request.spec!r} ({type(model).__name__}) takes {model.main_input_name}, not images; "
            "if part of it takes images, name the class of that part: "
            f'--model "transformers:CLASS.from_pretrained({name!r})"'
        )
    if processor is None or not processor.get("image_mean"):
        return model, assumed(model, has_inputs=request.has_inputs), report
    source = "the model's image processor"
    channels = getattr(model.config, "num_channels", 3)
    recipe = from_huggingface(processor, source, whole=WHOLE_SIDE, channels=channels)
    return model, recipe, report


def _build(
    transformers: ModuleType, name: str, request: Request
) -> tuple[nn.Module, LoadReport | None]:
    config = transformers.AutoConfig.from_pretrained(name, **{**request.arguments, **_NO_CODE})
    for argument in request.arguments:
        if not hasattr(config, argument):
            near = closest(argument, config.to_dict())
            raise ConfigurationError(
                f"--model-arg {argument}: {type(config).__name__} has no such attribute{near}"
            )
    saved = _saved_class(transformers, config)
    if not request.fetches:
        if saved is not None:
            return saved(config), None
        return transformers.AutoModel.from_config(config, **_NO_CODE), None
    built = saved or transformers.AutoModel
    model, info = built.from_pretrained(name, config=config, output_loading_info=True, **_NO_CODE)
    missing, unexpected = tuple(info["missing_keys"]), tuple(info["unexpected_keys"])
    matched = len(model.state_dict()) - len(missing)
    return model, LoadReport(missing, unexpected, matched)


def _saved_class(transformers: ModuleType, config: Any) -> Any:
    """The class that ``save_pretrained`` recorded; None unless it is a model of transformers."""
    names = getattr(config, "architectures", None) or ()
    found = next((getattr(transformers, name, None) for name in names), None)
    is_model = isinstance(found, type) and issubclass(found, transformers.PreTrainedModel)
    return found if is_model else None


def _processor(transformers: ModuleType, name: str) -> dict[str, Any] | None:
    """The settings of the model's image processor, or None if it cannot be loaded."""
    try:
        processor = transformers.AutoImageProcessor.from_pretrained(name, **_NO_CODE)
        found: dict[str, Any] = processor.to_dict()
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
