"""A form that was read leaves nothing behind: its pictures go with the request, not with the next collection."""

import gc
from collections.abc import Iterator

import pytest
from starlette.requests import Request

from camserver.base.errors import BadInput
from camserver.services.analyzer import forms
from camserver.services.analyzer.forms import read_form

BOUNDARY = "b" * 32
TIMEOUT_SEC = 60.0


def part(name: str, content: bytes) -> bytes:
    return f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode() + content + b"\r\n"


def asked(body: bytes) -> Request:
    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": body, "more_body": False}

    headers = [(b"content-type", f"multipart/form-data; boundary={BOUNDARY}".encode())]
    return Request({"type": "http", "method": "POST", "path": "/v1/analyze", "headers": headers}, receive)


END = f"--{BOUNDARY}--\r\n".encode()
GOOD = part("camera_id", b"cam_1") + part("infer_image", b"x" * 100_000) + END


async def refused(body: bytes) -> str:
    """Why; without the error, which holds on to where it was raised."""
    try:
        await read_form(asked(body), TIMEOUT_SEC)
    except BadInput as error:
        return error.message
    return ""


def left_behind() -> int:
    return sum(isinstance(one, forms._Reader | forms.MultipartParser) for one in gc.get_objects())


@pytest.fixture
def without_collections() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("without_collections")
async def test_a_form_leaves_nothing_to_collect() -> None:
    form = await read_form(asked(GOOD), TIMEOUT_SEC)
    assert (form.texts, len(form.pictures["infer_image"])) == ({"camera_id": "cam_1"}, 100_000)
    assert left_behind() == 0


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (part("camera_id", b"1") + part("camera_id", b"2") + END, "twice"),
        (GOOD[:-10], "in the middle"),
        (b"nothing", "no multipart form"),
    ],
)
@pytest.mark.usefixtures("without_collections")
async def test_nor_does_one_that_is_refused(body: bytes, why: str) -> None:
    assert why in await refused(body)
    assert left_behind() == 0
