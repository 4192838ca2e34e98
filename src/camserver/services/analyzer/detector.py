"""What finds things in a picture, behind the least that the service needs to know of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from numpy.typing import NDArray
from PIL import Image

from camserver.domain.detections import ALL_EVENTS, Detection, events_of
from camserver.media.jpeg_planes import Picture
from camserver.services.analyzer.fitting import Fitted

if TYPE_CHECKING:
    from camserver.domain.vocabulary import Vocabulary
    from camserver.services.analyzer.analyzing import Question
    from camserver.wire.analyzer import AnalyzeAnswer


@dataclass(frozen=True, slots=True)
class Model:
    runtime: str
    name: str
    version: str
    # The primary events that can come of what it finds; all there are, unless its labels say less.
    events: tuple[str, ...] = field(default=ALL_EVENTS, compare=False)
    labels: frozenset[str] = field(default=frozenset(), compare=False)  # what it calls what it finds

    def labelled(self, labels: Iterable[str]) -> "Model":
        known = frozenset(labels)
        return replace(self, events=events_of(known), labels=known)

    @property
    def is_blind(self) -> bool:
        """Whether nothing that it may find leads to anything: its labels are others than those that are known."""
        return bool(self.labels) and self.events == events_of(())


class Detector(Protocol):
    """Used by one thread at a time; what it needs (a model, a device) it holds for itself.

    A detector never changes its model: another model is another detector, so a picture is seen by one model from its
    begin to its end.
    """

    @property
    def model(self) -> Model: ...

    def detect(self, picture: Image.Image) -> Sequence[Detection]:
        """What is in an RGB picture, unsure finds too: what to believe is decided elsewhere."""


@dataclass(frozen=True, slots=True)
class ModelInput:
    """A picture as a model is given it, and how places in that are brought back to the picture."""

    values: NDArray[Any]
    fitted: Fitted


@runtime_checkable
class Preparing(Protocol):
    """A detector whose input can be made elsewhere, for several pictures at once, while it has another.

    Detectors of one model make the same input, so any of them may be given it.
    """

    def input_of(self, picture: Picture) -> ModelInput: ...

    def detect_in(self, given: ModelInput) -> Sequence[Detection]: ...


@runtime_checkable
class Forwarder(Protocol):
    """A detector that is another analyzer: it gets the request as it came and says what to answer.

    It stands in the line as any detector does, in the same thread of its own.
    """

    def forward(self, question: "Question", vocabulary: "Vocabulary", left_sec: float) -> "AnalyzeAnswer":
        """`left_sec`: for how long whoever asked still waits."""


@dataclass(slots=True)
class InForce:
    """The model that new pictures are seen by, and what is not as it should be about it."""

    model: Model
    model_warnings: tuple[str, ...] = ()
    update_warning: str | None = None
    setup_warnings: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        of_update = () if self.update_warning is None else (self.update_warning,)
        return (*self.setup_warnings, *self.model_warnings, *of_update)
