"""Logging: one line per event on stderr, JSON for machines and coloured text on a terminal.

structlog runs over the standard library's logging, so uvicorn, asyncio and aiohttp end up in the same lines.
Every line carries `timestamp` (UTC, ms), `level`, `service`, `logger`, `event` and whatever correlation ids
are bound where it was written. Two promises hold for every line, tracebacks included: no known secret value
is in it (`secrets.scrub`), and it is at most `LINE_MAX_BYTES` long. Tracebacks never show local variables.

It does not rotate or keep files: that is the service manager's work.
"""

import json
import logging
import os
import re
import sys
import threading
from collections.abc import Collection, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Literal

import structlog
from structlog.typing import EventDict, Processor

from camserver.base.secrets import is_clean, scrub

Format = Literal["auto", "json", "text"]
Level = Literal["debug", "info", "warning", "error"]

LINE_MAX_BYTES = 16_384
# One value may take at most this much; with room for the others, a line rarely reaches its own bound.
VALUE_MAX_CHARS = 4_000
# A traceback is the one value worth more. Its end says what happened, so the middle is what goes.
TRACEBACK_MAX_CHARS = 8_000
KEY_MAX_CHARS = 100
ITEMS_MAX = 100
_NESTING_MAX = 6
_CUT = " …[cut]… "
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_CONTROLS_BUT_LINES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_FIRST = ("timestamp", "level", "service", "logger", "event")
_IDS = (
    "tenant_id",
    "site_id",
    "worker_id",
    "camera_id",
    "generation",
    "intent_id",
    "trace_id",
    "request_id",
    "job_id",
    "delivery_id",
)


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """The logger of a module: `get_logger(__name__)`. Usable before `configure`."""
    return structlog.stdlib.get_logger(name)


@contextmanager
def bind_ids(
    *,
    tenant_id: str | int | None = None,
    site_id: str | int | None = None,
    worker_id: str | int | None = None,
    camera_id: str | int | None = None,
    generation: int | None = None,
    intent_id: str | int | None = None,
    trace_id: str | None = None,
    request_id: str | None = None,
    job_id: str | int | None = None,
    delivery_id: str | int | None = None,
) -> Iterator[None]:
    """Puts these ids on every line written inside, by this task and the tasks it starts."""
    given = {name: value for name, value in locals().items() if value is not None}
    with structlog.contextvars.bound_contextvars(**given):
        yield


def keep_ids(**given: str | int) -> None:
    """As `bind_ids`, to the end of the task: for one that was started for nothing else, at a part of the cost."""
    structlog.contextvars.bind_contextvars(**given)


@contextmanager
def as_service(name: str) -> Iterator[None]:
    """Names the service whose lines are written inside, where one process runs several."""
    with structlog.contextvars.bound_contextvars(service=name):
        yield


def resolve_format(wanted: Format) -> Literal["json", "text"]:
    """`auto` is text on a terminal and JSON everywhere else."""
    if wanted != "auto":
        return wanted
    return "text" if sys.stderr.isatty() else "json"


def colours_wanted() -> bool:
    """Whether text is coloured: `NO_COLOR` and `FORCE_COLOR` decide, else whether stderr is a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stderr.isatty()


def configure(service: str, format: Format = "auto", level: Level = "info") -> None:
    """Sends everything that is logged in this process to stderr, and uncaught exceptions too.

    May be called again: the last call counts.
    """
    handler = _Handler(sys.stderr)
    handler.setFormatter(_LineFormatter(service, resolve_format(format)))
    root = logging.getLogger()
    for old in list(root.handlers):
        if isinstance(old, _Handler):
            root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    # A line per request or per migration step of a library is no news. At debug they are welcome.
    if level != "debug":
        for name in ("aiohttp.access", "uvicorn.access", "uvicorn.error", "asyncio", "alembic"):
            logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(True)
    _log_uncaught()


def _log_uncaught() -> None:
    """What nobody caught would be printed by the interpreter itself, past the scrubber."""
    log = get_logger("camserver.uncaught")

    def of_program(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not issubclass(kind, KeyboardInterrupt):
            log.critical("uncaught exception", exc_info=(kind, error, trace))

    def of_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None and not issubclass(args.exc_type, SystemExit):
            name = args.thread.name if args.thread else None
            log.critical(
                "uncaught exception in a thread",
                thread=name,
                exc_info=(args.exc_type, args.exc_value, args.exc_traceback),
            )

    def of_finalizer(args: Any) -> None:
        # The object itself is not shown: its repr could hold anything.
        log.error("exception ignored in a finalizer", detail=args.err_msg, exc_info=args.exc_value)

    sys.excepthook = of_program
    threading.excepthook = of_thread
    sys.unraisablehook = of_finalizer


class _Handler(logging.StreamHandler[Any]):
    def handleError(self, record: logging.LogRecord) -> None:
        """A line that can't be rendered is still reported; the standard way would print its arguments raw."""
        kind = sys.exc_info()[0]
        if kind is not None and issubclass(kind, OSError):
            return  # stderr is gone: there is nowhere left to say it
        reason = kind.__name__ if kind else "unknown"
        sys.stderr.write(f"a log line of {record.name} could not be rendered ({reason})\n")


