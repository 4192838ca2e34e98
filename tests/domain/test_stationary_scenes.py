"""What stays where it is, as cameras see it: dozens of looks with boxes that tremble, through `decide`."""

import json
import random
from dataclasses import astuple, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.analysis import Analysis, Box
from camserver.domain.facts import Still
from camserver.domain.outcomes import Policies
from camserver.domain.stationary import StationaryPolicy

from .build import MIN, SEC, T0, analysis, nothing
from .ledger import Ledger

HOUR = 60 * MIN
BAY = (0.30, 0.50, 0.55, 0.70)
NEXT_BAY = (0.60, 0.50, 0.85, 0.70)
DRIVE = (0.02, 0.60, 0.27, 0.80)
LAMP = (0.71, 0.08, 0.76, 0.13)
PATH = (0.05, 0.30, 0.12, 0.62)
BEFORE_THE_CAR = (0.33, 0.42, 0.53, 0.90)


class Camera:
    """A camera's looks, with boxes that are never quite the same."""

    def __init__(self, seed: int = 1, jitter: float = 0.02, interval_ms: int = MIN) -> None:
        self.ledger = Ledger(Policies(), interval_ms)
        self.chance = random.Random(seed)
        self.jitter = jitter
        self.at = T0

    def box(self, place: tuple[float, float, float, float], label: str = "car") -> Box:
        width, height = place[2] - place[0], place[3] - place[1]
        x1, y1, x2, y2 = (
            edge + self.chance.uniform(-self.jitter, self.jitter) * side
            for edge, side in zip(place, (width, height, width, height), strict=True)
        )
        return Box(max(x1, 0.0), max(y1, 0.0), min(x2, 1.0), min(y2, 1.0), label, 0.8)

    def sees(self, *boxes: Box, tags: tuple[str, ...] = (), kind: str | None = None, pause_ms: int = MIN) -> Analysis:
        """One analyzed look. People come first, as the analyzer ranks them."""
        self.at += pause_ms
        labels = {box.label for box in boxes}
        by_label = {"person": "human", "dog": "animal", "sports ball": "unknown"}
        found = kind or next((by_label[name] for name in by_label if name in labels), "vehicle" if labels else None)
        said = (
            replace(nothing(), tags=tags)
            if found is None
            else analysis(found, boxes=boxes, tags=tags, unknown_flag=found == "unknown")
        )
        self.ledger.look(self.at, said)
        return said

    def for_looks(self, count: int, *places: tuple[float, float, float, float], pause_ms: int = MIN) -> None:
        for _ in range(count):
            self.sees(*(self.box(place) for place in places), pause_ms=pause_ms)

    def kinds(self) -> list[str]:
        return [event.primary_event for event in self.ledger.events.values()]


def test_a_car_that_parks_for_two_hours_is_one_event() -> None:
    camera = Camera()
    camera.for_looks(1, DRIVE)
    camera.for_looks(120, BAY)
    assert camera.kinds() == ["vehicle"]
    assert camera.ledger.open_id is None, "it closes while the car still stands there"


def test_the_driver_gets_out_and_walks_away() -> None:
    """The commonest of all: the car is not still yet when somebody appears beside it."""
    camera = Camera()
    camera.for_looks(2, BAY)
    for place in (BEFORE_THE_CAR, PATH):
        camera.sees(camera.box(BAY), camera.box(place, "person"))
    camera.for_looks(60, BAY)
    assert camera.kinds() == ["vehicle", "human"]


def test_a_car_first_seen_beside_its_driver_is_told_when_it_is_alone() -> None:
    camera = Camera()
    camera.sees(camera.box(BAY), camera.box(PATH, "person"))
    camera.for_looks(30, BAY)
    assert camera.kinds() == ["human", "vehicle"]


