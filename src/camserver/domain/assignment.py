"""Which worker gets which camera: a pure function over a snapshot, with a reason for every camera.

    snapshot (workers, cameras, quotas)  ──decide──>  plan (one decision a camera)

A camera that is held stays where it is (sticky), unless a person pinned it elsewhere, its worker is being emptied
(drained), or its worker is fuller than another by more than a margin. What is free goes to a worker of its tenant and
site that has its labels and room for it; which of them, the style says (`styles`). Cameras of one device that people
bounded or named go where the others of it are, while there is room: a worker counts its own connections only. Taking
the lease is the store's business and may fail because somebody was first; then the next round decides anew.

What always holds: no camera twice; none waits while a worker that may take it has room and its tenant's quota allows
it; pins, sites and quotas are never broken by what is decided; the same snapshot in any order gives the same plan;
and a plan that was carried out is followed by one that moves nothing.
"""

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from camserver.domain.assignment_styles import SPREAD, Style
from camserver.domain.assignment_types import (
    NO_LOAD,
    AssignmentPolicy,
    CameraNeed,
    Decision,
    Kind,
    Labels,
    Load,
    Plan,
    Reason,
    Site,
    Snapshot,
    Why,
    WorkerOffer,
)

# rank, used, worker, version of the room: the least one takes the next camera.
_Entry = tuple[float, int, int, int]


def decide(snapshot: Snapshot, policy: AssignmentPolicy, styles: Mapping[Site, Style] | None = None) -> Plan:
    """One decision for each camera of the snapshot. `styles` names sites that do not spread."""
    board = _Board(snapshot, policy, styles or {})
    cameras = {need.camera_key: need for need in snapshot.cameras}.values()
    free = [need for need in cameras if need.holder_key is None]
    held = sorted((need for need in cameras if need.holder_key is not None), key=lambda need: need.camera_key)
    for need in held:
        board.note_stopping(need)
    free.sort(key=_turn)
    made = [board.place(need) for need in free]
    staying: list[CameraNeed] = []
    for need in held:
        decision = board.displaced(need)
        if decision is None:
            staying.append(need)
        else:
            made.append(decision)
    moved = board.rebalance(staying)
    for need in staying:
        made.append(moved.get(need.camera_key) or _keep(need, Reason(Why.HELD, need.holder_key)))
    made.sort(key=lambda decision: decision.camera_key)
    return Plan(tuple(made))


def lopsided(
    workers: Iterable[WorkerOffer], policy: AssignmentPolicy, styles: Mapping[Site, Style] | None = None
) -> tuple[int, ...]:
    """Workers that are fuller than another of their site by more than the margin; the fullest first.

    Only their cameras have to be in the snapshot for a rebalance.
    """
    board = _Board(Snapshot(0, tuple(workers), ()), policy, styles or {})
    found: list[tuple[float, int]] = []
    for site, rooms in board.open_rooms.items():
        if not board.style(site).rebalances or len(rooms) < 2:
            continue
        least = min(room.share() for room in rooms)
        found += [(-room.share(), room.offer.worker_key) for room in rooms if room.share() - least > policy.margin]
    return tuple(key for _, key in sorted(found)[: policy.moves_max])


def _turn(need: CameraNeed) -> tuple[int, int, int, int]:
    """Those with the least choice come first, then those that have waited longest."""
    choice = 0 if need.pinned_worker_key is not None else 1 if need.wanted_worker_key is not None else 2
    return choice, -len(need.labels), need.next_attempt_at or 0, need.camera_key


def _keep(need: CameraNeed, reason: Reason) -> Decision:
    return Decision(need.camera_key, need.holder_key, need.generation, Kind.KEEP, reason)


