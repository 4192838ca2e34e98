"""What the parameter sets of H.264 and H.265 say: size, profile, and what an MP4 file must know of them.

Pure bytes, no decoder: the streamer has hundreds of viewers and no reason to load one.
"""

from collections.abc import Callable
from dataclasses import dataclass

from camserver.base.errors import BadInput
from camserver.media.nal_units import AVC_PPS, AVC_SPS, HEVC_PPS, HEVC_SPS, HEVC_VPS, avc_type, hevc_type, split

# Of these profiles the sequence parameter set has more in it (ITU-T H.264 7.3.2.1.1).
_AVC_HIGH = frozenset({100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135})
SIZE_MAX = 16_384


@dataclass(frozen=True, slots=True)
class Described:
    """A video as an MP4 file describes it."""

    codec: str  # h264, hevc
    mime: str  # as browsers name the codec: avc1.64001f
    entry: bytes  # name of the sample entry: avc1, hvc1
    config_name: bytes  # of the box in it: avcC, hvcC
    config: bytes
    width: int
    height: int


def describe(codec: str, extradata: bytes) -> Described:
    """What the parameter sets in Annex B say; BadInput when they are not all there or make no sense."""
    nals = split(extradata)
    try:
        if codec == "h264":
            return _avc(nals)
        if codec == "hevc":
            return _hevc(nals)
    except IndexError:
        raise BadInput(f"the parameter sets of the {codec} video end too early") from None
    raise BadInput(f"{codec} can't be played in browsers")


# Constrained baseline, main and high: what browsers decode.
_AVC_PLAYED = frozenset({66, 77, 100})


def is_played_everywhere(codec: str, extradata: bytes) -> bool:
    """Whether browsers play it; of H.265, which some do, those who don't will say so."""
    if codec != "h264":
        return codec == "hevc"
    sps = _first(split(extradata), AVC_SPS, avc_type)
    return sps is None or sps[1] in _AVC_PLAYED


def _avc(nals: list[bytes]) -> Described:
    sps = _first(nals, AVC_SPS, avc_type)
    pps = [nal for nal in nals if avc_type(nal[0]) == AVC_PPS]
    if sps is None or not pps:
        raise BadInput("the H.264 video comes without its parameter sets")
    width, height = _avc_size(sps)
    config = bytes((1, sps[1], sps[2], sps[3], 0xFF, 0xE1)) + _sized(sps) + bytes((len(pps),))
    config += b"".join(_sized(one) for one in pps)
    return Described("h264", f"avc1.{sps[1:4].hex()}", b"avc1", b"avcC", config, width, height)


def _hevc(nals: list[bytes]) -> Described:
    sps = _first(nals, HEVC_SPS, hevc_type)
    kinds = {kind: [nal for nal in nals if hevc_type(nal[0]) == kind] for kind in (HEVC_VPS, HEVC_SPS, HEVC_PPS)}
    if sps is None or not all(kinds.values()):
        raise BadInput("the H.265 video comes without its parameter sets")
    said = _hevc_said(sps)
    profile, compatibility, constraints, level = said.tier[0], said.tier[1:5], said.tier[5:11], said.tier[11]
    config = (
        bytes((1,))
        + said.tier
        + bytes((0xF0, 0, 0xFC, 0xFC | said.chroma, 0xF8 | said.luma_depth, 0xF8 | said.chroma_depth, 0, 0, 0x0F))
        + bytes((len(kinds),))
        + b"".join(
            bytes((0x80 | kind,)) + len(found).to_bytes(2, "big") + b"".join(_sized(nal) for nal in found)
            for kind, found in kinds.items()
        )
    )
    flags = int(f"{int.from_bytes(compatibility, 'big'):032b}"[::-1], 2)
    mime = f"hvc1.{profile & 31}.{flags:X}.{'H' if profile & 0x20 else 'L'}{level}"
    mime += "".join(f".{byte:X}" for byte in constraints.rstrip(b"\0"))
    return Described("hevc", mime, b"hvc1", b"hvcC", config, said.width, said.height)


def _first(nals: list[bytes], kind: int, type_of: Callable[[int], int]) -> bytes | None:
    return next((nal for nal in nals if type_of(nal[0]) == kind and len(nal) > 4), None)


