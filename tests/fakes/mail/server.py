"""aiosmtpd on a port of loopback, with a memory and with moods."""

import asyncio
import email.policy
import ssl
import time
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.parser import BytesParser
from types import TracebackType
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from tests.rig.ports import listening_socket, port_of


@dataclass(frozen=True, slots=True)
class Received:
    sender: str
    recipients: tuple[str, ...]
    mail: EmailMessage
    raw: bytes
    tls: bool
    login: str | None


@dataclass(slots=True)
class FakeMail:
    """`async with FakeMail() as server:`; what came is in `mails`."""

    tls: ssl.SSLContext | None = None
    implicit_tls: bool = False  # TLS from the first byte, as on port 465
    login: tuple[str, str] | None = None
    # What a recipient, the content or the greeting is answered with instead of 250.
    rcpt_answers: dict[str, str] = field(default_factory=dict)
    data_answer: str | None = None
    hang_up_at_data: bool = False
    mails: list[Received] = field(default_factory=list)
    attempts: int = 0  # mails that were begun
    delay_sec: float = 0.0
    _server: asyncio.Server | None = None
    port: int = 0

    async def __aenter__(self) -> "FakeMail":
        sock = listening_socket(self.port)
        self.port = port_of(sock)
        self._server = await asyncio.get_running_loop().create_server(
            self._conversation, sock=sock, ssl=self.tls if self.implicit_tls else None
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    def _conversation(self) -> SMTP:
        offered = self.tls if not self.implicit_tls else None
        return SMTP(
            self,
            tls_context=offered,
            require_starttls=offered is not None,
            auth_required=self.login is not None,
            auth_require_tls=self.tls is not None and not self.implicit_tls,
            authenticator=self._authenticate,
            hostname="fake.test",
            ident="fake",
        )

    def _authenticate(
        self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any
    ) -> AuthResult:
        assert self.login is not None
        name, password = self.login
        right = isinstance(data, LoginPassword) and (data.login, data.password) == (name.encode(), password.encode())
        return AuthResult(success=right, handled=False, auth_data=name if right else None)

    async def handle_MAIL(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        self.attempts += 1
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 OK"

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if answer := self.rcpt_answers.get(address):
            return answer
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        if self.hang_up_at_data:
            assert isinstance(server.transport, asyncio.Transport)
            server.transport.abort()
            return "421 gone"
        if self.data_answer is not None:
            return self.data_answer
        raw = envelope.content if isinstance(envelope.content, bytes) else b""
        parsed = BytesParser(policy=email.policy.default).parsebytes(raw)
        assert isinstance(parsed, EmailMessage)
        self.mails.append(
            Received(
                str(envelope.mail_from),
                tuple(map(str, envelope.rcpt_tos)),
                parsed,
                raw,
                session.ssl is not None or self.implicit_tls,
                None if session.auth_data is None else str(session.auth_data),
            )
        )
        return f"250 taken at {time.time_ns()}"
