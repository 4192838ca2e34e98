"""What a person does first with a running camserver, as requests: opens the page, makes the account, sees an event.

It speaks HTTP as a browser does and knows nothing of the program's inside. Standard library only.
"""

import http.client
import http.cookiejar
import json
import re
import secrets
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

REQUEST_TIMEOUT_SEC = 10
ANSWER_MAX_BYTES = 8_000_000
POLL_SEC = 0.5
# What the detector finds; other events tell of cameras, not of what they see.
SEEN_EVENTS = frozenset({"human", "animal", "vehicle"})
LOGIN = "first-visitor"


class VisitFailed(Exception):
    """The message says what a person would not have seen."""


class Visitor:
    """One browser at `address`, such as http://127.0.0.1:8080, with its cookies."""

    def __init__(self, address: str) -> None:
        self._address = address
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        # Nothing between this browser and the server: a proxy of the machine is for the outside.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), cookies)

    def is_ready(self) -> bool:
        try:
            return self._open("/readyz")[0] == 200
        except VisitFailed:
            return False

    def open_page(self) -> None:
        """The address of the greeting shows the built UI, and the script of its page is there."""
        status, kind, content = self._open("/")
        script = re.search(r'<script\b[^>]*\bsrc="(/[^"]+)"', content.decode(errors="replace"))
        if status != 200 or "html" not in kind or script is None:
            raise VisitFailed(f"GET / answers {status} ({kind}), which is no page of the UI: {_start(content)}")
        status, kind, content = self._open(script[1])
        if status != 200 or "javascript" not in kind or not content:
            raise VisitFailed(f"the page's script {script[1]} answers {status} ({kind})")

    def sign_in(self, link_file: Path) -> None:
        """Makes the administrator by the set-up link in this file and signs in."""
        try:
            link = link_file.read_text().strip()
        except OSError as error:
            raise VisitFailed(f"there is no set-up link: {error}") from error
        account = {"login": LOGIN, "password": secrets.token_urlsafe(24)}
        token = urllib.parse.urlsplit(link).fragment.removeprefix("token=")
        self._post("/api/setup", {**account, "token": token})
        self._post("/api/session", account)

    def see_event(self, deadline: float) -> dict[str, Any]:
        """The first event with something that was found in a picture; `deadline` is a time.monotonic()."""
        while True:
            page = self._get("/api/events")
            seen = [one for one in page["events"] if one["primary_event"] in SEEN_EVENTS]
            if seen:
                return self._with_picture(seen[-1]["event_uuid"])
            if time.monotonic() > deadline:
                others = sorted({one["primary_event"] for one in page["events"]})
                status = self._get("/api/system/status")
                raise VisitFailed(
                    "no event that the detector found came in time; "
                    f"other events: {', '.join(others) or 'none'}; the server says: {json.dumps(status)}"
                )
            time.sleep(POLL_SEC)

    def _with_picture(self, event_uuid: str) -> dict[str, Any]:
        """The event, whose page can show its picture with what was found marked in it."""
        event = self._get(f"/api/events/{event_uuid}")
        frame = event["best_frame"]
        if not frame or not frame["boxes"]:
            raise VisitFailed(f"the event {event_uuid} shows nothing that was found: {json.dumps(event)}")
        status, kind, content = self._open(f"/api/frames/{frame['frame_uuid']}/picture?kind=infer")
        if status != 200 or kind != "image/jpeg" or not content:
            raise VisitFailed(f"the picture of the event {event_uuid} answers {status} ({kind})")
        return event

    def _get(self, path: str) -> dict[str, Any]:
        return _judged("GET", path, *self._open(path))

    def _post(self, path: str, body: dict[str, str]) -> dict[str, Any]:
        return _judged("POST", path, *self._open(path, json.dumps(body).encode()))

    def _open(self, path: str, body: bytes | None = None) -> tuple[int, str, bytes]:
        """Status, media type and content of the answer, whatever the status is."""
        request = urllib.request.Request(self._address + path, body, {"Content-Type": "application/json"})
        try:
            with self._opener.open(request, timeout=REQUEST_TIMEOUT_SEC) as answer:
                return answer.status, answer.headers.get_content_type(), answer.read(ANSWER_MAX_BYTES)
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.headers.get_content_type(), refused.read(ANSWER_MAX_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise VisitFailed(f"nothing answers at {self._address}{path}: {error}") from error


def _judged(method: str, path: str, status: int, kind: str, content: bytes) -> dict[str, Any]:
    try:
        body = json.loads(content) if 200 <= status < 300 else None
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise VisitFailed(f"{method} {path} answers {status} ({kind}): {_start(content)}")
    return body


def _start(content: bytes) -> str:
    return content[:300].decode(errors="replace").strip()
