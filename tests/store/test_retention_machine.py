"""Retention and cases against a simple model: any mix of looks, sweeps, cases and deaths in between.

Each step is one transaction or one unlink, which is all that a kill -9 leaves whole: what a dead process had begun is
simply not gone on with. Whatever was done, no row names an object that is not there, nothing in a case is lost, and
in the end nothing is left in the bin.
"""

from dataclasses import dataclass
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from camserver.base.errors import Conflict, NotFound
from camserver.domain.cases import CaseState, ItemKind
from camserver.domain.keeping import DAY_MS, Why
from camserver.domain.picture_keys import Kind, frame_key
from camserver.domain.retention import RetentionPolicy
from camserver.store import Dialect, Tx, case_items, cases, check, garbage, retention
from camserver.store.cases import CaseChange
from tests.rig.effort import times
from tests.store.casework import GRACE_DAYS, Evidence, select
from tests.store.conftest import Driven
from tests.store.scenery import NOW_MS

POLICY = RetentionPolicy()
picks = st.integers(0, 1000)
FRAMES = """
SELECT frame_id, frame_uuid, tenant_id, camera_key, captured_at, epoch_id, infer_bytes, full_bytes, retention_class,
  event_id FROM frames ORDER BY frame_id"""
# What a mix could break; the others are about rows that are not made here.
CHECKS = tuple(one for one in check.CHECKS if one.kind.startswith(("orphan", "clip", "case_")))
UNSETTLED_MAY = {"case_unheld", "case_class"}
# All of them after so many steps and at the end of each mix: they go over the whole database, and nothing here mends
# what they would find.
CHECKED_EVERY = times(12, 1)
EXAMPLES = {Dialect.SQLITE: times(8, 60), Dialect.POSTGRES: times(4, 60), Dialect.MARIADB: times(4, 60)}


@dataclass(frozen=True, slots=True)
class Left:
    """What the database knows after a step."""

    named: set[str]  # objects that a row names
    binned: set[str]
    there: set[tuple[ItemKind, int]]  # frames, events, and clips (by their event) that are there


