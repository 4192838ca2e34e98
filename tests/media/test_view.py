"""The two values a look carries about its view: what changes them and what does not."""

from functools import lru_cache
from itertools import islice

import numpy as np
import pytest
from numpy.typing import NDArray

from camserver.domain.sight import KNOWN_AGREEMENT, OTHER_AGREEMENT, STEADY_AGREEMENT, STRUCTURE_MIN, agreement
from camserver.media.scenes import SCENES, draw_scene
from camserver.media.view import View, view_of

Gray = NDArray[np.uint8]


@lru_cache
def grays(name: str) -> list[Gray]:
    frames = islice(draw_scene(SCENES[name]), 0, 60, 15)
    return [frame.reformat(320, 180, format="gray").to_ndarray().astype(np.uint8) for frame in frames]


def seen(gray: NDArray[np.generic]) -> View:
    found = view_of(np.ascontiguousarray(np.clip(gray, 0, 255).astype(np.uint8)))
    assert found is not None
    return found


@pytest.mark.parametrize("name", SCENES)
def test_a_live_scene_has_texture_and_one_view(name: str) -> None:
    views = [seen(gray) for gray in grays(name)]
    assert min(view.structure for view in views) > 5 * STRUCTURE_MIN
    assert min(agreement(views[0].view_hex, view.view_hex) for view in views) > KNOWN_AGREEMENT


@pytest.mark.parametrize("light", [0.3, 0.6, 1.2])
def test_light_moves_nothing(light: float) -> None:
    gray = grays("quiet")[0]
    assert agreement(seen(gray).view_hex, seen(gray * light).view_hex) > STEADY_AGREEMENT


def test_a_camera_that_is_turned_sees_another_view() -> None:
    gray = grays("moving")[0]
    for turned in (np.roll(gray, 100, axis=1), np.roll(gray, 60, axis=0), gray[::-1]):
        assert agreement(seen(gray).view_hex, seen(turned).view_hex) < OTHER_AGREEMENT


def test_a_covered_lens_has_no_texture() -> None:
    noise = np.random.default_rng(3)
    black = np.full((180, 320), 16)
    palm = 30 + np.linspace(0, 60, 320)[None, :] + noise.normal(0, 4, (180, 320))
    assert seen(black).structure == 0
    assert seen(palm).structure < 0.15 * seen(grays("quiet")[0]).structure


def test_a_portrait_and_an_odd_size_have_a_view_and_a_thumbnail_has_none() -> None:
    noise = np.random.default_rng(5)
    for size in ((427, 240), (181, 319), (90, 160)):
        assert len(seen(noise.integers(0, 255, size)).view_hex) == 36
    assert view_of(np.zeros((8, 12), np.uint8)) is None
