"""Control: workers register, hold leases, get their intents and send looks here.

It keeps no truth: leases, intents and looks are rows, pictures are objects, and any number of control processes may
run on one store. This module builds the parts and runs them; each part's own module says what it does.
"""

import asyncio
import os
import socket as sockets

from camserver.base import asgi
from camserver.base.clock import Clock
from camserver.base.doors import DoorPolicy
from camserver.base.ready import Ready
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
) -> None:
    """Runs control on its listening sockets until cancelled; on `tls_socket` for workers at other sites."""
    secrets = make_secrets(settings)
    policy = settings.leases
    connections = Connections()
    epoch = Epoch(store, clock, f"control {sockets.gethostname()} {os.getpid()}")
    recorder = Recorder(store, policy)
    entries = Entries(store, clock, connections, epoch, policy.ttl_sec * 1000)
    reports = Reports(store, clock, connections, entries, policy)
    guard = Guard(store, clock, secrets.worker_token, settings.certificates, connections)
    live = LiveDesk(store, clock, settings.admission)
    previous = secrets.media_hmac_previous
    keys = live_keys(secrets.media_hmac.reveal().encode(), None if previous is None else previous.reveal().encode())
    conversations = Conversations(
        store,
        clock,
        connections,
        epoch,
        guard,
        policy,
        reports,
        entries,
        live,
        settings.control.max_message_bytes,
        settings.control.arrival_sec,
    )
    uploads = Uploads(store, objects, clock, epoch, recorder, Senders(store, clock), settings.jobs.default_priority)
    orders = Orders(settings.looks, settings.gate, secrets.credential_keys)
    assigner = Assigner(store, clock, connections, policy, settings.assignment, settings.looks.polling_interval_sec)
    rounds = Rounds(store, clock, connections, policy, orders, assigner)
    authority = None if tls_socket is None else worker_ca(settings)
    names = settings.control.tls_names
    tls_port = None if authority is None else TlsPort(authority, names, "control.tls_names", clock)
    routes = Routes(
        clock,
        ready,
        guard,
        None if authority is None else Enrolment(store, clock, authority, settings.certificates),
        conversations,
        uploads,
        ErrandAnswers(store, objects, clock, epoch),
        Requests(
            store,
            clock,
            connections,
            policy,
            settings.assignment,
            settings.looks.polling_interval_sec,
            reports,
            orders,
            entries,
        ),
        StreamerDesk(live, keys),
        settings.control.upload_max_bytes,
        Room(ROOM_BYTES),
    )
    serving = asyncio.Event()
    message_max_bytes = settings.control.max_message_bytes * ANSWERED_MAX_FACTOR
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(asgi.serve(routes.app(), socket, serving.set, message_max_bytes))
            group.create_task(epoch.keep(ready, serving))
            group.create_task(rounds.run())
            group.create_task(ErrandRounds(store, clock, connections, orders).run())
            group.create_task(LiveRounds(store, clock, connections, keys).run())
            if tls_socket is not None and tls_port is not None:
                tls = asgi.Tls(tls_port.context, _door_policy(settings))
                group.create_task(asgi.serve(routes.app(), tls_socket, lambda: None, message_max_bytes, tls))
                group.create_task(tls_port.keep())
                group.create_task(guard.watch())
    finally:
        await recorder.close()
        await entries.close()
        await epoch.close()


def _door_policy(settings: Settings) -> DoorPolicy:
    chosen = settings.control
    return DoorPolicy(chosen.arrival_sec, chosen.strangers_max, chosen.address_strangers_max)
