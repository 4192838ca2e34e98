"""The pictures that checks send are what they are said to be."""

import io

import pytest
from PIL import Image

from camserver.clients.conformance import samples
from camserver.domain.vocabulary import parse_vocabulary
from camserver.wire.analyzer import IMAGE_BYTES_MAX


def opened(content: bytes) -> Image.Image:
    picture = Image.open(io.BytesIO(content))
    picture.load()
    return picture


@pytest.mark.parametrize("form", ["JPEG", "PNG"])
def test_a_scene_is_a_picture(form: str) -> None:
    assert opened(samples.scene(form)).format == form


@pytest.mark.parametrize("more", [4, 5, 7, 8, 65_537, 65_538, 65_540, 65_541, 200_003])
def test_a_padded_picture_has_the_length_asked_for_and_can_be_read(more: int) -> None:
    length = len(samples.scene()) + more
    content = samples.padded(length)
    assert len(content) == length
    assert opened(content).size == samples.SIZE


def test_the_largest_is_allowed_and_the_next_is_not() -> None:
    assert len(samples.largest()) == IMAGE_BYTES_MAX
    assert len(samples.too_large()) == IMAGE_BYTES_MAX + 1


def test_half_a_picture_can_not_be_read() -> None:
    with pytest.raises(OSError, match="truncated"):
        opened(samples.cut_off())


def test_a_bomb_is_small_and_claims_to_be_huge() -> None:
    content = samples.bomb()
    assert len(content) < 10_000
    with pytest.raises(Image.DecompressionBombError):
        opened(content)


def test_the_other_vocabulary_is_one_and_says_less() -> None:
    shipped = samples.shipped_vocabulary()
    other = parse_vocabulary(samples.other_vocabulary(shipped))
    assert other.version == samples.OTHER_VERSION
    assert not other.has("camera.dark")
