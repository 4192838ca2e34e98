"""The pages: a few files, read once when the program starts. They hold no data; that comes through the API."""

import hashlib
from importlib import resources

from fastapi import Response

from camserver.services.web.access import Gate
from camserver.services.web.calls import TheCall
from camserver.services.web.routing import Routes

routes = Routes()

_KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
# Address → file in the folder pages.
_FILES = {
    "/": "status.html",
    "/sign-in": "sign-in.html",
    "/setup": "setup.html",
    "/pages/style.css": "style.css",
    "/pages/words.js": "words.js",
    "/pages/setup.js": "setup.js",
    "/pages/sign-in.js": "sign-in.js",
    "/pages/status.js": "status.js",
}


def _add_page(path: str, name: str) -> None:
    content = resources.files("camserver.services.web").joinpath("pages", name).read_bytes()
    kind = _KINDS[name.rpartition(".")[2]]
    headers = {"ETag": f'"{hashlib.sha256(content).hexdigest()[:32]}"', "Cache-Control": "no-cache"}

    @routes.get(path, Gate.PUBLIC, response_class=Response, include_in_schema=False, name=name)
    async def page(call: TheCall) -> Response:
        if call.request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=kind, headers=headers)


for _path, _name in _FILES.items():
    _add_page(_path, _name)