class _LineFormatter(structlog.stdlib.ProcessorFormatter):
    """Renders a record, from structlog or from any library, within the module's two promises."""

    def __init__(self, service: str, format: Literal["json", "text"]) -> None:
        self._service = service
        self._json = format == "json"
        rendering = [_render_json] if self._json else [_escape_controls, _text_renderer(colours_wanted())]
        super().__init__(
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                self._add_service,
                structlog.processors.format_exc_info,
                _make_safe,
                _order,
                *rendering,
            ],
            foreign_pre_chain=_PRE_CHAIN,
            # format_exc_info already made text of it; a second traceback must not be appended.
            keep_exc_info=False,
            keep_stack_info=False,
        )

    def _add_service(self, logger: Any, method: str, event: EventDict) -> EventDict:
        event.setdefault("service", self._service)
        return event

    def format(self, record: logging.LogRecord) -> str:
        plain = self._plain_line(record) if self._json else None
        if plain is not None:
            return plain
        line = super().format(record)
        clean = scrub(line)
        if not self._json:
            return _cut_bytes(clean, LINE_MAX_BYTES)
        # A secret that stood across the JSON's own signs would leave a line no machine can read.
        return clean if clean == line else _wrap(clean, record.levelname.lower(), self._service)

    def _plain_line(self, record: logging.LogRecord) -> str | None:
        """The line of an event like most: short, of plain values, with nothing to escape and no secret in it.

        It is what the processors would make of it, at a fraction of their cost. None: they are needed.
        """
        event = record.msg
        if not isinstance(event, dict) or not hasattr(record, "_logger") or "exc_info" in event:
            return None
        if not _is_plain(event, depth=0):
            return None
        named = event if "service" in event else {**event, "service": self._service}
        line = _PLAIN_JSON.encode(_order(None, "", named))
        # Nothing was escaped, so each value stands in the line as it is, and a secret would be found there.
        return line if len(line) <= VALUE_MAX_CHARS and "\\" not in line and is_clean(line) else None


_PLAIN_JSON = json.JSONEncoder(ensure_ascii=False)
_PLAIN = frozenset({str, int, float, bool, type(None)})


def _is_plain(value: object, depth: int) -> bool:
    """Whether JSON shows a value as it is. How long its texts are is not asked."""
    if type(value) in _PLAIN:
        return True
    if depth == _NESTING_MAX or not isinstance(value, dict | list | tuple) or len(value) > ITEMS_MAX:
        return False
    items: Collection[object] = value
    if isinstance(value, dict):
        if any(type(key) is not str or len(key) > KEY_MAX_CHARS for key in value):
            return False
        items = value.values()
    # Mostly they are plain one and all, which a set sees at once.
    return _PLAIN.issuperset(map(type, items)) or all(_is_plain(item, depth + 1) for item in items)


def _wrap(line: str, level: str, service: str) -> str:
    kept = {"level": level, "service": service, "event": "scrubbed line", "line": _cut(line, 2_000)}
    return json.dumps(kept, ensure_ascii=False)


def _add_trace(logger: Any, method: str, event: EventDict) -> EventDict:
    """Whatever concerns an intent is one trace, at server and worker alike: its UUID as tracing tools want it."""
    intent_id = event.get("intent_id")
    if isinstance(intent_id, str) and intent_id and "trace_id" not in event:
        event["trace_id"] = intent_id.replace("-", "")
    return event


