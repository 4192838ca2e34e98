"""Asks Google Sheets over plain REST as a service account. Every failure is a SheetError that says what to do."""

import json
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from camserver.base.clock import Clock
from camserver.base.secrets import Secret
from camserver.clients.drive import GOOGLE_TOKEN_URL, GOOGLE_URL
from camserver.clients.drive_tokens import Tokens, parse_account
from camserver.clients.outgoing import Answered, OutgoingHttp
from camserver.clients.sheets.sheet import SheetError, SheetTrouble
from camserver.domain.deliveries import DeliveryError, Receiver, ReceiverKind, Trouble
from camserver.domain.messages import one_line

SHEETS_URL: Final = "https://sheets.googleapis.com"
# Google lets a user read and write 60 times a minute each; another program may be about, too.
ASKED_PER_MINUTE: Final = 50
QUOTA_PAUSE_SEC: Final = 30.0
TIMEOUT_SEC: Final = 60.0
ANSWER_MAX_BYTES: Final = 32_000_000
SAID_MAX_CHARS: Final = 200
_BOOK_ID: Final = re.compile(r"[A-Za-z0-9_-]{20,200}")
_PATH: Final = re.compile(r"/spreadsheets/(?:u/\d+/)?d/([A-Za-z0-9_-]+)")


@dataclass(frozen=True, slots=True)
class GoogleAddress:
    book_id: str
    gid: int | None  # the tab's number; None: named by the layout, or the first one


def google_address(address: str) -> GoogleAddress | None:
    """A link to Google Sheets, or gsheet:ID; None when it is something else."""
    if address.startswith("gsheet:"):
        book_id, _, gid = address.removeprefix("gsheet:").partition("#")
        return GoogleAddress(book_id, int(gid) if gid.isdigit() else None) if _BOOK_ID.fullmatch(book_id) else None
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    found = _PATH.match(parts.path)
    if parts.scheme != "https" or parts.hostname != "docs.google.com" or found is None:
        return None
    gid_found = re.search(r"gid=(\d{1,12})", f"{parts.fragment}&{parts.query}")
    return GoogleAddress(found[1], int(gid_found[1]) if gid_found else None)


class ProtectedCells(Exception):
    """Google refused to write because somebody protected a cell; it does not say which."""


class TooLarge(Exception):
    """An answer longer than ANSWER_MAX_BYTES: ask for fewer rows."""


class TabChanged(Exception):
    """The tab was renamed or got smaller since it was looked at: look again."""


class _Pace:
    """So many requests a minute and no more; the next one waits."""

    def __init__(self, clock: Clock, per_minute: int) -> None:
        self._clock = clock
        self._sent: deque[int] = deque(maxlen=per_minute)

    async def wait(self) -> None:
        if len(self._sent) == self._sent.maxlen:
            wait_ms = self._sent[0] + 60_000 - self._clock.boot_ms()
            if wait_ms > 0:
                await self._clock.sleep(wait_ms / 1000)
        self._sent.append(self._clock.boot_ms())


