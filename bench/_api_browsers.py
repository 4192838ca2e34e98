"""Browsers that follow the change feed, and do nothing else, in a process of their own.

Told by lines: what is asked of it; it says how many are open. Then for each line, a number, how many changes all of
them were told since, as soon as that many came or after a while.
"""

import asyncio
import json
import sys
from typing import Any

import aiohttp
import uvloop

from tests.rig.polling import until

OPENED_AT_ONCE = 20


class Browsers:
    def __init__(self) -> None:
        self.open = self.told = self.messages = self.closed = 0

    async def follow(self, http: aiohttp.ClientSession, url: str, token: str, room: asyncio.Semaphore) -> None:
        headers = {"Cookie": f"camserver_session={token}", "Origin": url}
        async with room:
            socket = await http.ws_connect(f"{url}/api/feed", headers=headers)
            await socket.receive()
        self.open += 1
        async for message in socket:
            if message.type is aiohttp.WSMsgType.TEXT:
                self.messages += 1
                self.told += len(json.loads(message.data).get("changes", ()))
        self.closed += 1

    async def count(self, wanted: int) -> str:
        await until(lambda: self.told >= wanted or bool(self.closed), f"{wanted} changes")
        said = json.dumps([self.told, self.messages, self.closed])
        self.told = self.messages = 0
        return said


async def main(asked: dict[str, Any]) -> None:
    browsers = Browsers()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        room, tokens = asyncio.Semaphore(OPENED_AT_ONCE), asked["tokens"]
        following = [
            asyncio.create_task(browsers.follow(http, asked["url"], tokens[number % len(tokens)], room))
            for number in range(asked["browsers"])
        ]
        await until(lambda: browsers.open == len(following), "browsers that follow")
        print(browsers.open, flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(await browsers.count(int(line)), flush=True)
        for task in following:
            task.cancel()
        await asyncio.wait(following)


if __name__ == "__main__":
    uvloop.run(main(json.loads(sys.stdin.readline())))
