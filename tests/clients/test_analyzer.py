"""The client against a real server that misbehaves in every way it can."""

import asyncio
import gzip
import itertools
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import ExitStack, asynccontextmanager
from typing import TypeVar

import pytest
from aiohttp import web

from camserver.clients.analyzer import AnalyzerClient, AnalyzerError, Question, iso_utc
from camserver.domain.analysis import Analysis
from camserver.domain.jobs import ErrorKind
from tests.domain.build import T0, shipped_document, shipped_vocabulary
from tests.fakes.analyzer import BREAKS, FakeAnalyzer, Fault, Rule, Seen
from tests.rig.pictures import jpeg, jpeg_of_bytes
from tests.rig.ports import LOOPBACK, free_port, listening_socket, port_of

T = TypeVar("T")

VOCABULARY = shipped_vocabulary()
CAMERA_ID, REQUEST_ID = "cam_2f_19", "0198c0de-0000-7000-8000-000000000001"
HUMAN = jpeg(Seen("human", ("count.single",), count_hint=1).hint())
# Far above what any machine needs; where a time-out is the point, the server never answers and this is short.
PATIENT_SEC, HASTY_SEC = 60.0, 1.0


def client_of(url: str, timeout_sec: float = PATIENT_SEC) -> AnalyzerClient:
    return AnalyzerClient(
        url, analyze_timeout_sec=timeout_sec, schema_timeout_sec=timeout_sec, health_timeout_sec=timeout_sec
    )


@pytest.fixture
async def client(analyzer: FakeAnalyzer) -> AsyncIterator[AnalyzerClient]:
    made = client_of(analyzer.url)
    await made.put_vocabulary(VOCABULARY.version, shipped_document())
    yield made
    await made.close()


@pytest.fixture
async def hasty(analyzer: FakeAnalyzer, client: AnalyzerClient) -> AsyncIterator[AnalyzerClient]:
    made = client_of(analyzer.url, HASTY_SEC)
    yield made
    await made.close()


async def ask(client: AnalyzerClient, picture: bytes = HUMAN) -> Analysis:
    return await client.analyze(Question(CAMERA_ID, T0, REQUEST_ID, picture), VOCABULARY)


async def failure(client: AnalyzerClient, picture: bytes = HUMAN) -> AnalyzerError:
    with pytest.raises(AnalyzerError) as failed:
        await ask(client, picture)
    return failed.value


async def test_a_picture_is_sent_whole_and_its_answer_understood(
    analyzer: FakeAnalyzer, client: AnalyzerClient
) -> None:
    analysis = await ask(client)
    assert (analysis.detected, analysis.primary_event, analysis.tags) == (True, "human", ("count.single",))
    (sent,) = analyzer.analyses()
    assert (sent.camera_id, sent.request_id, sent.schema_version) == (CAMERA_ID, REQUEST_ID, VOCABULARY.version)
    assert sent.captured_at == "2026-01-01T00:00:00.000Z"
    assert sent.image_bytes == len(HUMAN)


def test_times_are_sent_in_utc_with_their_milliseconds() -> None:
    assert iso_utc(T0 + 61_007) == "2026-01-01T00:01:01.007Z"


