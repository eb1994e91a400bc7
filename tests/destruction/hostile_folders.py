"""Folders with unreadable entries, loops, pipes, sockets and hostile names, for the commands."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import zlib
from collections.abc import Callable, Iterator
from contextlib import chdir
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from attempts import Tried, command, in_process, judged
from PIL import Image

EVENTS = "events.out.tfevents.1.host.1.0.fmapboard"
"""Name of an event file of fmapboard."""
HERE = Path(__file__).parent
_NAMES = {
    "brackets": b"sweep[lr=0.1][red][link=x][up]",
    "an escape sequence": b"red\x1b[31m\x1b]0;title\x07",
    "line breaks": b"one\ntwo\rthree",
    "240 bytes": b"n" * 240,
    "no UTF-8": b"caf\xe9\xff",
    "a dash": b"--out",
    "blanks": b"  ",
    "right-to-left marks": "\u202egnp.exe".encode(),
}
Fill = Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder to make.

    Attributes:
        fill: puts the entries into it.
        is_readable: True if the good run, or image, in it must be read nevertheless.
        names: text that the command must print; "" for none.
    """

    fill: Fill
    is_readable: bool = True
    names: str = ""


def attempts_on_runs(work: Path, run: Path) -> Iterator[Tried]:
    """Folders of runs, with ``check`` and ``report``."""
    (file,) = run.glob("*tfevents*")
    for name, folder in _run_folders(file).items():
        for to_run in ("check", "report"):
            above = _filled(work, folder.fill)
            options = ["--out", work / "out.html"] if to_run == "report" else []
            ended = in_process(command(to_run, above, *options))
            codes = {0, int(to_run == "check")} if folder.is_readable else {1, 2}
            yield Tried(f"{to_run}, {name}", judged(ended, codes, names=folder.names))
            remove(above)


def attempts_on_images(work: Path) -> Iterator[Tried]:
    """Folders of images, with ``visualize`` and ``patches``."""
    image = work / "image.png"
    Image.effect_noise((32, 32), 60).convert("RGB").save(image)
    network = ["--model", "hostile_networks:small", "--input-size", "32"]
    for name, folder in _image_folders(image).items():
        for to_run, options in (("visualize", []), ("patches", ["-k", "1", "--channels", "2"])):
            above, out = _filled(work, folder.fill), work / "out"
            words = [to_run, *network, *options, "--logdir", out, "--", above]
            ended = in_process(command(*words, folder=HERE), limit=120.0)
            codes = {1, 2} if folder.names or not folder.is_readable else {0}
            failure = judged(ended, codes, names=folder.names)
            if not failure and folder.is_readable and not list(out.rglob("*tfevents*")):
                failure = "drew nothing of the good image"
            yield Tried(f"{to_run}, {name}", failure)
            remove(above)
            shutil.rmtree(out, ignore_errors=True)


def remove(folder: Path) -> None:
    """Remove a folder with anything in it; Python's own functions cannot remove very deep ones."""
    subprocess.run(["chmod", "-R", "u+rwx", folder], check=True, stderr=subprocess.DEVNULL)
    subprocess.run(["rm", "-rf", folder], check=True)


def _filled(work: Path, fill: Fill) -> Path:
    above = work / "above"
    above.mkdir()
    fill(above)
    return above


