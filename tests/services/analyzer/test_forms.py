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


def asked(body: bytes, piece_bytes: int | None = None) -> Request:
    """The body arrives at once, or in pieces of so many bytes."""
    step = piece_bytes or max(len(body), 1)
    pieces = [body[at : at + step] for at in range(0, max(len(body), 1), step)]

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

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


NAMED = b"--" + BOUNDARY.encode() + b'\r\nContent-Disposition: form-data; name="infer_image"; filename="a b.jpg"\r\n'
OTHER_WAYS = {
    "as everybody": GOOD,
    "with a type": NAMED + b"Content-Type: image/jpeg\r\n\r\nxyz\r\n" + END,
    "in another order": NAMED.replace(b"Content-D", b"X-More: 1\r\nContent-D") + b"\r\nxyz\r\n" + END,
    "in small letters": NAMED.lower() + b"\r\nxyz\r\n" + END,
    "with words after it": GOOD + b"nobody reads this",
    "with the boundary in a picture": part("infer_image", b"a\r\n--" + BOUNDARY.encode() + b"b") + END,
    "with lines in a picture": part("infer_image", b"\r\n\r\n--\r\n" + BOUNDARY.encode()) + END,
    "empty": END,
    "an empty part": part("camera_id", b"") + END,
    "cut off": GOOD[:-3],
    "no text": part("camera_id", b"\xff\xfe") + END,
    "twice": part("infer_image", b"1") + part("infer_image", b"2") + END,
    "without a name": GOOD.replace(b'name="camera_id"', b'name=""'),
    "too long a text": part("camera_id", b"x" * (forms.TEXT_BYTES_MAX + 1)) + END,
    "many parts": b"".join(part(f"p{n}", b"") for n in range(forms.PARTS_MAX)) + END,
    "too many parts": b"".join(part(f"p{n}", b"") for n in range(forms.PARTS_MAX + 1)) + END,
}


async def read(body: bytes, piece_bytes: int | None = None) -> forms.Form | str:
    try:
        return await read_form(asked(body, piece_bytes), TIMEOUT_SEC)
    except BadInput as error:
        return error.message


@pytest.mark.parametrize("way", OTHER_WAYS)
async def test_a_form_says_the_same_read_at_once_and_piece_by_piece(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = OTHER_WAYS[way]
    at_once = await read(body), await read(body, 1000)
    monkeypatch.setattr(forms, "AT_ONCE_BYTES_MAX", 0)
    assert at_once == (await read(body), await read(body, 1000))


async def test_a_body_that_is_too_long_to_be_held_is_read_piece_by_piece() -> None:
    picture = b"x" * (forms.AT_ONCE_BYTES_MAX + 1)
    said = await read(part("camera_id", b"cam_1") + part("infer_image", picture) + END, 60_000)
    assert said == forms.Form({"camera_id": "cam_1"}, {"infer_image": picture})