class House(RuleBasedStateMachine):
    def __init__(self, driven: Driven) -> None:
        super().__init__()
        self.driven = driven
        self.do = driven.do
        driven.wipe()
        self.evidence = self.do(Evidence.gather(driven.store, 1))
        self.camera_key = self.evidence.scene.camera_keys[0]
        self.now_ms = NOW_MS
        self.disk: set[str] = set()
        # What each case holds, as the model knows it: (kind, key).
        self.held: dict[str, set[tuple[ItemKind, int]]] = {}
        self.active: dict[str, bool] = {}
        self.on_hold: frozenset[str] = frozenset()
        self.steps = 0

    # Looks -----------------------------------------------------------------------------------------------------

    @rule(days=st.integers(0, 200), verdict=st.sampled_from(["skip", "analyze"]))
    def look(self, days: int, verdict: str) -> None:
        self.do(self.evidence.frame(self.now_ms - days * DAY_MS - self.evidence.seq, verdict=verdict))
        self._write_objects()

    @rule(days=st.integers(0, 400), frames=st.integers(1, 3), with_clip=st.booleans())
    def event(self, days: int, frames: int, with_clip: bool) -> None:
        at_ms = self.now_ms - days * DAY_MS - self.evidence.seq * 10_000
        event_id = self.do(self.evidence.event(at_ms, frames=frames))
        if with_clip:
            self.do(self.evidence.clip(event_id, at_ms))
        self._write_objects()

    def _write_objects(self) -> None:
        """Objects are there before their rows, so a row and its object appear together here."""
        left = self._left()
        self.disk |= left.named - left.binned

    # Cases -----------------------------------------------------------------------------------------------------

    @rule()
    def open_case(self) -> None:
        if len(self.held) < 3:
            case = self.do(self.evidence.case())
            self.held[case], self.active[case] = set(), True

    @precondition(lambda self: self.held)
    @rule(pick=picks, kind=st.sampled_from(ItemKind), which=picks)
    def add(self, pick: int, kind: ItemKind, which: int) -> None:
        case = sorted(self.held)[pick % len(self.held)]
        if not self.active[case]:
            return
        table = "frame" if kind is ItemKind.FRAME else "event"
        rows = self.do(self.evidence.rows(f"SELECT {table}_id AS id FROM {table}s ORDER BY {table}_id"))
        if not rows:
            return
        key = rows[which % len(rows)]["id"]
        try:
            self.do(self.evidence.add(case, kind, key))
        except NotFound:
            assert kind is ItemKind.CLIP
            return
        except Conflict:
            # Closed, though on hold.
            return
        self.held[case].add((kind, key))

    @precondition(lambda self: self.held)
    @rule(pick=picks, which=picks)
    def take_out(self, pick: int, which: int) -> None:
        case = sorted(self.held)[pick % len(self.held)]
        items = sorted(self.held[case])
        if not items or not self.active[case]:
            return
        kind, key = items[which % len(items)]
        try:
            self.do(self.evidence.take_out(case, kind, key, self.now_ms))
        except Conflict:
            assert case in self.on_hold
            return
        assert case not in self.on_hold
        self.held[case].discard((kind, key))

    @precondition(lambda self: self.held)
    @rule(pick=picks, state=st.sampled_from(CaseState), hold=st.booleans(), dies=st.booleans())
    def change(self, pick: int, state: CaseState, hold: bool, dies: bool) -> None:
        """Closing, holding, reopening; whoever does it may die before the items have followed."""
        case = sorted(self.held)[pick % len(self.held)]
        scoped = self.driven.store.as_(self.evidence.somebody)
        self.do(scoped.write(cases.change, case, CaseChange(None, hold, state), "", self.now_ms))
        if not dies:
            self.settle()
        self.active[case] = hold or state is CaseState.OPEN
        self.on_hold = self.on_hold | {case} if hold else self.on_hold - {case}
        if self.active[case]:
            # Only what is there can be held again.
            self.settle()
            self.held[case] &= self._left().there

    @rule()
    def settle(self) -> None:
        scoped = self.driven.store.as_(self.evidence.somebody)
        for one in self.do(self.driven.store.read(case_items.unsettled)):
            after: int | None = 0
            while after is not None:
                after = self.do(scoped.write(case_items.settle, one.case_id, after, GRACE_DAYS, self.now_ms))

    # Sweeps ----------------------------------------------------------------------------------------------------

    @rule(days=st.integers(0, 60))
    def time_passes(self, days: int) -> None:
        self.now_ms += days * DAY_MS

    @rule(why=st.sampled_from(Why))
    def sweep_frames(self, why: Why) -> None:
        ids = tuple([row["frame_id"] for row in self.do(self.evidence.rows(FRAMES))])
        store = self.driven.store
        self.do(store.write(retention.sweep_frames, self.camera_key, ids, why, POLICY, self.now_ms))

    @rule(why=st.sampled_from([Why.AGE, Why.FLOOR]))
    def sweep_clips(self, why: Why) -> None:
        ids = tuple([row["clip_id"] for row in self.do(self.evidence.rows("SELECT clip_id FROM clips"))])
        store = self.driven.store
        self.do(store.write(retention.sweep_clips, self.camera_key, ids, why, POLICY, self.now_ms))

    @rule()
    def sweep_events(self) -> None:
        ids = tuple([row["event_id"] for row in self.do(self.evidence.rows("SELECT event_id FROM events"))])
        self.do(self.driven.store.write(retention.sweep_events, self.camera_key, ids, POLICY, self.now_ms))

    @rule(count=st.integers(1, 5), dies=st.booleans())
    def unlink(self, count: int, dies: bool) -> None:
        trash = self.do(self.driven.store.read(garbage.oldest))[:count]
        self.disk -= {item.object_key for item in trash}
        if trash and not dies:
            self.do(self.driven.store.write(garbage.forget, tuple([item.garbage_id for item in trash])))

    # What must hold --------------------------------------------------------------------------------------------

    @invariant()
    def nothing_is_lost_or_forgotten(self) -> None:
        left = self._left()
        missing = left.named - self.disk
        assert not missing, missing
        assert not left.named & left.binned, "what a row names is not in the bin"
        assert self.disk <= left.named | left.binned, "every object is named or in the bin"
        for case, items in self.held.items():
            if self.active[case]:
                assert items <= left.there, (case, items - left.there)

    @invariant()
    def the_database_is_sound(self) -> None:
        self.steps += 1
        if self.steps % CHECKED_EVERY == 0:
            self._check()

    def teardown(self) -> None:
        self._check()
        for _ in range(100):
            if not self._left().binned:
                break
            self.unlink(5, False)
        assert self.disk == self._left().named

    # -----------------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        wrong = self.do(self.driven.store.read(_wrong)) - {"orphan_frame_gaps"}
        if self.do(self.driven.store.read(case_items.unsettled)):
            wrong -= UNSETTLED_MAY
        assert not wrong, wrong

    def _left(self) -> Left:
        return self.do(self.driven.store.read(_left))


async def _wrong(tx: Tx) -> set[str]:
    """The kinds of checks that find something."""
    found = set()
    for one in CHECKS:
        row = await tx.one(one.sql)
        if row is not None and row["found"]:
            found.add(one.kind)
    return found


async def _left(tx: Tx) -> Left:
    frames = await select(tx, FRAMES, {})
    clips = await select(tx, "SELECT object_key, event_id, state FROM clips", {})
    events = await select(tx, "SELECT event_id FROM events", {})
    trash = await select(tx, "SELECT object_key FROM garbage", {})
    return Left(
        named={key for row in frames for key in _keys(row)}
        | {row["object_key"] for row in clips if row["object_key"] is not None},
        binned={row["object_key"] for row in trash},
        there={(ItemKind.FRAME, row["frame_id"]) for row in frames}
        | {(ItemKind.EVENT, row["event_id"]) for row in events}
        | {(ItemKind.CLIP, row["event_id"]) for row in clips if row["state"] == "ready"},
    )


def _keys(row: dict[str, Any]) -> list[str]:
    place = [row[name] for name in ("epoch_id", "tenant_id", "camera_key", "captured_at", "frame_uuid")]
    kinds = [kind for kind in Kind if row["epoch_id"] is not None and row[f"{kind.value}_bytes"] is not None]
    return [frame_key(*place, kind) for kind in kinds]


def test_no_mix_of_sweeps_cases_and_deaths_loses_evidence(driven: Driven) -> None:
    run_state_machine_as_test(
        lambda: House(driven),  # type: ignore[arg-type]  # a factory does as well
        settings=settings(max_examples=EXAMPLES[driven.store.dialect], stateful_step_count=25, deadline=None),
    )