async def test_the_largest_picture_allowed_is_sent_and_a_larger_one_is_not(
    analyzer: FakeAnalyzer, client: AnalyzerClient
) -> None:
    assert (await ask(client, jpeg_of_bytes(5_000_000))).primary_event == "none"
    error = await failure(client, jpeg_of_bytes(5_000_001))
    assert error.kind is ErrorKind.BAD_REQUEST
    assert "5000001 bytes" in error.message
    assert len(analyzer.analyses()) == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, ErrorKind.BAD_REQUEST),
        (409, ErrorKind.VOCABULARY_MISMATCH),
        (429, ErrorKind.OVERLOADED),
        (503, ErrorKind.UNAVAILABLE),
        (500, ErrorKind.SERVER_ERROR),
        (502, ErrorKind.CONNECTION),
        (504, ErrorKind.TIMEOUT),
        (404, ErrorKind.BROKEN_ANSWER),
        (201, ErrorKind.BROKEN_ANSWER),
    ],
)
async def test_each_status_is_of_its_kind(
    analyzer: FakeAnalyzer, client: AnalyzerClient, status: int, kind: ErrorKind
) -> None:
    analyzer.add_fault(Fault.answer_status(status))
    error = await failure(client)
    assert error.kind is kind
    assert str(status) in error.message
    assert error.retry_after_sec is None


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(("header", "seconds"), [("7", 7.0), ("0", 0.0), ("1.5", 1.5), ("soon", None), ("", None)])
async def test_retry_after_is_passed_on_when_it_makes_sense(
    analyzer: FakeAnalyzer, client: AnalyzerClient, status: int, header: str, seconds: float | None
) -> None:
    analyzer.add_fault(Fault.answer_status(status, retry_after=header))
    assert (await failure(client)).retry_after_sec == seconds


async def test_garbage_is_no_picture_and_that_is_the_pictures_fault(client: AnalyzerClient) -> None:
    assert (await failure(client, b"not a picture")).kind is ErrorKind.BAD_REQUEST
    assert (await failure(client, b"")).kind is ErrorKind.BAD_REQUEST


async def test_an_analyzer_without_our_vocabulary_says_so(analyzer: FakeAnalyzer, client: AnalyzerClient) -> None:
    analyzer.forget_vocabulary()
    assert (await failure(client)).kind is ErrorKind.VOCABULARY_MISMATCH
    await client.put_vocabulary(VOCABULARY.version, shipped_document())
    assert (await ask(client)).primary_event == "human"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, ErrorKind.VOCABULARY_MISMATCH),
        (409, ErrorKind.VOCABULARY_MISMATCH),
        (503, ErrorKind.UNAVAILABLE),
        (500, ErrorKind.SERVER_ERROR),
    ],
)
async def test_a_vocabulary_that_is_refused_condemns_no_picture(
    analyzer: FakeAnalyzer, client: AnalyzerClient, status: int, kind: ErrorKind
) -> None:
    analyzer.add_fault(Rule(Fault.answer_status(status), path="/v1/schema"))
    with pytest.raises(AnalyzerError) as failed:
        await client.put_vocabulary(VOCABULARY.version, shipped_document())
    assert failed.value.kind is kind


@pytest.mark.parametrize("fault", [Fault.reset(), Fault.cut_off()], ids=["reset", "cut off"])
async def test_a_connection_that_breaks_is_a_connection_error(
    analyzer: FakeAnalyzer, client: AnalyzerClient, fault: Fault
) -> None:
    analyzer.add_fault(Rule(fault, times=1))
    assert (await failure(client)).kind is ErrorKind.CONNECTION
    assert (await ask(client)).primary_event == "human", "the next request has a connection of its own"


async def test_nobody_listening_is_a_connection_error_that_names_the_address(
    analyzer: FakeAnalyzer, client: AnalyzerClient
) -> None:
    await analyzer.refuse()
    error = await failure(client)
    assert error.kind is ErrorKind.CONNECTION
    assert analyzer.url.removeprefix("http://") in error.message
    await analyzer.accept()
    assert (await ask(client)).primary_event == "human"


async def test_a_machine_that_is_off_is_a_connection_error_and_not_a_slow_answer() -> None:
    """Nothing refuses a connection to it; were that a time-out, an outage would cost jobs their attempts."""
    with ExitStack() as stack:
        deaf = stack.enter_context(_deaf_socket())
        for _ in range(8):  # fills the queue of connections that nobody accepts; further ones are dropped
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex((LOOPBACK, port_of(deaf)))
        client = client_of(f"http://{LOOPBACK}:{port_of(deaf)}", HASTY_SEC)
        error = await failure(client)
        await client.close()
    assert error.kind is ErrorKind.CONNECTION
    assert "no connection within" in error.message


def _deaf_socket() -> socket.socket:
    sock = socket.socket()
    sock.bind((LOOPBACK, 0))
    sock.listen(0)
    return sock


