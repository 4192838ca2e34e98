import email.message
import ssl
from pathlib import Path
from typing import Any

import pytest

from camserver.base.secrets import Secret
from camserver.clients.mail import MailSender, compose
from camserver.clients.outgoing import OutgoingPolicy
from camserver.domain.deliveries import DeliveryError, Outgoing, Receiver, ReceiverKind, Trouble
from camserver.domain.messages import Language, Text
from tests.fakes.mail import FakeMail
from tests.rig.certificates import self_signed
from tests.rig.clock import START_MS, ManualClock
from tests.rig.ports import free_port

TEXT = Text(Language.JA, "本社 玄関：人を検知", ("重要度：2/3", "<b> & co"), "https://x.test/e/1")
PICTURE = b"\xff\xd8 a picture"


def sender() -> MailSender:
    return MailSender(OutgoingPolicy(allow_loopback=True), ManualClock(), timeout_sec=10)


def receiver(port: int, password: str | None = None, **changes: Any) -> Receiver:
    config = {
        "host": "127.0.0.1",
        "port": port,
        "security": "plain",
        "sender": "cam@example.test",
        "to": ["a@example.test", "b@example.test"],
        **changes,
    }
    secrets = {} if password is None else {"password": Secret(password)}
    return Receiver(1, "receiver", 1, "mail", ReceiverKind.EMAIL, config, secrets=secrets)


def outgoing(**changes: Any) -> Outgoing:
    return Outgoing(**{"delivery_uuid": "delivery-1", "text": TEXT, "body": {}, "tag": "incident-1", **changes})


async def test_a_mail_with_its_picture() -> None:
    async with FakeMail() as server:
        done = await sender().send(receiver(server.port), outgoing(picture=PICTURE))
    assert done.result == {"message_id": "<delivery-1@example.test>", "sent": 2, "refused": 0}
    (got,) = server.mails
    assert (got.sender, got.recipients) == ("cam@example.test", ("a@example.test", "b@example.test"))
    mail = got.mail
    assert mail["Subject"] == TEXT.title
    assert mail["From"] == "camserver <cam@example.test>"
    assert mail["To"] == "a@example.test, b@example.test"
    assert mail["Message-ID"] == "<delivery-1@example.test>"
    assert mail["References"] == "<incident-1@example.test>"
    assert mail["Date"] == "Thu, 01 Jan 2026 00:00:00 +0000"
    plain, page = mail.get_body(("plain",)), mail.get_body(("html",))
    assert plain is not None
    assert page is not None
    assert plain.get_content().split() == TEXT.plain.split()
    assert "&lt;b&gt; &amp; co" in page.get_content()
    assert 'src="cid:picture"' in page.get_content()
    pictures = [part for part in mail.walk() if part.get_content_type() == "image/jpeg"]
    assert [part.get_payload(decode=True) for part in pictures] == [PICTURE]
    assert pictures[0]["Content-ID"] == "<picture>"
    assert all(len(line) <= 998 for line in got.raw.splitlines())


async def test_starttls_and_login(tmp_path: Path) -> None:
    certificate = self_signed(tmp_path / "server.pem")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate.path)
    ca = certificate.path.read_text()
    async with FakeMail(tls=tls, login=("user", "pässword-of-mail")) as server:
        to = receiver(server.port, "pässword-of-mail", security="starttls", ca=ca, username="user")
        await sender().send(to, outgoing())
        (got,) = server.mails
        assert got.tls
        assert got.login == "user"

        with pytest.raises(DeliveryError) as wrong:
            await sender().send(
                receiver(server.port, "wrong-password", security="starttls", ca=ca, username="user"), outgoing()
            )
        assert wrong.value.kind is Trouble.FAILED
        assert "535" in wrong.value.message

        with pytest.raises(DeliveryError) as untrusted:
            await sender().send(receiver(server.port, "pässword-of-mail", security="starttls"), outgoing())
        assert untrusted.value.kind is Trouble.FAILED
        assert "TLS" in untrusted.value.message
    assert len(server.mails) == 1


async def test_tls_from_the_first_byte(tmp_path: Path) -> None:
    certificate = self_signed(tmp_path / "server.pem")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate.path)
    async with FakeMail(tls=tls, implicit_tls=True) as server:
        await sender().send(receiver(server.port, security="tls", ca=certificate.path.read_text()), outgoing())
    assert [mail.tls for mail in server.mails] == [True]


