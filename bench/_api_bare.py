"""The limit of a request: bare FastAPI routes as uvicorn serves them, which answer with the same JSON and bytes.

They check nobody, read nothing and are told beforehand what to answer; FastAPI makes JSON of the same models. uvicorn
runs as it comes with its fast parts (uvloop, httptools) and without its log of requests.
"""

import asyncio
import base64
import json
import sys
from typing import Any

import uvicorn
import uvloop
from fastapi import FastAPI, Response

from camserver.wire import api
from tests.rig.polling import until


def build(asked: dict[str, Any]) -> FastAPI:
    app = FastAPI(openapi_url=None)
    cameras = api.CameraPage.model_validate_json(asked["cameras"])
    event = api.EventDetail.model_validate_json(asked["event"])
    link = api.MediaLink.model_validate_json(asked["link"])
    found = api.SearchPage.model_validate_json(asked["search"])
    picture = base64.b64decode(asked["picture"])

    @app.get("/cameras")
    async def _cameras() -> api.CameraPage:
        return cameras

    @app.get("/event")
    async def _event() -> api.EventDetail:
        return event

    @app.post("/link")
    async def _link(asked: api.MediaLinkAsked) -> api.MediaLink:
        return link

    @app.get("/search")
    async def _search() -> api.SearchPage:
        return found

    @app.get("/picture")
    async def _picture() -> Response:
        return Response(picture, media_type="image/jpeg")

    return app


async def main(asked: dict[str, Any]) -> None:
    config = uvicorn.Config(
        build(asked),
        host="127.0.0.1",
        port=asked["port"],
        loop="none",
        http="httptools",
        access_log=False,
        log_level="error",
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    await until(lambda: server.started, "start of the bare server")
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    server.should_exit = True
    await serving


if __name__ == "__main__":
    uvloop.run(main(json.loads(sys.stdin.readline())))
