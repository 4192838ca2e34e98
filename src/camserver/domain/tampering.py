"""Whether somebody covered or turned a camera between one picture and the next.

For an analyzer, which remembers nothing and has only the two pictures. What a camera's usual views are, and whether
it stays that way, is `domain.sight`'s, on the server. The numbers are measured outside of what is masked.

- covered: nearly all texture is gone, and what is left is not the old texture in less light. A lamp that goes out
  leaves some of that; where it leaves nothing at all, nobody can tell it from a cover.
- moved: in nearly every part of the picture the texture is another. Something in front of a camera leaves parts as
  they were; what covers more than half of the picture and is not recognized is taken for a move.
"""

from dataclasses import dataclass

from camserver.domain.sight import BLANK_SHARE, STRUCTURE_MIN

TAG_COVERED = "camera.occluded"
TAG_MOVED = "camera.moved"
# Of the parts of a picture, how many must have texture in both pictures to say anything; and which share of these may
# still agree in a picture of something else: a burned-in clock, bars along the direction of a turn.
PARTS_MIN = 6
AGREEING_SHARE_MAX = 0.25
# Correlation of the textures of one part from which on it shows the same. Figures are in docs/adr/0010; they are from
# one street and three made-up scenes, in dry weather.
PART_AGREES = 0.4
# … and of the whole picture, above which the old texture is still there.
SAME_TEXTURE = 0.3


@dataclass(frozen=True, slots=True)
class Compared:
    """Two pictures of one camera in numbers."""

    structure_before: float  # share of the picture that has texture, 0..1
    structure: float
    likeness: float  # correlation of the textures, -1..1
    parts: int  # parts of the picture with texture in both
    agreeing: int  # … whose textures correlate
    is_recoloured: bool  # one in colour, the other without: a camera that went over to infra-red, or back


def tampering_tags(compared: Compared, is_glaring: bool) -> tuple[str, ...]:
    """What happened to the camera between the two pictures. `is_glaring`: light, not a cover, may hide everything."""
    if compared.structure_before < STRUCTURE_MIN:
        return ()
    if compared.structure < BLANK_SHARE * compared.structure_before:
        is_light = is_glaring or compared.likeness >= SAME_TEXTURE
        return () if is_light else (TAG_COVERED,)
    if compared.is_recoloured or compared.parts < PARTS_MIN:
        return ()
    return (TAG_MOVED,) if compared.agreeing <= AGREEING_SHARE_MAX * compared.parts else ()
