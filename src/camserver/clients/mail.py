"""Messages by e-mail, over SMTP.

One mail for all of a receiver's recipients, as text and as HTML with the picture in it. Its Message-ID is made of the
delivery's id, so a repeat can be told; mails about one incident are one thread. Recipients that a server puts off are
tried again without those that have it already. The server's name is resolved by the outgoing policy, and TLS holds
the certificate against that name.
"""

import asyncio
import html
import socket
import ssl
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from email.utils import format_datetime
from typing import Final

import aiosmtplib

from camserver.base.clock import Clock
from camserver.base.log import get_logger
from camserver.clients.outgoing import CONNECT_TIMEOUT_SEC, OutgoingPolicy
from camserver.domain.deliveries import DeliveryError, Done, Outgoing, Receiver, Trouble
from camserver.domain.messages import Language, Text, one_line

log = get_logger(__name__)

SUBJECT_MAX_CHARS: Final = 200
PICTURE_ID: Final = "picture"
DEFAULT_PORTS: Final[Mapping[str, int]] = {"starttls": 587, "tls": 465, "plain": 25}
# Beyond it a server's answer is cut in messages.
QUOTED_MAX_CHARS: Final = 160
HELLO_NAME: Final = "camserver.invalid"


class MailSender:
    def __init__(self, policy: OutgoingPolicy, clock: Clock, timeout_sec: float = 15.0) -> None:
        self._policy = policy
        self._clock = clock
        self._timeout_sec = timeout_sec

    async def close(self) -> None:
        """Each mail has its own connection."""

    async def send(self, receiver: Receiver, outgoing: Outgoing) -> Done:
        config = receiver.config
        sent = [str(one) for one in outgoing.progress.get("sent", ())]
        to = [str(one) for one in config["to"]]
        waiting = [one for one in to if one not in sent]
        mail = compose(str(config["sender"]), to, outgoing, self._clock.now_ms())
        host = str(config["host"])
        server = await self._connected(receiver)
        try:
            async with asyncio.timeout(4 * self._timeout_sec):
                refused = await _given(server, receiver, mail, waiting)
        except TimeoutError:
            raise DeliveryError(
                Trouble.FAILED, f"the mail server {host} is too slow", progress={"sent": sent}
            ) from None
        except (aiosmtplib.SMTPException, OSError) as error:
            raise _trouble(error, host, sent) from None
        finally:
            server.close()
        return _outcome(host, mail, waiting, sent, refused)

    async def _connected(self, receiver: Receiver) -> aiosmtplib.SMTP:
        """A server that has greeted us, with TLS where it is wanted."""
        config = receiver.config
        host, security = str(config["host"]), str(config.get("security", "starttls"))
        port = int(config.get("port") or DEFAULT_PORTS[security])
        sock = await self._socket(host, port)
        server = aiosmtplib.SMTP(
            hostname=host,
            sock=sock,
            use_tls=security == "tls",
            # Never by chance: where it is wanted, a server without it gets neither the login nor the mail.
            start_tls=security == "starttls",
            tls_context=_tls(str(config.get("ca") or "")) if security != "plain" else None,
            # Not this machine's name, which is nobody's business.
            local_hostname=HELLO_NAME,
            timeout=self._timeout_sec,
        )
        try:
            await server.connect()
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            server.close()
            sock.close()
            raise _trouble(error, host, []) from None
        return server

    async def _socket(self, host: str, port: int) -> socket.socket:
        self._policy.check_literal(host)
        place = await self._policy.resolve(host, port)
        sock = socket.socket(place.family, socket.SOCK_STREAM)
        sock.setblocking(False)
        try:
            async with asyncio.timeout(min(CONNECT_TIMEOUT_SEC, self._timeout_sec)):
                await asyncio.get_running_loop().sock_connect(sock, (place.address, port))
        except (OSError, TimeoutError) as error:
            sock.close()
            why = "no connection in time" if isinstance(error, TimeoutError) else str(error)
            raise DeliveryError(Trouble.RETRY, f"the mail server {host} can't be reached: {why}") from None
        except BaseException:
            sock.close()
            raise
        return sock


async def _given(
    server: aiosmtplib.SMTP, receiver: Receiver, mail: EmailMessage, to: Sequence[str]
) -> Mapping[str, aiosmtplib.SMTPResponse]:
    """Hands the mail over; the recipients that were not taken, with what was said about each."""
    username, password = str(receiver.config.get("username") or ""), receiver.secrets.get("password")
    if username and password is not None:
        await server.login(username, password.reveal())
    sender = str(receiver.config["sender"])
    try:
        refused, _ = await server.sendmail(sender, list(to), mail.as_bytes())
    except aiosmtplib.SMTPRecipientsRefused as error:
        refused = {one.recipient: aiosmtplib.SMTPResponse(one.code, one.message) for one in error.recipients}
    try:
        await server.quit()
    except (aiosmtplib.SMTPException, OSError) as error:
        # The mail was taken; how the server says good-bye changes nothing.
        log.debug("mail_server_left_early", why=str(error))
    return refused


