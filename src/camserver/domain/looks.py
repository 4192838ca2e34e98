"""When a camera is looked at, and how long a look may take (decisions 4 to 7).

The schedule is a fixed grid per camera: a look that took long moves none of the later ones, and one that took
longer than the interval leaves out the moments it overran. Cameras are spread over the interval by their key.
"""

from dataclasses import dataclass
from typing import Literal

from camserver.base.errors import BadInput
from camserver.domain.policy import setting

NetworkZone = Literal["local", "vpn"]

KEYFRAME_WAIT_MIN_MS = 3000
KEYFRAME_WAIT_MAX_MS = 25_000
# Somebody who looked is likely to look again within this time.
WATCHED_MS = 30_000
# 2**64 divided by the golden ratio: consecutive keys land far apart and evenly.
_SPREAD = 0x9E3779B97F4A7C15


@dataclass(frozen=True, slots=True)
class LookPolicy:
    """When and how a camera is looked at; a camera may have its own values."""

    polling_interval_sec: int = setting(60, "Time between two looks of a camera.", min=1, max=86_400)
    connect_timeout_sec: float = setting(3.0, "Time-out to reach a camera in the local network.", min=0.1, max=60)
    connect_timeout_vpn_sec: float = setting(5.0, "Time-out to reach a camera over VPN.", min=0.1, max=60)
    infer_width: int = setting(640, "Width in pixels of the picture that is analyzed.", min=64, max=3840)
    diff_width: int = setting(320, "Width in pixels at which change is measured.", min=32, max=1920)
    quiet_picture_every_sec: int = setting(
        60, "Pictures on which nothing happened are kept at most once in this time.", min=1, max=86_400
    )
    down_after_looks: int = setting(3, "Failed looks in a row after which a camera is down.", min=1, max=1000)
    down_after_silence_sec: int = setting(
        30, "Time without packets on an open connection after which a camera is down.", min=1, max=3600
    )
    down_report_after_sec: int = setting(
        60, "How long a camera must be down before it is reported.", min=0, max=86_400
    )
    up_after_looks: int = setting(2, "Good looks in a row after which a camera is back.", min=1, max=1000)
    hold_up_to_sec: float = setting(
        5.0,
        "Cameras with at most this time between two looks stay connected; others are opened for each look.",
        min=0,
        max=3600,
    )
    opening_max: int = setting(32, "Connections to cameras that a worker opens at the same time.", min=1, max=1000)
    opening_subnet_max: int = setting(16, "Of these, in one subnet (/24, or /64 with IPv6).", min=1, max=1000)
    device_streams_max: int = setting(
        64, "Connections at the same time to one device, where its cameras do not say otherwise.", min=1, max=1000
    )


def phase_ms(camera_key: int, interval_ms: int) -> int:
    """Where in its interval a camera is looked at, 0..interval-1; the same at every worker."""
    return ((camera_key * _SPREAD) % 2**64 * interval_ms) >> 64


def next_due_ms(camera_key: int, interval_ms: int, after_ms: int) -> int:
    """The first moment of the camera's grid after `after_ms`.

    Asked again when a look *ended*, so that looks of one camera never overlap.
    """
    if interval_ms <= 0:
        raise BadInput(f"Interval {interval_ms} ms of camera {camera_key} must be above 0. Correct the setting.")
    phase = phase_ms(camera_key, interval_ms)
    return after_ms + interval_ms - (after_ms - phase) % interval_ms


def connect_timeout_ms(zone: NetworkZone, policy: LookPolicy) -> int:
    return round((policy.connect_timeout_vpn_sec if zone == "vpn" else policy.connect_timeout_sec) * 1000)


def keyframe_wait_ms(learned_gop_ms: int | None) -> int:
    """How long to wait for the first keyframe: two groups of pictures, within bounds."""
    return min(max(KEYFRAME_WAIT_MIN_MS, 2 * (learned_gop_ms or 0)), KEYFRAME_WAIT_MAX_MS)


def is_held(interval_ms: int, first_picture_ms: int | None, is_watched: bool, policy: LookPolicy) -> bool:
    """Whether a camera stays connected between looks; else it is opened, looked at and closed (a patrol).

    Also when its pictures are long in coming (rare keyframes): waiting for them half of the time costs more than
    staying.
    """
    if is_watched or interval_ms <= policy.hold_up_to_sec * 1000:
        return True
    return 2 * (first_picture_ms or 0) >= interval_ms
