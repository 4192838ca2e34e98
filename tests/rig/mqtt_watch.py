"""Somebody who listens at an MQTT broker and remembers: what every topic says now, and every message in order."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiomqtt

from tests.rig.polling import TIMEOUT_SEC, until
from tests.rig.ports import LOOPBACK


@dataclass(slots=True)
class Watch:
    port: int
    now: dict[str, bytes] = field(default_factory=dict)  # without topics that were emptied
    heard: list[tuple[str, bytes]] = field(default_factory=list)

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        await until(condition, what)

    async def until_says(self, topic: str, payload: str | bytes) -> None:
        wanted = payload.encode() if isinstance(payload, str) else payload
        await until(lambda: self.now.get(topic) == wanted, f"{wanted[:20]!r} at {topic}")

    def of(self, topic: str) -> list[bytes]:
        return [payload for heard, payload in self.heard if heard == topic]

    def note(self, topic: str, payload: bytes) -> None:
        self.heard.append((topic, payload))
        if payload:
            self.now[topic] = payload
        else:
            self.now.pop(topic, None)


@asynccontextmanager
async def watch(port: int) -> AsyncIterator[Watch]:
    watched = Watch(port)
    async with aiomqtt.Client(LOOPBACK, port) as client:
        await client.subscribe("#", qos=1)

        async def listen() -> None:
            async for message in client.messages:
                assert isinstance(message.payload, bytes)
                watched.note(message.topic.value, message.payload)

        task = asyncio.create_task(listen())
        try:
            yield watched
        finally:
            task.cancel()


async def retained(port: int) -> dict[str, bytes]:
    """What a newcomer finds."""
    found: dict[str, bytes] = {}
    async with asyncio.timeout(TIMEOUT_SEC), aiomqtt.Client(LOOPBACK, port) as client:
        await client.subscribe("#", qos=1)
        # Comes behind everything that was retained: the broker sends that with the subscription.
        await client.publish("rig/end", b"end", qos=1)
        async for message in client.messages:
            if message.topic.value == "rig/end":
                return found
            assert isinstance(message.payload, bytes)
            if message.retain:
                found[message.topic.value] = message.payload
    return found
