import asyncio
import threading
from collections.abc import Callable

from camserver.domain.leases import Fault
from camserver.media.packets import Hub, Miss, Packet
from tests.media.video import packet
from tests.rig.polling import until

PATIENCE_SEC = 60
GONE = Miss(Fault.NO_VIDEO, "gone")


class ToldPackets:
    """A packet source that a test drives; it gives the packet of each number it is told."""

    def __init__(self) -> None:
        self.opened = 0
        self.open_now = 0
        self.open_max = 0
        self.threads: set[int] = set()
        self._steps: list[Packet | Miss | Exception] = []
        self._came = threading.Condition()

    def tell(self, step: Packet | Miss | Exception) -> None:
        with self._came:
            self._steps.append(step)
            self._came.notify()

    def read(self, sink: Callable[[Packet], None], wanted: Callable[[], bool]) -> Miss | None:
        self.opened += 1
        self.open_now += 1
        self.open_max = max(self.open_max, self.open_now)
        self.threads.add(threading.get_ident())
        try:
            while wanted():
                with self._came:
                    if not self._came.wait_for(lambda: self._steps, 0.01):
                        continue
                    step = self._steps.pop(0)
                if isinstance(step, Miss):
                    return step
                if isinstance(step, Exception):
                    raise step
                sink(step)
            return None
        finally:
            self.open_now -= 1


class Taker:
    def __init__(self) -> None:
        self.packets: list[Packet] = []
        self.misses: list[Miss] = []

    def offer(self, packet: Packet) -> None:
        self.packets.append(packet)

    def ended(self, miss: Miss) -> None:
        self.misses.append(miss)


async def closed(hub: Hub) -> None:
    assert await hub.until_closed(PATIENCE_SEC)


async def test_one_connection_for_all_and_none_for_nobody() -> None:
    source = ToldPackets()
    hub = Hub(source)
    first, second = Taker(), Taker()
    await closed(hub)
    assert source.opened == 0
    hub.add(first)
    hub.add(second)
    hub.add(second)  # once is enough
    source.tell(packet(1))
    await until(lambda: len(first.packets) == 1 == len(second.packets), "the packet at both")
    hub.remove(first)
    source.tell(packet(2))
    await until(lambda: len(second.packets) == 2, "the packet at the one that is left")
    hub.remove(second)
    await closed(hub)
    assert (source.opened, source.open_now, len(first.packets)) == (1, 0, 1)


async def test_the_end_lets_all_go_and_the_next_opens_again() -> None:
    source = ToldPackets()
    hub = Hub(source)
    takers = [Taker(), Taker()]
    for taker in takers:
        hub.add(taker)
    source.tell(GONE)
    await until(lambda: all(taker.misses == [GONE] for taker in takers), "the end at both")
    await closed(hub)
    assert not hub.has(takers[0])
    hub.add(takers[0])
    source.tell(packet(1))
    await until(lambda: len(takers[0].packets) == 1, "a packet of the new connection")
    assert source.opened == 2
    hub.remove(takers[0])
    await closed(hub)


async def test_a_crash_is_a_fault_of_the_worker() -> None:
    source = ToldPackets()
    hub = Hub(source)
    taker = Taker()
    hub.add(taker)
    source.tell(ValueError("secret details"))
    await until(lambda: bool(taker.misses), "the end")
    assert taker.misses[0].fault is Fault.CRASH
    assert "secret" not in taker.misses[0].message
    await closed(hub)


async def test_coming_and_going_never_opens_two_connections() -> None:
    source = ToldPackets()
    hub = Hub(source)
    taker = Taker()
    for _ in range(50):
        hub.add(taker)
        await asyncio.sleep(0)
        hub.remove(taker)
    hub.add(taker)
    source.tell(packet(1))
    await until(lambda: len(taker.packets) == 1, "a packet")
    assert source.open_max == 1
    hub.remove(taker)
    await closed(hub)


async def test_one_that_hangs_is_not_waited_for_for_ever() -> None:
    inside, going_on = threading.Event(), threading.Event()

    class Hanging:
        def read(self, sink: Callable[[Packet], None], wanted: Callable[[], bool]) -> Miss | None:
            inside.set()
            going_on.wait(PATIENCE_SEC)
            return None

    hub = Hub(Hanging())
    taker = Taker()
    hub.add(taker)
    await until(inside.is_set, "the connection")
    hub.remove(taker)
    assert not await hub.until_closed(0.01)
    going_on.set()
    await closed(hub)
