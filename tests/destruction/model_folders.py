"""Folders of models with code in them, for ``visualize``: none of it may run."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from attempts import Tried, command, in_process, judged
from PIL import Image

_RAN = "ran"
"""Name of the file that code in a folder writes."""
_ANSWER = b"y\n" * 9
"""What somebody types who has not read the question."""
_CONFIG = {
    "model_type": "resnet", "architectures": ["ResNetForImageClassification"], "num_channels": 3,
    "embedding_size": 8, "hidden_sizes": [8, 8], "depths": [1, 1], "hidden_act": "relu",
}  # fmt: skip
_OWN = {
    "AutoConfig": "evil.Config", "AutoModel": "evil.Model",
    "AutoModelForImageClassification": "evil.Model", "AutoImageProcessor": "evil.Processor",
}  # fmt: skip
_OWN_CODE = {**_CONFIG, "auto_map": _OWN}
_CODE = """
from pathlib import Path
Path({ran!r}).touch()
from transformers import PretrainedConfig, ResNetModel
from transformers.image_processing_utils import BaseImageProcessor
class Config(PretrainedConfig):
    model_type = "evil"
class Model(ResNetModel):
    pass
class Processor(BaseImageProcessor):
    pass
"""


def attempts_on_models(work: Path) -> Iterator[Tried]:
    """Draw with each model, with and without the answer yes to every question."""
    image = work / "image.png"
    Image.effect_noise((32, 32), 60).convert("RGB").save(image)
    for name, (make, codes) in _folders().items():
        for typed in (b"", _ANSWER):
            folder, ran = work / f"net-{len(list(work.iterdir()))}", work / _RAN
            folder.mkdir()
            make(folder, ran)
            words = ["visualize", image, "--model", f"hf:{folder}", "--input-size", "32"]
            words += ["--logdir", work / "out"]
            ended = in_process(command(*words), typed=typed, limit=180.0)
            failure = judged(ended, codes, names="" if 0 in codes else folder.name)
            if ran.exists():
                ran.unlink()
                failure = f"its code ran; {failure}"
            yield Tried(f"{name}{', answered yes' if typed else ''}", failure)


def _folders() -> dict[str, tuple[Callable[[Path, Path], None], set[int]]]:
    """What makes each folder, and the right exit statuses; those with usable weights can be 0."""
    return {
        "a model type of its own": (
            partial(_with_code, {**_OWN_CODE, "model_type": "evil"}), {1, 2}
        ),
        "a class of its own for a known type": (
            partial(_with_code, {**_OWN_CODE, "architectures": ["Model"]}), {0, 1, 2}
        ),
        "a known class, and code": (partial(_with_code, _OWN_CODE), {0, 1, 2}),
        "a known class, code, and the key trust_remote_code": (
            partial(_with_code, {**_OWN_CODE, "trust_remote_code": True}), {0, 1, 2}
        ),
        "code of another repository": (
            partial(
                _with_code,
                {**_CONFIG, "model_type": "evil", "auto_map": {"AutoConfig": "a/b--evil.Config"}},
            ),
            {1, 2},
        ),
        "an image processor of its own": (_with_processor, {0}),
        "weights that run code when they are unpickled": (_with_pickle, {1, 2}),
    }  # fmt: skip


def _with_code(config: dict[str, Any], folder: Path, ran: Path) -> None:
    _save(folder)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "evil.py").write_text(_CODE.format(ran=str(ran)))


def _with_processor(folder: Path, ran: Path) -> None:
    _with_code(_CONFIG, folder, ran)
    processor = {"image_processor_type": "Processor", "auto_map": _OWN}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))


class _Runs:
    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self._path,)


def _with_pickle(folder: Path, ran: Path) -> None:
    _save(folder)
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"weight": _Runs(ran)}))


def _save(folder: Path) -> None:
    """A small classifier, written in another process, as transformers starts threads."""

    def work() -> None:
        import transformers

        config = transformers.ResNetConfig(**_CONFIG)
        transformers.ResNetForImageClassification(config).save_pretrained(folder)

    ended = in_process(work, limit=300.0)
    if ended.code:
        raise RuntimeError(ended.errors)