def _add_timestamp(logger: Any, method: str, event: EventDict) -> EventDict:
    event["timestamp"] = datetime.now(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
    return event


def _make_safe(logger: Any, method: str, event: EventDict) -> EventDict:
    """Masks secrets and bounds sizes in each key and value, before quoting and escaping can hide them."""
    safe: dict[str, Any] = {}
    for key, value in event.items():
        bound = TRACEBACK_MAX_CHARS if key in ("exception", "stack") else VALUE_MAX_CHARS
        safe[_cut(scrub(str(key)), KEY_MAX_CHARS)] = _safe_value(value, bound, depth=0)
    return safe


def _safe_value(value: Any, bound: int, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        text = str(value)
        masked = scrub(text)
        return value if masked == text else masked
    if depth < _NESTING_MAX and isinstance(value, Mapping):
        return {
            _cut(scrub(str(key)), KEY_MAX_CHARS): _safe_value(item, bound, depth + 1)
            for key, item in list(value.items())[:ITEMS_MAX]
        }
    if depth < _NESTING_MAX and isinstance(value, list | tuple | set | frozenset):
        return [_safe_value(item, bound, depth + 1) for item in list(value)[:ITEMS_MAX]]
    text = value if isinstance(value, str) else _text_of(value)
    return _cut(scrub(text), bound)


def _text_of(value: object) -> str:
    try:
        return str(value)
    except Exception as error:  # a broken __str__ must not cost the whole line
        return f"<{type(value).__name__} without text: {type(error).__name__}>"


def _cut(text: str, bound_chars: int) -> str:
    """`text` within the bound; the beginning and the end stay."""
    if len(text) <= bound_chars:
        return text
    head = bound_chars // 3
    tail = bound_chars - head - len(_CUT)
    return text[:head] + _CUT + text[len(text) - tail :]


def _cut_bytes(text: str, bound_bytes: int) -> str:
    data = text.encode(errors="replace")
    if len(data) <= bound_bytes:
        return text
    return data[: bound_bytes - 100].decode(errors="ignore") + _CUT


def _order(logger: Any, method: str, event: EventDict) -> EventDict:
    """The same fields first in every line, for eyes that scan."""
    first = {name: event[name] for name in _FIRST if name in event}
    return {**first, **event}


def _render_json(logger: Any, method: str, event: EventDict) -> str:
    line = json.dumps(event, ensure_ascii=False, default=_text_of)
    if len(line.encode(errors="replace")) <= LINE_MAX_BYTES:
        return line
    # Six bytes is the most a character takes (as \u0000), and these bounds stay below the line's even so.
    kept: dict[str, Any] = {
        name: _cut(str(event[name]), 40) for name in (*_FIRST, *_IDS) if name in event and name != "event"
    }
    kept["event"] = _cut(str(event.get("event", "")), 400)
    if "exception" in event:
        kept["exception"] = _cut(str(event["exception"]), 1_000)
    kept["cut_fields"] = [_cut(name, 30) for name in sorted(set(event) - set(kept))[:10]]
    return json.dumps(kept, ensure_ascii=False)


def _escape_controls(logger: Any, method: str, event: EventDict) -> EventDict:
    """Text from outside must not forge a second line or steer the terminal; JSON escapes by itself."""
    for key, value in event.items():
        if isinstance(value, str) and key not in ("exception", "stack"):
            event[key] = _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), value)
        elif isinstance(value, str):
            event[key] = _CONTROLS_BUT_LINES.sub("?", value)
    return event


def _text_renderer(colours: bool) -> Processor:
    return structlog.dev.ConsoleRenderer(
        colors=colours,
        pad_event_to=32,
        # The default formatter shows local variables, and those hold secrets.
        exception_formatter=structlog.dev.plain_traceback,
    )


def _drop_colour_twin(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """uvicorn sends each message a second time with terminal colours in it."""
    event.pop("color_message", None)
    return event


# What happens to an event where it is logged (structlog) or where it is rendered (other libraries).
_PRE_CHAIN: list[Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.stdlib.ExtraAdder(),
    _drop_colour_twin,
    _add_trace,
    _add_timestamp,
]

# Done on import, so that a logger made and used before `configure` never prints by itself.
structlog.configure(
    processors=[
        structlog.stdlib.filter_by_level,
        *_PRE_CHAIN,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
    ],
    logger_factory=structlog.stdlib.LoggerFactory(),
    wrapper_class=structlog.stdlib.BoundLogger,
    cache_logger_on_first_use=True,
)
