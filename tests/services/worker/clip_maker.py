"""A worker's errands in a process of their own: makes one clip, then tries to send it until it is killed.

python -m tests.services.worker.clip_maker FOLDER SERVER_URL
"""

import asyncio
import sys
from pathlib import Path

import aiohttp

from camserver.base.secrets import Secret
from camserver.media.mp4_clip import film
from camserver.services.worker.errand_files import ErrandFiles
from camserver.services.worker.errands import ErrandDone, Errands
from camserver.services.worker.upload_client import UploadClient
from camserver.wire.worker import Errand
from tests.media.video import encoded, flat
from tests.services.worker.build import FollowingClock
from tests.services.worker.control import TOKEN

HOURS_6_MS = 6 * 3_600_000


async def make(_: Errand) -> ErrandDone:
    clip = film(encoded([flat(shade, (320, 180)) for shade in range(40, 60)], keyframes_apart=10))
    return ErrandDone(True, "", {"codec": clip.codec}, "video/mp4", clip.mp4)


async def main(folder: Path, url: str) -> None:
    async with aiohttp.ClientSession() as session:
        client = UploadClient(session, url, "worker-1", Secret(TOKEN))
        errands = Errands({"clip": make}, client, ErrandFiles(folder), FollowingClock())
        await errands.open()
        errands.take(Errand(errand_id="errand-1", kind="clip", left_ms=HOURS_6_MS))
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
