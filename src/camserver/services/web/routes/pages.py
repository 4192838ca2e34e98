"""The web pages: the built UI's files, and its index.html for every address that is a page of it.

Pages hold no data; that comes through the API. An address that belongs to the API or to media is never answered with
a page: a program must get an error there, not HTML.
"""

from typing import Annotated

from fastapi import Path, Response
from starlette.convertors import StringConvertor, register_url_convertor

from camserver.base.errors import NotFound
from camserver.services.web.access import Gate
from camserver.services.web.calls import TheCall
from camserver.services.web.routing import Routes
from camserver.services.web.ui_files import UiFile, UiFiles

routes = Routes()

_NOT_BUILT = (
    "The web pages are not part of this installation. In a checkout, run `make ui` and start camserver again.\n"
    "ウェブ画面がこのインストールに含まれていません。"
    "チェックアウトで `make ui` を実行し、camserver を再起動してください。\n"
)


class PageAddress(StringConvertor):
    """Every address outside the folders that have no pages."""

    regex = r"(?!(?:api|hls|media|share|stream|v1)(?:/|$)).*"


register_url_convertor("page_address", PageAddress())


@routes.get("/{address:page_address}", Gate.PUBLIC, response_class=Response, include_in_schema=False)
async def page(call: TheCall, address: Annotated[str, Path(max_length=1024)]) -> Response:
    """A file of the UI, or its index.html, which shows the page that the address names."""
    ui: UiFiles = call.request.app.state.ui
    found = ui.find(address)
    if found is not None:
        return _answer(call, found)
    if "." in address.rpartition("/")[2]:
        # A file that is not there, such as a script of the version before: HTML in its place would only confuse.
        raise NotFound("there is nothing at this address", reason="no_route")
    if ui.index is None:
        return Response(_NOT_BUILT, status_code=503, media_type="text/plain")
    return _answer(call, ui.index)


def _answer(call: TheCall, file: UiFile) -> Response:
    headers = call.request.headers
    copy = file.copy_for(headers.get("accept-encoding", ""))
    if headers.get("if-none-match") == copy.headers["ETag"]:
        return Response(status_code=304, headers=dict(copy.headers))
    return Response(copy.content, media_type=file.media_type, headers=dict(copy.headers))