def _run_folders(file: Path) -> dict[str, Folder]:
    """What is in a folder beside a good run, or in place of one."""
    good = partial(_copied, file, "good")
    folders = {
        name: Folder(_all(good, partial(fill, at=at)))
        for name, (fill, at) in {
            "a folder that links to itself": (_link, "good/loop"),
            "a folder that links to the one above": (_link_above, "good/loop"),
            "an event file that links to itself": (_link, f"good/{EVENTS}.0"),
            "an event file that links to nothing": (_dangling, f"good/{EVENTS}.0"),
            "an event file that links to a device": (_device, f"good/{EVENTS}.0"),
            "a pipe named as an event file": (_pipe, f"good/{EVENTS}.0"),
            "a socket named as an event file": (_socket, f"good/{EVENTS}.0"),
            "a folder named as an event file": (_folder, f"good/{EVENTS}.0"),
            "1100 folders in each other": (_deep, "d"),
            "12 folders that link to each other": (_linked, "linked"),
            "a path longer than the system's limit": (_long_path, "deep"),
        }.items()
    }
    folders["an empty event file beside"] = Folder(_all(good, partial(_empty, at=f"bad/{EVENTS}")))
    folders["an unreadable folder beside"] = Folder(
        _all(good, partial(_copied, file, "bad"), partial(_forbidden, at="bad")), names="bad"
    )
    folders["an unreadable event file beside"] = Folder(
        _all(good, partial(_copied, file, "bad"), partial(_forbidden, at=f"bad/{file.name}")),
        names="bad",
    )
    folders["an unreadable event file in the run"] = Folder(
        _all(
            good, partial(_empty, at=f"good/{EVENTS}.0"), partial(_forbidden, at=f"good/{EVENTS}.0")
        ),
        names=f"{EVENTS}.0",
    )
    folders["only an unreadable event file"] = Folder(
        _all(good, partial(_forbidden, at=f"good/{file.name}")), False, "good"
    )
    folders["only an empty event file"] = Folder(partial(_empty, at=EVENTS), False, "above")
    folders["only a pipe"] = Folder(partial(_pipe, at=EVENTS), False, "above")
    folders["nothing"] = Folder(lambda above: None, False, "above")
    folders["an unreadable folder"] = Folder(_all(good, partial(_forbidden, at="")), False, "above")
    for name, text in _NAMES.items():
        folders[f"a run whose name has {name}"] = Folder(partial(_copied, file, os.fsdecode(text)))
    return folders


def _image_folders(image: Path) -> dict[str, Folder]:
    good = partial(_placed, image, "good.png")
    folders = {
        name: Folder(_all(good, partial(fill, at=at)), names=at)
        for name, (fill, at) in {
            "an image that links to itself": (_link, "bad.png"),
            "an image that links to nothing": (_dangling, "bad.png"),
            "an empty image": (_empty, "bad.png"),
            "a text named as an image": (_text, "bad.jpg"),
            "half an image": (partial(_half, image), "bad.png"),
            "a PNG of 60000 x 60000 pixels": (partial(_bomb, ((60_000, 60_000),)), "bad.png"),
            "a PNG with two sizes": (partial(_bomb, ((8, 8), (12_000, 14_000))), "bad.png"),
            "a GIF of 65535 x 65535 pixels": (_gif_bomb, "bad.gif"),
            "a PNG with 40 MB of compressed text": (_text_bomb, "bad.png"),
            "a path longer than the system's limit": (_long_path, "deep"),
        }.items()
    }
    for name, (fill, at) in {
        "a pipe named as an image": (_pipe, "bad.png"),
        "a socket named as an image": (_socket, "bad.png"),
        "an image that links to a device": (_device, "bad.png"),
        "an empty folder named as an image": (_folder, "bad.png"),
        "a folder that links to itself": (_link, "loop"),
        "a folder that links to the one above": (_link_above, "loop"),
        "1100 folders in each other": (_deep, "d"),
        "12 folders that link to each other": (_linked, "linked"),
    }.items():
        folders[name] = Folder(_all(good, partial(fill, at=at)))
    folders["an unreadable image"] = Folder(
        _all(good, partial(_placed, image, "bad.png"), partial(_forbidden, at="bad.png")),
        names="bad.png",
    )
    folders["an unreadable folder beside"] = Folder(
        _all(good, partial(_placed, image, "bad/in.png"), partial(_forbidden, at="bad")),
        names="bad",
    )
    folders["an unreadable folder"] = Folder(_all(good, partial(_forbidden, at="")), False, "above")
    folders["only a text named as an image"] = Folder(
        partial(_text, at="bad.png"), False, "bad.png"
    )
    folders["only a pipe"] = Folder(partial(_pipe, at="bad.png"), False, "above")
    folders["nothing"] = Folder(lambda above: None, False, "above")
    for name, text in _NAMES.items():
        place = os.fsdecode(text)
        folders[f"an image whose name has {name}"] = Folder(partial(_placed, image, f"{place}.png"))
        folders[f"a folder whose name has {name}"] = Folder(
            partial(_placed, image, f"{place}/a.png")
        )
    return folders


