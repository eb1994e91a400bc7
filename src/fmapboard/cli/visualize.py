"""``visualize``: every layer's maps of some images, for TensorBoard and as PNG files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.progress import track

from fmapboard.axes import may_hold_patches
from fmapboard.bundled import bundled
from fmapboard.cli.directories import new_directory, to_paste
from fmapboard.cli.images import find_images, read_image
from fmapboard.cli.models import LoadedModel, load_model
from fmapboard.cli.table import console, group_table, layer_table
from fmapboard.compose import Composer
from fmapboard.errors import ConfigurationError
from fmapboard.layers import Layers, kernel_groups, kernel_shape, select
from fmapboard.records import LoggedStep, Scale
from fmapboard.reduce import Reducer
from fmapboard.snapshot import snapshot
from fmapboard.writers.folder import FolderWriter, free_name
from fmapboard.writers.tensorboard import TensorBoardWriter

TABLES = 3
"""With more images than this, only the first one's table is printed."""


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for on the command line; see ``visualize --help``."""

    images: tuple[Path, ...] = ()
    spec: str = "demo"
    weights: str = "DEFAULT"
    checkpoint: Path | None = None
    logdir: Path | None = None
    out: Path | None = None
    layers: tuple[str, ...] = ()
    only_list: bool = False
    input_size: int | None = None
    samples: int | None = None
    colormap: str = "grey"
    scale: Scale = "channel"
    kernels: bool = False
    device: str = "cpu"

    @property
    def chosen(self) -> Layers:
        """The layers as `layers.select` takes them."""
        return list(self.layers) or None


def visualize_images(request: Request) -> None:
    """Do what was asked, and print what was found.

    Raises:
        FmapboardError: it cannot be done; the text is one line.
    """
    paths = find_images(request.images or [bundled("photographs") / "chelsea.jpg"])
    loaded = load_model(
        request.spec,
        weights=request.weights,
        checkpoint=request.checkpoint,
        input_size=request.input_size,
    )
    if loaded.report is not None:
        console(stderr=True).print(str(loaded.report), markup=False)
    if request.only_list:
        _print_layers(loaded, request.chosen)
        return
    _run(request, loaded, paths[: request.samples])


def _print_layers(loaded: LoadedModel, layers: Layers) -> None:
    chosen = select(loaded.model, layers)
    others = {n: type(m).__name__ for n, m in chosen.items() if kernel_shape(m) is None}
    console().print(group_table(kernel_groups(loaded.model, layers), others))


def _run(request: Request, loaded: LoadedModel, paths: list[Path]) -> None:
    select(loaded.model, request.chosen)  # fails before anything is made
    loaded.model.to(_device(request.device))
    out = console()
    out.print(f"{loaded.name}: input prepared by {loaded.preprocessing.source}", markup=False)
    logdir, folder = _places(request)
    board = None if logdir is None else TensorBoardWriter(logdir)
    steps: Iterable[tuple[Path, LoggedStep]] = zip(
        paths, _steps(request, loaded, paths), strict=True
    )
    if len(paths) > TABLES:
        progress = console(stderr=True)
        steps = track(steps, "visualizing", len(paths), console=progress)
    folders = _folders(folder, paths)
    try:
        for number, (path, step) in enumerate(steps):
            files = _write_files(folders[number], step)
            if board is not None:
                board.write(step)
            if number == 0 or len(paths) <= TABLES:
                out.print(f"\n{path}", markup=False, soft_wrap=True)
                out.print(layer_table(step, files))
    finally:
        if board is not None:
            board.close()
    _say_where(logdir, folder, len(paths))


def _steps(request: Request, loaded: LoadedModel, paths: list[Path]) -> Iterator[LoggedStep]:
    """One recorded step an image, numbered from 0."""
    compose = Composer(colormap=request.colormap, scale=request.scale)
    reducer = Reducer(
        max_channels=None,
        max_tile=None,
        scale=request.scale,
        zero_centred=request.colormap == "signed",
        tokens_are_patches=may_hold_patches(loaded.model),
    )
    prepare = loaded.preprocessing
    for number, path in enumerate(paths):
        batch = prepare(read_image(path))[None]  # [1, C, H, W]
        data = snapshot(
            loaded.model,
            batch,
            reducer,
            layers=request.chosen,
            step=number,
            mean=prepare.mean,
            std=prepare.std,
            kernels=request.kernels and number == 0,
        )
        yield compose(data)


def _places(request: Request) -> tuple[Path | None, Path | None]:
    """Where to write for TensorBoard, and where PNG files."""
    if request.logdir is None and request.out is None:
        fresh = new_directory(Path("runs/visualize"))
        return fresh, fresh / "png"
    return request.logdir, request.out


def _folders(folder: Path | None, paths: list[Path]) -> list[Path | None]:
    """One image's files go into the folder itself, several images' each into one of their own."""
    if folder is None or len(paths) == 1:
        return [folder] * len(paths)
    taken: set[str] = set()
    return [folder / free_name(path.stem, taken) for path in paths]


def _write_files(folder: Path | None, step: LoggedStep) -> dict[str, list[Path]]:
    """Write the PNG files; label of a site -> the files of its maps."""
    if folder is None:
        return {}
    writer = FolderWriter(folder)
    writer.write(step)
    maps = [picture for picture in step.pictures if picture.role == "feature_maps"]
    return {p.site.label: writer.files[p.tag] for p in maps if p.site is not None}


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigurationError(f"--device {name!r} cannot be used: {reason}") from error
    return device


def _say_where(logdir: Path | None, folder: Path | None, images: int) -> None:
    out = console()
    if folder is not None:
        out.print(f"\nPNG files: {folder}", markup=False, soft_wrap=True)
    if logdir is not None:
        each = ", an image each step" if images > 1 else ""
        out.print(
            f"\nTensorBoard{each}:\n  {to_paste('serve', logdir)}", markup=False, soft_wrap=True
        )
