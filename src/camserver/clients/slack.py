"""Messages to Slack: through an incoming webhook, or as a bot, which can also show the picture.

A bot posts the message and then adds the picture to it as a reply: the picture is a help, so a message whose picture
Slack does not take is sent all the same. Slack has no key against repeats; the delivery's id is in the message's
metadata. Everything that people named is escaped, so no name can mention a channel or make a link.
"""

from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from camserver.base.log import get_logger
from camserver.clients.outgoing import Answered, OutgoingHttp
from camserver.domain.deliveries import DeliveryError, Done, Hidden, Outgoing, Receiver, Trouble
from camserver.domain.messages import Language, Text, one_line

log = get_logger(__name__)

HOST: Final = "slack.com"
API_URL: Final = "https://slack.com/api"
SECTION_MAX_CHARS: Final = 3000
SECTIONS_MAX: Final = 40  # Slack takes 50 blocks
FALLBACK_MAX_CHARS: Final = 3000
PICTURE_NAME: Final = "camera.jpg"
# Ids of channels, messages and files are far shorter.
ID_MAX_CHARS: Final = 64

# What Slack says in an answer of 200, by what follows from it; anything else counts as a failed attempt, because a
# wrong channel or a missing scope may be mended.
_AWAY: Final = frozenset(
    {"ratelimited", "rate_limited", "internal_error", "fatal_error", "service_unavailable", "request_timeout"}
)
_REFUSED: Final = frozenset(
    {"invalid_blocks", "invalid_blocks_format", "msg_too_long", "no_text", "metadata_too_large"}
)
_GONE: Final = frozenset(
    {"account_inactive", "token_revoked", "token_expired", "is_archived", "team_access_not_granted"}
)
# What a webhook answers with 404 or 410.
_HOOK_GONE: Final = frozenset({"no_service", "no_team", "no_active_hooks", "channel_is_archived"})


class SlackSender:
    """`api_url` is another one in tests only."""

    def __init__(self, http: OutgoingHttp, api_url: str = API_URL) -> None:
        self._http = http
        self._api_url = api_url

    async def send(self, receiver: Receiver, outgoing: Outgoing) -> Done:
        token = receiver.secrets.get("bot_token")
        if token is not None:
            channel = str(receiver.config.get("channel") or "")
            if not channel:
                raise DeliveryError(Trouble.REFUSED, f"the receiver {receiver.name} has a bot's token but no channel")
            return await self._post(token, channel, outgoing)
        address = receiver.secrets.get("webhook_url")
        if address is None:
            raise DeliveryError(
                Trouble.REFUSED, f"the receiver {receiver.name} has neither a webhook's address nor a bot's token"
            )
        return await self._hook(address, outgoing)

    async def close(self) -> None:
        """The connections are the caller's."""

    async def _hook(self, address: Hidden, outgoing: Outgoing) -> Done:
        answer = await self._http.request("POST", address.reveal(), json=payload(outgoing.text))
        if not answer.ok:
            if answer.quoted.strip() in _HOOK_GONE:
                raise DeliveryError(Trouble.GONE, f"Slack says the webhook is no more: {answer.quoted}")
            raise answer.trouble("Slack")
        return Done({"http_status": answer.status})

    async def _post(self, token: Hidden, channel: str, outgoing: Outgoing) -> Done:
        message = {
            **payload(outgoing.text),
            "channel": channel,
            "unfurl_links": False,
            "unfurl_media": False,
            "metadata": {
                "event_type": "camserver_delivery",
                "event_payload": {"delivery_uuid": outgoing.delivery_uuid},
            },
        }
        said = await self._ask(token, "chat.postMessage", message)
        result = {"channel": _id(said, "channel"), "ts": _id(said, "ts")}
        if outgoing.picture is None:
            return Done(result)
        try:
            file_id = await self._add_picture(token, result, outgoing)
        except DeliveryError as error:
            log.warning("slack_picture_not_added", why=error.message, delivery_uuid=outgoing.delivery_uuid)
            return Done({**result, "picture_error": error.message[:200]})
        return Done({**result, "file": file_id})

    async def _add_picture(self, token: Hidden, posted: dict[str, str | None], outgoing: Outgoing) -> str:
        """Uploads the picture and shows it below the message."""
        assert outgoing.picture is not None
        form = urlencode(
            {
                "filename": PICTURE_NAME,
                "length": len(outgoing.picture),
                "alt_txt": outgoing.text.title,
            }
        )
        place = await self._ask(token, "files.getUploadURLExternal", form)
        address, file_id = place.get("upload_url"), _id(place, "file_id")
        if not isinstance(address, str) or not file_id or not self.is_slacks(address):
            raise DeliveryError(Trouble.FAILED, "Slack named no place for the picture")
        answer = await self._http.request(
            "POST", address, data=outgoing.picture, headers={"Content-Type": "image/jpeg"}
        )
        if not answer.ok:
            raise answer.trouble("Slack's upload")
        await self._ask(
            token,
            "files.completeUploadExternal",
            {
                "files": [{"id": file_id, "title": outgoing.text.title}],
                "channel_id": posted["channel"],
                "thread_ts": posted["ts"],
            },
        )
        return file_id

    def is_slacks(self, address: str) -> bool:
        """Whether the place of a picture is Slack's: pictures go nowhere else, whatever an answer says."""
        try:
            told, api = urlsplit(address), urlsplit(self._api_url)
            if (told.scheme, told.netloc) == (api.scheme, api.netloc):
                return True
            host = told.hostname or ""
            is_plain = told.username is None and told.port in (None, 443)
        except ValueError:
            return False
        return told.scheme == "https" and is_plain and (host == HOST or host.endswith(f".{HOST}"))

    async def _ask(self, token: Hidden, method: str, asked: dict[str, Any] | str) -> dict[str, Any]:
        """Calls a method of the Web API. A text is a form, for methods that take no JSON."""
        headers = {"Authorization": f"Bearer {token.reveal()}"}
        address = f"{self._api_url}/{method}"
        if isinstance(asked, str):
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            answer = await self._http.request("POST", address, data=asked.encode(), headers=headers)
        else:
            answer = await self._http.request("POST", address, json=asked, headers=headers)
        return _judged(answer, method)


