"""A collector of OpenTelemetry that decodes what it gets and misbehaves on demand."""

from tests.fakes.otlp.server import FakeCollector, GotSpan, collecting

__all__ = ["FakeCollector", "GotSpan", "collecting"]
