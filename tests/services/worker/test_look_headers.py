"""What a look's header says of its picture, and of a failure."""

import pytest

from camserver.domain.gate import Verdict
from camserver.domain.health import STALLED
from camserver.domain.leases import Fault
from camserver.media.change import Reference
from camserver.media.jpeg_picture import JpegPicture
from camserver.media.packets import Miss
from camserver.media.pictures import develop
from camserver.services.worker.darkroom import Print
from camserver.services.worker.look_headers import LookHeaders
from tests.rig.clock import ManualClock
from tests.rig.pictures import jpeg
from tests.services.worker.build import start_message


def headers() -> LookHeaders:
    return LookHeaders(start_message(), 1, "boot", ManualClock())


@pytest.mark.parametrize(
    ("miss", "status", "code"),
    [
        (Miss(Fault.REFUSED, "no"), "error", "refused"),
        (Miss(Fault.NO_VIDEO, "no", timed_out=True), "timeout", "timeout"),
        # An open connection that fell silent: the server calls the camera down at once.
        (Miss(Fault.NO_VIDEO, "no", timed_out=True, is_stalled=True), "timeout", STALLED),
    ],
)
def test_a_failed_look_says_why(miss: Miss, status: str, code: str) -> None:
    header = headers().failed(miss, 5)
    assert (header.status, header.error_code) == (status, code)


def test_a_good_look_says_what_the_camera_looks_at() -> None:
    picture = JpegPicture(jpeg(size=(640, 360)), 640)
    developed = develop(
        picture, infer_width=640, diff_width=320, before=Reference(), pixel_delta=20, with_contrast=False
    )
    header = headers().ok(Print(picture, developed, Verdict.SKIP), None, 0, 5, None)
    assert developed.view is not None
    assert (header.structure, header.view_hex) == (developed.view.structure, developed.view.view_hex)
