"""A camera that sends video, driven by a test: real pictures in packets that come when they are told to."""

from dataclasses import replace

from camserver.domain.leases import Fault
from camserver.media.keyframes import Keyframes
from camserver.media.packets import Hub, Miss, Packet
from camserver.media.rtsp_source import RtspSource
from tests.media.test_packets import ToldPackets
from tests.media.video import encoded, flat
from tests.rig.polling import until
from tests.services.worker.build import FollowingClock

# Not what a device answers that bears no more streams.
MISSING = Miss(Fault.NOT_FOUND, "no such path")


class ToldVideo:
    """A `PacketSource` behind a hub, and the source of looks at it."""

    def __init__(self, clock: FollowingClock, size: tuple[int, int] = (320, 180), interval_ms: int = 1000) -> None:
        self._clock = clock
        self._size = size
        self.packets = ToldPackets()
        self.source = RtspSource(Hub(self.packets), Keyframes(interval_ms, clock.boot_ms), interval_ms, clock.boot_ms)

    @property
    def is_connected(self) -> bool:
        return self.packets.open_now > 0

    def picture(self, shade: int) -> Packet:
        """A keyframe of now."""
        return replace(encoded([flat(shade, self._size)])[0], boot_ms=self._clock.boot_ms())

    def show(self, shade: int = 100) -> None:
        self.packets.tell(self.picture(shade))

    def garble(self) -> None:
        """Sends a keyframe that no decoder understands."""
        self.packets.tell(replace(self.picture(0), data=b"\0\0\0\1\x65" + b"garbled" * 50))

    def fail(self, miss: Miss = MISSING) -> None:
        self.packets.tell(miss)

    async def connected(self, times: int = 1) -> None:
        """Until it was opened so many times, and is open."""
        await until(lambda: self.packets.opened >= times and self.is_connected, f"connection {times}")

    async def closed(self) -> None:
        await until(lambda: not self.is_connected, "the connection is gone")