class GoogleApi:
    def __init__(
        self, http: OutgoingHttp, clock: Clock, credentials: Secret, book_id: str, api_url: str = SHEETS_URL
    ) -> None:
        self.email = parse_account(credentials.reveal()).email
        self.book_id = book_id
        self._http = http
        self._api = api_url.rstrip("/")
        is_google = self._api == SHEETS_URL
        self._drive = GOOGLE_URL if is_google else self._api
        self._tokens = Tokens(http, clock, GOOGLE_TOKEN_URL if is_google else f"{self._api}/token")
        self._account = Receiver(
            0, "", 0, "Google Sheets", ReceiverKind.DRIVE, {}, secrets={"credentials": credentials}
        )
        self._reads, self._writes = _Pace(clock, ASKED_PER_MINUTE), _Pace(clock, ASKED_PER_MINUTE)

    async def tabs(self) -> list[dict[str, Any]]:
        """Tabs of the book, with what is protected and merged in them."""
        fields = (
            "sheets(properties(sheetId,title,sheetType,gridProperties(rowCount,columnCount)),merges,"
            "protectedRanges(range,warningOnly,requestingUserCanEdit))"
        )
        told = await self._read(f"/v4/spreadsheets/{self.book_id}", [("fields", fields)])
        return [tab for tab in told.get("sheets", []) if isinstance(tab, dict)]

    async def values(self, ranges: Sequence[str], render: str) -> list[list[list[Any]]]:
        """What stands in the ranges, each as rows; empty cells at ends are left out."""
        query = [("ranges", one) for one in ranges]
        query += [("valueRenderOption", render), ("majorDimension", "ROWS")]
        told = await self._read(f"/v4/spreadsheets/{self.book_id}/values:batchGet", query)
        found = told.get("valueRanges")
        if not isinstance(found, list) or len(found) != len(ranges):
            raise SheetError(SheetTrouble.BUSY, "Google Sheets answered with other ranges than were asked for")
        return [one.get("values", []) if isinstance(one, dict) else [] for one in found]

    async def update(self, data: Sequence[dict[str, Any]]) -> None:
        """Writes raw values: nothing is taken for a formula or a date."""
        body = {"valueInputOption": "RAW", "data": list(data), "includeValuesInResponse": False}
        await self._writes.wait()
        answer = await self._ask("POST", f"{self._api}/v4/spreadsheets/{self.book_id}/values:batchUpdate", body)
        if not answer.ok:
            raise self._trouble(answer)

    async def may_edit(self) -> bool:
        """Whether the account may write, as far as Drive tells; without an answer it is taken to."""
        await self._reads.wait()
        query = urlencode({"fields": "capabilities/canEdit", "supportsAllDrives": "true"})
        answer = await self._ask("GET", f"{self._drive}/drive/v3/files/{self.book_id}?{query}")
        told = answer.json() if answer.ok else None
        capabilities = told.get("capabilities") if isinstance(told, dict) else None
        return not (isinstance(capabilities, dict) and capabilities.get("canEdit") is False)

    async def _read(self, path: str, query: Sequence[tuple[str, str]]) -> dict[str, Any]:
        await self._reads.wait()
        answer = await self._ask("GET", f"{self._api}{path}?{urlencode(query, quote_via=quote)}")
        if not answer.ok:
            raise self._trouble(answer)
        told = answer.json()
        if len(answer.body) >= ANSWER_MAX_BYTES:
            raise TooLarge
        if not isinstance(told, dict):
            raise SheetError(SheetTrouble.BUSY, "Google Sheets gave half an answer")
        return told

    async def _ask(self, method: str, url: str, body: Any = None) -> Answered:
        """Asks with a token. One that Google no longer takes is renewed, once."""
        token = await self._token()
        answer = await self._request(method, url, body, token)
        if answer.status == 401:
            answer = await self._request(method, url, body, await self._token(refused=token))
        return answer

    async def _token(self, refused: str | None = None) -> str:
        try:
            return await self._tokens.get(self._account, refused)
        except DeliveryError as error:
            kind = SheetTrouble.BUSY if error.kind is Trouble.RETRY else SheetTrouble.DENIED
            raise SheetError(kind, error.message, error.retry_after_sec) from None

    async def _request(self, method: str, url: str, body: Any, token: str) -> Answered:
        headers = {"Authorization": f"Bearer {token}"}
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json; charset=UTF-8"
            data = json.dumps(body).encode()
        try:
            return await self._http.request(
                method, url, headers=headers, data=data, timeout_sec=TIMEOUT_SEC, answer_max_bytes=ANSWER_MAX_BYTES
            )
        except DeliveryError as error:
            kind = SheetTrouble.DENIED if error.kind is Trouble.REFUSED else SheetTrouble.BUSY
            raise SheetError(kind, error.message, error.retry_after_sec) from None

    def _trouble(self, answer: Answered) -> SheetError:
        """The error that an answer other than a success stands for. ProtectedCells and TabChanged are raised."""
        status, message, reason = _said(answer)
        said = f"{answer.status} {message or status}".strip()
        if answer.status == 400 and "protected" in message.lower():
            raise ProtectedCells
        if answer.status == 400 and ("parse range" in message.lower() or "exceeds grid" in message.lower()):
            raise TabChanged
        if answer.status == 429 or status == "RESOURCE_EXHAUSTED" or "rateLimitExceeded" in reason:
            pause = answer.retry_after_sec if answer.retry_after_sec is not None else QUOTA_PAUSE_SEC
            return SheetError(SheetTrouble.BUSY, f"Google Sheets takes no more requests for now ({said})", pause)
        if answer.status >= 500 or answer.status == 408:
            return SheetError(SheetTrouble.BUSY, f"Google Sheets answered {said}", answer.retry_after_sec)
        if answer.status == 404:
            message = f"there is no Google sheet {self.book_id}, or {self.email} may not see it; share it with them"
            return SheetError(SheetTrouble.GONE, message)
        if answer.status in (401, 403):
            return SheetError(
                SheetTrouble.DENIED,
                f"Google Sheets does not let {self.email} do this ({said}); share the sheet with that address as an "
                "editor, and enable the Google Sheets API in its project",
            )
        return SheetError(SheetTrouble.BROKEN, f"Google Sheets answered {said}")


def _said(answer: Answered) -> tuple[str, str, str]:
    """The status, the message and all reasons of an error."""
    told = answer.json()
    error = told.get("error") if isinstance(told, dict) else None
    if not isinstance(error, dict):
        return "", "", ""
    reasons = [*(error.get("errors") or []), *(error.get("details") or [])]
    reason = " ".join(str(one.get("reason", "")) for one in reasons if isinstance(one, dict))
    message = one_line(str(error.get("message", ""))[: 4 * SAID_MAX_CHARS], SAID_MAX_CHARS)
    return str(error.get("status", "")), message, reason