def _outcome(
    host: str,
    mail: EmailMessage,
    waiting: Sequence[str],
    sent_before: Sequence[str],
    refused: Mapping[str, aiosmtplib.SMTPResponse],
) -> Done:
    sent = [*sent_before, *(one for one in waiting if one not in refused)]
    put_off = [one for one in waiting if one in refused and refused[one].code < 500]
    said = "; ".join(f"{one}: {answer.code} {answer.message}" for one, answer in refused.items())[:QUOTED_MAX_CHARS]
    if put_off:
        raise DeliveryError(
            Trouble.RETRY, f"the mail server {host} puts {len(put_off)} off: {said}", progress={"sent": sent}
        )
    if not sent:
        raise DeliveryError(Trouble.REFUSED, f"the mail server {host} refuses every recipient: {said}")
    if refused:
        log.warning("mail_recipients_refused", host=host, why=said)
    return Done({"message_id": str(mail["Message-ID"]), "sent": len(sent), "refused": len(refused)})


def _trouble(error: Exception, host: str, sent: Sequence[str]) -> DeliveryError:
    """What a failure of the whole conversation means."""
    who = f"the mail server {host}"
    said = one_line(str(error), QUOTED_MAX_CHARS)
    progress = {"sent": list(sent)} if sent else None
    if isinstance(error, aiosmtplib.SMTPAuthenticationError):
        # A password can be mended while the attempts last; a server that is busy says 4xx here, too.
        kind = Trouble.RETRY if error.code < 500 else Trouble.FAILED
        return DeliveryError(kind, f"{who} refuses the login: {error.code}", progress=progress)
    if isinstance(error, aiosmtplib.SMTPResponseException):
        kind = Trouble.RETRY if error.code < 500 else Trouble.REFUSED
        return DeliveryError(kind, f"{who} said {error.code}: {said}", progress=progress)
    if isinstance(error, ssl.SSLError) or isinstance(error.__cause__, ssl.SSLError):
        return DeliveryError(Trouble.FAILED, f"{who}: TLS failed: {said}")
    if isinstance(error, aiosmtplib.SMTPNotSupported):
        return DeliveryError(Trouble.FAILED, f"{who} lacks what is wanted: {said}")
    if isinstance(error, aiosmtplib.SMTPReadTimeoutError):
        return DeliveryError(Trouble.FAILED, f"{who} gave no answer in time", progress=progress)
    if isinstance(error, ConnectionError | TimeoutError):
        return DeliveryError(Trouble.RETRY, f"{who} went away: {said}", progress=progress)
    return DeliveryError(Trouble.FAILED, f"{who}: {type(error).__name__}: {said}", progress=progress)


def _tls(ca: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cadata=ca or None)
    except ssl.SSLError as error:
        raise DeliveryError(Trouble.REFUSED, f"the receiver's certificate authority is unreadable: {error}") from None


def compose(sender: str, to: Sequence[str], outgoing: Outgoing, now_ms: int) -> EmailMessage:
    """The mail. A header can't hold a line break: the library refuses it, and names are single lines before that."""
    text = outgoing.text
    mail = EmailMessage(policy=SMTP_POLICY)
    try:
        mail["From"] = Address("camserver", addr_spec=sender)
        mail["To"] = [Address(addr_spec=one) for one in to]
        mail["Subject"] = one_line(text.title, SUBJECT_MAX_CHARS)
    except (ValueError, IndexError) as error:
        raise DeliveryError(Trouble.REFUSED, f"an address of the receiver can't be used: {error}") from None
    domain = sender.rpartition("@")[2] or "camserver.invalid"
    mail["Message-ID"] = f"<{outgoing.delivery_uuid}@{domain}>"
    if outgoing.tag:
        mail["References"] = f"<{outgoing.tag}@{domain}>"
    mail["Date"] = format_datetime(datetime.fromtimestamp(now_ms / 1000, UTC))
    mail["Auto-Submitted"] = "auto-generated"
    mail["X-Camserver-Delivery"] = outgoing.delivery_uuid
    mail.set_content(text.plain + "\n", cte="quoted-printable")
    mail.add_alternative(_page(text, outgoing.picture is not None), subtype="html", cte="quoted-printable")
    if outgoing.picture is not None:
        page = mail.get_payload()[1]  # type: ignore[index]  # a multipart's payload is a list
        page.add_related(  # type: ignore[union-attr]
            outgoing.picture, "image", "jpeg", cid=f"<{PICTURE_ID}>", filename="camera.jpg", disposition="inline"
        )
    return mail


def _page(text: Text, has_picture: bool) -> str:
    lines = "<br>".join(html.escape(line) for line in text.lines)
    is_ja = text.language is Language.JA
    links = [
        f'<p><a href="{html.escape(address)}">{label}</a></p>'
        for address, label in (
            (text.link, "イベントを開く" if is_ja else "Open the event"),
            (text.picture_link, "画像" if is_ja else "Picture"),
        )
        if address
    ]
    picture = f'<p><img src="cid:{PICTURE_ID}" alt="" style="max-width:100%"></p>' if has_picture else ""
    return (
        f'<!doctype html><html lang="{text.language.value}"><meta charset="utf-8">'
        f"<body><h3>{html.escape(text.title)}</h3><p>{lines}</p>{picture}{''.join(links)}</body></html>\n"
    )