async def test_a_name_that_does_not_exist_is_a_connection_error() -> None:
    client = client_of("http://analyzer.invalid:9000")
    assert (await failure(client)).kind is ErrorKind.CONNECTION
    await client.close()


async def test_an_answer_that_does_not_come_is_a_time_out(analyzer: FakeAnalyzer, hasty: AnalyzerClient) -> None:
    analyzer.add_fault(Fault.hold())
    error = await failure(hasty)
    assert error.kind is ErrorKind.TIMEOUT
    assert "1 s" in error.message
    analyzer.heal()


async def test_a_redirect_is_not_followed(analyzer: FakeAnalyzer, client: AnalyzerClient) -> None:
    """Whoever followed these would get a good answer."""
    analyzer.add_fault(Rule(Fault.redirect(f"{analyzer.url}/v1/analyze", 307), times=1))
    analyzer.add_fault(Rule(Fault.redirect(f"{analyzer.url}/v1/schema", 302), "/v1/schema", times=1))
    received = analyzer.received
    assert (await failure(client)).kind is ErrorKind.BROKEN_ANSWER
    with pytest.raises(AnalyzerError) as failed:
        await client.put_vocabulary(VOCABULARY.version, shipped_document())
    assert failed.value.kind is ErrorKind.BROKEN_ANSWER
    assert analyzer.received == received + 2


async def test_a_huge_answer_is_given_up_early(analyzer: FakeAnalyzer, client: AnalyzerClient) -> None:
    analyzer.add_fault(Fault.huge(500_000_000))
    error = await failure(client)
    assert error.kind is ErrorKind.BROKEN_ANSWER
    assert "longer than 1000000 bytes" in error.message
    assert analyzer.analyses()[0].status is None, "the analyzer could not send it to its end"


async def test_an_answer_that_is_no_json_is_broken(analyzer: FakeAnalyzer, client: AnalyzerClient) -> None:
    analyzer.add_fault(Fault.malformed())
    assert (await failure(client)).kind is ErrorKind.BROKEN_ANSWER


async def test_an_answer_for_another_camera_is_broken(analyzer: FakeAnalyzer, client: AnalyzerClient) -> None:
    analyzer.add_fault(Fault.wrong_camera())
    error = await failure(client)
    assert error.kind is ErrorKind.BROKEN_ANSWER
    assert "camera_id" in error.message


@pytest.mark.parametrize("breach", sorted(BREAKS))
async def test_every_breach_of_the_contract_is_a_broken_answer(
    analyzer: FakeAnalyzer, client: AnalyzerClient, breach: str
) -> None:
    analyzer.add_fault(Fault.break_contract(breach))
    assert (await failure(client)).kind is ErrorKind.BROKEN_ANSWER


async def test_health_is_an_answer_or_an_error(analyzer: FakeAnalyzer, client: AnalyzerClient) -> None:
    await client.check_health()
    await analyzer.refuse()
    with pytest.raises(AnalyzerError):
        await client.check_health()


async def test_the_picture_before_and_hints_go_along(analyzer: FakeAnalyzer, client: AnalyzerClient) -> None:
    hints = {"time_band": "night", "network_zone": "vpn"}
    analysis = await client.analyze(Question(CAMERA_ID, T0, REQUEST_ID, HUMAN, HUMAN, hints), VOCABULARY)
    assert analysis.severity == 2, "somebody at night"
    await ask(client)
    with_all, without = analyzer.analyses()
    assert (with_all.has_prev_image, with_all.hints) == (True, hints)
    assert (without.has_prev_image, without.hints) == (False, {})
    assert with_all.image_bytes == without.image_bytes == len(HUMAN)


async def test_a_large_body_is_sent_whole(analyzer: FakeAnalyzer, client: AnalyzerClient) -> None:
    large = jpeg_of_bytes(3_000_000)
    await client.analyze(Question(CAMERA_ID, T0, REQUEST_ID, large, large), VOCABULARY)
    assert analyzer.analyses()[0].image_bytes == len(large)


