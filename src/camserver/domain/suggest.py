"""The camera to watch now: one a tenant, chosen by what happens, or by somebody for a while (decision 35).

Rules only. Every event of the last minute has a score that falls by one a second. The best one becomes the suggestion
when its score is high enough; another takes its place only when it is clearly higher, so that the picture does not
jump; after it ended there is a rest. A manual choice comes before everything until its time is over.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from camserver.base.errors import BadInput
from camserver.domain.phrases import Phrase, primary_event_phrase, severity_phrase
from camserver.domain.policy import setting
from camserver.domain.vocabulary import is_hazard

WEIGHT_MAX = 10
WEIGHT_DEFAULT = 5
MANUAL_MAX_SEC = 3600
SEVERITY_POINTS = 20
# A hazard is one by its primary event or by any tag; what is not named here counts by its severity alone.
POINTS: Mapping[str, int] = {"hazard": 100, "camera_issue": 80, "unknown": 50, "human": 30, "animal": 20}
_HAZARD = "hazard"
_UNKNOWN = "unknown"
MANUAL = "manual"
MANUAL_PHRASE = Phrase("手動で選ばれたカメラです", "Chosen by hand")


@dataclass(frozen=True, slots=True)
class SuggestPolicy:
    """When a camera is suggested for watching, and for how long."""

    enabled: bool = setting(True, "Whether a camera is suggested by itself. One can be chosen by hand in any case.")
    least_score: int = setting(50, "Score from which a camera is suggested.", min=0, max=10_000)
    takeover_ratio: float = setting(
        1.2, "How many times the score of the suggested camera another one must exceed.", min=1, max=100
    )
    life_sec: int = setting(
        60, "How long a camera is suggested; a new event of it begins that time anew.", min=5, max=3600
    )
    rest_sec: int = setting(10, "How long none is suggested after one ended.", min=0, max=3600)
    fall_per_sec: float = setting(1.0, "Points that a score loses each second.", min=0, max=1000)


@dataclass(frozen=True, slots=True)
class Candidate:
    """An event that may be worth watching, with its camera's weight."""

    camera_key: int
    event_id: int
    primary_event: str
    severity: int
    start_at: int
    weight: int = WEIGHT_DEFAULT
    is_hazard: bool = False  # by a tag
    is_unknown: bool = False


@dataclass(frozen=True, slots=True)
class Suggestion:
    camera_key: int
    event_id: int | None  # None: chosen by hand
    reason: str  # the primary event that counted, or MANUAL
    score: float  # at scored_at
    scored_at: int
    since: int
    until: int
    manual: bool = False

    def score_at(self, now_ms: int, policy: SuggestPolicy) -> float:
        return _fallen(self.score, self.scored_at, now_ms, policy)


@dataclass(frozen=True, slots=True)
class Board:
    """A tenant's suggestion, and what keeps the next one away."""

    current: Suggestion | None = None
    rest_until: int = 0
    dismissed_at: int = 0  # events that began up to then count no more


def reason_of(candidate: Candidate) -> str:
    """What the score of an event counts it as."""
    if candidate.is_hazard or candidate.primary_event == _HAZARD:
        return _HAZARD
    if candidate.is_unknown and POINTS.get(candidate.primary_event, 0) < POINTS[_UNKNOWN]:
        return _UNKNOWN
    return candidate.primary_event


def first_score(candidate: Candidate) -> float:
    """The score of an event when it begins."""
    points = candidate.severity * SEVERITY_POINTS + POINTS.get(reason_of(candidate), 0)
    return points * min(WEIGHT_MAX, max(0, candidate.weight)) / WEIGHT_DEFAULT


def _fallen(score: float, scored_at: int, now_ms: int, policy: SuggestPolicy) -> float:
    return max(0.0, score - max(0, now_ms - scored_at) / 1000 * policy.fall_per_sec)


def score_of(candidate: Candidate, now_ms: int, policy: SuggestPolicy) -> float:
    return _fallen(first_score(candidate), candidate.start_at, now_ms, policy)


