"""Build models with Hugging Face transformers, from the hub or from a folder."""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from fmapboard.errors import (
    CheckpointError,
    ConfigurationError,
    DownloadError,
    FmapboardError,
    UnknownModel,
    closest,
    optional,
)
from fmapboard.imaging.messages import few, one_line
from fmapboard.imaging.models.checkpoints import LoadReport
from fmapboard.imaging.models.preprocessing import assumed, from_huggingface
from fmapboard.imaging.models.pretrained import fetching, hub_offline_if_unreachable
from fmapboard.imaging.models.request import LoadedModel, ModelRequest, labels_of

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
        UnknownModel: there is no such folder, or no such model on the hub.
        ConfigurationError: the model does not take images, or needs code from its repository.
        DownloadError: the model is not in the cache, and could not be downloaded.
        CheckpointError: the folder cannot be loaded.
    """
    spec = request.call.name
    name = spec.removeprefix("hf:")
    if not name:
        raise UnknownModel(f"{spec!r}: expected hf:NAME, such as hf:microsoft/resnet-50")
    is_folder = is_path(name) or Path(name).is_dir()
    if is_folder:
        name = saved_folder(name)
    transformers = optional("transformers", extra="transformers", why=repr(spec))
    reading = folder_errors(request) if is_folder else hub_errors(request)
    reach = contextlib.nullcontext() if is_folder else hub_offline_if_unreachable()
    with reach, reading, _quiet(transformers):
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


_CONFIG = "config.json"


def is_path(name: str) -> bool:
    """True if a model's name is written as a path, or is that of an existing file or folder.

    A name on the hub contains at most one slash, and a folder of that name goes first.

    >>> [is_path(name) for name in ("./net", "~/nets/mine", "resnet50", "microsoft/resnet-50")]
    [True, True, False, False]
    """
    if name.startswith((".", os.sep, "~")) or name.endswith(os.sep) or name.count(os.sep) > 1:
        return True
    return Path(name).is_file() or (os.sep in name and Path(name).is_dir())


def is_saved_model(name: str) -> bool:
    """True if a name is that of a folder that ``save_pretrained`` has written."""
    return Path(name, _CONFIG).is_file()


def saved_folder(name: str) -> str:
    """The folder of a model whose name is a path.

    Raises:
        UnknownModel: there is no such folder, or no configuration in it; the message names folders
            in it that have one.
    """
    folder = Path(name).expanduser()
    if folder.is_file() and folder.suffix == ".py":
        raise UnknownModel(_of_python(name, folder))
    if folder.is_file():
        raise UnknownModel(
            f"{name!r} is a file; give the network as --model NAME and the file as --checkpoint"
        )
    if not folder.is_dir():
        raise UnknownModel(f"no such folder: {name!r}")
    if is_saved_model(str(folder)):
        return str(folder)
    inside = sorted(str(path.parent) for path in folder.glob(f"*/{_CONFIG}"))
    advice = f"; did you mean {few(inside)}?" if inside else ""
    raise UnknownModel(
        f"no {_CONFIG} in {name!r}: expected a folder written by save_pretrained (for weights "
        f"alone: --model NAME --checkpoint FILE){advice}"
    )


def _of_python(name: str, file: Path) -> str:
    """The message about a Python file where a network's name is expected."""
    where = "" if file.parent == Path() else f", in the folder {str(file.parent)!r}"
    try:
        nodes = ast.parse(file.read_bytes()).body
    except (SyntaxError, ValueError):
        nodes = []
    classes = [node.name for node in nodes if isinstance(node, ast.ClassDef)]
    functions = [node.name for node in nodes if isinstance(node, ast.FunctionDef)]
    known = [f"{word} {few(names, 6)}" for word, names in
             (("classes", classes), ("functions", functions)) if names]  # fmt: skip
    first = [*classes, *functions, "Net"][0]
    listed = f"; its {', its '.join(known)}" if known else ""
    return (
        f"{name!r} is a Python file: name the network in it, such as --model {file.stem}:{first}"
        f"{where}{listed}"
    )


@contextlib.contextmanager
def folder_errors(request: ModelRequest) -> Iterator[None]:
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
            f"the folder {request.call.name!r} cannot be loaded ({one_line(error)}){advice}"
        ) from error


@contextlib.contextmanager
def hub_errors(request: ModelRequest) -> Iterator[None]:
    """Turn errors of loading a model of the hub into one line.

    Raises:
        ConfigurationError: the model cannot be built, or needs code from its repository.
        UnknownModel: the hub has no such model, or requires a login for it.
        DownloadError: the model is not in the cache, and could not be downloaded.
    """
    constants: Any = importlib.import_module("huggingface_hub.constants")
    spec = request.call.name
    name = spec.removeprefix("hf:")
    folder = "a folder written by save_pretrained: --model FOLDER"
    try:
        with fetching(spec), _plain_errors(request):
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
def _plain_errors(request: ModelRequest) -> Iterator[None]:
    call = request.call
    try:
        yield
    except FmapboardError:
        raise
    except ImportError as error:  # of a library that this kind of model needs
        raise ConfigurationError(f"{call.name!r} cannot be built: {one_line(error)}") from error
    except (ValueError, TypeError) as error:
        if "trust_remote_code" in str(error):
            raise ConfigurationError(
                f"{call.name!r} needs code from its repository, which is not run; "
                "build it in a module of your own: --model package.module:callable"
            ) from error
        raise ConfigurationError(f"{call.name!r} cannot be built: {one_line(error)}") from error
    except RuntimeError as error:
        if "mismatch" not in str(error) or not call.kwargs:
            raise
        given = ", ".join(f"{name}={value!r}" for name, value in call.kwargs.items())
        raise ConfigurationError(
            f"the weights of {call.name!r} do not fit with {given}; try --weights none"
        ) from error
