"""From two pictures and hints to tags, with a detector that says what a test wants it to see."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from camserver.domain.detections import Detection, DetectionPolicy
from camserver.services.analyzer.analyzing import Question, analyze
from camserver.services.analyzer.detector import Model
from camserver.services.analyzer.observing import KEPT_SIDE_MAX_PX
from camserver.wire.analyzer import AnalyzeAnswer
from camserver.wire.analyzer_service import parse_fields
from tests.services.analyzer.rig import CAPTURED_AT, MODEL, running_analyzer, shipped
from tests.services.analyzer.scenery import PERSON, covered, encoded, masked, place, turned, with_person

RED = (190, 25, 30)
BLUE = (40, 70, 180)
SOMEBODY = Detection("person", 0.8, *PERSON)
ELSEWHERE = (0.65, 0.3, 0.75, 0.8)
SHELF = [[0.55, 0.3], [0.95, 0.3], [0.95, 0.7], [0.55, 0.7]]
BOTTLE = Detection("bottle", 0.7, 0.7, 0.4, 0.74, 0.6)
JUST_NOW = "2025-12-31T23:59:59.600Z"
A_MINUTE_AGO = "2025-12-31T23:59:00.000Z"


@dataclass
class Eyes:
    """Sees first what is in the picture, then what is in the one before."""

    finds: Sequence[Sequence[Detection]]
    seen: list[Image.Image] = field(default_factory=list)
    model: Model = MODEL

    def detect(self, picture: Image.Image) -> Sequence[Detection]:
        self.seen.append(picture)
        return self.finds[len(self.seen) - 1]


def asked(eyes: Eyes, now: Image.Image, before: Image.Image | None = None, **hints: object) -> AnalyzeAnswer:
    fields = {
        "camera_id": "cam_1",
        "captured_at": CAPTURED_AT,
        "schema_version": shipped().version,
        "hints_json": json.dumps(hints),
    }
    question = Question(parse_fields(fields), encoded(now), None if before is None else encoded(before))
    return analyze(question, eyes, shipped(), DetectionPolicy())


def with_bottle() -> Image.Image:
    picture = place().copy()
    width, height = picture.size
    box = (BOTTLE.x1 * width, BOTTLE.y1 * height, BOTTLE.x2 * width, BOTTLE.y2 * height)
    ImageDraw.Draw(picture).rectangle(box, fill=(20, 120, 30))
    return picture


def test_the_colour_of_somebodys_clothes() -> None:
    answer = asked(Eyes([[SOMEBODY]]), with_person(RED))
    assert answer.tags == ["count.single", "top_color.red"]


def test_without_colours_in_the_picture_none_are_said() -> None:
    gray = with_person(RED).convert("L").convert("RGB")
    assert asked(Eyes([[SOMEBODY]]), gray).tags == ["count.single"]


def test_in_the_dark_no_colours_are_said() -> None:
    dark = with_person(RED).point(lambda value: value // 10)
    assert "count.single" in (tags := asked(Eyes([[SOMEBODY]]), dark).tags)
    assert not [tag for tag in tags if tag.startswith("top_color")]


def test_an_expected_person_is_not_looked_at() -> None:
    assert not asked(Eyes([[SOMEBODY]]), with_person(RED), expected_objects=["person"]).detected


@pytest.mark.parametrize(
    ("before", "tags"),
    [
        (JUST_NOW, ["behavior.running", "count.single", "top_color.blue"]),
        (A_MINUTE_AGO, ["count.single", "top_color.blue"]),
        (None, ["count.single", "top_color.blue"]),
    ],
)
def test_somebody_runs_where_it_is_known_when_the_picture_before_was_taken(
    before: str | None, tags: list[str]
) -> None:
    there = Detection("person", 0.8, *ELSEWHERE)
    eyes = Eyes([[there], [SOMEBODY]])
    hints = {} if before is None else {"prev_captured_at": before}
    answer = asked(eyes, with_person(BLUE, ELSEWHERE), with_person(BLUE), **hints)
    assert answer.tags == tags
    assert len(eyes.seen) == (2 if "behavior.running" in tags else 1), "a second look costs as much as the first"


def test_somebody_else_does_not_run() -> None:
    eyes = Eyes([[Detection("person", 0.8, *ELSEWHERE)], [SOMEBODY]])
    answer = asked(eyes, with_person(BLUE, ELSEWHERE), with_person(RED), prev_captured_at=JUST_NOW)
    assert answer.tags == ["count.single", "top_color.blue"]


def test_a_thing_that_is_gone_from_the_shelf() -> None:
    answer = asked(Eyes([[], [BOTTLE]]), place(), with_bottle(), shelf_roi=SHELF)
    assert (answer.primary_event, answer.tags, answer.severity) == (
        "object_missing",
        ["object_missing.suspected"],
        2,
    )


def test_a_shelf_in_a_room_that_is_dark_on_purpose_is_watched_all_the_same() -> None:
    answer = asked(Eyes([[], [BOTTLE]]), place(), with_bottle(), shelf_roi=SHELF, expected_objects=["camera.dark"])
    assert answer.primary_event == "object_missing"


def test_a_thing_that_is_only_overlooked_is_not_gone() -> None:
    """Nothing changed on the shelf, so nobody looks at the picture before."""
    eyes = Eyes([[], [BOTTLE]])
    assert not asked(eyes, with_bottle(), with_bottle(), shelf_roi=SHELF).detected
    assert len(eyes.seen) == 1
    # Something else changed on the shelf; where the bottle was, nothing did.
    aside = with_bottle()
    ImageDraw.Draw(aside).rectangle((400, 130, 420, 160), fill=(250, 250, 250))
    assert not asked(Eyes([[], [BOTTLE]]), aside, with_bottle(), shelf_roi=SHELF).detected


def test_behind_somebody_nothing_is_missed() -> None:
    there = Detection("person", 0.8, *ELSEWHERE)
    answer = asked(Eyes([[there], [BOTTLE]]), with_person(BLUE, ELSEWHERE), with_bottle(), shelf_roi=SHELF)
    assert answer.primary_event == "human"
    assert "object_missing.suspected" not in answer.tags


@pytest.mark.parametrize(("now", "tag"), [(covered(), "camera.occluded"), (turned(place(), 0.3), "camera.moved")])
def test_a_camera_that_was_covered_or_turned(now: Image.Image, tag: str) -> None:
    answer = asked(Eyes([[]]), now, place())
    assert (answer.primary_event, answer.severity) == ("camera_issue", 2)
    assert tag in answer.tags
    assert not asked(Eyes([[]]), place(), place()).detected
    # Nobody runs and nothing is gone when the camera itself has moved.
    moved = asked(Eyes([[], [BOTTLE]]), now, with_bottle(), shelf_roi=SHELF)
    assert "object_missing.suspected" not in moved.tags


def test_something_large_in_front_is_no_move_when_it_is_recognized() -> None:
    """Unrecognized, over most of the picture, it is taken for one."""
    width, height = place().size
    lorry = Detection("truck", 0.6, 0.05, 0.05, 0.95, 0.95)
    now = place().copy()
    side = place("night").resize((round(0.9 * width), round(0.9 * height)))
    now.paste(side, (round(0.05 * width), round(0.05 * height)))
    assert asked(Eyes([[lorry]]), now, place()).primary_event == "vehicle"
    assert asked(Eyes([[]]), now, place()).tags == ["camera.moved"]


def test_a_masked_camera_is_well() -> None:
    box = (0.0, 0.0, 0.5, 1.0)
    mask = [[0.0, 0.0], [0.5, 0.0], [0.5, 1.0], [0.0, 1.0]]
    assert not asked(Eyes([[]]), masked(place(), box), masked(place(), box), privacy_masks=[mask]).detected


def test_of_a_large_picture_before_a_small_one_is_kept() -> None:
    eyes = Eyes([[SOMEBODY], [SOMEBODY]])
    large = with_person(BLUE).resize((3200, 1800))
    fields = {"camera_id": "c", "captured_at": CAPTURED_AT, "schema_version": shipped().version}
    hints = json.dumps({"prev_captured_at": JUST_NOW})
    question = Question(
        parse_fields(fields | {"hints_json": hints}), encoded(with_person(BLUE)), encoded(large, "PNG")
    )
    assert "count.single" in analyze(question, eyes, shipped(), DetectionPolicy()).tags
    assert [max(picture.size) for picture in eyes.seen] == [640, KEPT_SIDE_MAX_PX]


async def test_pictures_of_other_shapes_are_not_compared(tmp_path: Path) -> None:
    """Over HTTP, with whatever hints: the answer is about the new picture."""
    hints = json.dumps({"prev_captured_at": JUST_NOW, "shelf_roi": SHELF, "privacy_masks": [SHELF]})
    async with running_analyzer(tmp_path) as analyzer:
        await analyzer.put_vocabulary()
        for size in ((1, 1), (1, 400), (640, 100), (64, 48)):
            previous = encoded(place().resize(size), "PNG")
            status, said = await analyzer.analyze(encoded(place()), prev_infer_image=previous, hints_json=hints)
            assert (status, said["detected"], said["diff"]["used_prev_image"]) == (200, False, False), said
