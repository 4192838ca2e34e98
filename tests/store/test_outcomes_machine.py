"""Events over the real store: frames in any order and batch, stale views, lost fences, sweeps between them."""

import json
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from camserver.domain.analysis import Analysis
from camserver.domain.events import LOITERING_TAG, best_score
from camserver.domain.jobs import Delay
from camserver.domain.retention import Retention, strongest
from camserver.store import Dialect
from camserver.store.events import close_stale
from camserver.store.jobs import Failure, claimed, fail
from camserver.store.outcomes import Applied
from tests.domain.build import analysis
from tests.rig.effort import times
from tests.store.analyzing import POLICIES, TERMS, Held, everything, hold, settle
from tests.store.conftest import Driven
from tests.store.scenery import INTERVAL_MS, NOW_MS, furnish

CAMERAS = 2
HOUR_MS = 3_600_000
LOITERING_MS = POLICIES.events.loitering_sec * 1000
START_MS = NOW_MS + 2 * HOUR_MS  # ages below reach back, but not to before the lease

analyses = st.builds(
    lambda kind, severity, confidence, tags, unknown: analysis(
        kind, severity=severity, confidence=confidence, tags=tuple(sorted(tags)), unknown_flag=unknown
    ),
    kind=st.sampled_from(["none", "human", "human", "vehicle", "hazard"]),
    severity=st.integers(0, 3),
    confidence=st.one_of(st.none(), st.sampled_from([0.123456789, 0.5, 0.9])),
    tags=st.sets(st.sampled_from(["animal.deer", "hazard.fire", "behavior.loitering"]), max_size=2),
    unknown=st.sampled_from([False, False, False, True]),
)


