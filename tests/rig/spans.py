"""Spans that a test looks at, instead of a collector."""

from collections.abc import Iterator
from contextlib import contextmanager

from camserver.base import traces
from camserver.base.traces import Span, Step


class KeptSpans:
    def __init__(self) -> None:
        self.spans: list[Span] = []

    def add(self, span: Span) -> None:
        self.spans.append(span)

    @property
    def steps(self) -> list[Step]:
        return [span.step for span in self.spans]


@contextmanager
def tracing(ratio: float = 1.0, offset_ms: int = 0) -> Iterator[KeptSpans]:
    kept = KeptSpans()
    traces.switch_on(kept, ratio, lambda: offset_ms)
    try:
        yield kept
    finally:
        traces.switch_off()
