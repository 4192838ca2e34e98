import asyncio
import io
import json
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, tzinfo
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.base import log, secrets


class StandingClock(datetime):
    @classmethod
    def now(cls, tz: tzinfo | None = None) -> "StandingClock":
        return cls(2026, 1, 1, tzinfo=tz)


Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """`configure` changes the process; each test gets it back as it was."""
    root = logging.getLogger()
    before = root.handlers[:], root.level, sys.excepthook, threading.excepthook, sys.unraisablehook
    levels = {name: logging.getLogger(name).level for name in ("aiohttp.access", "uvicorn.access", "asyncio")}
    yield
    root.handlers[:], root.level = before[0], before[1]
    sys.excepthook, threading.excepthook, sys.unraisablehook = before[2:]
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    logging.captureWarnings(False)


def configured(format: log.Format, level: log.Level = "info", service: str = "server") -> io.StringIO:
    """Configures with a stderr of its own, which pytest's capturing does not replace."""
    stream, before = io.StringIO(), sys.stderr
    sys.stderr = stream
    try:
        log.configure(service, format, level)
    finally:
        sys.stderr = before
    return stream


@pytest.fixture
def lines() -> Lines:
    stream = configured("json")
    return lambda: [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_has_its_fields_in_order(lines: Lines) -> None:
    log.get_logger("camserver.x").info("frame recorded", seq=7)
    (line,) = lines()
    assert list(line)[:5] == ["timestamp", "level", "service", "logger", "event"]
    assert line["timestamp"][-5:].endswith("Z")
    assert len(line["timestamp"]) == len("2026-01-01T00:00:00.000Z")
    assert {**line, "timestamp": ""} == {
        "timestamp": "",
        "level": "info",
        "service": "server",
        "logger": "camserver.x",
        "event": "frame recorded",
        "seq": 7,
    }


async def test_ids_are_bound_for_a_task_and_those_it_starts_only(lines: Lines) -> None:
    logger = log.get_logger("x")

    async def look(camera_id: str) -> None:
        with log.bind_ids(camera_id=camera_id, generation=3):
            await asyncio.gather(inner(), inner())

    async def inner() -> None:
        await asyncio.sleep(0)
        logger.info("look")

    await asyncio.gather(look("cam_1"), look("cam_2"))
    logger.info("outside")
    assert sorted(line.get("camera_id", "") for line in lines()) == ["", "cam_1", "cam_1", "cam_2", "cam_2"]
    assert "generation" not in lines()[-1]


async def test_ids_that_are_kept_go_with_their_task(lines: Lines) -> None:
    logger = log.get_logger("x")

    async def work(job_id: int) -> None:
        log.keep_ids(job_id=job_id)
        await asyncio.sleep(0)
        logger.info("work")

    with log.bind_ids(tenant_id=7):
        await asyncio.gather(work(1), work(2))
        logger.info("outside")
    assert [(line["tenant_id"], line.get("job_id")) for line in lines()] == [(7, 1), (7, 2), (7, None)]


def test_inner_ids_are_undone_and_none_is_not_bound(lines: Lines) -> None:
    with log.bind_ids(tenant_id=1, camera_id="a"):
        with log.bind_ids(camera_id="b", job_id=None):
            log.get_logger("x").info("inner")
        log.get_logger("x").info("outer")
    inner, outer = lines()
    assert (inner["camera_id"], inner["tenant_id"], "job_id" in inner) == ("b", 1, False)
    assert outer["camera_id"] == "a"


def test_a_service_names_its_own_lines(lines: Lines) -> None:
    with log.as_service("web"):
        log.get_logger("x").info("one")
    log.get_logger("x").info("two")
    assert [line["service"] for line in lines()] == ["web", "server"]


def test_other_libraries_write_the_same_lines(lines: Lines) -> None:
    with log.bind_ids(request_id="r1"):
        logging.getLogger("uvicorn.error").warning("slow %s", "client", extra={"color_message": "\x1b[1m"})
    (line,) = lines()
    assert (line["event"], line["logger"], line["request_id"]) == ("slow client", "uvicorn.error", "r1")
    assert "color_message" not in line


async def test_the_event_loops_own_complaints_are_lines_too(lines: Lines) -> None:
    asyncio.get_running_loop().call_exception_handler({"message": "lost", "exception": ValueError("why")})
    (line,) = lines()
    assert line["logger"] == "asyncio"
    assert "ValueError: why" in line["exception"]


def test_levels_are_obeyed() -> None:
    stderr = configured("json", "warning")
    log.get_logger("x").info("not this")
    logging.getLogger("other").info("nor this")
    log.get_logger("x").warning("this")
    assert [json.loads(line)["event"] for line in stderr.getvalue().splitlines()] == ["this"]


def test_configuring_again_replaces() -> None:
    before = configured("json", service="one")
    stderr = configured("json", service="two")
    log.get_logger("x").info("once")
    (line,) = stderr.getvalue().splitlines()
    assert json.loads(line)["service"] == "two"
    assert before.getvalue() == ""


def fail_with(secret: str) -> None:
    in_a_variable = secret[::-1]
    raise ValueError(f"can't open rtsp://user:{secret}@host of {len(in_a_variable)}")


@pytest.mark.parametrize("format", ["json", "text"])
@pytest.mark.parametrize("secret", ["tr1cky-pass", 'qu"ote\\back', "日本語のパス", "new\nline secret"])
def test_no_secret_is_in_any_line(format: log.Format, secret: str) -> None:
    kept = secrets.Secret(secret)
    stderr = configured(format)
    logger = log.get_logger("x")
    logger.info(f"in the event {secret}", value=secret, nested={"deep": [secret]}, kept=kept)
    logger.info("in a key", **{secret: 1})
    logging.getLogger("foreign").error("as an argument %s", secret)
    try:
        fail_with(secret)
    except ValueError:
        logger.exception("in a traceback")
    text = stderr.getvalue()
    for written in (secret, json.dumps(secret)[1:-1], repr(secret)[1:-1]):
        assert written not in text
    assert text.count(secrets.MASK) >= 6


def test_a_secret_number_is_masked_and_the_line_stays_json(lines: Lines) -> None:
    secrets.Secret("48151623")
    log.get_logger("x").info("pin", pin=48151623, other=12)
    (line,) = lines()
    assert (line["pin"], line["other"]) == (secrets.MASK, 12)


def test_a_secret_across_the_json_signs_leaves_readable_json(lines: Lines) -> None:
    secrets.Secret('7, "zeta": 8')
    log.get_logger("x").info("numbers", alpha=7, zeta=8)
    (line,) = lines()
    assert line["event"] == "scrubbed line"
    assert secrets.MASK in line["line"]


def test_tracebacks_show_no_local_variables() -> None:
    stderr = configured("text")
    try:
        fail_with("forwards")
    except ValueError:
        log.get_logger("x").exception("failed")
    assert "user:forwards@host" in stderr.getvalue()
    assert "sdrawrof" not in stderr.getvalue()


@given(
    event=st.text(max_size=50),
    fields=st.dictionaries(
        st.sampled_from(["camera_id", "trace_id", "exception", "a", "b", "c", "d", "e"]),
        st.one_of(
            st.integers(),
            st.builds(lambda text, times: text * times, st.text(min_size=1, max_size=3), st.integers(1, 20_000)),
            st.lists(st.text(max_size=500), max_size=200),
        ),
        max_size=8,
    ),
    format=st.sampled_from(["json", "text"]),
)
def test_every_line_is_bounded_and_json_is_one_line(event: str, fields: dict[str, Any], format: log.Format) -> None:
    stream = configured(format)
    log.get_logger("x").warning(event.replace("%", ""), **fields)
    text = stream.getvalue()
    assert len(text.encode(errors="replace")) <= log.LINE_MAX_BYTES + 1
    if format == "json":
        assert text.count("\n") == 1
        assert json.loads(text)["level"] == "warning"


values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=8),
        st.just("a hidden w0rd"),
        st.binary(),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.tuples(inner), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(event=st.text(max_size=9), fields=st.dictionaries(st.sampled_from(["a", "b", "service"]), values))