async def test_a_server_without_starttls_gets_neither_login_nor_mail() -> None:
    async with FakeMail() as server:
        with pytest.raises(DeliveryError) as caught:
            await sender().send(receiver(server.port, "password-1", security="starttls", username="u"), outgoing())
    assert caught.value.kind is Trouble.FAILED
    assert server.attempts == 0


@pytest.mark.parametrize(
    ("answer", "kind"),
    [("451 try again later", Trouble.RETRY), ("552 too much", Trouble.REFUSED), ("554 spam", Trouble.REFUSED)],
)
async def test_what_the_server_says_about_the_content(answer: str, kind: Trouble) -> None:
    async with FakeMail(data_answer=answer) as server:
        with pytest.raises(DeliveryError) as caught:
            await sender().send(receiver(server.port), outgoing())
    assert caught.value.kind is kind
    assert answer[:3] in caught.value.message


async def test_greylisted_recipients_are_tried_again_without_the_others() -> None:
    async with FakeMail(rcpt_answers={"b@example.test": "450 greylisted"}) as server:
        with pytest.raises(DeliveryError) as caught:
            await sender().send(receiver(server.port), outgoing())
        assert caught.value.kind is Trouble.RETRY
        assert caught.value.progress == {"sent": ["a@example.test"]}
        server.rcpt_answers.clear()
        done = await sender().send(receiver(server.port), outgoing(progress=caught.value.progress, attempt=2))
    assert done.result["sent"] == 2
    assert [mail.recipients for mail in server.mails] == [("a@example.test",), ("b@example.test",)]
    assert len({mail.mail["Message-ID"] for mail in server.mails}) == 1


async def test_one_refused_recipient_does_not_keep_it_from_the_others() -> None:
    async with FakeMail(rcpt_answers={"b@example.test": "550 no such user"}) as server:
        done = await sender().send(receiver(server.port), outgoing())
    assert (done.result["sent"], done.result["refused"]) == (1, 1)


@pytest.mark.parametrize(("answer", "kind"), [("450 later", Trouble.RETRY), ("550 nobody", Trouble.REFUSED)])
async def test_no_recipient_at_all(answer: str, kind: Trouble) -> None:
    both = {"a@example.test": answer, "b@example.test": answer}
    async with FakeMail(rcpt_answers=both) as server:
        with pytest.raises(DeliveryError) as caught:
            await sender().send(receiver(server.port), outgoing())
    assert caught.value.kind is kind


async def test_a_server_that_hangs_up_is_tried_again() -> None:
    async with FakeMail(hang_up_at_data=True) as server:
        with pytest.raises(DeliveryError) as caught:
            await sender().send(receiver(server.port), outgoing())
    assert caught.value.kind is Trouble.RETRY


async def test_a_server_that_is_away_is_tried_again() -> None:
    with pytest.raises(DeliveryError) as caught:
        await sender().send(receiver(free_port()), outgoing())
    assert caught.value.kind is Trouble.RETRY


async def test_this_machine_is_refused_unless_it_is_allowed() -> None:
    async with FakeMail() as server:
        with pytest.raises(DeliveryError) as caught:
            await MailSender(OutgoingPolicy(), ManualClock()).send(receiver(server.port), outgoing())
    assert caught.value.kind is Trouble.REFUSED
    assert server.attempts == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"sender": "cam@example.test\r\nBcc: evil@example.test"},
        {"to": ["a@example.test\r\nBcc: evil@example.test"]},
        {"to": ["a@example.test, b@example.test"]},
        {"to": [""]},
        {"sender": "no address"},
    ],
)
def test_no_header_can_be_slipped_in_by_an_address(changes: dict[str, Any]) -> None:
    values: dict[str, Any] = {"sender": "cam@example.test", "to": ["a@example.test"], **changes}
    with pytest.raises(DeliveryError) as caught:
        compose(values["sender"], values["to"], outgoing(), START_MS)
    assert caught.value.kind is Trouble.REFUSED


def test_no_header_can_be_slipped_in_by_a_title() -> None:
    text = Text(Language.EN, "a\r\nBcc: evil@example.test\r\n\r\nbody", ("line",))
    mail = compose("cam@example.test", ["a@example.test"], outgoing(text=text), START_MS)
    parsed = email.message_from_bytes(mail.as_bytes())
    assert parsed["Bcc"] is None
    assert mail["Subject"] == "a Bcc: evil@example.test body"