def _all(*fills: Fill) -> Fill:
    def fill(above: Path) -> None:
        for each in fills:
            each(above)

    return fill


def _copied(file: Path, run: str, above: Path) -> None:
    _placed(file, f"{run}/{file.name}", above)


def _placed(file: Path, at: str, above: Path) -> None:
    (above / at).parent.mkdir(exist_ok=True)
    shutil.copy(file, above / at)


def _link(above: Path, at: str) -> None:
    (above / at).symlink_to(above / at)


def _link_above(above: Path, at: str) -> None:
    (above / at).symlink_to(above)


def _dangling(above: Path, at: str) -> None:
    (above / at).symlink_to(above / "nothing")


def _device(above: Path, at: str) -> None:
    (above / at).symlink_to("/dev/zero")


def _pipe(above: Path, at: str) -> None:
    os.mkfifo(above / at)


def _socket(above: Path, at: str) -> None:
    with chdir((above / at).parent), socket.socket(socket.AF_UNIX) as opened:
        opened.bind(Path(at).name)


def _folder(above: Path, at: str) -> None:
    (above / at).mkdir()


def _empty(above: Path, at: str) -> None:
    (above / at).parent.mkdir(exist_ok=True)
    (above / at).touch()


def _text(above: Path, at: str) -> None:
    (above / at).write_text("not an image\n" * 99)


def _forbidden(above: Path, at: str) -> None:
    (above / at).chmod(0)


def _deep(above: Path, at: str) -> None:
    with chdir(above):
        for _ in range(1100):
            os.mkdir(at)
            os.chdir(at)


def _linked(above: Path, at: str) -> None:
    places = [above / f"{at}{number}" for number in range(12)]
    for place in places:
        place.mkdir()
        for other in places:
            (place / other.name).symlink_to(other)


def _long_path(above: Path, at: str) -> None:
    """Folders in folders, whose path is longer than any call of the system takes."""
    with chdir(above):
        for _ in range(30):
            os.mkdir(at.ljust(200, "."))
            os.chdir(at.ljust(200, "."))


def _half(image: Path, above: Path, at: str) -> None:
    content = image.read_bytes()
    (above / at).write_bytes(content[: len(content) // 2])


def _bomb(sides: tuple[tuple[int, int], ...], above: Path, at: str) -> None:
    (above / at).write_bytes(png_bomb(*sides))


def _text_bomb(above: Path, at: str) -> None:
    (above / at).write_bytes(png_bomb((8, 8), text=40_000_000))


def _gif_bomb(above: Path, at: str) -> None:
    side = struct.pack("<HH", 65535, 65535)
    picture = b"," + struct.pack("<HH", 0, 0) + side + b"\0" + b"\x02\x02L\x01\0;"
    (above / at).write_bytes(b"GIF89a" + side + b"\x80\0\0" + b"\0\0\0\xff\xff\xff" + picture)


def png_bomb(*sides: tuple[int, int], text: int = 0, depth: int = 1) -> bytes:
    """A grey PNG of zeros.

    Args:
        sides: (width, height) px in one header each; the last one is that of the pixels.
        text: bytes of a compressed text before the pixels.
        depth: bits per pixel.
    """
    heads = [_chunk(b"IHDR", struct.pack(">IIBBBBB", *one, depth, 0, 0, 0, 0)) for one in sides]
    width, height = sides[-1]
    pixels = _zeros((width * depth + 7) // 8 * height + height)
    noted = _chunk(b"zTXt", b"a\0\0" + _zeros(text)) if text else b""
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        [*heads, noted, _chunk(b"IDAT", pixels), _chunk(b"IEND", b"")]
    )


def _zeros(count: int) -> bytes:
    """This many zero bytes, compressed."""
    engine = zlib.compressobj(9)
    block = bytes(2**20)
    parts = [engine.compress(block) for _ in range(count // len(block))]
    return b"".join([*parts, engine.compress(bytes(count % len(block))), engine.flush()])


def _chunk(kind: bytes, content: bytes) -> bytes:
    checked = kind + content
    return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))
