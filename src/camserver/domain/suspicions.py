"""Something that may be wrong with a camera: first suspected, then held to be so, then told (decisions 4).

What shows or denies it is another rule's affair; here is how many looks and how much time that takes, the same for
every kind of issue.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Suspicion:
    """Times in ms. `looks` and `denied` count looks in a row."""

    since: int  # captured_at of the first look that showed it
    last_at: int  # … of the newest
    frame_id: int  # the look it was found on; for its picture
    looks: int = 1  # that showed it
    denied: int = 0  # newest ones that did not
    held_at: int | None = None  # since when it counts as so; None while it is only suspected
    told: bool = False  # whether people are to know


def shown(before: Suspicion | None, captured_at: int, frame_id: int) -> Suspicion:
    """After a look that shows it."""
    if before is None:
        return Suspicion(since=captured_at, last_at=captured_at, frame_id=frame_id)
    return replace(before, last_at=captured_at, looks=before.looks + 1, denied=0)


def denied(before: Suspicion | None, over_after_looks: int) -> Suspicion | None:
    """After a look that shows the contrary: one ends a mere suspicion, what is held so takes a few."""
    if before is None or before.held_at is None or before.denied + 1 >= over_after_looks:
        return None
    return replace(before, denied=before.denied + 1)


def held(suspicion: Suspicion, at_ms: int) -> Suspicion:
    """It counts as so from now on, if it did not already."""
    return suspicion if suspicion.held_at is not None else replace(suspicion, held_at=at_ms)


def held_when_lasting(suspicion: Suspicion, looks_min: int, lasting_ms_min: int) -> Suspicion:
    """Held once it was shown often *and* long enough, so that neither quick looks nor rare ones decide alone."""
    if suspicion.looks < looks_min or suspicion.last_at - suspicion.since < lasting_ms_min:
        return suspicion
    return held(suspicion, suspicion.last_at)


def told_when_due(suspicion: Suspicion, wait_ms: int, now_ms: int) -> Suspicion:
    """People are told once it was held for `wait_ms`; what was told stays so until it is over."""
    if suspicion.told or suspicion.held_at is None or now_ms - suspicion.held_at < wait_ms:
        return suspicion
    return replace(suspicion, told=True)
