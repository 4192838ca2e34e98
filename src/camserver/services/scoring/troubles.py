"""What follows from a question that was not answered. Rules only."""

from dataclasses import dataclass
from enum import Enum, auto

from camserver.clients.llm.questions import LlmError, LlmErrorKind
from camserver.domain.scoring import PauseReason
from camserver.services.scoring.tasks import Interrupted

# So many requests in a row that the provider can't use, and none that it could: the settings are wrong, not the rows.
BAD_REQUESTS_MAX = 5
_TOO_MANY = frozenset({LlmErrorKind.RATE_LIMITED, LlmErrorKind.OVERLOADED})
_AGAIN = frozenset({LlmErrorKind.CONNECTION, LlmErrorKind.SERVER_ERROR, LlmErrorKind.TIMEOUT})
_PAUSING = {LlmErrorKind.QUOTA: PauseReason.QUOTA, LlmErrorKind.BAD_KEY: PauseReason.KEY}
# Asking the same model once more may help.
_MENDABLE = frozenset({LlmErrorKind.BROKEN_ANSWER, LlmErrorKind.TRUNCATED})


class Follows(Enum):
    WAITING = auto()  # too many at once: it waits and keeps its place
    SENDING_AGAIN = auto()  # the network or the provider failed
    NO_ANSWER = auto()  # this model does not answer it


def follows(kind: LlmErrorKind) -> Follows:
    if kind in _TOO_MANY:
        return Follows.WAITING
    return Follows.SENDING_AGAIN if kind in _AGAIN else Follows.NO_ANSWER


@dataclass(frozen=True, slots=True)
class NoAnswer:
    wrong: str
    is_final: bool  # asking this model again would not help


class Troubles:
    """Tells a question that can't be answered from settings with which none can."""

    def __init__(self) -> None:
        self._bad_requests = 0
        self._is_useful = False

    def was_useful(self) -> None:
        """An answer was good: what is refused from here on is the fault of its row."""
        self._is_useful = True

    def without(self, error: LlmError) -> NoAnswer:
        """What to note of a question that this model does not answer; Interrupted where none will be answered."""
        if error.kind in _PAUSING:
            raise Interrupted(_PAUSING[error.kind], error.message)
        if error.kind is LlmErrorKind.BAD_REQUEST and not self._is_useful:
            self._bad_requests += 1
            if self._bad_requests >= BAD_REQUESTS_MAX:
                raise Interrupted(PauseReason.REQUEST, error.message)
        return NoAnswer(f"{error.kind.value}: {error.message}", error.kind not in _MENDABLE)
