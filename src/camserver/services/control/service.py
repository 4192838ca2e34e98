"""Control: workers register, hold leases, get their intents and send looks here.

It keeps no truth: leases, intents and looks are rows, pictures are objects, and any number of control processes may
run on one store. This module builds the parts and runs them; each part's own module says what it does.
"""

import asyncio
import os
import socket as sockets
from dataclasses import dataclass

from camserver.base import asgi
from camserver.base.bells import Bells
from camserver.base.clock import Clock
from camserver.base.doors import DoorPolicy
from camserver.base.ready import Ready
from camserver.base.secrets import Secret
from camserver.base.tls_port import TlsPort
from camserver.config import Settings, make_secrets, worker_ca
from camserver.domain.live_links import live_keys
from camserver.objects.local import Objects
from camserver.services.control.admission import Room
from camserver.services.control.app import ROOM_BYTES, Routes
from camserver.services.control.assigning import Assigner
from camserver.services.control.connections import Connections
from camserver.services.control.conversation import Conversations
from camserver.services.control.enrolment import Enrolment
from camserver.services.control.entries import Entries
from camserver.services.control.epoch import Epoch
from camserver.services.control.errands import ErrandAnswers, ErrandRounds
from camserver.services.control.guard import Guard
from camserver.services.control.live import LiveDesk, LiveRounds, StreamerDesk
from camserver.services.control.orders import Orders
from camserver.services.control.recorder import Recorder
from camserver.services.control.reports import Reports
from camserver.services.control.requests import Requests
from camserver.services.control.rounds import Rounds
from camserver.services.control.senders import Senders
from camserver.services.control.uploads import Uploads
from camserver.store import Store

# A message that is too long gets an answer up to here; a longer one costs the connection.
ANSWERED_MAX_FACTOR = 4


async def run(
    store: Store,
    objects: Objects,
    clock: Clock,
    settings: Settings,
    ready: Ready,
    socket: sockets.socket,
    tls_socket: sockets.socket | None = None,
    bells: Bells | None = None,
) -> None:
    """Runs control on its listening sockets until cancelled; on `tls_socket` for workers at other sites. `bells` are
    those of the process, where web may be as well."""
    bells = bells or Bells()
    secrets = make_secrets(settings)
    basis = _basis(store, clock, settings, secrets.worker_token)
    live = LiveDesk(store, clock, settings.admission, bells.live)
    previous = secrets.media_hmac_previous
    keys = live_keys(secrets.media_hmac.reveal().encode(), None if previous is None else previous.reveal().encode())
    orders = Orders(settings.looks, settings.gate, secrets.credential_keys)
    authority = None if tls_socket is None else worker_ca(settings)
    routes = Routes(
        clock,
        ready,
        basis.guard,
        None if authority is None else Enrolment(store, clock, authority, settings.certificates),
        basis.conversations(live),
        basis.uploads(objects),
        ErrandAnswers(store, objects, clock, basis.epoch),
        basis.requests(orders),
        StreamerDesk(live, keys),
        settings.control.upload_max_bytes,
        Room(ROOM_BYTES),
    )
    serving = asyncio.Event()
    message_max_bytes = settings.control.max_message_bytes * ANSWERED_MAX_FACTOR
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(asgi.serve(routes.app(), socket, serving.set, message_max_bytes))
            group.create_task(basis.epoch.keep(ready, serving))
            group.create_task(basis.rounds(orders).run())
            group.create_task(ErrandRounds(store, clock, basis.connections, orders, bells.errands).run())
            group.create_task(LiveRounds(store, clock, basis.connections, keys, bells.live).run())
            if tls_socket is not None and authority is not None:
                tls_port = TlsPort(authority, settings.control.tls_names, "control.tls_names", clock)
                tls = asgi.Tls(tls_port.context, _door_policy(settings))
                group.create_task(asgi.serve(routes.app(), tls_socket, lambda: None, message_max_bytes, tls))
                group.create_task(tls_port.keep())
                group.create_task(basis.guard.watch())
    finally:
        await basis.close()


@dataclass(frozen=True, slots=True)
class Basis:
    """What several parts stand on, and the parts that are made of nothing else."""

    store: Store
    clock: Clock
    settings: Settings
    connections: Connections
    epoch: Epoch
    recorder: Recorder
    entries: Entries
    reports: Reports
    guard: Guard

    def conversations(self, live: LiveDesk) -> Conversations:
        return Conversations(
            self.store,
            self.clock,
            self.connections,
            self.epoch,
            self.guard,
            self.settings.leases,
            self.reports,
            self.entries,
            live,
            self.settings.control.max_message_bytes,
            self.settings.control.arrival_sec,
        )

    def uploads(self, objects: Objects) -> Uploads:
        senders, priority = Senders(self.store, self.clock), self.settings.jobs.default_priority
        return Uploads(self.store, objects, self.clock, self.epoch, self.recorder, senders, priority)

    def requests(self, orders: Orders) -> Requests:
        return Requests(
            self.store,
            self.clock,
            self.connections,
            self.settings.leases,
            self.settings.assignment,
            self.settings.looks.polling_interval_sec,
            self.reports,
            orders,
            self.entries,
        )

    def rounds(self, orders: Orders) -> Rounds:
        chosen = self.settings
        assigner = Assigner(
            self.store,
            self.clock,
            self.connections,
            chosen.leases,
            chosen.assignment,
            chosen.looks.polling_interval_sec,
        )
        return Rounds(self.store, self.clock, self.connections, chosen.leases, orders, assigner)

    async def close(self) -> None:
        await self.recorder.close()
        await self.entries.close()
        await self.epoch.close()


def _basis(store: Store, clock: Clock, settings: Settings, worker_token: Secret) -> Basis:
    policy, connections = settings.leases, Connections()
    epoch = Epoch(store, clock, f"control {sockets.gethostname()} {os.getpid()}")
    entries = Entries(store, clock, connections, epoch, policy.ttl_sec * 1000)
    return Basis(
        store,
        clock,
        settings,
        connections,
        epoch,
        Recorder(store, policy),
        entries,
        Reports(store, clock, connections, entries, policy),
        Guard(store, clock, worker_token, settings.certificates, connections),
    )


def _door_policy(settings: Settings) -> DoorPolicy:
    chosen = settings.control
    return DoorPolicy(chosen.arrival_sec, chosen.strangers_max, chosen.address_strangers_max)
