import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.rig.pictures import hint_of, jpeg, jpeg_of_bytes, png, scene_of


@given(st.dictionaries(st.text(max_size=20), st.one_of(st.text(max_size=50), st.integers(), st.booleans())))
def test_a_hint_comes_back(hint: dict[str, object]) -> None:
    assert hint_of(jpeg(hint)) == hint


@given(st.integers(0, 255), st.sampled_from([320, 640, 333]), st.integers(40, 95))
def test_a_scene_survives_scaling_and_encoding(scene: int, width: int, quality: int) -> None:
    with Image.open(io.BytesIO(jpeg(scene=scene, size=(1280, 720)))) as image:
        smaller = image.convert("RGB").resize((width, width * 9 // 16))
    out = io.BytesIO()
    smaller.save(out, "JPEG", quality=quality)
    assert scene_of(out.getvalue()) == scene


def test_plain_pictures_say_nothing() -> None:
    for picture in (jpeg(), jpeg(shade=0), jpeg(shade=255), png()):
        assert hint_of(picture) is None
        assert scene_of(picture) is None
    assert scene_of(png(scene=7)) == 7


def test_what_is_no_picture_has_no_hint() -> None:
    assert hint_of(b"no picture") is None
    with pytest.raises(OSError, match="cannot identify"):
        scene_of(b"no picture")


def test_a_picture_of_a_wanted_size_is_still_one() -> None:
    picture = jpeg_of_bytes(50_000, {"a": 1})
    assert len(picture) == 50_000
    with Image.open(io.BytesIO(picture)) as image:
        image.load()
    assert hint_of(picture) == {"a": 1}
    with pytest.raises(ValueError, match="too few"):
        jpeg_of_bytes(10)
