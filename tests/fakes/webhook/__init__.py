"""A receiver of webhooks that checks signatures, remembers what it got, and misbehaves on demand."""

from tests.fakes.webhook.server import Act, FakeWebhook, Received

__all__ = ["Act", "FakeWebhook", "Received"]
