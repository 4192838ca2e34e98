"""Which looks wait, which is sent next and which goes first when there is no room. In memory only, no I/O.

Two orders of sending: *fresh*, the looks of each camera's last half minute, so that a wall is up to date and events
are told soon after a worker comes back; and *oldest*, everything else. Both go as the looks were taken. Looks are
added in the order they were taken, so the order of arrival is the order of age.
"""

import itertools
from collections import OrderedDict
from dataclasses import dataclass

from camserver.services.worker.spool_files import LookName
from camserver.wire.looks import LookUpload

# A look that comes back is put behind at most so many older ones; those that come back are few and among the oldest.
OLDER_MAX = 64
# So much before a camera's newest look is fresh. On a line that is too thin for all, a wall is that much behind.
FRESH_MS = 30_000
# (camera_id, generation)
LeaseKey = tuple[str, int]


@dataclass(slots=True, eq=False)
class Entry:
    """One look that the server has not acknowledged."""

    name: LookName
    size_bytes: int
    # Set when there was no room on disk: the look is held here and nowhere else.
    in_memory: LookUpload | None = None
    attempts: int = 0
    not_before_boot_ms: int = 0

    @property
    def lease(self) -> LeaseKey:
        return (self.name.camera_id, self.name.generation)


class Backlog:
    def __init__(self) -> None:
        self._by_lease: dict[LeaseKey, dict[int, Entry]] = {}
        # OrderedDict, because taking the first of a plain dict gets slow once many firsts were taken.
        self._oldest: OrderedDict[LookName, Entry] = OrderedDict()
        self._fresh: OrderedDict[str, Entry] = OrderedDict()
        self._quiet_on_disk: OrderedDict[LookName, Entry] = OrderedDict()
        self._passed_on_disk: OrderedDict[LookName, Entry] = OrderedDict()
        self._quiet_in_memory: OrderedDict[LookName, Entry] = OrderedDict()
        self._passed_in_memory: OrderedDict[LookName, Entry] = OrderedDict()
        self._resting: list[Entry] = []
        self.looks = 0
        self.disk_bytes = 0
        self.memory_bytes = 0
        self.memory_looks = 0

    def add(self, entry: Entry) -> bool:
        """Puts a look at the end, as its camera's newest. False when that look waits already."""
        seqs = self._by_lease.setdefault(entry.lease, {})
        if entry.name.seq in seqs:
            return False
        seqs[entry.name.seq] = entry
        self._fresh[entry.name.camera_id] = entry
        self._oldest[entry.name] = entry
        self._droppable(entry)[entry.name] = entry
        self._count(entry, 1)
        return True

    def take(self, boot_ms: int, fresh_first: bool) -> Entry | None:
        """The next look to send; it is the caller's until `give_back` or `remove`."""
        self._wake_rested(boot_ms)
        order = (self._take_fresh, self._take_oldest)
        for take in order if fresh_first else reversed(order):
            if (entry := take()) is not None:
                return entry
        return None

    def give_back(self, entry: Entry) -> None:
        """It was not sent; it waits again, in front, but not before `not_before_boot_ms`."""
        if self._by_lease.get(entry.lease, {}).get(entry.name.seq) is not entry:
            return
        if entry.not_before_boot_ms:
            self._resting.append(entry)
        else:
            self._line_up(entry)

    def remove(self, entry: Entry) -> None:
        """It is no longer ours to send. Removing twice changes nothing."""
        seqs = self._by_lease.get(entry.lease, {})
        if seqs.get(entry.name.seq) is not entry:
            return
        del seqs[entry.name.seq]
        if not seqs:
            del self._by_lease[entry.lease]
        self._leave_lines(entry)
        if entry in self._resting:
            self._resting.remove(entry)
        self._count(entry, -1)

    def to_drop(self, quiet_only: bool, in_memory: bool = False) -> Entry | None:
        """What goes first when there is no room: the oldest quiet look, then the oldest. Never one being sent."""
        quiet, passed = (
            (self._quiet_in_memory, self._passed_in_memory)
            if in_memory
            else (self._quiet_on_disk, self._passed_on_disk)
        )
        for line in (quiet,) if quiet_only else (quiet, passed):
            if line:
                return next(iter(line.values()))
        return None

    def first_in_memory(self) -> Entry | None:
        """What is moved to disk first when there is room again: what passed, before what is quiet."""
        for line in (self._passed_in_memory, self._quiet_in_memory):
            if line:
                return next(iter(line.values()))
        return None

    def move_to_disk(self, entry: Entry, size_bytes: int) -> bool:
        """A look that was held in memory is on disk now. False, without a change, when it left or is being sent."""
        if self._oldest.get(entry.name) is not entry or entry.in_memory is None:
            return False
        moved = Entry(entry.name, size_bytes, attempts=entry.attempts)
        self._by_lease[entry.lease][entry.name.seq] = moved
        self._oldest[entry.name] = moved  # where it stood
        if self._fresh.get(entry.name.camera_id) is entry:
            self._fresh[entry.name.camera_id] = moved
        del self._droppable(entry)[entry.name]
        _put_back(self._droppable(moved), moved)
        self._count(entry, -1)
        self._count(moved, 1)
        return True

    def count_of(self, lease: LeaseKey) -> int:
        """How many looks of a lease the server has not acknowledged, those being sent included."""
        return len(self._by_lease.get(lease, {}))

    def next_wake_boot_ms(self) -> int | None:
        """When the first resting look may be tried again."""
        return min((entry.not_before_boot_ms for entry in self._resting), default=None)

    def _take_fresh(self) -> Entry | None:
        if not self._fresh:
            return None
        newest = next(iter(self._fresh.values()))
        entry = newest
        for one in reversed(self._by_lease[newest.lease].values()):
            if newest.name.captured_at - one.name.captured_at > FRESH_MS:
                break
            if self._oldest.get(one.name) is one:
                entry = one
        # The next camera's turn; this one comes back as long as it has something fresh.
        self._fresh.move_to_end(newest.name.camera_id)
        self._leave_lines(entry)
        return entry

    def _take_oldest(self) -> Entry | None:
        if not self._oldest:
            return None
        entry = next(iter(self._oldest.values()))
        self._leave_lines(entry)
        return entry

    def _line_up(self, entry: Entry) -> None:
        for line in (self._oldest, self._droppable(entry)):
            _put_back(line, entry)
        # A newer look of the camera, if one waits, has that place already.
        self._fresh.setdefault(entry.name.camera_id, entry)

    def _leave_lines(self, entry: Entry) -> None:
        self._oldest.pop(entry.name, None)
        self._droppable(entry).pop(entry.name, None)
        if self._fresh.get(entry.name.camera_id) is entry:
            del self._fresh[entry.name.camera_id]

    def _wake_rested(self, boot_ms: int) -> None:
        rested = [entry for entry in self._resting if entry.not_before_boot_ms <= boot_ms]
        if rested:
            self._resting = [entry for entry in self._resting if entry.not_before_boot_ms > boot_ms]
            for entry in rested:
                entry.not_before_boot_ms = 0
                self._line_up(entry)

    def _droppable(self, entry: Entry) -> OrderedDict[LookName, Entry]:
        if entry.in_memory is not None:
            return self._quiet_in_memory if entry.name.quiet else self._passed_in_memory
        return self._quiet_on_disk if entry.name.quiet else self._passed_on_disk

    def _count(self, entry: Entry, step: int) -> None:
        self.looks += step
        if entry.in_memory is None:
            self.disk_bytes += step * entry.size_bytes
        else:
            self.memory_bytes += step * entry.size_bytes
            self.memory_looks += step


def _put_back(line: OrderedDict[LookName, Entry], entry: Entry) -> None:
    """Where it belongs by its age: as the last when it is the newest, else in front, behind the few still older."""
    newest = next(reversed(line), None)
    line[entry.name] = entry
    if newest is not None and newest < entry.name:
        return
    older = itertools.takewhile(lambda name: name < entry.name, itertools.islice(line, OLDER_MAX))
    for name in (entry.name, *reversed(list(older))):
        line.move_to_end(name, last=False)
