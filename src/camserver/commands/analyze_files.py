"""Which pictures `camserver analyze` looks at, how it reads them, and where it writes what it drew."""

import io
from collections.abc import Iterator, Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import Final

from PIL import Image

from camserver.base.errors import BadInput
from camserver.domain.phrases import Phrase
from camserver.media.foreign_picture import SCANS_MAX, UNREADABLE, check_scans, in_rgb, upright
from camserver.media.jpeg_picture import JpegPicture
from camserver.media.pictures import PIXELS_MAX

SUFFIXES: Final = (".jpg", ".jpeg", ".png")
# Of pictures with boxes; a folder's are no pictures to look at again.
DRAWN: Final = ".boxes.jpg"
FILE_BYTES_MAX: Final = 100_000_000
UPRIGHT_QUALITY: Final = 95


class Unusable(BadInput):
    """A picture that can't be looked at; `said` why."""

    def __init__(self, path: Path, ja: str, en: str) -> None:
        super().__init__(f"{path}: {en}")
        self.said = Phrase(ja, en)


def find_pictures(given: Sequence[str]) -> list[Path]:
    """Files as they are, folders as the pictures in them, patterns as what they fit; each once, in order."""
    found: dict[Path, None] = {}
    for name in given:
        meant = list(_meant(name))
        if not meant:
            raise BadInput(f"there is no picture in {name}; pictures are files named {', '.join(SUFFIXES)}")
        found |= dict.fromkeys(meant)
    return list(found)


def _meant(name: str) -> Iterator[Path]:
    path = Path(name)
    if path.is_dir():
        yield from sorted(one for one in path.iterdir() if one.is_file() and _is_picture(one))
    elif path.exists():
        yield path
    elif has_magic(name):
        yield from sorted(one for one in map(Path, glob(name, recursive=True)) if one.is_file() and _is_picture(one))
    else:
        raise BadInput(f"there is no file or folder {name}; check the path")


def _is_picture(path: Path) -> bool:
    name = path.name.lower()
    return name.endswith(SUFFIXES) and not name.endswith(DRAWN)


def read_upright(path: Path) -> bytes:
    """The picture as a JPEG in the position it was taken in; Unusable when it is none."""
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise Unusable(
                path,
                f"{FILE_BYTES_MAX} バイトを超えています。画像を小さくしてください",
                f"more than {FILE_BYTES_MAX} bytes; make the picture smaller",
            )
        content = path.read_bytes()
    except OSError as error:
        raise Unusable(path, f"読めません（{error.strerror}）", f"can't be read ({error.strerror})") from None
    try:
        check_scans(content, path.name)
    except BadInput:
        raise Unusable(
            path,
            f"JPEGの走査が {SCANS_MAX} 回を超えています。保存し直してください",
            f"a JPEG of more than {SCANS_MAX} scans; save it anew",
        ) from None
    try:
        with Image.open(io.BytesIO(content), formats=("JPEG", "PNG")) as opened:
            width, height = opened.size
            if width * height > PIXELS_MAX:
                raise Unusable(
                    path,
                    f"{width}x{height} 画素あります。読めるのは {PIXELS_MAX} 画素までです",
                    f"{width}x{height} pixels; at most {PIXELS_MAX} can be read",
                )
            taken = upright(in_rgb(opened), opened)
    except UNREADABLE:
        raise Unusable(
            path,
            "JPEGまたはPNGとして読めません（途中で切れているか、壊れています）",
            "no readable JPEG or PNG; it is cut off, damaged or something else",
        ) from None
    out = io.BytesIO()
    taken.save(out, "JPEG", quality=UPRIGHT_QUALITY)
    return out.getvalue()


def infer_picture(jpeg: bytes, width: int) -> bytes:
    """As a worker sends it to be analyzed."""
    return JpegPicture(jpeg, width).small(width)[1]


def place_for(path: Path, folder: Path | None, taken: set[Path]) -> Path:
    """Where the picture with boxes goes: beside the one it was made of, or into a folder, there under a free name."""
    place = (path.parent if folder is None else folder) / f"{path.stem}{DRAWN}"
    number = 2
    while place in taken:
        place = place.with_name(f"{path.stem}-{number}{DRAWN}")
        number += 1
    taken.add(place)
    return place


def write_drawn(content: bytes, place: Path) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    except OSError as error:
        raise BadInput(
            f"the picture with boxes can't be written to {place}: {error.strerror}; name a folder with --out, or "
            "leave them out with --no-pictures"
        ) from None