def test_the_short_way_to_a_line_makes_the_same_line(event: str, fields: dict[str, Any]) -> None:
    secrets.Secret("hidden w0rd")
    written = []
    for short_way in (True, False):
        with pytest.MonkeyPatch.context() as patched:
            if not short_way:
                patched.setattr(log._LineFormatter, "_plain_line", lambda *_: None)
            patched.setattr(log, "datetime", StandingClock)
            stream = configured("json")
            log.get_logger("x").info(event.replace("%", ""), **fields)
            written.append(stream.getvalue())
    assert written[0] == written[1]


def test_an_ordinary_line_goes_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the long way")

    monkeypatch.setattr(log, "_make_safe", refuse)
    stream = configured("json")
    log.get_logger("x").info("ack_start", camera_id="cam_1", generation=1, payload={"held": ["a", 2]})
    assert json.loads(stream.getvalue())["payload"] == {"held": ["a", 2]}


def test_a_cut_line_keeps_what_finds_it_again(lines: Lines) -> None:
    with log.bind_ids(camera_id="cam_1", generation=4):
        log.get_logger("x").info("big", **{f"field_{n}": "y" * 4_000 for n in range(20)})
    (line,) = lines()
    assert (line["event"], line["camera_id"], line["generation"]) == ("big", "cam_1", "4")
    assert line["cut_fields"][0] == "field_0"


def test_text_from_outside_can_not_forge_a_line_or_steer_the_terminal() -> None:
    stderr = configured("text")
    log.get_logger("x").info("name\n2026 [info] forged", name="\x1b[2Jcleared")
    assert len(stderr.getvalue().splitlines()) == 1
    assert "\x1b[2J" not in stderr.getvalue()


def test_values_that_can_not_be_shown_do_not_cost_the_line(lines: Lines) -> None:
    class Broken:
        def __str__(self) -> str:
            raise RuntimeError

    endless: list[Any] = []
    endless.append(endless)
    log.get_logger("x").info("odd", broken=Broken(), endless=endless, data=b"\xff")
    (line,) = lines()
    assert line["broken"] == "<Broken without text: RuntimeError>"
    assert line["data"] == "b'\\xff'"


def test_uncaught_exceptions_of_threads_are_lines_without_secrets(lines: Lines) -> None:
    secrets.Secret("thread-secret")
    thread = threading.Thread(target=fail_with, args=("thread-secret",), name="reader")
    thread.start()
    thread.join()
    (line,) = lines()
    assert (line["level"], line["thread"]) == ("critical", "reader")
    assert "ValueError" in line["exception"]
    assert "thread-secret" not in json.dumps(line)


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_auto_is_text_on_a_terminal_and_json_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert (log.resolve_format("auto"), log.colours_wanted()) == ("json", False)
    monkeypatch.setattr(sys, "stderr", _Terminal())
    assert (log.resolve_format("auto"), log.colours_wanted()) == ("text", True)
    assert log.resolve_format("json") == "json"
    monkeypatch.setenv("NO_COLOR", "1")
    assert not log.colours_wanted()
