"""Load the model that a command-line argument names, with its weights and preprocessing."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch.hub
import torchvision.models
from torch import nn

from fmapboard.demo.network import CLASSES, MEAN, STD, DemoNetwork, load_trained
from fmapboard.errors import (
    CheckpointError,
    ConfigurationError,
    DownloadError,
    FmapboardError,
    UnknownModel,
    closest,
    first_line,
    one_line,
    optional,
)
from fmapboard.imaging.models.checkpoints import LoadReport, load_checkpoint
from fmapboard.imaging.models.preprocessing import WHOLE_SIDE, Preprocessing
from fmapboard.imaging.models.request import LoadedModel, ModelRequest, call_factory

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
    preprocessing = Preprocessing.from_preset(entry.transforms(), source)
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
        raise UnknownModel(_no_such(call.name, [f"timm:{model}" for model in known]))
    if request.fetches:
        go_offline_if_unreachable()
    with building(request):
        model = timm.create_model(name, pretrained=request.fetches, **call.kwargs)
    config = importlib.import_module("timm.data").resolve_model_data_config(model)
    channels, *side = config["input_size"]
    size = call.kwargs.get("img_size", side)
    sides = [size, size] if isinstance(size, int) else list(size)
    channels = call.kwargs.get("in_chans", channels)
    preprocessing = Preprocessing.from_timm({**config, "input_size": (channels, *sides)})
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
    call = request.call
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(_TIMEOUT)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except FmapboardError:
        raise
    except Exception as error:
        given = ", ".join(f"{name}={value!r}" for name, value in call.kwargs.items())
        model = f"{call.name!r} with {given}" if given else repr(call.name)
        advice = ""
        if request.fetches:
            advice = (
                "; use --weights FILE or --checkpoint FILE for local weights, or --weights none "
                "for random ones"
            )
        reason = one_line(error)
        is_rejected = isinstance(error, (TypeError, ValueError, AssertionError, ImportError))
        if is_rejected or "mismatch" in str(error):
            raise ConfigurationError(f"cannot build {model}: {reason}{advice}") from error
        if cached is not None and cached.exists():
            advice += f"; delete {str(cached)!r} to download it again"
        raise failed(f"could not load the weights of {model} ({reason}){advice}") from error
    finally:
        socket.setdefaulttimeout(before)


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
        recipe = Preprocessing.assumed(model, has_inputs=bool(request.inputs))
    else:
        recipe = Preprocessing.from_huggingface(processor, getattr(model.config, "num_channels", 3))
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
                f"--model-arg {argument}: {type(config).__name__} has no such attribute"
                f"{near or '; leave it out'}"
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
    missing = tuple(info["missing_keys"])
    unexpected = tuple(info["unexpected_keys"])
    matched = len(model.state_dict()) - len(missing)
    return model, LoadReport(missing, unexpected, matched)


def _processor(transformers: ModuleType, name: str) -> dict[str, Any] | None:
    """The settings of the model's image processor, or None if it cannot be loaded."""
    try:
        return dict(transformers.AutoImageProcessor.from_pretrained(name, **_NO_CODE).to_dict())
    except Exception:  # there is none, or its library is missing: ImageNet's values are assumed
        return None


_DEMO_SIDE = 128
"""Side of the demo network's input, px. It is trained on smaller crops but takes any size."""


def load_model(request: ModelRequest) -> LoadedModel:
    """Load a model, in eval mode, with its preprocessing.

    Raises:
        UnknownModel: no model has that name.
        ConfigurationError: the model cannot be built, or does not take images; or options exclude
            each other.
        DownloadError: the pretrained weights could not be downloaded or loaded.
        CheckpointError: the file or folder cannot be read, or does not fit the model.
        MissingExtra: timm or transformers is needed and not installed.
    """
    if request.input_size is not None and (request.resize, request.crop) != (None, None):
        raise ConfigurationError(
            "--input-size excludes --resize and --crop: give it alone, or those without it"
        )
    request = _with_weights_as_checkpoint(request)
    file = request.checkpoint
    if request.checkpoint_key is not None and file is None:
        raise ConfigurationError("--checkpoint-key selects part of a file; give --checkpoint FILE")
    built = _built(request)
    report = built.report
    if file is not None:
        report = load_checkpoint(built.model, file, key=request.checkpoint_key)
    preprocessing = built.preprocessing
    if request.input_size is not None:
        preprocessing = preprocessing.with_input_size(request.input_size)
    preprocessing = preprocessing.changed(
        mean=request.mean, std=request.std, resize=request.resize, crop=request.crop
    )
    classes = built.classes if request.fetches else ()
    return LoadedModel(built.model.eval(), request.spec, preprocessing, report, classes)


def _with_weights_as_checkpoint(request: ModelRequest) -> ModelRequest:
    """The request with a file of ``weights`` as its checkpoint."""
    weights = {"default": "DEFAULT", "none": "none"}.get(request.weights.lower(), request.weights)
    if weights in ("DEFAULT", "none") or not Path(weights).is_file():
        return replace(request, weights=weights)
    if request.checkpoint is not None:
        raise ConfigurationError(
            f"two weights files: {weights!r} and {str(request.checkpoint)!r}; give only one"
        )
    return replace(request, weights="DEFAULT", checkpoint=Path(weights))


def _built(request: ModelRequest) -> LoadedModel:
    """Build the model, with its pretrained weights if it has any and they are asked for."""
    name = request.call.name
    is_bare = ":" not in name and name != "demo"
    is_network = is_bare and name.lower() in torchvision_names()
    is_folder = is_bare and not is_network and Path(name).expanduser().is_dir()
    if is_bare and not is_folder:
        return build_torchvision(request)
    if request.weights not in ("DEFAULT", "none"):
        raise ConfigurationError(
            f"no weights {request.weights!r} for {name!r}: neither a file nor one of DEFAULT, none"
        )
    if name == "demo":
        if request.call.kwargs:
            raise ConfigurationError("the demo network takes no --model-arg; leave it out")
        model = DemoNetwork() if request.weights == "none" else load_trained()
        return LoadedModel(model, request.spec, demo_preprocessing(), classes=CLASSES)
    if name.startswith("timm:"):
        return build_timm(request)
    if name.startswith("hf:") or is_folder:
        return build_huggingface(request)
    own = call_factory(request.call)
    recipe = Preprocessing.assumed(own, has_inputs=bool(request.inputs))
    return LoadedModel(own, request.spec, recipe, classes=labels_of(own))


def demo_preprocessing() -> Preprocessing:
    """The demo network's preprocessing: mean and std of its training crops, but a larger size."""
    side = (_DEMO_SIDE, _DEMO_SIDE)
    return Preprocessing(side, _DEMO_SIDE, MEAN, STD, source="the demo network's own")


def device_named(name: str) -> torch.device:
    """The torch device with this name.

    Raises:
        ConfigurationError: it cannot be used.
    """
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ConfigurationError(
            f"--device {name!r} cannot be used: {first_line(error)}; --device cpu always can"
        ) from error
    return device
