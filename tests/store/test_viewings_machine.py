"""Viewings as a state machine on the real store: whatever people, streamers and clocks do, the budget is kept.

The model knows who watches what and until when. After each step the rows of every streamer use no more than its
budget, each login has one viewing of a kind, and a viewing is valid exactly as long as the model says.
"""

import contextlib

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from camserver.base.errors import NotFound
from camserver.domain.admission import AdmissionPolicy, Held, Kind, Load, Quality, Refusal, budget_of, used
from camserver.store import streamers, viewings
from camserver.store.admissions import Admitted
from camserver.store.streamers import StreamerReport
from camserver.store.tx import Tx
from tests.rig.effort import times
from tests.store.conftest import Driven
from tests.store.stage import NOW_MS
from tests.store.viewing_rows import House, ask, furnish

PEOPLE = 6
STREAMERS = ("streamer-1", "streamer-2")
UNITS = 6
POLICY = AdmissionPolicy(
    total_stream_units=UNITS, reserved_baseline_units=1, max_ui_users=1, transcode_cost=3, overload_hold_sec=20
)
TTL_MS, GRACE_MS = POLICY.modal_ttl_sec * 1000, POLICY.heartbeat_grace_sec * 1000
person = st.integers(0, PEOPLE - 1)
camera = st.integers(0, 2)
quality = st.sampled_from(Quality)


class ViewingMachine(RuleBasedStateMachine):
    driven: Driven

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = NOW_MS
        # By person: lease, created at, last heartbeat.
        self.watching: dict[int, tuple[str, int, int]] = {}

    @initialize()
    def open(self) -> None:
        self.driven.wipe()
        self.house: House = self.driven.do(furnish(self.driven.store, PEOPLE, 3, units=None))
        for streamer_id in STREAMERS:
            self.check_in(streamer_id, 0.0)

    def check_in(self, streamer_id: str, cpu: float) -> None:
        said = StreamerReport(streamer_id, "", 1, "", UNITS, Load(cpu, 0, 0))
        self.driven.do(self.driven.store.write(streamers.check_in, said, POLICY, self.now_ms))

    def is_valid(self, number: int) -> bool:
        if number not in self.watching:
            return False
        _, created, beat = self.watching[number]
        return self.now_ms <= min(created + TTL_MS, beat + GRACE_MS)

    # What happens ----------------------------------------------------------------------------------------------

    @rule(ms=st.sampled_from([1, 5_000, 14_000, 30_000, 45_000, 45_001, 300_001]))
    def time_passes(self, ms: int) -> None:
        self.now_ms += ms
        for streamer_id in STREAMERS:
            self.check_in(streamer_id, 0.0)

    @rule(number=person, which=camera, how=quality, tried=st.sampled_from([(), *((one,) for one in STREAMERS)]))
    def asks(self, number: int, which: int, how: Quality, tried: tuple[str, ...]) -> None:
        answer = self.driven.do(
            ask(
                self.driven.store,
                self.house.people[number],
                which,
                how,
                now_ms=self.now_ms,
                policy=POLICY,
                tried=frozenset(tried),
            )
        )
        if isinstance(answer, Admitted):
            assert not self.is_valid(number)
            assert answer.streamer_id not in tried
            self.watching[number] = (answer.lease_id, self.now_ms, self.now_ms)
        elif answer.refusal is not Refusal.SYSTEM_OVERLOAD:  # which is said first
            assert self.is_valid(number) == (answer.refusal is Refusal.USER_ALREADY_HAS_MODAL)

    @rule(number=person)
    @precondition(lambda self: self.watching)
    def beats(self, number: int) -> None:
        if number not in self.watching:
            return
        lease_id, created, _ = self.watching[number]
        mine = self.driven.store.as_(self.house.people[number])
        was_valid = self.is_valid(number)
        left_ms = None
        with contextlib.suppress(NotFound):
            left_ms = self.driven.do(mine.write(viewings.heartbeat, lease_id, POLICY, self.now_ms))
        assert (left_ms is not None) == was_valid
        if left_ms is not None:
            assert left_ms == created + TTL_MS - self.now_ms
            self.watching[number] = (lease_id, created, self.now_ms)

    @rule(number=person, other=person)
    def releases(self, number: int, other: int) -> None:
        """One's own goes, another's does not."""
        if number not in self.watching:
            return
        lease_id = self.watching[number][0]
        assert not self.is_valid(number) or not self.driven.do(
            self.driven.store.as_(self.house.people[(number + 1 + other % (PEOPLE - 1)) % PEOPLE]).write(
                viewings.release, lease_id
            )
        )
        gone = self.driven.do(self.driven.store.as_(self.house.people[number]).write(viewings.release, lease_id))
        assert gone or not self.is_valid(number)
        del self.watching[number]

    @rule()
    def cleans_up(self) -> None:
        self.driven.do(self.driven.store.write(viewings.forget_over, self.now_ms))
        valid = sum(self.is_valid(number) for number in self.watching)
        assert len(self.driven.do(self.driven.store.read(_all_held))) == valid

    @rule(which=st.integers(0, 1), how=quality, camera=camera)
    def must_be_transcoded(self, which: int, how: Quality, camera: int) -> None:
        key = self.house.cameras[camera]
        self.driven.do(
            self.driven.store.write(viewings.charge_transcode, STREAMERS[which], key, how, POLICY, self.now_ms)
        )

    @rule(which=st.integers(0, 1))
    def is_overloaded_for_a_moment(self, which: int) -> None:
        self.check_in(STREAMERS[which], 99.0)

    @rule(which=st.integers(0, 1))
    def stops_and_starts_again(self, which: int) -> None:
        seen = self.driven.do(self.driven.store.read(viewings.valid_on, STREAMERS[which], (), self.now_ms))
        self.driven.do(self.driven.store.write(streamers.stopped, STREAMERS[which]))
        gone = {one.lease_id for one in seen.viewings}
        self.watching = {number: one for number, one in self.watching.items() if one[0] not in gone}
        self.check_in(STREAMERS[which], 0.0)

    # What always holds -----------------------------------------------------------------------------------------

    @invariant()
    def the_budget_is_kept(self) -> None:
        rows = self.driven.do(self.driven.store.read(_all_held))
        for streamer_id in STREAMERS:
            held = [one for name, _, one in rows if name == streamer_id]
            assert used(held, Kind.MODAL) <= budget_of(Kind.MODAL, POLICY)
        people = [user for _, user, _ in rows]
        assert len(people) == len(set(people))

    @invariant()
    def a_viewing_is_valid_as_long_as_it_should_be(self) -> None:
        found = {
            one.lease_id
            for streamer_id in STREAMERS
            for one in self.driven.do(
                self.driven.store.read(viewings.valid_on, streamer_id, (), self.now_ms)
            ).viewings
        }
        assert found == {one[0] for number, one in self.watching.items() if self.is_valid(number)}


async def _all_held(tx: Tx) -> list[tuple[str, str, Held]]:
    rows = await tx.all("SELECT * FROM modal_leases")
    return [(row["streamer_id"], row["user_id"], streamers.held_of(row)) for row in rows]


def test_whatever_happens_viewings_keep_their_budget_and_their_time(driven: Driven) -> None:
    ViewingMachine.driven = driven
    run_state_machine_as_test(
        ViewingMachine, settings=settings(max_examples=times(8, 100), stateful_step_count=25, deadline=None)
    )