def test_people_pass_a_parked_car_all_day() -> None:
    camera = Camera()
    camera.for_looks(10, BAY)
    for _ in range(12):
        camera.sees(camera.box(BAY), camera.box(PATH, "person"), pause_ms=20 * MIN)
        camera.sees(camera.box(BEFORE_THE_CAR, "person"))  # hides it
        camera.for_looks(3, BAY)
    assert camera.kinds() == ["vehicle"] + ["human"] * 12


def test_somebody_stands_before_the_car_for_half_an_hour() -> None:
    camera = Camera()
    camera.for_looks(10, BAY)
    for _ in range(30):
        camera.sees(camera.box(BEFORE_THE_CAR, "person"))
    camera.for_looks(5, BAY)
    assert camera.kinds() == ["vehicle", "human"]


def test_looks_that_come_only_every_hour_tell_of_the_car_once() -> None:
    """Quiet looks are not analyzed: after it parked, only the forced ones see the car."""
    camera = Camera()
    camera.for_looks(2, BAY)
    camera.for_looks(24, BAY, pause_ms=HOUR)
    assert camera.kinds() == ["vehicle"]


def test_a_car_leaves_and_another_parks() -> None:
    camera = Camera()
    camera.for_looks(10, BAY)
    camera.sees()  # gone between two looks
    camera.sees()
    camera.sees(pause_ms=HOUR)
    camera.for_looks(10, BAY)
    assert camera.kinds() == ["vehicle", "vehicle"]


def test_another_car_that_takes_the_place_at_once_is_told_by_its_shape() -> None:
    camera = Camera(jitter=0.005)
    camera.for_looks(10, BAY)
    camera.sees()
    smaller = (0.315, 0.52, 0.54, 0.70)  # four fifths of the place
    camera.for_looks(10, smaller)
    assert camera.kinds() == ["vehicle", "vehicle"]


def test_a_car_that_drives_off_is_told_when_it_moves() -> None:
    camera = Camera()
    camera.for_looks(30, BAY)
    camera.for_looks(1, DRIVE)
    assert camera.kinds() == ["vehicle", "vehicle"]


def test_a_second_car_beside_a_parked_one_is_one_more_event() -> None:
    camera = Camera()
    camera.for_looks(20, BAY)
    camera.for_looks(40, BAY, NEXT_BAY)
    assert camera.kinds() == ["vehicle", "vehicle"]


def test_a_van_that_stops_at_the_gate_every_day_is_told_every_day() -> None:
    camera = Camera(jitter=0.0)
    for _ in range(5):
        camera.for_looks(2, DRIVE)
        camera.sees()
        camera.sees(pause_ms=24 * HOUR)
    assert camera.kinds() == ["vehicle"] * 5


def test_a_lamp_taken_for_a_ball_is_told_once_a_night() -> None:
    camera = Camera()
    for look in range(90):
        camera.sees(camera.box(LAMP, "sports ball"))
        if look % 10 == 9:
            camera.sees(camera.box(LAMP, "sports ball"), camera.box(PATH, "person"))
    assert camera.kinds().count("unknown") == 1
    assert camera.kinds().count("human") == 9


def test_night_falls_and_morning_comes() -> None:
    """In infrared the car is a truck; in the dark it is not seen at all. It has stood there all the time."""
    camera = Camera()
    camera.for_looks(10, BAY)
    for _ in range(4):
        camera.sees(camera.box(BAY, "truck"), tags=("camera.dark",), pause_ms=HOUR)
    for _ in range(4):
        camera.sees(tags=("camera.dark",), pause_ms=HOUR)
    camera.for_looks(10, BAY)
    assert camera.kinds() == ["vehicle"]


def test_an_analyzer_that_misses_it_now_and_then() -> None:
    camera = Camera(jitter=0.01)
    camera.for_looks(10, BAY)
    for look in range(60):
        if look % 7 == 3:
            camera.sees()
        else:
            camera.for_looks(1, BAY)
    assert camera.kinds() == ["vehicle"]


