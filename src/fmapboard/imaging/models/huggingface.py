"""Build models with Hugging Face transformers, from the hub or from a folder."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from fmapboard.errors import CheckpointError, ConfigurationError, DownloadError, closest, optional
from fmapboard.imaging.models.checkpoints import LoadReport
from fmapboard.imaging.models.preprocessing import assumed, from_huggingface
from fmapboard.imaging.models.pretrained import building, go_offline_if_unreachable
from fmapboard.imaging.models.request import LoadedModel, ModelRequest

_NO_CODE = {"trust_remote_code": False}
"""Without it, transformers asks on the terminal whether to run the code, and waits for 15 s."""


def build_huggingface(request: ModelRequest) -> LoadedModel:
    """Build a model of transformers from a name on the hub or a folder of ``save_pretrained``.

    The class is the one that was saved, with its head, if it is a class of transformers, otherwise
    that of ``AutoModel``. Code in the model's repository is not run (``trust_remote_code`` stays
    off).

    Args:
        request: Its spec is ``hf:NAME``, ``hf:FOLDER`` or a folder.

    Raises:
        MissingExtra: transformers is not installed.
        ConfigurationError: the model does not take images, or needs code from its repository.
        DownloadError: the hub has no such model, or it could not be downloaded.
        CheckpointError: the folder cannot be loaded.
    """
    spec = request.call.name
    transformers = optional("transformers", extra="transformers", why=repr(spec))
    name = spec.removeprefix("hf:")
    folder = Path(name).expanduser()
    failed = CheckpointError if folder.is_dir() else DownloadError
    name = str(folder) if folder.is_dir() else name
    if not folder.is_dir():
        go_offline_if_unreachable()
    transformers.utils.logging.set_verbosity_error()  # the report has what matters
    transformers.utils.logging.disable_progress_bar()
    with building(request, failed=failed):
        model, report = _build(transformers, name, request)
        processor = _processor(transformers, name)
    if "pixel_values" not in inspect.signature(model.forward).parameters:
        raise ConfigurationError(
            f"{spec!r} ({type(model).__name__}) takes {model.main_input_name}, not images; "
            "if part of it takes images, name the class of that part: "
            f'--model "transformers:CLASS.from_pretrained({name!r})"'
        )
    if processor is None or not processor.get("image_mean"):
        recipe = assumed(model, has_inputs=bool(request.inputs))
    else:
        recipe = from_huggingface(processor, getattr(model.config, "num_channels", 3))
    return LoadedModel(model, request.spec, recipe, report, labels_of(model))


def labels_of(model: nn.Module) -> Sequence[str]:
    """The classes that the configuration of a model of transformers names; empty for others."""
    labels = getattr(getattr(model, "config", None), "id2label", None)
    if not isinstance(labels, Mapping):
        return ()
    return [str(labels.get(number, "")) for number in range(len(labels))]


def _build(
    transformers: ModuleType, name: str, request: ModelRequest
) -> tuple[nn.Module, LoadReport | None]:
    given = request.call.kwargs
    config = transformers.AutoConfig.from_pretrained(name, **{**given, **_NO_CODE})
    for argument in given:
        if not hasattr(config, argument):
            near = closest(argument, config.to_dict())
            raise ConfigurationError(
                f"--model-arg {argument}: {type(config).__name__} has no such attribute{near}"
            )
    # The class that `save_pretrained` recorded, if it is a model of transformers.
    names = getattr(config, "architectures", None) or ()
    saved: Any = next((getattr(transformers, name, None) for name in names), None)
    if not (isinstance(saved, type) and issubclass(saved, transformers.PreTrainedModel)):
        saved = None
    if not request.fetches:
        if saved is not None:
            return saved(config), None
        return transformers.AutoModel.from_config(config, **_NO_CODE), None
    built = saved or transformers.AutoModel
    model, info = built.from_pretrained(name, config=config, output_loading_info=True, **_NO_CODE)
    missing, unexpected = tuple(info["missing_keys"]), tuple(info["unexpected_keys"])
    matched = len(model.state_dict()) - len(missing)
    return model, LoadReport(missing, unexpected, matched)


def _processor(transformers: ModuleType, name: str) -> dict[str, Any] | None:
    """The settings of the model's image processor, or None if it cannot be loaded."""
    try:
        return dict(transformers.AutoImageProcessor.from_pretrained(name, **_NO_CODE).to_dict())
    except Exception:  # there is none, or its library is missing: ImageNet's values are assumed
        return None
