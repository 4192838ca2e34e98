"""The page of an exported case: what is drawn on its pictures."""

import pytest

from camserver.domain.analysis import Box
from camserver.services.web.case_index import figure
from camserver.store.frame_pages import FrameDetail, Margins


def shown_frame(infer: tuple[int, int], bars: Margins) -> FrameDetail:
    return FrameDetail(
        frame_uuid="f1", event_uuid=None, camera_id="cam_1", camera_name="Gate", site="main", captured_at=0,
        received_at=0, late=False, status="ok", error_code=None, verdict="analyze", diff_ratio=None, luma_delta=None,
        blur_score=None, full_w=1920, full_h=1080, infer_w=infer[0], infer_h=infer[1], letterbox=bars,
        infer_hash64_hex=None, pictures=("infer", "full"), analyzed=True, detected=True, primary_event="human",
        unknown_flag=False, severity=1, confidence=0.9, count_hint=1, retention_class="normal",
        boxes=(Box(0.25, 0.25, 0.75, 0.75, "person", 0.9),), warnings=(), tags=(), cursor="",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("infer", "letterbox", "place"),
    [
        ((640, 360), (0, 80, 0, 80), "left:25.00%;top:25.00%;width:50.00%;height:50.00%"),
        ((640, 640), (140, 0, 140, 0), "left:25.00%;top:5.56%;width:50.00%;height:88.89%"),
    ],
    ids=["the camera's own bars", "bars that were added"],
)
def test_boxes_of_the_page_lie_where_the_full_picture_has_them(
    infer: tuple[int, int], letterbox: tuple[int, int, int, int], place: str
) -> None:
    frame = shown_frame(infer, Margins(*letterbox))
    assert place in figure(frame, "p.jpg", "full", "UTC", ())
    assert "left:25.00%;top:25.00%;width:50.00%;height:50.00%" in figure(frame, "p.jpg", "infer", "UTC", ())
