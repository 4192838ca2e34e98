"""The three providers against servers that answer, refuse, cut off and lie."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from camserver.base.secrets import Secret
from camserver.clients.llm.lean_http import Came, LeanHttp, Reply
from camserver.clients.llm.opening import PROVIDERS, open_client
from camserver.clients.llm.questions import Finish, LlmError, LlmErrorKind, Prompt, Usage
from camserver.clients.llm.rest_client import RestClient
from camserver.clients.outgoing import OutgoingPolicy
from tests.fakes.llm import KEY, FakeLlm, Trick
from tests.rig.ports import LOOPBACK, free_port

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"label": {"type": "string", "enum": ["animal"]}, "memo": {"type": "string"}},
    "required": ["label", "memo"],
}
PROMPT = Prompt("Be brief.", "What is it?", (b"\xff\xd8jpeg", b"\x89PNG..."))


@pytest.fixture
async def llm() -> AsyncIterator[FakeLlm]:
    async with FakeLlm() as fake:
        yield fake


@pytest.fixture(params=[*((name, False) for name in sorted(PROVIDERS)), ("openai", True)], ids=str)
async def client(request: pytest.FixtureRequest, llm: FakeLlm) -> AsyncIterator[RestClient]:
    """Each provider, and the lean client with one of them."""
    name, lean = request.param
    made = open_client(name, model="m-1", base_url=llm.url(name), key=Secret(KEY), timeout_sec=60, lean=lean)
    yield made
    await made.close()


async def failed(client: RestClient) -> LlmError:
    with pytest.raises(LlmError) as caught:
        await client.ask(PROMPT, SCHEMA, 500)
    return caught.value


async def test_a_question_with_pictures_and_its_answer(client: RestClient, llm: FakeLlm) -> None:
    answer = await client.ask(PROMPT, SCHEMA, 500)
    assert answer.parsed == llm.says
    assert answer.usage == Usage(900, 60)
    assert answer.model.startswith("m-1")
    assert answer.finish is Finish.STOP
    (asked,) = llm.asked
    assert (asked.provider, asked.model, asked.max_tokens) == (client.provider, "m-1", 500)
    assert (asked.system, asked.text, asked.pictures) == (PROMPT.system, PROMPT.text, PROMPT.pictures)
    assert asked.schema is not None
    assert asked.schema["properties"]["label"]["enum"] == ["animal"]


async def test_without_a_schema_prose_is_an_answer(client: RestClient, llm: FakeLlm) -> None:
    llm.tricks.append(Trick("prose"))
    answer = await client.ask(PROMPT, None, 500)
    assert answer.text.startswith("I see a cat")
    assert answer.parsed is None
    assert llm.asked[0].schema is None


@pytest.mark.parametrize("kind", ["rate_limited", "quota", "bad_key", "overloaded", "server_error", "bad_request"])
async def test_errors_are_told_apart(client: RestClient, llm: FakeLlm, kind: str) -> None:
    llm.tricks.append(Trick(kind))
    error = await failed(client)
    assert error.kind == kind
    assert KEY not in error.message
    if kind == "rate_limited":
        assert error.retry_after_sec == 7


@pytest.mark.parametrize(
    ("trick", "kind"),
    [
        ("reset", LlmErrorKind.CONNECTION),
        ("cut", LlmErrorKind.CONNECTION),
        ("garbage", LlmErrorKind.BROKEN_ANSWER),
        ("wrong", LlmErrorKind.BROKEN_ANSWER),
        ("huge", LlmErrorKind.BROKEN_ANSWER),
        ("prose", LlmErrorKind.BROKEN_ANSWER),
        ("truncated", LlmErrorKind.TRUNCATED),
        ("refused", LlmErrorKind.REFUSED),
        ("redirect", LlmErrorKind.BAD_REQUEST),
    ],
)
async def test_lies_and_accidents_have_their_kind(
    client: RestClient, llm: FakeLlm, trick: str, kind: LlmErrorKind
) -> None:
    llm.always = Trick(trick)
    assert (await failed(client)).kind is kind


@pytest.mark.parametrize("trick", ["prose", "truncated", "refused"])
async def test_what_was_billed_in_vain_is_told(client: RestClient, llm: FakeLlm, trick: str) -> None:
    llm.tricks.append(Trick(trick))
    assert (await failed(client)).usage == Usage(900, 60)


async def test_json_in_words_is_found(client: RestClient, llm: FakeLlm) -> None:
    llm.tricks.append(Trick("fenced"))
    assert (await client.ask(PROMPT, SCHEMA, 500)).parsed == llm.says


async def test_a_server_without_schemas_is_told_it_in_words_from_then_on(client: RestClient, llm: FakeLlm) -> None:
    llm.always = Trick("no_schema")
    for _ in range(2):
        assert (await client.ask(PROMPT, SCHEMA, 500)).parsed == llm.says
    assert [asked.schema is None for asked in llm.asked] == [False, True, True]
    assert '"enum": ["animal"]' in llm.asked[1].text


async def test_the_newer_bound_is_used_where_the_older_one_is_refused(llm: FakeLlm) -> None:
    client = open_client("openai", model="m", base_url=llm.url("openai"), key=Secret(KEY), timeout_sec=60)
    llm.always = Trick("new_bound")
    for _ in range(2):
        await client.ask(PROMPT, SCHEMA, 77)
    await client.close()
    assert [asked.max_tokens for asked in llm.asked] == [77, 77, 77]


@pytest.mark.parametrize("lean", [False, True])
async def test_an_answer_that_takes_too_long(llm: FakeLlm, lean: bool) -> None:
    client = open_client("openai", model="m", base_url=llm.url("openai"), key=Secret(KEY), timeout_sec=0.2, lean=lean)
    llm.always = Trick("hold")
    assert (await failed(client)).kind is LlmErrorKind.TIMEOUT
    await client.close()


@pytest.mark.parametrize("lean", [False, True])
async def test_nobody_there(lean: bool) -> None:
    url = f"http://{LOOPBACK}:{free_port()}/v1"
    client = open_client("openai", model="m", base_url=url, key=None, timeout_sec=10, lean=lean)
    error = await failed(client)
    await client.close()
    assert error.kind is LlmErrorKind.CONNECTION
    assert LOOPBACK in error.message


async def test_without_a_key_none_is_sent(llm: FakeLlm) -> None:
    client = open_client("openai", model="m", base_url=llm.url("openai"), key=None, timeout_sec=60)
    assert (await failed(client)).kind is LlmErrorKind.BAD_KEY
    await client.close()
    assert llm.asked[0].key == ""


@pytest.mark.parametrize("url", ["http://169.254.169.254/v1", "http://[fe80::1]/v1", "http://0.0.0.0:1/v1"])
@pytest.mark.parametrize("lean", [False, True])
async def test_where_clouds_keep_secrets_is_no_model(url: str, lean: bool) -> None:
    client = open_client("openai", model="m", base_url=url, key=Secret(KEY), timeout_sec=10, lean=lean)
    error = await failed(client)
    await client.close()
    assert error.kind is LlmErrorKind.BAD_REQUEST
    assert "may not be connected to" in error.message


class Landing:
    """What came back to questions that were sent without a task."""

    def __init__(self) -> None:
        self.came: asyncio.Queue[Came] = asyncio.Queue()

    async def next(self) -> Came:
        async with asyncio.timeout(20):
            return await self.came.get()


async def test_questions_that_are_sent_without_a_task(llm: FakeLlm) -> None:
    client = open_client("openai", model="m", base_url=llm.url("openai"), key=Secret(KEY), timeout_sec=60, lean=True)
    prompt, landing = Prompt("Be brief.", "What is it?"), Landing()
    assert not client.send(prompt, SCHEMA, 500, landing.came.put_nowait)  # nothing is connected yet
    asked = await client.ask_loosely(prompt, SCHEMA, 500)
    assert client.send(prompt, SCHEMA, 500, landing.came.put_nowait)
    assert not client.send(prompt, SCHEMA, 500, landing.came.put_nowait)  # the one connection is taken
    good = await landing.next()
    assert isinstance(good, Reply)
    assert client.read(good, prompt, SCHEMA, 500) == asked
    assert await client.ask_loosely(prompt, SCHEMA, 500, good) == asked
    assert len(llm.asked) == 2
    await client.close()


async def test_what_else_comes_back_to_them_has_its_kind(llm: FakeLlm) -> None:
    client = open_client("openai", model="m", base_url=llm.url("openai"), key=Secret(KEY), timeout_sec=60, lean=True)
    prompt, landing = Prompt("Be brief.", "What is it?"), Landing()
    for trick, kind in (("rate_limited", LlmErrorKind.RATE_LIMITED), ("reset", LlmErrorKind.CONNECTION)):
        await client.ask_loosely(prompt, SCHEMA, 500)
        llm.tricks.append(Trick(trick))
        assert client.send(prompt, SCHEMA, 500, landing.came.put_nowait)
        came = await landing.next()
        with pytest.raises(LlmError) as caught:
            await client.ask_loosely(prompt, SCHEMA, 500, came)
        assert caught.value.kind is kind
    assert len(llm.asked) == 4
    await client.close()


async def test_an_answer_too_many_is_no_answer_to_the_next_question() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
        writer.write(answer + answer.replace(b"200 OK", b"500 No"))
        await writer.drain()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, LOOPBACK, 0)
    async with server:
        url = f"http://{LOOPBACK}:{server.sockets[0].getsockname()[1]}"
        http = LeanHttp(url, OutgoingPolicy(allow_loopback=True), answer_bytes_max=1000)
        for _ in range(2):
            reply = await http.post(http.head("/", {}), b"{}", timeout_sec=20, connect_sec=20)
            assert (reply.status, reply.body) == (200, b"{}")
        await http.close()