class _Room:
    """What is left of a worker while a plan is made. It only shrinks: a camera that moves away still has its slot."""

    __slots__ = ("cpu", "gpu", "heaps", "leaving", "leaving_load", "mem", "offer", "used", "version")

    def __init__(self, offer: WorkerOffer) -> None:
        self.offer = offer
        self.used = offer.used
        self.cpu, self.gpu, self.mem = offer.load.cpu, offer.load.gpu, offer.load.mem
        self.leaving = 0
        self.leaving_load = NO_LOAD
        self.version = 0
        self.heaps: list[_Heap] = []

    def fits(self, load: Load) -> bool:
        most = self.offer.capacity
        return (
            self.used < self.offer.slots
            and (not most.cpu or self.cpu + load.cpu <= most.cpu)
            and (not most.gpu or self.gpu + load.gpu <= most.gpu)
            and (not most.mem or self.mem + load.mem <= most.mem)
        )

    def add(self, load: Load) -> None:
        self.used += 1
        self.cpu += load.cpu
        self.gpu += load.gpu
        self.mem += load.mem
        self.version += 1

    def leave(self, load: Load) -> None:
        self.leaving += 1
        gone = self.leaving_load
        self.leaving_load = Load(gone.cpu + load.cpu, gone.gpu + load.gpu, gone.mem + load.mem)

    def share(self, more: int = 0, load: Load = NO_LOAD) -> float:
        """How full it is (1 = full) by what it has least of, without what is leaving and with so much more."""
        offer, gone = self.offer, self.leaving_load
        shares = [(self.used - self.leaving + more) / offer.slots if offer.slots > 0 else 1.0]
        for used, left, add, most in (
            (self.cpu, gone.cpu, load.cpu, offer.capacity.cpu),
            (self.gpu, gone.gpu, load.gpu, offer.capacity.gpu),
            (self.mem, gone.mem, load.mem, offer.capacity.mem),
        ):
            if most:
                shares.append((used - left + add) / most)
        return max(shares)


@dataclass(slots=True, eq=False)
class _Heap:
    """The workers that may take cameras of one site with the same labels, best first."""

    style: Style
    entries: list[_Entry]
    too_big: list[Load]  # loads for which no room was found: whatever is no smaller needs no search

    def push(self, room: _Room) -> None:
        if room.used < room.offer.slots:
            rank = self.style.rank(room.share())
            heapq.heappush(self.entries, (rank, room.used, room.offer.worker_key, room.version))