def _sized(nal: bytes) -> bytes:
    return len(nal).to_bytes(2, "big") + nal


class _Bits:
    """Bits one after the other, of a NAL unit without its header."""

    def __init__(self, payload: bytes) -> None:
        plain = payload.replace(b"\0\0\3", b"\0\0")
        self._bits = f"{int.from_bytes(plain, 'big'):0{8 * len(plain)}b}"
        self._at = 0

    def take(self, count: int) -> int:
        end = self._at + count
        if end > len(self._bits):
            raise IndexError
        text, self._at = self._bits[self._at : end], end
        return int(text, 2) if text else 0

    def number(self) -> int:
        """Exp-Golomb, without sign."""
        one = self._bits.find("1", self._at)
        if one < 0 or one - self._at > 31:
            raise IndexError
        zeros, self._at = one - self._at, one
        return self.take(zeros + 1) - 1

    def signed(self) -> int:
        number = self.number()
        return (number + 1) // 2 if number % 2 else -(number // 2)


def _checked(width: int, height: int) -> tuple[int, int]:
    if not (0 < width <= SIZE_MAX and 0 < height <= SIZE_MAX):
        raise BadInput(f"the video says that it is {width} x {height}")
    return width, height


def _avc_size(sps: bytes) -> tuple[int, int]:
    bits = _Bits(sps[1:])
    profile = bits.take(8)
    bits.take(16)
    bits.number()
    chroma = 1
    if profile in _AVC_HIGH:
        chroma = bits.number()
        if chroma == 3:
            bits.take(1)
        bits.number()
        bits.number()
        bits.take(1)
        if bits.take(1):
            for number in range(8 if chroma != 3 else 12):
                if bits.take(1):
                    _skip_scaling(bits, 16 if number < 6 else 64)
    bits.number()
    order = bits.number()
    if order == 0:
        bits.number()
    elif order == 1:
        bits.take(1)
        bits.signed()
        bits.signed()
        for _ in range(bits.number()):
            bits.signed()
    bits.number()
    bits.take(1)
    columns, rows = bits.number() + 1, bits.number() + 1
    is_frames = bits.take(1)
    if not is_frames:
        bits.take(1)
    bits.take(1)
    left = right = top = bottom = 0
    if bits.take(1):
        left, right, top, bottom = bits.number(), bits.number(), bits.number(), bits.number()
    unit_x = 1 if chroma in (0, 3) else 2
    unit_y = (2 if chroma == 1 else 1) * (2 - is_frames)
    return _checked(
        16 * columns - unit_x * (left + right),
        16 * rows * (2 - is_frames) - unit_y * (top + bottom),
    )


def _skip_scaling(bits: _Bits, count: int) -> None:
    last = following = 8
    for _ in range(count):
        if following:
            following = (last + bits.signed()) % 256
        last = following or last


@dataclass(frozen=True, slots=True)
class _HevcSaid:
    tier: bytes  # general profile, tier and level as they stand in the set: 12 bytes
    chroma: int
    luma_depth: int
    chroma_depth: int
    width: int
    height: int


def _hevc_said(sps: bytes) -> _HevcSaid:
    bits = _Bits(sps[2:])
    bits.take(4)
    sub_layers = bits.take(3)
    bits.take(1)
    tier = bits.take(96).to_bytes(12, "big")
    if sub_layers:
        present = [(bits.take(1), bits.take(1)) for _ in range(8)][:sub_layers]
        for has_profile, has_level in present:
            bits.take(88 * has_profile + 8 * has_level)
    bits.number()
    chroma = bits.number()
    if chroma == 3:
        bits.take(1)
    width, height = bits.number(), bits.number()
    if bits.take(1):
        unit_x, unit_y = (2 if chroma in (1, 2) else 1), (2 if chroma == 1 else 1)
        width -= unit_x * (bits.number() + bits.number())
        height -= unit_y * (bits.number() + bits.number())
    luma_depth, chroma_depth = bits.number(), bits.number()
    return _HevcSaid(tier, chroma & 3, luma_depth & 7, chroma_depth & 7, *_checked(width, height))