def _judged(answer: Answered, method: str) -> dict[str, Any]:
    """The answer to a call that worked. Slack says most errors with 200 and `"ok": false`."""
    if not answer.ok:
        raise answer.trouble(f"Slack ({method})")
    said = answer.json()
    if not isinstance(said, dict):
        raise DeliveryError(Trouble.FAILED, f"Slack ({method}) answered no JSON: {answer.quoted}")
    if said.get("ok") is True:
        return said
    error = str(said.get("error", "no reason"))[:100]
    kind = (
        Trouble.RETRY
        if error in _AWAY
        else Trouble.REFUSED
        if error in _REFUSED
        else Trouble.GONE
        if error in _GONE
        else Trouble.FAILED
    )
    raise DeliveryError(kind, f"Slack ({method}) refused: {error}", answer.retry_after_sec)


def _id(said: dict[str, Any], name: str) -> str | None:
    """An id in an answer. It is stored and sent again, so it is made short and readable, whatever was said."""
    told = said.get(name)
    return one_line(told[: 2 * ID_MAX_CHARS], ID_MAX_CHARS) if isinstance(told, str) else None


def payload(text: Text) -> dict[str, Any]:
    """The message in Block Kit, with a plain form for notifications and for clients without blocks."""
    sections = list(_sections((f"*{_escaped(text.title)}*", *(_escaped(line) for line in text.lines))))
    links = " · ".join(_links(text))
    if links:
        sections = [*sections[: SECTIONS_MAX - 1], links]
    return {
        "text": _cut(_escaped(text.title), FALLBACK_MAX_CHARS),
        "blocks": [
            # Verbatim: Slack makes no links or mentions of its own out of it.
            {"type": "section", "text": {"type": "mrkdwn", "text": one, "verbatim": True}}
            for one in sections[:SECTIONS_MAX]
        ],
    }


def _sections(lines: Iterable[str]) -> Iterable[str]:
    """Lines put together to texts that are not too long for Slack."""
    held = ""
    for line in lines:
        line = _cut(line, SECTION_MAX_CHARS)
        if held and len(held) + 1 + len(line) > SECTION_MAX_CHARS:
            yield held
            held = line
        else:
            held = f"{held}\n{line}" if held else line
    if held:
        yield held


def _links(text: Text) -> Iterable[str]:
    is_ja = text.language is Language.JA
    if text.link:
        yield f"<{_address(text.link)}|{'イベントを開く' if is_ja else 'Open the event'}>"
    if text.picture_link:
        yield f"<{_address(text.picture_link)}|{'画像' if is_ja else 'Picture'}>"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _address(link: str) -> str:
    return _escaped(link).replace("|", "%7C")


def _cut(text: str, chars_max: int) -> str:
    """Cut so that no escape stays half."""
    if len(text) <= chars_max:
        return text
    head = text[: chars_max - 1]
    amp = head.rfind("&")
    if amp > head.rfind(";"):
        head = head[:amp]
    return head + "…"