async def test_capabilities_are_understood_or_refused(analyzer: FakeAnalyzer, client: AnalyzerClient) -> None:
    able = await client.capabilities()
    assert (able.api_version, able.runtime, able.model.name) == ("v1", "fake", "fake")
    for fault in (Fault.malformed(), Fault.huge(2_000_000), Fault.redirect("http://127.0.0.1:1/")):
        analyzer.heal()
        analyzer.add_fault(Rule(fault, path="/v1/capabilities"))
        with pytest.raises(AnalyzerError) as failed:
            await client.capabilities()
        assert failed.value.kind is ErrorKind.BROKEN_ANSWER


@pytest.mark.parametrize("status", [200, 204, 301, 400, 404, 409, 429])
async def test_any_sign_of_life_is_health(analyzer: FakeAnalyzer, client: AnalyzerClient, status: int) -> None:
    analyzer.add_fault(Rule(Fault.answer_status(status), path="/healthz"))
    await client.check_health()


@pytest.mark.parametrize("status", [500, 502, 503, 504])
async def test_one_that_says_it_is_unwell_is_unwell(
    analyzer: FakeAnalyzer, client: AnalyzerClient, status: int
) -> None:
    analyzer.add_fault(Rule(Fault.answer_status(status), path="/healthz"))
    with pytest.raises(AnalyzerError):
        await client.check_health()


# What the fake has no words for: a server of bare bytes.


class BareServer:
    """Answers every request with the same response, made of a status, headers and a body."""

    def __init__(self, body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.body, self.status, self.headers = body, status, headers or {}
        self.asked: list[web.Request] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        await request.read()
        self.asked.append(request)
        return web.Response(body=self.body, status=self.status, headers=self.headers)


@asynccontextmanager
async def bare_client(server: BareServer) -> AsyncIterator[AnalyzerClient]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    sock = listening_socket(0)
    await web.SockSite(runner, sock).start()
    client = client_of(f"http://{LOOPBACK}:{port_of(sock)}")
    try:
        yield client
    finally:
        await client.close()
        await runner.cleanup()


async def asked_of(server: BareServer) -> AnalyzerError:
    async with bare_client(server) as client:
        return await failure(client)


async def test_a_packed_answer_is_neither_asked_for_nor_unpacked() -> None:
    bomb = gzip.compress(b" " * 100_000_000)
    server = BareServer(bomb, headers={"Content-Encoding": "gzip", "Content-Type": "application/json"})
    error = await asked_of(server)
    assert error.kind is ErrorKind.BROKEN_ANSWER
    assert "not JSON" in error.message, "it was not found to be too long: nobody unpacked it"
    assert server.asked[0].headers["Accept-Encoding"] == "identity"


async def test_what_the_analyzer_says_of_its_error_can_be_stored_and_shown() -> None:
    said = "\x00 out of\nmemory \x1b[2J \ud83d ".encode("utf-8", "surrogatepass") + b"\xff" + b"x" * 100_000
    error = await asked_of(BareServer(said, status=500))
    assert "memory" in error.message
    assert error.message.isprintable()
    assert len(error.message) < 300


@pytest.mark.parametrize(
    ("date", "retry_after", "seconds"),
    [
        ("Wed, 21 Oct 2026 07:28:00 GMT", "Wed, 21 Oct 2026 07:28:30 GMT", 30.0),
        ("Wed, 21 Oct 2026 07:28:00 GMT", "Wed, 21 Oct 2026 07:27:00 GMT", -60.0),
        ("nonsense", "Wed, 21 Oct 2026 07:28:30 GMT", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", "Wed, 99 Oct 2026 07:28:30 GMT", None),
    ],
)
async def test_retry_after_may_be_a_moment_of_the_analyzers_own_clock(
    date: str, retry_after: str, seconds: float | None
) -> None:
    error = await asked_of(BareServer(b"{}", 429, {"Date": date, "Retry-After": retry_after}))
    assert error.kind is ErrorKind.OVERLOADED
    assert error.retry_after_sec == seconds


async def test_a_slow_body_is_bounded_by_the_same_time_out() -> None:
    """The head comes at once, the body never ends."""
    ended = asyncio.Event()

    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
        await ended.wait()
        writer.close()

    server = await asyncio.start_server(trickle, LOOPBACK, 0)
    client = client_of(f"http://{LOOPBACK}:{server.sockets[0].getsockname()[1]}", HASTY_SEC)
    error = await failure(client)
    ended.set()
    await client.close()
    server.close()
    assert error.kind is ErrorKind.TIMEOUT


GOOD = json.dumps(
    {
        "schema_version": VOCABULARY.version,
        "camera_id": CAMERA_ID,
        "captured_at": iso_utc(T0),
        "analyzed": True,
        "detected": True,
        "primary_event": "human",
        "tags": ["count.single"],
        "severity": 0,
        "unknown_flag": False,
    }
)


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/html", GOOD.encode()),
        ("text/plain; charset=utf-8", b"A person walks by."),
        ("application/octet-stream", GOOD.encode()),
        ("application/json; charset=utf-16", GOOD.encode("utf-16")),
        ("application/json; charset=shift_jis", GOOD.encode("shift_jis")),
        ("application/json", GOOD.encode("utf-16")),
        ("application/json", GOOD.encode("utf-32")),
        ("application/json", b"\xef\xbb\xbf" + GOOD.encode()),
        ("application/json", b"I see a person: " + GOOD.encode()),
        ("application/json", GOOD.encode() + b" That is all."),
        ("application/json", b"```json\n" + GOOD.encode() + b"\n```"),
        ("application/json", b""),
    ],
    ids=["page", "prose", "bytes", "utf-16", "shift_jis", "utf-16 in secret", "utf-32", "mark", "before", "after",
         "fenced", "nothing"],
)  # fmt: skip
async def test_what_is_not_json_in_utf_8_is_refused(content_type: str, body: bytes) -> None:
    error = await asked_of(BareServer(body, headers={"Content-Type": content_type}))
    assert error.kind is ErrorKind.BROKEN_ANSWER
    assert "not JSON" in error.message or "not in UTF-8" in error.message


