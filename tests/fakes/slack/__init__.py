"""Slack's incoming webhooks and the part of its Web API that camserver uses, with faults on demand."""

from tests.fakes.slack.server import Call, FakeSlack

__all__ = ["Call", "FakeSlack"]