def test_a_camera_that_was_moved_sees_everything_anew() -> None:
    camera = Camera()
    camera.for_looks(20, BAY)
    camera.sees(camera.box(NEXT_BAY), tags=("camera.moved",))
    assert camera.ledger.stills == ()
    camera.for_looks(20, NEXT_BAY)
    assert camera.kinds() == ["vehicle", "vehicle"]


def test_the_memory_survives_a_restart_as_the_row_keeps_it() -> None:
    camera = Camera()
    camera.for_looks(10, BAY)
    row = json.dumps([astuple(still) for still in camera.ledger.stills])
    camera.ledger.stills = tuple(Still(*still) for still in json.loads(row))
    camera.for_looks(20, BAY)
    assert camera.kinds() == ["vehicle"]


def test_a_row_of_an_earlier_version_is_read() -> None:
    """Rows from before `told` was kept lack it."""
    still = Still(*["car", 0.1, 0.1, 0.3, 0.3, T0, T0 + HOUR, 9, 0])
    assert still.told == ""


def test_what_nobody_has_seen_for_a_week_is_forgotten() -> None:
    camera = Camera()
    camera.for_looks(20, BAY)
    camera.for_looks(2, BAY, pause_ms=StationaryPolicy().max_unseen_sec * SEC + 1)
    assert camera.kinds()[:2] == ["vehicle", "vehicle"]


def test_the_memory_of_a_busy_road_stays_bounded() -> None:
    camera = Camera(jitter=0.0)
    for look in range(300):
        x, y = look % 17 / 20, look % 13 / 20
        camera.sees(*(camera.box((x, y + n / 100, x + 0.05, y + 0.05 + n / 100)) for n in range(20)))
    assert len(camera.ledger.stills) <= StationaryPolicy().max_stills


def test_somebody_beside_the_car_for_long_loiters_and_the_car_stays_one_event() -> None:
    camera = Camera()
    camera.for_looks(8, BAY)
    for _ in range(6):
        camera.sees(camera.box(BAY), camera.box(PATH, "person"))
    camera.for_looks(8, BAY)
    assert camera.kinds() == ["vehicle", "human"]
    assert "behavior.loitering" in camera.ledger.tags[2]
    assert "behavior.loitering" not in camera.ledger.tags[1]


@given(st.integers(0, 2**32), st.floats(0.0, 0.035), st.sampled_from([5 * SEC, 30 * SEC, MIN]))
def test_however_the_boxes_tremble_a_parked_car_is_one_event(seed: int, jitter: float, pause_ms: int) -> None:
    camera = Camera(seed, jitter, pause_ms)
    camera.for_looks(1, DRIVE, pause_ms=pause_ms)
    camera.for_looks(80, BAY, pause_ms=pause_ms)
    assert camera.kinds() == ["vehicle"]


@given(st.integers(0, 2**32), st.lists(st.sampled_from(["car", "both", "person", "hidden"]), max_size=60))
def test_whoever_passes_a_car_that_stays_is_always_told_and_the_car_never_again(seed: int, scene: list[str]) -> None:
    camera = Camera(seed)
    camera.for_looks(10, BAY)
    for what in scene:
        person = camera.box(BEFORE_THE_CAR if what == "hidden" else PATH, "person")
        seen = [camera.box(BAY)] if what in ("car", "both", "person") else []
        camera.sees(*seen, *([] if what == "car" else [person]))
        if what != "car":
            assert camera.ledger.decided[-1].event.primary_event == "human"
    assert camera.kinds().count("vehicle") == 1


@pytest.mark.parametrize("severity", [0, 3])
def test_a_hazard_in_the_place_of_a_parked_car_is_always_told(severity: int) -> None:
    camera = Camera()
    camera.for_looks(20, BAY)
    burning = analysis("hazard", boxes=(camera.box(BAY),), tags=("hazard.flame_like",), severity=severity)
    camera.ledger.look(camera.at + MIN, burning)
    assert camera.kinds() == ["vehicle", "hazard"]