@pytest.mark.parametrize(
    "content_type", ["application/json", "Application/JSON; Charset=UTF-8", "application/x+json"]
)
async def test_json_by_any_of_its_names_is_read(content_type: str) -> None:
    async with bare_client(BareServer(GOOD.encode(), headers={"Content-Type": content_type})) as client:
        assert (await ask(client)).primary_event == "human"


async def answered_by(pieces: Iterable[bytes], timeout_sec: float = PATIENT_SEC) -> AnalyzerError:
    """What the client makes of an answer sent piece by piece, for ever if it does not end."""
    return await served_by(pieces, failure, timeout_sec)


async def served_by(
    pieces: Iterable[bytes], ask: Callable[[AnalyzerClient], Awaitable[T]], timeout_sec: float = PATIENT_SEC
) -> T:
    stopped = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        try:
            for piece in pieces:
                if stopped.is_set():
                    break
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            await stopped.wait()
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, LOOPBACK, 0)
    client = client_of(f"http://{LOOPBACK}:{server.sockets[0].getsockname()[1]}", timeout_sec)
    try:
        return await ask(client)
    finally:
        stopped.set()
        await client.close()
        server.close()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


async def test_an_answer_in_pieces_without_end_is_given_up() -> None:
    endless = itertools.chain(
        [HEAD + b"Transfer-Encoding: chunked\r\n\r\n"], itertools.repeat(b"1000\r\n" + b" " * 4096 + b"\r\n")
    )
    error = await answered_by(endless)
    assert error.kind is ErrorKind.BROKEN_ANSWER
    assert "longer than 1000000 bytes" in error.message


ENDLESS = (b"Transfer-Encoding: chunked\r\n\r\n", itertools.repeat(b"1000\r\n" + b" " * 4096 + b"\r\n"))
DRIPPING = (b"Content-Length: 900000\r\n\r\n", [b" "])