class Events(RuleBasedStateMachine):
    def __init__(self, driven: Driven) -> None:
        super().__init__()
        self.driven = driven
        driven.wipe()
        self.scene = driven.do(furnish(driven.store, cameras=CAMERAS))
        self.now_ms = START_MS
        self.seqs = [0] * CAMERAS
        self.held: list[Held] = []
        self.lost: set[int] = set()  # jobs whose fence is gone
        self.applied: dict[int, Analysis] = {}  # frame_id → what was said of it
        self.deliveries = 0
        self.last_seen: dict[int, int] = {}

    def dump(self) -> dict[str, list[dict[str, Any]]]:
        return self.driven.do(self.driven.store.read(everything))

    @rule(
        camera=st.integers(0, CAMERAS - 1),
        age_ms=st.one_of(st.just(0), st.integers(0, 110_000), st.integers(0, HOUR_MS)),
        said=analyses,
        blur=st.sampled_from([None, 10.0, 33.3]),
    )
    def a_look_is_analyzed(self, camera: int, age_ms: int, said: Analysis, blur: float | None) -> None:
        """Older than two minutes makes it late."""
        self.seqs[camera] += 1
        at_ms = self.now_ms - age_ms
        work = hold(
            self.driven.store, self.scene, camera, self.seqs[camera], at_ms, said, self.now_ms, blur_score=blur
        )
        self.held.append(self.driven.do(work))

    @rule(data=st.data())
    def results_are_applied(self, data: st.DataObject) -> None:
        if not self.held:
            return
        self.apply(data.draw(st.lists(st.sampled_from(self.held), min_size=1, max_size=4, unique_by=id)))

    @rule()
    def all_results_are_applied(self) -> None:
        """Again and again, as a dispatcher does, until none is left that was only decided on an old state."""
        while self.held:
            self.apply(list(self.held))

    def apply(self, batch: list[Held]) -> None:
        before = self.dump()
        versions = {row["camera_key"]: row["version"] for row in before["camera_state"]}
        decided = [held.decided(self.now_ms) for held in batch]
        answers = self.driven.do(settle(self.driven.store, *batch, now_ms=self.now_ms))
        admitted: set[int] = set()
        for held, outcome, answer in zip(batch, decided, answers, strict=True):
            camera_key = held.job.frame.camera_key
            if held.job.job_id in self.lost:
                assert answer is Applied.FENCE_LOST
                self.held.remove(held)
            elif camera_key in admitted or versions[camera_key] != held.job.view.version:
                assert answer is Applied.STATE_MOVED
                self.read_again(held)
            else:
                assert answer is Applied.DONE
                admitted.add(camera_key)
                self.held.remove(held)
                self.applied[held.job.frame.frame_id] = held.analysis
                self.deliveries += len(outcome.deliveries)
        if not admitted:
            assert self.dump() == before, "a refused outcome wrote something"

    def read_again(self, held: Held) -> None:
        found = self.driven.do(self.driven.store.read(claimed, (held.job.job_id,), (held.job.token,), TERMS))
        self.held.remove(held)
        self.held.append(Held(found[0], held.analysis))

    @rule(data=st.data())
    def a_fence_is_lost(self, data: st.DataObject) -> None:
        keeping = [held for held in self.held if held.job.job_id not in self.lost]
        if not keeping:
            return
        job = data.draw(st.sampled_from(keeping)).job
        failure = Failure(job.job_id, job.token, Delay(self.now_ms + HOUR_MS, refund=False), "x")
        self.driven.do(self.driven.store.write(fail, (failure,), self.now_ms))
        self.lost.add(job.job_id)

    @rule(ms=st.sampled_from([1000, 60_000, 100_000, 200_000, 2 * HOUR_MS]))
    def time_passes(self, ms: int) -> None:
        self.now_ms += ms

    @rule()
    def stale_events_are_closed(self) -> None:
        self.driven.do(self.driven.store.write(close_stale, self.now_ms, POLICIES.events, INTERVAL_MS))

    @invariant()
    def everything_fits_together(self) -> None:
        found = self.dump()
        self.check_states(found)
        self.check_events(found)
        self.check_incidents(found)
        assert [row["seq"] for row in found["changes"]] == list(range(1, len(found["changes"]) + 1))
        assert len(found["deliveries"]) == self.deliveries
        finished = {row["frame_id"] for row in found["inference_jobs"] if row["status"] == "done"}
        assert finished == self.applied.keys()

    def check_states(self, found: dict[str, list[dict[str, Any]]]) -> None:
        for state in found["camera_state"]:
            of_camera = [event for event in found["events"] if event["camera_key"] == state["camera_key"]]
            is_open = [event["event_id"] for event in of_camera if event["state"] == "open"]
            assert is_open == ([state["open_event_id"]] if state["open_event_id"] is not None else [])
            assert all((event["open_key"] is None) == (event["state"] != "open") for event in of_camera)
            incidents = [row for row in found["incidents"] if row["camera_key"] == state["camera_key"]]
            newest = next((row for row in incidents if row["incident_id"] == state["incident_id"]), None)
            latest = max((row["last_seen_at"] for row in incidents), default=None)
            assert (newest["last_seen_at"] if newest else None) == latest

    def check_events(self, found: dict[str, list[dict[str, Any]]]) -> None:
        for event in found["events"]:
            frames = [row for row in found["frames"] if row["event_id"] == event["event_id"]]
            said = [self.applied[frame["frame_id"]] for frame in frames]
            assert event["frame_count"] == len(frames) > 0
            assert event["start_at"] == min(frame["captured_at"] for frame in frames)
            assert event["last_seen_at"] == max(frame["captured_at"] for frame in frames)
            assert event["last_seen_at"] >= self.last_seen.get(event["event_id"], 0), "it went back"
            self.last_seen[event["event_id"]] = event["last_seen_at"]
            assert event["end_at"] == (None if event["state"] == "open" else event["last_seen_at"])
            is_long = event["primary_event"] == "human" and event["last_seen_at"] - event["start_at"] >= LOITERING_MS
            assert event["severity_max"] == max([*(each.severity for each in said), 2 if is_long else 0])
            assert event["confidence_max"] == max(each.confidence or 0.0 for each in said)
            assert event["retention_class"] == strongest(Retention(f["retention_class"]) for f in frames).value
            scores = {
                frame["frame_id"]: best_score(each.severity, each.confidence, frame["blur_score"])
                for frame, each in zip(frames, said, strict=True)
            }
            assert event["best_score"] == max(scores.values())
            assert scores[event["best_frame_id"]] == event["best_score"]
            tags = [row for row in found["event_tags"] if row["event_id"] == event["event_id"]]
            added = {LOITERING_TAG} if is_long else set()
            assert {row["tag_id"] for row in tags} == {tag for each in said for tag in each.tags} | added
            assert all(row["start_at"] == event["start_at"] for row in tags)
        for frame in found["frames"]:
            said_of_it = self.applied.get(frame["frame_id"])
            assert bool(frame["analyzed"]) == (said_of_it is not None)
            if said_of_it is not None:
                assert json.loads(frame["tags_json"]) == list(said_of_it.tags)

    def check_incidents(self, found: dict[str, list[dict[str, Any]]]) -> None:
        for incident in found["incidents"]:
            events = [row for row in found["events"] if row["incident_id"] == incident["incident_id"]]
            assert incident["event_count"] == len(events) > 0
            assert incident["start_at"] == min(event["start_at"] for event in events)
            assert incident["last_seen_at"] == max(event["last_seen_at"] for event in events)
            assert incident["severity_max"] == max(event["severity_max"] for event in events)
            assert incident["last_event_id"] in {event["event_id"] for event in events}


def test_events_hold_together_whatever_comes(driven: Driven) -> None:
    examples = times(30, 200) if driven.store.dialect is Dialect.SQLITE else times(8, 50)
    run_state_machine_as_test(
        lambda: Events(driven), settings=settings(max_examples=examples, stateful_step_count=30)
    )
