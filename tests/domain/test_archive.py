"""Where copies lie, how long they stay, and how much a camera may send."""

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.archive import (
    DAY_MS,
    ArchivePolicy,
    Picture,
    copy_path,
    day_of,
    fits,
    is_safe_path,
    kept_until,
    once_key,
)
from camserver.domain.retention import Retention

TOKYO = ZoneInfo("Asia/Tokyo")
BERLIN = ZoneInfo("Europe/Berlin")
UUID = "0198c0de-0000-7000-8000-000000000001"
CASE = "0198c0de-0000-7000-8000-00000000ca5e"


def ms(*parts: int) -> int:
    return round(datetime(*parts, tzinfo=UTC).timestamp() * 1000)  # type: ignore[misc, arg-type]  # a date's parts


def picture(at_ms: int, camera_id: str = "cam_2f_19") -> Picture:
    return Picture(camera_id, UUID, at_ms)


@pytest.mark.parametrize(
    ("retention", "case_uuid", "path"),
    [
        (Retention.NORMAL, None, "camera-archive/2026/01/01/cam_2f_19"),
        (Retention.QUARANTINE, None, "camera-quarantine/2026/01/cam_2f_19"),
        (Retention.CASE, None, "camera-quarantine/2026/01/cam_2f_19"),
        (Retention.NORMAL, CASE, f"case/{CASE}/cam_2f_19"),
        (Retention.QUARANTINE, CASE, f"case/{CASE}/cam_2f_19"),
    ],
)
def test_a_copy_lies_in_the_folder_of_its_class_and_the_sites_day(
    retention: Retention, case_uuid: str | None, path: str
) -> None:
    new_year_in_tokyo = ms(2025, 12, 31, 15, 0, 5) + 7
    assert copy_path(picture(new_year_in_tokyo), retention, case_uuid, TOKYO) == (
        f"{path}/20260101T000005.007+0900_{UUID}.jpg"
    )


def test_the_hour_that_comes_twice_has_two_names() -> None:
    first, second = ms(2026, 10, 25, 0, 30), ms(2026, 10, 25, 1, 30)
    paths = {copy_path(picture(at), Retention.NORMAL, None, BERLIN) for at in (first, second)}
    assert paths == {
        f"camera-archive/2026/10/25/cam_2f_19/20261025T023000.000+0200_{UUID}.jpg",
        f"camera-archive/2026/10/25/cam_2f_19/20261025T023000.000+0100_{UUID}.jpg",
    }


@given(
    st.text(max_size=200),
    st.text(min_size=1, max_size=80),
    st.integers(0, 4_102_444_800_000),
    st.sampled_from(Retention),
    st.none() | st.text(max_size=80),
    st.sampled_from([UTC, TOKYO, BERLIN, ZoneInfo("America/St_Johns"), ZoneInfo("Pacific/Kiritimati")]),
)
def test_whatever_the_names_are_a_path_stays_below_its_root(
    camera_id: str, frame_uuid: str, at_ms: int, retention: Retention, case_uuid: str | None, zone: tzinfo
) -> None:
    path = copy_path(Picture(camera_id, frame_uuid, at_ms), retention, case_uuid, zone)
    assert is_safe_path(path)
    assert len(path) <= 255
    assert path.split("/")[0] in ("camera-archive", "camera-quarantine", "case")


@pytest.mark.parametrize("path", ["", "/a", "a/", "a//b", "../a", "a/..", "a/.b", "a\\b", "a b", "a\n", "a\0", "ä"])
def test_other_paths_are_not_ours(path: str) -> None:
    assert not is_safe_path(path)


@given(st.integers(0, 4_102_444_800_000), st.integers(1, 4_102_444_800_000))
def test_two_moments_of_one_frame_have_two_names_in_order(at_ms: int, later_ms: int) -> None:
    one = copy_path(picture(at_ms), Retention.NORMAL, None, TOKYO)
    other = copy_path(picture(at_ms + later_ms), Retention.NORMAL, None, TOKYO)
    assert one < other


def test_copies_stay_fourteen_or_sixty_days_or_as_long_as_their_case() -> None:
    policy = ArchivePolicy()
    assert kept_until(Retention.NORMAL, False, 1000, policy) == 1000 + 14 * DAY_MS
    assert kept_until(Retention.QUARANTINE, False, 1000, policy) == 1000 + 60 * DAY_MS
    assert kept_until(Retention.CASE, False, 1000, policy) == 1000 + 60 * DAY_MS
    assert kept_until(Retention.NORMAL, True, 1000, policy) is None


@given(st.lists(st.integers(1, 3_000_000), max_size=40))
def test_a_camera_never_sends_more_than_its_quota(sizes: list[int]) -> None:
    policy = ArchivePolicy(camera_day_bytes=10_000_000)
    sent = 0
    for size in sizes:
        if fits(sent, size, policy):
            sent += size
        else:
            assert sent + size > 10_000_000
    assert sent <= 10_000_000


def test_a_day_is_the_sites() -> None:
    assert day_of(ms(2026, 3, 31, 14, 59), TOKYO) == "2026-03-31"
    assert day_of(ms(2026, 3, 31, 15, 0), TOKYO) == "2026-04-01"


def test_a_picture_goes_once_to_an_archive_and_once_more_for_a_case() -> None:
    keys = {once_key(1, 2, None), once_key(1, 23, None), once_key(12, 3, None), once_key(1, 2, 3), once_key(1, 2, 4)}
    assert len(keys) == 5
    assert all(len(key) <= 96 for key in (*keys, once_key(2**62, 2**62, 2**62)))
