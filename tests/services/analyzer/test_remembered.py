"""What was measured is remembered by a picture's bytes, up to a bound, and changes no answer."""

import json

import numpy as np
import pytest
from PIL import Image

from camserver.domain.detections import DetectionPolicy
from camserver.media.jpeg_planes import Picture
from camserver.services.analyzer import analyzing
from camserver.services.analyzer.analyzing import Prepared, Question, conclude, find, prepare
from camserver.services.analyzer.observing import Sight
from camserver.services.analyzer.remembered import Remembered
from camserver.wire.analyzer_service import parse_fields
from tests.services.analyzer.rig import CAPTURED_AT, shipped
from tests.services.analyzer.scenery import encoded, place, turned, with_person
from tests.services.analyzer.test_analyzing import JUST_NOW, RED, SOMEBODY, Eyes


def sight(size_bytes: int) -> Sight:
    return Sight(np.zeros((1, size_bytes), np.uint8), True, Image.new("RGB", (1, 1)))


def question(now: bytes, before: bytes | None = None, **hints: object) -> Question:
    fields = {"camera_id": "cam_1", "captured_at": CAPTURED_AT, "schema_version": shipped().version}
    return Question(parse_fields({**fields, "hints_json": json.dumps(hints)}), now, before)


def answered(asked: Question, prepared: Prepared) -> dict[str, object]:
    found = find(prepared, Eyes([[SOMEBODY], [SOMEBODY]]))
    answer = conclude(asked, prepared, found, shipped(), DetectionPolicy())
    return answer.model_dump(exclude={"processing_ms"})


def test_only_the_same_bytes_are_known() -> None:
    remembered = Remembered()
    remembered.put(b"one", sight(10))
    assert remembered.get(b"another") is None
    known = remembered.get(b"one")
    assert known is not None
    assert known.picture is None, "the picture itself is not kept"


def test_it_is_bounded_and_forgets_what_was_asked_for_the_longest_ago() -> None:
    remembered = Remembered(bytes_max=30)
    for name in (b"1", b"2", b"3", b"3"):
        remembered.put(name, sight(10))
    assert remembered.get(b"1") is not None
    remembered.put(b"4", sight(10))
    assert [remembered.get(name) is not None for name in (b"1", b"2", b"3", b"4")] == [True, False, True, True]
    remembered.put(b"5", sight(31))
    assert all(remembered.get(name) is None for name in (b"1", b"3", b"4", b"5"))


@pytest.mark.parametrize("later", [with_person(RED), turned(place(), 0.3)])
def test_answers_are_the_same_and_the_picture_before_is_not_decoded_again(
    later: Image.Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = encoded(place()), encoded(later)
    asked, remembered = question(second, first), Remembered()
    prepare(question(first), None, remembered)
    without = answered(asked, prepare(asked))
    opened, open_picture = list[str](), analyzing.open_picture

    def noted(content: bytes, name: str) -> Picture:
        opened.append(name)
        return open_picture(content, name)

    monkeypatch.setattr(analyzing, "open_picture", noted)
    assert answered(asked, prepare(asked, None, remembered)) == without
    assert opened == ["infer_image"]


def test_where_the_model_may_have_to_look_at_it_the_picture_before_is_there() -> None:
    first, second, remembered = encoded(place()), encoded(with_person(RED)), Remembered()
    prepare(question(first), None, remembered)
    before = prepare(question(second, first, prev_captured_at=JUST_NOW), None, remembered).observer.before
    assert before is not None
    assert before.picture is not None
