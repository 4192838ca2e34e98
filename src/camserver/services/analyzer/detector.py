"""What finds things in a picture, behind the least that the service needs to know of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from PIL import Image

from camserver.domain.detections import Detection


@dataclass(frozen=True, slots=True)
class Model:
    runtime: str
    name: str
    version: str


class Detector(Protocol):
    """Used by one thread at a time; what it needs (a model, a device) it holds for itself."""

    @property
    def model(self) -> Model: ...

    def detect(self, picture: Image.Image) -> Sequence[Detection]:
        """What is in an RGB picture, unsure finds too: what to believe is decided elsewhere."""