@pytest.mark.parametrize("body", [ENDLESS, DRIPPING], ids=["endless", "dripping"])
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (429, ErrorKind.OVERLOADED),
        (503, ErrorKind.UNAVAILABLE),
        (400, ErrorKind.BAD_REQUEST),
        (409, ErrorKind.VOCABULARY_MISMATCH),
        (500, ErrorKind.SERVER_ERROR),
    ],
)
async def test_an_errors_status_counts_whatever_its_body_does(
    body: tuple[bytes, Iterable[bytes]], status: int, kind: ErrorKind
) -> None:
    head, pieces = body
    error = await answered_by(itertools.chain([f"HTTP/1.1 {status} No\r\n".encode() + head], pieces))
    assert error.kind is kind


@pytest.mark.parametrize(("status", "is_well"), [(200, True), (404, True), (503, False)])
async def test_health_is_the_status_whatever_the_body_does(status: int, is_well: bool) -> None:
    pieces = itertools.chain([f"HTTP/1.1 {status} So\r\n".encode() + DRIPPING[0]], DRIPPING[1])
    if is_well:
        assert await served_by(pieces, lambda client: client.check_health()) is None
    else:
        with pytest.raises(AnalyzerError) as caught:
            await served_by(pieces, lambda client: client.check_health())
        assert caught.value.kind is ErrorKind.UNAVAILABLE


async def test_a_head_without_end_is_given_up() -> None:
    endless = itertools.chain([HEAD], itertools.repeat(b"X-More: " + b"x" * 4000 + b"\r\n"))
    error = await answered_by(endless, HASTY_SEC)
    assert error.kind in (ErrorKind.BROKEN_ANSWER, ErrorKind.TIMEOUT)


async def test_a_line_of_the_head_without_end_is_given_up() -> None:
    endless = itertools.chain([HEAD, b"X-Long: "], itertools.repeat(b"x" * 65_536))
    assert (await answered_by(endless, HASTY_SEC)).kind in (ErrorKind.BROKEN_ANSWER, ErrorKind.TIMEOUT)


async def test_an_answer_that_drips_is_bounded_by_the_same_time_out() -> None:
    """A byte now and then is no progress that counts."""
    drops = itertools.chain([HEAD + b"Content-Length: 900000\r\n\r\n"], itertools.repeat(b" ", 20))
    assert (await answered_by(drops, HASTY_SEC)).kind is ErrorKind.TIMEOUT


async def test_a_length_that_is_a_lie_is_a_broken_connection_or_answer() -> None:
    error = await answered_by([HEAD + b"Content-Length: -5\r\n\r\n{}"], HASTY_SEC)
    assert error.kind in (ErrorKind.BROKEN_ANSWER, ErrorKind.CONNECTION, ErrorKind.TIMEOUT)


async def test_something_that_does_not_speak_http_is_a_broken_answer() -> None:
    async def chatter(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"220 mail.example ESMTP\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(chatter, LOOPBACK, 0)
    client = client_of(f"http://{LOOPBACK}:{server.sockets[0].getsockname()[1]}")
    error = await failure(client)
    await client.close()
    server.close()
    assert error.kind is ErrorKind.BROKEN_ANSWER


async def test_an_address_with_credentials_is_never_shown() -> None:
    client = client_of(f"http://user:hunter2@{LOOPBACK}:{free_port()}/base/")
    error = await failure(client)
    await client.close()
    assert error.kind is ErrorKind.CONNECTION
    assert "hunter2" not in error.message
    assert "hunter2" not in client.host


async def test_many_requests_at_once_do_not_wait_for_each_other(
    analyzer: FakeAnalyzer, client: AnalyzerClient
) -> None:
    analyzer.add_fault(Fault.hold())
    tasks = [asyncio.create_task(ask(client)) for _ in range(50)]
    await analyzer.until_received(51)  # and the vocabulary
    analyzer.heal()
    assert {analysis.primary_event for analysis in await asyncio.gather(*tasks)} == {"human"}