def counts_from(board: Board, now_ms: int, policy: SuggestPolicy) -> int:
    """Events that began later than this are candidates."""
    return max(board.dismissed_at, now_ms - policy.life_sec * 1000)


def advanced(board: Board, candidates: Iterable[Candidate], now_ms: int, policy: SuggestPolicy) -> Board:
    """The board at this moment, by the events of late."""
    board = _ended(board, now_ms, policy)
    if not policy.enabled or (board.current is not None and board.current.manual):
        return board
    fresh = [one for one in candidates if counts_from(board, now_ms, policy) < one.start_at <= now_ms]
    board = _extended(board, fresh, now_ms, policy)
    best = max(fresh, key=lambda one: (score_of(one, now_ms, policy), one.start_at, one.event_id), default=None)
    if best is None or now_ms < board.rest_until:
        return board
    score = score_of(best, now_ms, policy)
    if score < policy.least_score or not _takes_over(board.current, best, score, now_ms, policy):
        return board
    until = now_ms + policy.life_sec * 1000
    return Board(
        Suggestion(best.camera_key, best.event_id, reason_of(best), score, now_ms, now_ms, until),
        board.rest_until,
        board.dismissed_at,
    )


def _takes_over(
    current: Suggestion | None, best: Candidate, score: float, now_ms: int, policy: SuggestPolicy
) -> bool:
    if current is None:
        return True
    if best.camera_key == current.camera_key:
        return False
    return score > policy.takeover_ratio * current.score_at(now_ms, policy)


def _ended(board: Board, now_ms: int, policy: SuggestPolicy) -> Board:
    """Without a suggestion whose time is over; the rest is counted from its end, however late that is seen."""
    if board.current is None or now_ms < board.current.until:
        return board
    return Board(None, board.current.until + policy.rest_sec * 1000, board.dismissed_at)


def _extended(board: Board, fresh: Iterable[Candidate], now_ms: int, policy: SuggestPolicy) -> Board:
    """A new event of the suggested camera makes it last longer, and raises its score if it is the higher one."""
    current = board.current
    if current is None:
        return board
    newer = [one for one in fresh if one.camera_key == current.camera_key and one.start_at > current.scored_at]
    last = max(newer, key=lambda one: (one.start_at, one.event_id), default=None)
    if last is None:
        return board
    score = max(current.score_at(now_ms, policy), score_of(last, now_ms, policy))
    longer = Suggestion(
        current.camera_key,
        last.event_id,
        reason_of(last),
        score,
        now_ms,
        current.since,
        now_ms + policy.life_sec * 1000,
    )
    return Board(longer, board.rest_until, board.dismissed_at)


def chosen(board: Board, camera_key: int, duration_sec: int, now_ms: int) -> Board:
    """Somebody wants this camera to be watched for a while, whatever happens elsewhere."""
    if not 1 <= duration_sec <= MANUAL_MAX_SEC:
        raise BadInput(f"a camera is chosen for 1 to {MANUAL_MAX_SEC} seconds", reason="suggest_duration")
    until = now_ms + duration_sec * 1000
    return Board(Suggestion(camera_key, None, MANUAL, 0.0, now_ms, now_ms, until, manual=True), 0, board.dismissed_at)


def dismissed(board: Board, now_ms: int, policy: SuggestPolicy) -> Board:
    """Somebody has seen enough: nothing that happened so far is suggested again."""
    return Board(None, now_ms + policy.rest_sec * 1000, now_ms)


def phrase_of(suggestion: Suggestion, severity: int) -> Phrase:
    """Why a camera is suggested, in words."""
    if suggestion.manual:
        return MANUAL_PHRASE
    what, grave = primary_event_phrase(suggestion.reason), severity_phrase(severity)
    return Phrase(f"{what.ja}（{grave.ja}）", f"{what.en} ({grave.en.lower()})")


def hazards_among(tags: Iterable[str]) -> bool:
    return any(is_hazard(tag) for tag in tags)
