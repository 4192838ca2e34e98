"""Covered and moved, from two pictures in numbers."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.tampering import PARTS_MIN, Compared, tampering_tags

SAME = Compared(structure_before=0.5, structure=0.5, likeness=0.9, parts=12, agreeing=12, is_recoloured=False)
BLANK = replace(SAME, structure=0.01, likeness=0.0, parts=0, agreeing=0)
ELSEWHERE = replace(SAME, likeness=0.05, agreeing=1)


@pytest.mark.parametrize(
    ("compared", "tags"),
    [
        (SAME, ()),
        (BLANK, ("camera.occluded",)),
        (replace(BLANK, likeness=0.6), ()),  # the lamp went out: the old texture, fainter
        (replace(BLANK, structure_before=0.03, structure=0.0), ()),  # there was nothing to see before
        (replace(BLANK, structure=0.1), ()),  # a fifth is left
        (ELSEWHERE, ("camera.moved",)),
        (replace(ELSEWHERE, agreeing=3), ("camera.moved",)),  # a burned-in clock stays where it was
        (replace(ELSEWHERE, agreeing=4), ()),  # something large in front
        (replace(ELSEWHERE, is_recoloured=True), ()),  # to infra-red and back
        (replace(ELSEWHERE, parts=PARTS_MIN - 1, agreeing=0), ()),  # a bare wall, and somebody who walks by
    ],
)
def test_what_happened_between_two_pictures(compared: Compared, tags: tuple[str, ...]) -> None:
    assert tampering_tags(compared, is_glaring=False) == tags


def test_headlights_are_no_cover() -> None:
    assert tampering_tags(BLANK, is_glaring=True) == ()


_shares = st.floats(0, 1)


@given(st.builds(Compared, _shares, _shares, st.floats(-1, 1), st.just(12), st.integers(0, 12), st.booleans()))
def test_a_picture_that_agrees_is_never_complained_of(compared: Compared) -> None:
    tags = tampering_tags(compared, is_glaring=False)
    assert len(tags) <= 1
    if compared.agreeing > 3:
        assert "camera.moved" not in tags
    if compared.structure >= compared.structure_before:
        assert "camera.occluded" not in tags
