"""Which worker gets which camera: tables for each reason, properties for the whole."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from camserver.domain.assignment import decide, lopsided
from camserver.domain.assignment_styles import PACK, SPREAD
from camserver.domain.assignment_types import (
    NO_LABELS,
    AssignmentPolicy,
    CameraNeed,
    Decision,
    Kind,
    Load,
    Plan,
    Quota,
    Site,
    Snapshot,
    Why,
    WorkerOffer,
)

T0 = 1_800_000_000_000
LONG_AGO = T0 - 3_600_000
POLICY = AssignmentPolicy()
MANY_MOVES = AssignmentPolicy(moves_max=100)
GPU = frozenset({("gpu", "yes")})


def camera(key: int, **changes: object) -> CameraNeed:
    values: dict[str, object] = {"camera_key": key, "tenant_id": 1, "site_id": 1, "generation": key + 100}
    return CameraNeed(**{**values, **changes})  # type: ignore[arg-type]  # the names are its own


def held(key: int, holder_key: int, **changes: object) -> CameraNeed:
    return camera(key, holder_key=holder_key, held_since=LONG_AGO, is_active=True, **changes)


def worker(key: int, slots: int = 4, used: int = 0, **changes: object) -> WorkerOffer:
    values: dict[str, object] = {"worker_key": key, "tenant_id": 1, "site_id": 1, "slots": slots, "used": used}
    return WorkerOffer(**{**values, **changes})  # type: ignore[arg-type]  # the names are its own


def planned(
    cameras: list[CameraNeed], workers: list[WorkerOffer], *quotas: Quota, policy: AssignmentPolicy = POLICY
) -> list[Decision]:
    return list(decide(Snapshot(T0, tuple(workers), tuple(cameras), quotas), policy).decisions)


def only(cameras: list[CameraNeed], workers: list[WorkerOffer], *quotas: Quota) -> tuple[Kind, int | None, Why]:
    (one,) = planned(cameras, workers, *quotas)
    return one.kind, one.worker_key, one.reason.why


def test_the_least_loaded_worker_comes_first() -> None:
    made = planned([camera(1), camera(2), camera(3)], [worker(1, 4, 3), worker(2, 4, 1)])
    assert [(one.camera_key, one.worker_key, one.expected_generation) for one in made] == [
        (1, 2, 101),
        (2, 2, 102),
        (3, 1, 103),
    ]
    assert {one.reason.why for one in made} == {Why.LEAST_LOADED}


def test_packing_fills_one_worker_after_the_other() -> None:
    snapshot = Snapshot(T0, (worker(1, 4, 1), worker(2, 4, 2)), tuple(camera(key) for key in range(1, 5)))
    made = decide(snapshot, POLICY, {(1, 1): PACK}).decisions
    assert [one.worker_key for one in made] == [2, 2, 1, 1]
    assert {one.reason.why for one in made} == {Why.FULLEST}


def test_rows_that_come_twice_count_once() -> None:
    made = planned([camera(1), camera(2), camera(1)], [worker(1, 1), worker(1, 1), worker(2, 1)])
    assert [(one.camera_key, one.worker_key) for one in made] == [(1, 1), (2, 2)]


def test_a_worker_to_avoid_is_taken_only_when_there_is_no_other() -> None:
    failed_at_1 = camera(1, avoid_worker_key=1)
    assert only([failed_at_1], [worker(1, 9), worker(2, 9, 8)])[1] == 2
    assert only([failed_at_1], [worker(1, 9), worker(2, 9, 9)])[1] == 1


NVR = {((1, 1), "nvr"): 2}


def with_homes(
    cameras: list[CameraNeed], *workers: WorkerOffer, homes: dict[tuple[Site, str], int]
) -> list[Decision]:
    snapshot = Snapshot(T0, workers, tuple(cameras), homes=homes)
    return list(decide(snapshot, MANY_MOVES).decisions)


def test_cameras_of_one_device_go_to_one_worker() -> None:
    made = planned([camera(key, device="nvr") for key in range(1, 5)], [worker(1), worker(2, 8)])
    assert len({one.worker_key for one in made}) == 1
    assert [one.reason.why for one in made[1:]] == [Why.SAME_DEVICE] * 3


def test_a_camera_goes_where_others_of_its_device_are() -> None:
    (one,) = with_homes([camera(1, device="nvr")], worker(1), worker(2, 4, 3), homes=NVR)
    assert (one.kind, one.worker_key, one.reason.why) == (Kind.TAKE, 2, Why.SAME_DEVICE)
    (other,) = with_homes([camera(1, device="another")], worker(1), worker(2, 4, 3), homes=NVR)
    assert (other.worker_key, other.reason.why) == (1, Why.LEAST_LOADED)


@pytest.mark.parametrize(
    "home",
    [worker(2, 4, 4), worker(2, is_present=False), worker(2, is_draining=True), worker(2, site_id=2)],
    ids=["full", "away", "draining", "elsewhere"],
)
def test_a_camera_goes_elsewhere_when_its_device_s_worker_can_t_take_it(home: WorkerOffer) -> None:
    """Looked at from two workers is better than not at all."""
    (one,) = with_homes([camera(1, device="nvr")], worker(1), home, homes=NVR)
    assert (one.kind, one.worker_key, one.reason.why) == (Kind.TAKE, 1, Why.LEAST_LOADED)


def test_where_a_camera_just_failed_counts_more_than_its_device() -> None:
    (one,) = with_homes([camera(1, device="nvr", avoid_worker_key=2)], worker(1), worker(2), homes=NVR)
    assert one.worker_key == 1


def test_a_device_moves_as_a_whole_when_its_worker_is_emptied() -> None:
    cameras = [held(key, 2, device="nvr") for key in range(1, 4)]
    made = with_homes(cameras, worker(1, 9, 2), worker(2, 9, 3, is_draining=True), worker(3, 9, 2), homes=NVR)
    assert [one.kind for one in made] == [Kind.MOVE] * 3
    assert len({one.worker_key for one in made}) == 1


def test_a_device_is_not_torn_for_the_load_s_sake() -> None:
    cameras = [held(key, 1, device="nvr") for key in range(1, 5)]
    made = planned(cameras, [worker(1, 4, 4), worker(2, 4, 0)], policy=MANY_MOVES)
    assert {one.kind for one in made} == {Kind.KEEP}
    assert Kind.MOVE in {
        one.kind
        for one in planned([replace(one, device=None) for one in cameras], [worker(1, 4, 4), worker(2, 4, 0)])
    }


WAITS = [
    (camera(1), [], (), Why.NO_WORKER),
    (camera(1), [worker(1, site_id=2), worker(2, tenant_id=2)], (), Why.NO_WORKER),
    (camera(1), [worker(1, is_present=False)], (), Why.ALL_AWAY),
    (camera(1), [worker(1, is_draining=True), worker(2, is_present=False)], (), Why.ALL_DRAINING),
    (camera(1, labels=GPU), [worker(1)], (), Why.LABELS),
    (camera(1), [worker(1, 4, 4), worker(2, 1, 2)], (), Why.ALL_FULL),
    (camera(1, load=Load(cpu=1)), [worker(1, capacity=Load(cpu=2), load=Load(cpu=1.5))], (), Why.TOO_BIG),
    (camera(1, load=Load(mem=9)), [worker(1, capacity=Load(mem=8))], (), Why.TOO_BIG),
    (camera(1, load=Load(gpu=1)), [worker(1, capacity=Load(gpu=0.5))], (), Why.TOO_BIG),
    (camera(1, next_attempt_at=T0 + 1), [worker(1)], (), Why.BACKING_OFF),
    (camera(1), [worker(1)], (Quota(1, 3, 3),), Why.QUOTA),
    (camera(1, pinned_worker_key=9), [worker(1)], (), Why.PIN_AWAY),
    (camera(1, pinned_worker_key=2), [worker(1), worker(2, is_present=False)], (), Why.PIN_AWAY),
    (camera(1, pinned_worker_key=2), [worker(1), worker(2, site_id=2)], (), Why.PIN_ELSEWHERE),
    (camera(1, pinned_worker_key=2), [worker(1), worker(2, is_draining=True)], (), Why.PIN_DRAINING),
    (camera(1, pinned_worker_key=2, labels=GPU), [worker(1), worker(2)], (), Why.PIN_LABELS),
    (camera(1, pinned_worker_key=2), [worker(1), worker(2, 1, 1)], (), Why.PIN_FULL),
]


@pytest.mark.parametrize(("need", "workers", "quotas", "why"), WAITS, ids=lambda value: getattr(value, "value", None))
def test_a_camera_that_waits_says_why(
    need: CameraNeed, workers: list[WorkerOffer], quotas: tuple[Quota, ...], why: Why
) -> None:
    assert only([need], workers, *quotas) == (Kind.WAIT, None, why)


def test_a_capacity_that_was_not_said_bounds_nothing() -> None:
    assert only([camera(1, load=Load(9, 9, 9e12))], [worker(1)])[:2] == (Kind.TAKE, 1)


def test_labels_and_pins_and_wishes_are_followed() -> None:
    workers = [worker(1), worker(2, 9, 5, labels=GPU)]
    assert only([camera(1, labels=GPU)], workers) == (Kind.TAKE, 2, Why.LEAST_LOADED)
    assert only([camera(1, pinned_worker_key=2)], workers) == (Kind.TAKE, 2, Why.PINNED)
    assert only([camera(1, wanted_worker_key=2)], workers) == (Kind.TAKE, 2, Why.ASKED)
    full = [worker(1), worker(2, 5, 5)]
    assert only([camera(1, wanted_worker_key=2)], full) == (Kind.TAKE, 1, Why.LEAST_LOADED), "a wish is no pin"


def test_those_with_the_least_choice_come_first() -> None:
    made = planned([camera(1), camera(2, labels=GPU), camera(3, pinned_worker_key=1)], [worker(1, 2, labels=GPU)])
    assert [(one.camera_key, one.kind) for one in made] == [(1, Kind.WAIT), (2, Kind.TAKE), (3, Kind.TAKE)]


def test_a_quota_counts_what_is_taken() -> None:
    made = planned([camera(key) for key in range(1, 5)], [worker(1, 9, 1)], Quota(1, 1, 3))
    assert [one.kind for one in made] == [Kind.TAKE, Kind.TAKE, Kind.WAIT, Kind.WAIT]


def test_held_cameras_stay() -> None:
    workers = [worker(1, 4, 1), worker(2, 4, 0)]
    assert only([held(1, 1)], workers) == (Kind.KEEP, 1, Why.HELD)
    assert only([held(1, 1, pinned_worker_key=1)], workers) == (Kind.KEEP, 1, Why.PINNED)


def test_a_pinned_camera_moves_to_its_worker_and_stays_while_it_can_not() -> None:
    asked = held(1, 1, wanted_worker_key=2)
    assert only([asked], [worker(1, 4, 1), worker(2)]) == (Kind.MOVE, 2, Why.ASKED)
    assert only([asked], [worker(1, 4, 1), worker(2, 1, 1)]) == (Kind.KEEP, 1, Why.HELD)
    pinned = held(1, 1, pinned_worker_key=2)
    assert only([pinned], [worker(1, 4, 1), worker(2)]) == (Kind.MOVE, 2, Why.PINNED)
    assert only([pinned], [worker(1, 4, 1), worker(2, 1, 1)]) == (Kind.KEEP, 1, Why.PIN_FULL)
    assert only([pinned], [worker(1, 4, 1)]) == (Kind.KEEP, 1, Why.PIN_AWAY)


def test_a_drained_worker_is_emptied_as_far_as_others_have_room() -> None:
    cameras = [held(key, 1) for key in range(1, 4)]
    made = planned(cameras, [worker(1, 4, 3, is_draining=True), worker(2, 2)])
    assert [(one.kind, one.worker_key, one.reason.why) for one in made] == [
        (Kind.MOVE, 2, Why.DRAINED),
        (Kind.MOVE, 2, Why.DRAINED),
        (Kind.KEEP, 1, Why.DRAIN_NO_ROOM),
    ]


def test_a_worker_that_joins_gets_a_few_at_a_time() -> None:
    cameras = [held(key, 1) for key in range(1, 11)]
    workers = [worker(1, 10, 10), worker(2, 10, 0)]
    made = planned(cameras, workers)
    assert sum(one.kind is Kind.MOVE for one in made) == POLICY.moves_max
    every = planned(cameras, workers, policy=MANY_MOVES)
    moves = [one for one in every if one.kind is Kind.MOVE]
    assert len(moves) == 4, "6 and 4 differ by less than the margin"
    assert {one.worker_key for one in moves} == {2}


def test_moves_under_way_count_and_keep_their_place() -> None:
    going = [held(key, 1, is_stopping=True, wanted_worker_key=2) for key in range(1, 4)]
    rest = [held(key, 1) for key in range(4, 11)]
    made = planned([*going, *rest], [worker(1, 10, 10), worker(2, 10, 0)])
    assert [one.reason.why for one in made[:3]] == [Why.STOPPING] * 3
    assert sum(one.kind is Kind.MOVE for one in made) == 1
    late = planned([held(1, 1, is_stopping=True, wanted_worker_key=2), camera(2)], [worker(1, 1, 1), worker(2, 1)])
    assert late[1].reason.why is Why.ALL_FULL


@pytest.mark.parametrize(
    "changes",
    [{"held_since": T0 - 1000}, {"is_active": False}, {"labels": GPU}, {"pinned_worker_key": 1}],
    ids=["just came", "in trouble", "labels", "pinned"],
)
def test_some_cameras_are_not_moved_for_the_load(changes: dict[str, object]) -> None:
    cameras = [replace(held(key, 1), **changes) for key in range(1, 5)]
    made = planned(cameras, [worker(1, 4, 4, labels=GPU), worker(2, 4, 0)])
    assert {one.kind for one in made} == {Kind.KEEP}


def test_small_workers_do_not_pass_a_camera_to_and_fro() -> None:
    assert only([held(1, 1)], [worker(1, 1, 1), worker(2, 1, 0)])[0] is Kind.KEEP


def test_who_is_lopsided() -> None:
    workers = [worker(1, 10, 9), worker(2, 10, 8), worker(3, 10, 6), worker(4, 10, 4), worker(5, 10, 10, site_id=2)]
    assert lopsided(workers, POLICY) == (1, 2)
    assert lopsided(workers, POLICY, {(1, 1): PACK}) == ()
    assert lopsided([replace(one, is_present=False) for one in workers], POLICY) == ()


# Properties.

LABELS = st.sampled_from([NO_LABELS, GPU, frozenset({("floor", "2")}), GPU | {("floor", "2")}])
LOADS = st.builds(Load, cpu=st.sampled_from([0.0, 0.5, 1.0]), mem=st.sampled_from([0.0, 1.0, 3.0]))
CAPACITIES = st.builds(Load, cpu=st.sampled_from([0.0, 2.0, 4.0]), mem=st.sampled_from([0.0, 4.0]))


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """Workers with what they hold all in the snapshot, so that its numbers agree."""
    workers = draw(
        st.lists(
            st.builds(
                WorkerOffer,
                worker_key=st.integers(1, 5),
                tenant_id=st.integers(1, 2),
                site_id=st.integers(1, 2),
                slots=st.integers(0, 6),
                used=st.just(0),
                capacity=CAPACITIES,
                labels=LABELS,
                is_present=st.sampled_from([True, True, True, False]),
                is_draining=st.sampled_from([True, False, False, False]),
            ),
            max_size=5,
            unique_by=lambda one: one.worker_key,
        )
    )
    keys = st.none() | st.integers(1, 6)
    cameras = draw(
        st.lists(
            st.builds(
                CameraNeed,
                camera_key=st.integers(1, 40),
                tenant_id=st.integers(1, 2),
                site_id=st.integers(1, 2),
                generation=st.integers(0, 5),
                next_attempt_at=st.none() | st.integers(T0 - 5, T0 + 5),
                avoid_worker_key=keys,
                pinned_worker_key=st.none() | st.none() | keys,
                wanted_worker_key=st.none() | keys,
                labels=st.just(NO_LABELS) | LABELS,
                load=LOADS,
                is_active=st.booleans(),
            ),
            max_size=14,
            unique_by=lambda one: one.camera_key,
        )
    )
    settled = []
    for need in cameras:
        homes = [one for one in workers if one.site == need.site]
        home = draw(st.sampled_from([None, *homes]))
        if home is not None:
            need = replace(
                need,
                holder_key=home.worker_key,
                held_since=draw(st.sampled_from([LONG_AGO, T0])),
                is_stopping=draw(st.sampled_from([True, False, False, False])),
            )
        settled.append(need)
    quotas = []
    for tenant_id in (1, 2):
        running = sum(one.holder_key is not None for one in settled if one.tenant_id == tenant_id)
        if draw(st.booleans()):
            quotas.append(Quota(tenant_id, running, draw(st.integers(0, 20))))
    return Snapshot(T0, tuple(_with_load(one, settled) for one in workers), tuple(settled), tuple(quotas))


def _with_load(offer: WorkerOffer, cameras: list[CameraNeed]) -> WorkerOffer:
    mine = [one.load for one in cameras if one.holder_key == offer.worker_key]
    load = Load(sum(one.cpu for one in mine), sum(one.gpu for one in mine), sum(one.mem for one in mine))
    return replace(offer, used=len(mine), load=load)


def carried_out(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """What there is after everything was done, moves that were under way too."""
    decisions = {one.camera_key: one for one in plan.decisions}
    cameras = []
    for need in snapshot.cameras:
        one = decisions[need.camera_key]
        if one.kind in (Kind.TAKE, Kind.MOVE):
            need = replace(need, holder_key=one.worker_key, held_since=T0, wanted_worker_key=None)
        cameras.append(need)
    running = {
        quota.tenant_id: sum(one.holder_key is not None for one in cameras if one.tenant_id == quota.tenant_id)
        for quota in snapshot.quotas
    }
    return Snapshot(
        snapshot.now_ms,
        tuple(_with_load(one, cameras) for one in snapshot.workers),
        tuple(cameras),
        tuple(replace(quota, running=running[quota.tenant_id]) for quota in snapshot.quotas),
    )


def fits(offer: WorkerOffer, load: Load) -> bool:
    pairs = zip(offer.load, load, offer.capacity, strict=True)
    return offer.used < offer.slots and all(not most or used + more <= most for used, more, most in pairs)


STYLES = st.sampled_from([{}, {(1, 1): PACK, (2, 2): PACK}, {(1, 1): SPREAD}])


@settings(max_examples=60)
@given(snapshots(), STYLES)
def test_every_camera_has_one_decision_and_every_decision_is_allowed(snapshot: Snapshot, styles: dict) -> None:
    plan = decide(snapshot, POLICY, styles)
    assert [one.camera_key for one in plan.decisions] == sorted(need.camera_key for need in snapshot.cameras)
    needs = {need.camera_key: need for need in snapshot.cameras}
    offers = {offer.worker_key: offer for offer in snapshot.workers}
    added: dict[int, list[Load]] = {}
    for one in plan.decisions:
        need = needs[one.camera_key]
        assert one.expected_generation == need.generation
        if one.kind in (Kind.KEEP, Kind.WAIT):
            assert one.worker_key == need.holder_key
            continue
        assert one.worker_key is not None
        offer = offers[one.worker_key]
        assert (need.holder_key is None) == (one.kind is Kind.TAKE)
        assert offer.takes_cameras
        assert offer.site == need.site
        assert need.labels <= offer.labels
        assert need.pinned_worker_key in (None, offer.worker_key)
        assert not need.is_stopping
        if one.kind is Kind.TAKE:
            assert (need.next_attempt_at or 0) <= T0
        added.setdefault(offer.worker_key, []).append(need.load)
    for key, loads in added.items():
        offer = offers[key]
        assert offer.used + len(loads) <= offer.slots
        for index, most in enumerate(offer.capacity):
            assert not most or offer.load[index] + sum(load[index] for load in loads) <= most
    for quota in snapshot.quotas:
        taken = sum(needs[one.camera_key].tenant_id == quota.tenant_id for one in plan.of_kind(Kind.TAKE))
        assert taken == 0 or quota.running + taken <= quota.most
    stopping = sum(need.is_stopping for need in snapshot.cameras)
    assert len(plan.of_kind(Kind.MOVE)) <= max(POLICY.moves_max - stopping, 0)


@settings(max_examples=60)
@given(snapshots(), STYLES)
def test_none_is_forgotten_while_there_is_room(snapshot: Snapshot, styles: dict) -> None:
    snapshot = replace(snapshot, cameras=tuple(replace(need, is_stopping=False) for need in snapshot.cameras))
    plan = decide(snapshot, MANY_MOVES, styles)
    needs = {need.camera_key: need for need in snapshot.cameras}
    # A slot that a move frees can be taken only in the next round.
    taken = Plan(tuple(one for one in plan.decisions if one.kind is not Kind.MOVE))
    moved = {one.camera_key: one for one in plan.of_kind(Kind.MOVE)}
    extra: dict[int, list[Load]] = {}
    for key, one in moved.items():
        extra.setdefault(one.worker_key or 0, []).append(needs[key].load)
    after = carried_out(
        snapshot, Plan(tuple(sorted([*taken.decisions, *(_kept(one, needs) for one in moved.values())])))
    )
    offers = [
        replace(
            offer,
            used=offer.used + len(extra.get(offer.worker_key, [])),
            load=Load(*(sum(parts) for parts in zip(offer.load, *extra.get(offer.worker_key, []), strict=True))),
        )
        for offer in after.workers
    ]
    full = {quota.tenant_id for quota in after.quotas if quota.running >= quota.most}
    for one in plan.of_kind(Kind.WAIT):
        need = needs[one.camera_key]
        if (need.next_attempt_at or 0) > T0 or need.tenant_id in full:
            continue
        able = [
            offer
            for offer in offers
            if offer.takes_cameras
            and offer.site == need.site
            and need.labels <= offer.labels
            and need.pinned_worker_key in (None, offer.worker_key)
            and fits(offer, need.load)
        ]
        assert able == [], one


def _kept(one: Decision, needs: dict[int, CameraNeed]) -> Decision:
    return one._replace(kind=Kind.KEEP, worker_key=needs[one.camera_key].holder_key)


@settings(max_examples=60)
@given(snapshots(), STYLES, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(snapshot: Snapshot, styles: dict, random: Random) -> None:
    workers, cameras = list(snapshot.workers), list(snapshot.cameras)
    random.shuffle(workers)
    random.shuffle(cameras)
    again = Snapshot(T0, tuple(workers), tuple(cameras), snapshot.quotas)
    assert decide(again, POLICY, styles) == decide(snapshot, POLICY, styles)


@settings(max_examples=60)
@given(snapshots(), STYLES)
def test_rounds_come_to_rest_and_then_move_nothing(snapshot: Snapshot, styles: dict) -> None:
    """Each round may use what the moves before it have freed; soon there is nothing left to do."""
    snapshot = replace(snapshot, cameras=tuple(replace(need, is_stopping=False) for need in snapshot.cameras))
    for _ in range(2 * len(snapshot.cameras) + 2):
        plan = decide(snapshot, MANY_MOVES, styles)
        if not plan.of_kind(Kind.TAKE) and not plan.of_kind(Kind.MOVE):
            return
        snapshot = carried_out(snapshot, plan)
    raise AssertionError("cameras wander")


@settings(max_examples=60)
@given(snapshots())
def test_a_plan_without_displaced_cameras_is_followed_by_rest(snapshot: Snapshot) -> None:
    """Where nothing has to leave its place, one round does it all: the next one moves nothing."""
    snapshot = replace(
        snapshot,
        workers=tuple(replace(offer, is_draining=False) for offer in snapshot.workers),
        cameras=tuple(
            replace(
                need,
                is_stopping=False,
                pinned_worker_key=None,
                wanted_worker_key=None if need.holder_key else need.wanted_worker_key,
                held_since=T0 if need.holder_key else None,
            )
            for need in snapshot.cameras
        ),
    )
    plan = decide(snapshot, MANY_MOVES)
    assert plan.of_kind(Kind.MOVE) == ()
    again = decide(carried_out(snapshot, plan), MANY_MOVES)
    assert again.of_kind(Kind.MOVE) == ()
    assert again.of_kind(Kind.TAKE) == ()


@settings(max_examples=60)
@given(snapshots())
def test_a_move_for_the_load_never_makes_another_worker_the_fullest(snapshot: Snapshot) -> None:
    plan = decide(snapshot, MANY_MOVES)
    offers = {offer.worker_key: offer for offer in snapshot.workers}
    for one in plan.of_kind(Kind.MOVE):
        if one.reason.why is Why.REBALANCED:
            source, target = offers[one.reason.worker_key or 0], offers[one.worker_key or 0]
            assert _share(source) > _share(target)


def _share(offer: WorkerOffer) -> float:
    shares = [offer.used / offer.slots if offer.slots else 1.0]
    shares += [used / most for used, most in zip(offer.load, offer.capacity, strict=True) if most]
    return max(shares)