class _Board:
    def __init__(self, snapshot: Snapshot, policy: AssignmentPolicy, styles: Mapping[Site, Style]) -> None:
        self._now_ms = snapshot.now_ms
        self._policy = policy
        self._styles = styles
        self._moves_left = policy.moves_max
        self._rooms: dict[int, _Room] = {}
        self._sites: dict[Site, list[_Room]] = {}  # everybody, also who takes nothing now
        self.open_rooms: dict[Site, list[_Room]] = {}
        self._heaps: dict[tuple[Site, Labels], _Heap] = {}
        self._homes = dict(snapshot.homes)
        self._quotas = {quota.tenant_id: [quota.running, quota.most] for quota in snapshot.quotas}
        for offer in sorted(snapshot.workers, key=lambda offer: offer.worker_key):
            if offer.worker_key in self._rooms:
                continue
            room = self._rooms[offer.worker_key] = _Room(offer)
            self._sites.setdefault(offer.site, []).append(room)
            if offer.takes_cameras:
                self.open_rooms.setdefault(offer.site, []).append(room)

    def style(self, site: Site) -> Style:
        return self._styles.get(site, SPREAD)

    # Free cameras ----------------------------------------------------------------------------------------------

    def place(self, need: CameraNeed) -> Decision:
        reason = self._obstacle(need)
        room: _Room | None = None
        if reason is None:
            room, reason = self._chosen(need)
        if room is None:
            return Decision(need.camera_key, None, need.generation, Kind.WAIT, reason)
        self._fill(room, need.load)
        if need.device is not None:
            self._homes.setdefault((need.site, need.device), room.offer.worker_key)
        quota = self._quotas.get(need.tenant_id)
        if quota is not None:
            quota[0] += 1
        return Decision(need.camera_key, room.offer.worker_key, need.generation, Kind.TAKE, reason)

    def _obstacle(self, need: CameraNeed) -> Reason | None:
        """What keeps a camera from everybody."""
        if (need.next_attempt_at or 0) > self._now_ms:
            return Reason(Why.BACKING_OFF, at_ms=need.next_attempt_at)
        quota = self._quotas.get(need.tenant_id)
        if quota is not None and quota[0] >= quota[1]:
            return Reason(Why.QUOTA, used=quota[0], slots=quota[1])
        return None

    def _chosen(self, need: CameraNeed) -> tuple[_Room | None, Reason]:
        if need.pinned_worker_key is not None:
            return self._pinned(need, need.pinned_worker_key)
        if need.wanted_worker_key is not None:
            room = self._rooms.get(need.wanted_worker_key)
            if room is not None and self._may(room, need) and room.fits(need.load):
                return room, Reason(Why.ASKED, need.wanted_worker_key)
        home = self._home(need)
        if home is not None and home.offer.worker_key != need.avoid_worker_key:
            return home, Reason(Why.SAME_DEVICE, home.offer.worker_key)
        room = self._best(need)
        if room is None:
            return None, self._why_nobody(need)
        style = self.style(need.site)
        return room, Reason(style.why, room.offer.worker_key, used=room.used, slots=room.offer.slots)

    def _pinned(self, need: CameraNeed, worker_key: int) -> tuple[_Room | None, Reason]:
        room = self._rooms.get(worker_key)
        if room is None or not room.offer.is_present:
            return None, Reason(Why.PIN_AWAY, worker_key)
        if room.offer.site != need.site:
            return None, Reason(Why.PIN_ELSEWHERE, worker_key)
        if room.offer.is_draining:
            return None, Reason(Why.PIN_DRAINING, worker_key)
        if not need.labels <= room.offer.labels:
            return None, Reason(Why.PIN_LABELS, worker_key)
        if not room.fits(need.load):
            return None, Reason(Why.PIN_FULL, worker_key, used=room.used, slots=room.offer.slots)
        return room, Reason(Why.PINNED, worker_key)

    def _home(self, need: CameraNeed) -> _Room | None:
        """Where other cameras of its device are, if it may go there and has room."""
        if need.device is None:
            return None
        room = self._rooms.get(self._homes.get((need.site, need.device), 0))
        return room if room is not None and self._may(room, need) and room.fits(need.load) else None

    def _may(self, room: _Room, need: CameraNeed) -> bool:
        return room.offer.takes_cameras and room.offer.site == need.site and need.labels <= room.offer.labels

    def _best(self, need: CameraNeed, not_key: int | None = None) -> _Room | None:
        """The first of its heap that has room, passing over the one to avoid while there is another."""
        heap = self._heap(need.site, need.labels)
        if any(_no_smaller(need.load, load) for load in heap.too_big):
            return None
        aside: list[_Entry] = []
        found: _Room | None = None
        avoided: _Room | None = None
        while heap.entries and found is None:
            entry = heapq.heappop(heap.entries)
            room = self._rooms[entry[2]]
            if entry[3] != room.version:
                continue
            aside.append(entry)
            if entry[2] == not_key or not room.fits(need.load):
                continue
            if entry[2] == need.avoid_worker_key:
                avoided = room
            else:
                found = room
        for entry in aside:
            heapq.heappush(heap.entries, entry)
        if found is None and avoided is None and not_key is None:
            heap.too_big.append(need.load)
        return found or avoided

    def _heap(self, site: Site, labels: Labels) -> _Heap:
        heap = self._heaps.get((site, labels))
        if heap is None:
            heap = self._heaps[site, labels] = _Heap(self.style(site), [], [])
            for room in self.open_rooms.get(site, ()):
                if labels <= room.offer.labels:
                    room.heaps.append(heap)
                    heap.push(room)
        return heap

    def _fill(self, room: _Room, load: Load) -> None:
        room.add(load)
        for heap in room.heaps:
            heap.push(room)

    def _why_nobody(self, need: CameraNeed) -> Reason:
        rooms = self._sites.get(need.site, [])
        if not rooms:
            return Reason(Why.NO_WORKER)
        present = [room for room in rooms if room.offer.is_present]
        if not present:
            return Reason(Why.ALL_AWAY, workers=len(rooms))
        taking = [room for room in present if not room.offer.is_draining]
        if not taking:
            return Reason(Why.ALL_DRAINING, workers=len(present))
        fitting = [room for room in taking if need.labels <= room.offer.labels]
        if not fitting:
            return Reason(Why.LABELS, workers=len(taking))
        used, slots = sum(room.used for room in fitting), sum(room.offer.slots for room in fitting)
        has_slot = any(room.used < room.offer.slots for room in fitting)
        return Reason(Why.TOO_BIG if has_slot else Why.ALL_FULL, workers=len(fitting), used=used, slots=slots)

    # Held cameras ----------------------------------------------------------------------------------------------

    def note_stopping(self, need: CameraNeed) -> None:
        """A move that is under way: it counts, and its place at the other end is kept."""
        if not need.is_stopping:
            return
        self._moves_left -= 1
        holder = self._rooms.get(need.holder_key or 0)
        if holder is not None:
            holder.leave(need.load)
        target_key = need.pinned_worker_key or need.wanted_worker_key
        target = None if target_key == need.holder_key else self._rooms.get(target_key or 0)
        if target is not None and self._may(target, need) and target.fits(need.load):
            self._fill(target, need.load)

    def displaced(self, need: CameraNeed) -> Decision | None:
        """A camera that should not be where it is; None when it may stay."""
        if need.is_stopping:
            return _keep(need, Reason(Why.STOPPING, need.holder_key))
        holder = self._rooms.get(need.holder_key or 0)
        if need.pinned_worker_key is not None:
            if need.pinned_worker_key == need.holder_key:
                return _keep(need, Reason(Why.PINNED, need.holder_key))
            room, reason = self._pinned(need, need.pinned_worker_key)
            # Better at the wrong worker than at none: it goes on where it is until the pin can be kept.
            return _keep(need, reason) if room is None else self._move(need, room, reason)
        asked = self._rooms.get(need.wanted_worker_key or 0)
        is_elsewhere = asked is not None and need.wanted_worker_key != need.holder_key
        if asked is not None and is_elsewhere and self._may(asked, need) and asked.fits(need.load):
            return self._move(need, asked, Reason(Why.ASKED, need.wanted_worker_key))
        if holder is None or not holder.offer.is_draining:
            return None
        room = self._home(need) or self._best(need, not_key=need.holder_key)
        if room is None:
            return _keep(need, Reason(Why.DRAIN_NO_ROOM, need.holder_key))
        if need.device is not None:
            # The others follow, in this plan or in a later one.
            self._homes[need.site, need.device] = room.offer.worker_key
        return self._move(need, room, Reason(Why.DRAINED, need.holder_key))

    def _move(self, need: CameraNeed, room: _Room, reason: Reason) -> Decision:
        if self._moves_left <= 0:
            return _keep(need, Reason(Why.MOVES_LATER, need.holder_key))
        self._moves_left -= 1
        self._fill(room, need.load)
        holder = self._rooms.get(need.holder_key or 0)
        if holder is not None:
            holder.leave(need.load)
        return Decision(need.camera_key, room.offer.worker_key, need.generation, Kind.MOVE, reason)

    # Rebalancing -----------------------------------------------------------------------------------------------

    def rebalance(self, held: Iterable[CameraNeed]) -> dict[int, Decision]:
        """Moves from the fullest workers to the emptiest, while that brings the fullest down by the margin."""
        rested_before = self._now_ms - self._policy.rest_sec * 1000
        movable: dict[int, list[CameraNeed]] = {}
        for need in held:
            rested = need.held_since is not None and need.held_since <= rested_before
            # A camera that shares a device stays with the others of it.
            if need.holder_key is not None and need.is_active and rested and need.device is None:
                movable.setdefault(need.holder_key, []).append(need)
        moved: dict[int, Decision] = {}
        for site in sorted({self._rooms[key].offer.site for key in movable if key in self._rooms}):
            if not self.style(site).rebalances:
                continue
            while self._moves_left > 0:
                decision = self._relieve(self.open_rooms.get(site, []), movable)
                if decision is None:
                    break
                moved[decision.camera_key] = decision
        return moved

    def _relieve(self, rooms: list[_Room], movable: dict[int, list[CameraNeed]]) -> Decision | None:
        margin = self._policy.margin
        rising = sorted(rooms, key=lambda room: (room.share(), room.offer.worker_key))
        for source in reversed(rising):
            cameras = movable.get(source.offer.worker_key)
            if not cameras:
                continue
            share = source.share()
            for target in rising:
                if share - target.share() <= margin:
                    break
                for need in cameras:
                    after = target.share(1, need.load)
                    if after + margin / 2 > share or not target.fits(need.load) or not self._may(target, need):
                        continue
                    cameras.remove(need)
                    reason = Reason(
                        Why.REBALANCED, source.offer.worker_key, used=source.used, slots=source.offer.slots
                    )
                    return self._move(need, target, reason)
        return None


def _no_smaller(load: Load, than: Load) -> bool:
    return load.cpu >= than.cpu and load.gpu >= than.gpu and load.mem >= than.mem
