"""A fake language model: a real HTTP server that speaks the APIs of three providers, and misbehaves on demand."""

from tests.fakes.llm.dialects import Asked
from tests.fakes.llm.server import KEY, FakeLlm, Trick

__all__ = ["KEY", "Asked", "FakeLlm", "Trick"]
