"""How live view stands, for the status page: the streamers' load and budgets taken together."""

from collections.abc import Sequence
from dataclasses import dataclass

from camserver.domain.admission import AdmissionPolicy, Kind, Load, budget_of, used, warnings
from camserver.store.streamers import StreamerState


@dataclass(frozen=True, slots=True)
class LiveStanding:
    healthy: bool  # some streamer takes viewings, or there is none at all
    cpu_percent: float | None  # of the busiest; None: none reports
    memory_percent: float | None
    load_warnings: tuple[str, ...]
    modal_budget: int
    modal_budget_remaining: int


def live_standing(states: Sequence[StreamerState], policy: AdmissionPolicy) -> LiveStanding:
    there = [state for state in states if state.available]
    worst = Load(
        max((state.load.cpu_percent for state in there), default=0.0),
        max((state.load.memory_percent for state in there), default=0.0),
        max((state.load.swap_mb for state in there), default=0.0),
    )
    return LiveStanding(
        healthy=not states or any(not state.overloaded for state in there),
        cpu_percent=worst.cpu_percent if there else None,
        memory_percent=worst.memory_percent if there else None,
        load_warnings=warnings(worst, policy),
        modal_budget=sum(_budget(state, policy) for state in there),
        modal_budget_remaining=sum(_remaining(state, policy) for state in there),
    )


def _budget(state: StreamerState, policy: AdmissionPolicy) -> int:
    return budget_of(Kind.MODAL, policy.of_units(state.total_units))


def _remaining(state: StreamerState, policy: AdmissionPolicy) -> int:
    return max(0, _budget(state, policy) - used(state.held, Kind.MODAL))
