"""The spool: every look goes through it, and leaves it only when the server has it (decision 11).

`add` returns when the look is durable. When there is no room, by its own bound, by the disk's floor or because the
disk is full, the oldest quiet looks go first, then the oldest, but a quiet look never pushes out one that passed.
A look for which there is no room at all is held in memory, a few of them, and sent from there, or moved to disk when
there is room again. Every look that is dropped is counted and told by `take_drops`; the server sees the hole in seq.

Files are written by one thread, so that no event loop waits for a disk. Each call of it costs as much as the work it
does, so there are few: the newest looks are also kept in memory, from where they are sent, and files of looks that
the server has are deleted several at a time.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

from camserver.base.errors import BadInput
from camserver.base.log import get_logger
from camserver.services.worker.backlog import Backlog, Entry, LeaseKey
from camserver.services.worker.spool_files import LookName, SpoolFiles, on_disk_bytes
from camserver.wire.looks import LookUpload

log = get_logger(__name__)

# The disk belongs to others too: below this the spool does not grow.
FREE_FLOOR_BYTES = 200_000_000
MEMORY_LOOKS_MAX = 64
MEMORY_MAX_BYTES = 16_000_000
# Looks that are durable and at hand too, for an uploader that keeps up.
AT_HAND_MAX_BYTES = 8_000_000
# Files of looks that the server has are deleted at the latest after this time, or when they are this many.
LEAVE_SEC = 0.5
LEAVE_MAX = 64

T = TypeVar("T")
Args = TypeVarTuple("Args")


@dataclass(frozen=True, slots=True)
class Dropped:
    """Looks of one lease that were lost for want of room, since the last time this was asked."""

    count: int
    first_seq: int
    last_seq: int


class Spool:
    def __init__(
        self,
        folder: Path,
        max_bytes: int,
        free_floor_bytes: int = FREE_FLOOR_BYTES,
        memory_max_bytes: int = MEMORY_MAX_BYTES,
    ) -> None:
        self._files = SpoolFiles(folder)
        self._max_bytes = max_bytes
        self._free_floor_bytes = free_floor_bytes
        self._memory_max_bytes = memory_max_bytes
        self._backlog = Backlog()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spool")
        self._writing = asyncio.Lock()
        self._writes: set[asyncio.Task[bool]] = set()
        self._at_hand: OrderedDict[LookName, LookUpload] = OrderedDict()
        self._at_hand_bytes = 0
        self._leaving: list[LookName] = []  # files to delete
        self._delete_timer: asyncio.TimerHandle | None = None
        self._deletions: set[asyncio.Task[None]] = set()
        self._drops: dict[LeaseKey, Dropped] = {}
        # camera_id -> (generation, seq): the highest ever seen, also of looks that have left since.
        self._highest: dict[str, tuple[int, int]] = {}
        # Set when a look came, and when one left; waiters clear them before they look.
        self.came = asyncio.Event()
        self._left = asyncio.Event()
        self.dropped = 0
        self.set_aside = 0

    async def open(self) -> None:
        """Takes the folder and finds the looks of earlier runs. DataOwned when another worker has it."""
        found = await self._disk(self._files.open)
        for file in sorted(found, key=lambda file: file.name):
            self._note_seq(file.name)
            if not self._backlog.add(Entry(file.name, file.size_bytes)):
                log.warning("the same look is in the spool twice", file=file.name.file_name)
                self.set_aside += 1
                await self._disk(self._files.set_aside, file.name)
        if found:
            log.info("spool opened", looks=self.looks, size_bytes=self.disk_bytes)
        self.came.set()

    async def close(self) -> None:
        """Ends after the writes under way; nothing may be added any more."""
        await asyncio.gather(*self._writes, return_exceptions=True)
        await self.delete_sent()
        await self._disk(self._files.close)
        self._thread.shutdown()

    @property
    def looks(self) -> int:
        return self._backlog.looks

    @property
    def disk_bytes(self) -> int:
        return self._backlog.disk_bytes

    @property
    def memory_looks(self) -> int:
        return self._backlog.memory_looks

    async def add(self, look: LookUpload) -> bool:
        """Keeps a look; True when it is durable, False when it is only in memory or was dropped at once.

        Whoever is cancelled here does not undo it: the look is kept all the same.
        """
        write = asyncio.ensure_future(self._add(look))
        self._writes.add(write)
        write.add_done_callback(self._writes.discard)
        return await asyncio.shield(write)

    def take(self, boot_ms: int, fresh_first: bool) -> Entry | None:
        """The next look to send; then `acknowledged`, `refused` or `give_back`."""
        return self._backlog.take(boot_ms, fresh_first)

    def give_back(self, entry: Entry) -> None:
        self._backlog.give_back(entry)
        self.came.set()

    async def load(self, entry: Entry) -> LookUpload | None:
        """The look of an entry. None when its file is damaged: then it has been set aside."""
        at_hand = entry.in_memory or self._at_hand.get(entry.name)
        if at_hand is not None:
            return at_hand
        try:
            return await self._disk(self._files.read, entry.name)
        except BadInput as error:
            log.error("spooled look is damaged and set aside", cause=error.message)
            await self.refused(entry)
            return None

    async def acknowledged(self, entry: Entry) -> None:
        """The server has it. Its file goes soon; if it comes back after a crash, it is sent again, to no harm."""
        self._forget(entry)
        if entry.in_memory is not None:
            return
        self._leaving.append(entry.name)
        if len(self._leaving) >= LEAVE_MAX:
            await self.delete_sent()
        elif self._delete_timer is None:
            self._delete_timer = asyncio.get_running_loop().call_later(LEAVE_SEC, self._delete_in_background)

    async def delete_sent(self) -> None:
        """Deletes the files of looks that the server has."""
        if self._delete_timer is not None:
            self._delete_timer.cancel()
            self._delete_timer = None
        leaving, self._leaving = self._leaving, []
        if leaving:
            await self._disk(self._files.remove_all, leaving)
        await asyncio.gather(*(self._deletions - {asyncio.current_task()}), return_exceptions=True)

    def _delete_in_background(self) -> None:
        task = asyncio.ensure_future(self.delete_sent())
        self._deletions.add(task)
        task.add_done_callback(self._deletions.discard)

    async def refused(self, entry: Entry) -> None:
        """It will never be accepted, so it is kept for a person to look at, within bounds."""
        if entry.in_memory is None:
            await self._disk(self._files.set_aside, entry.name)
        self.set_aside += 1
        self._forget(entry)

    def highest_seq(self, camera_id: str, generation: int) -> int:
        """The highest seq of a lease that was here since `open`; 0 when there was none.

        Those that were sent count too: the server may have told its own figure before it got them.
        """
        highest_generation, seq = self._highest.get(camera_id, (0, 0))
        return seq if highest_generation == generation else 0

    def count_of(self, camera_id: str, generation: int) -> int:
        return self._backlog.count_of((camera_id, generation))

    async def until_sent(self, camera_id: str, generation: int) -> None:
        """Until no look of this lease waits here, those included that are being written now."""
        await asyncio.gather(*self._writes, return_exceptions=True)
        while self._backlog.count_of((camera_id, generation)):
            self._left.clear()
            await self._left.wait()

    async def until_empty(self) -> None:
        """Until the server has every look, and no file is left."""
        while self._backlog.looks:
            self._left.clear()
            await self._left.wait()
        await self.delete_sent()

    def next_wake_boot_ms(self) -> int | None:
        return self._backlog.next_wake_boot_ms()

    def take_drops(self) -> dict[LeaseKey, Dropped]:
        """What was dropped since the last call."""
        drops, self._drops = self._drops, {}
        return drops

    async def _add(self, look: LookUpload) -> bool:
        # One at a time: making room and using it must not be torn apart.
        async with self._writing:
            size_bytes = on_disk_bytes(_size(look))
            name = LookName.of(look)
            quiet = name.quiet
            self._note_seq(name)
            over_bytes = self.disk_bytes + size_bytes - self._max_bytes
            if over_bytes <= 0 or await self._drop_bytes(over_bytes, quiet):
                found = await self._disk(self._files.write, look, self._free_floor_bytes)
                if found is None and self._leaving:
                    await self.delete_sent()
                    found = await self._disk(self._files.write, look, self._free_floor_bytes)
                # Somebody else may fill the disk. Then the spool stays as large as it is, not more and not less.
                if found is None and await self._drop_bytes(size_bytes, quiet):
                    found = await self._disk(self._files.write, look)
                if found is not None:
                    self._backlog.add(Entry(found.name, found.size_bytes))
                    self._keep_at_hand(found.name, look)
                    self.came.set()
                    await self._move_from_memory()
                    return True
            self._hold_in_memory(look)
            return False

    async def _move_from_memory(self) -> None:
        """Makes durable what was held in memory, as far as there is room again."""
        while (entry := self._backlog.first_in_memory()) is not None and entry.in_memory is not None:
            if self.disk_bytes + on_disk_bytes(entry.size_bytes) > self._max_bytes:
                return
            found = await self._disk(self._files.write, entry.in_memory, self._free_floor_bytes)
            if found is None:
                return
            if not self._backlog.move_to_disk(entry, found.size_bytes):
                # It was taken to be sent meanwhile, or has left.
                await self._disk(self._files.remove, found.name)

    async def _drop_bytes(self, wanted_bytes: int, quiet_only: bool) -> bool:
        """Drops looks until so much is free again. False, and nothing more, when there are not enough."""
        freed_bytes = 0
        while freed_bytes < wanted_bytes:
            entry = self._backlog.to_drop(quiet_only)
            if entry is None:
                return False
            # Off the list first: from here on nobody may take it to send it.
            self._drop(entry.name)
            self._forget(entry)
            await self._disk(self._files.remove, entry.name)
            freed_bytes += entry.size_bytes
        return True

    def _hold_in_memory(self, look: LookUpload) -> None:
        entry = Entry(LookName.of(look), _size(look), in_memory=look)
        while (
            self._backlog.memory_looks >= MEMORY_LOOKS_MAX
            or self._backlog.memory_bytes + entry.size_bytes > self._memory_max_bytes
        ):
            oldest = self._backlog.to_drop(entry.name.quiet, in_memory=True)
            if oldest is None:
                self._drop(entry.name)
                return
            self._drop(oldest.name)
            self._forget(oldest)
        log.warning("no room in the spool: look held in memory", file=entry.name.file_name)
        self._backlog.add(entry)
        self.came.set()

    def _note_seq(self, name: LookName) -> None:
        seen = self._highest.get(name.camera_id, (0, 0))
        self._highest[name.camera_id] = max(seen, (name.generation, name.seq))

    def _drop(self, name: LookName) -> None:
        self.dropped += 1
        log.warning("look dropped: no room", camera_id=name.camera_id, generation=name.generation, seq=name.seq)
        lease = (name.camera_id, name.generation)
        old = self._drops.get(lease)
        self._drops[lease] = (
            Dropped(1, name.seq, name.seq)
            if old is None
            else Dropped(old.count + 1, min(old.first_seq, name.seq), max(old.last_seq, name.seq))
        )

    def _keep_at_hand(self, name: LookName, look: LookUpload) -> None:
        self._at_hand[name] = look
        self._at_hand_bytes += _size(look)
        while self._at_hand_bytes > AT_HAND_MAX_BYTES:
            self._let_go(next(iter(self._at_hand)))

    def _let_go(self, name: LookName) -> None:
        look = self._at_hand.pop(name, None)
        if look is not None:
            self._at_hand_bytes -= _size(look)

    def _forget(self, entry: Entry) -> None:
        self._let_go(entry.name)
        self._backlog.remove(entry)
        self._left.set()

    async def _disk(self, work: "Callable[[*Args], T]", *args: *Args) -> T:
        future: asyncio.Future[Any] = asyncio.get_running_loop().run_in_executor(self._thread, work, *args)
        answer: T = await asyncio.shield(future)
        return answer


def _size(look: LookUpload) -> int:
    # The header is about this long; the exact figure is known once the file is written.
    return len(look.infer) + len(look.full) + 1000
