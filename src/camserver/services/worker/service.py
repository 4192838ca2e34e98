"""The worker as a service: puts its parts together, runs them, and lets the cameras go when it is told to stop.

    link      the control socket: registration, heartbeats, intents, reports
    cameras   one task a camera, each with its hold
    spool     every look on disk until the server has it
    uploader  sends looks from the spool
    errands   short tasks the server asks for beside that, each answered once
    lives     cameras that somebody watches, pushed to a streamer
    renewing  a new certificate in time, for a worker that was enrolled

It reaches the server by socket and HTTP only; it never touches a database.
"""

import asyncio
import ipaddress
import ssl
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import aiohttp

from camserver import __version__
from camserver.base import tls
from camserver.base.clock import Clock, boot_id
from camserver.base.errors import BadSettings
from camserver.base.log import bind_ids, get_logger
from camserver.base.memory import keep_freed
from camserver.base.ready import Ready
from camserver.config import Settings, worker_token
from camserver.domain.workers import WorkerState
from camserver.media.addresses import AddressPolicy
from camserver.media.ring import Rings
from camserver.media.waiting_threads import NAMES
from camserver.services.worker import identity_file
from camserver.services.worker.camera import LookCounts, Surroundings
from camserver.services.worker.cameras import Cameras
from camserver.services.worker.enrolling import WORKER_ID
from camserver.services.worker.errand_clip import clip_handler
from camserver.services.worker.errand_discover import discover_handler
from camserver.services.worker.errand_explain import explain_handler
from camserver.services.worker.errand_files import ErrandFiles
from camserver.services.worker.errand_look import look_handler
from camserver.services.worker.errand_probe import probe_handler
from camserver.services.worker.errands import Errands, Handler
from camserver.services.worker.identity_file import Enrolled
from camserver.services.worker.intents import Intents
from camserver.services.worker.link import READY_NAME, Hooks, Identity, Link, ServerClock
from camserver.services.worker.live import Lives
from camserver.services.worker.look_traces import LookTraces
from camserver.services.worker.metrics import Metrics
from camserver.services.worker.own_addresses import OwnAddresses
from camserver.services.worker.renewing import Renewing
from camserver.services.worker.reports import Reports
from camserver.services.worker.spool import FREE_FLOOR_BYTES, Spool
from camserver.services.worker.states import States
from camserver.services.worker.transcodes import TranscodeLimits, Transcodes
from camserver.services.worker.upload_client import UploadClient
from camserver.services.worker.uploads import Uploader
from camserver.wire.worker import Kinds

log = get_logger(__name__)

PICTURE_THREADS = 2
# Within this the cameras are flushed and let go when the process is told to stop; the process itself has 8 s.
STOP_SEC = 4.0
# Of that, how long telling the server first may take; a connection that is just breaking must not use it all up.
TELL_SEC = 1.0
ERRANDS_FOLDER = "errands"


async def run(clock: ServerClock, settings: Settings, ready: Ready) -> None:
    """Works until cancelled; then flushes, gives the leases back and ends."""
    ready.expect(READY_NAME)
    keep_freed()
    enrolled = await asyncio.to_thread(read_enrolled, settings)
    identity = identify(settings, enrolled)
    with bind_ids(worker_id=identity.worker_id):
        async with _parts(identity, enrolled, clock, settings, ready) as parts:
            try:
                async with asyncio.TaskGroup() as group:
                    works = (parts.link.run(), parts.upload(), parts.lives.run())
                    tasks = [group.create_task(work) for work in works]
                    if parts.renewing is not None:
                        tasks.append(group.create_task(parts.renewing.run()))
                    try:
                        await asyncio.Event().wait()
                    except asyncio.CancelledError:
                        # Also comes when a part failed; then there is nobody left who could flush.
                        if not any(task.done() for task in tasks):
                            await parts.let_go()
                        raise
            except BaseExceptionGroup as failed:
                raise failed.exceptions[0] from failed


def read_enrolled(settings: Settings) -> Enrolled | None:
    """What this worker was enrolled as; None for one beside its server, which signs in with the token."""
    url = settings.worker.server_url
    parts = urlsplit(url)
    if parts.scheme != "https":
        if not _is_loopback(parts.hostname or ""):
            raise BadSettings(
                f"worker.server_url {url} would send the worker's token over the network in the clear; use the "
                "server's TLS port with https, after `camserver worker enroll`"
            )
        return None
    enrolled = identity_file.read(settings.worker.identity_dir)
    if enrolled is None:
        raise BadSettings(
            f"this worker has no certificate for {url} in {settings.worker.identity_dir}; get one with: camserver "
            f"worker enroll {url}"
        )
    return enrolled


def identify(settings: Settings, enrolled: Enrolled | None) -> Identity:
    """Who this worker is: by its certificate, or by its settings. BadSettings when they can't work."""
    name = settings.worker.name if enrolled is None else enrolled.name.worker_id
    if not WORKER_ID.fullmatch(name):
        raise BadSettings(
            f"worker.name {name!r} must be 1 to 64 letters, digits, dots, dashes or underscores, beginning with "
            "a letter or digit; set it in the configuration"
        )
    return Identity(
        worker_id=name,
        site=(settings.worker.site_id or "") if enrolled is None else enrolled.name.site,
        version=__version__,
        slots=settings.worker.slots,
        boot_id=boot_id(),
        server_url=settings.worker.server_url,
        token=worker_token(settings) if enrolled is None else None,
        margin_ms=settings.leases.margin_sec * 1000,
    )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Parts:
    link: Link
    uploader: Uploader
    cameras: Cameras
    reports: Reports
    states: States
    errands: Errands
    intents: Intents
    registered: asyncio.Event
    renewing: Renewing | None
    lives: Lives

    async def upload(self) -> None:
        """Sends looks once the server's time is known: a look's time is counted by it."""
        await self.registered.wait()
        await self.errands.open()
        await self.uploader.run()

    async def let_go(self) -> None:
        """Gives the leases back, so that another worker need not wait for them to run out."""
        try:
            async with asyncio.timeout(STOP_SEC):
                await self._say_that_it_leaves()
                await self.cameras.stop_all("worker stops")
                await self.reports.until_sent()
        except TimeoutError:
            log.warning("stopped before everything was sent; it stays in the spool")
        self.states.move(WorkerState.STOPPED)

    async def _say_that_it_leaves(self) -> None:
        """Before the first camera is given back, or the server would give it to this worker again."""
        if self.states.state not in (WorkerState.IDLE, WorkerState.RUNNING):
            return  # not connected: nobody gives it anything
        self.states.move(WorkerState.DRAINING)
        try:
            async with asyncio.timeout(TELL_SEC):
                await self.link.tell_state()
        except TimeoutError:
            log.warning("the server could not be told that this worker stops")


@asynccontextmanager
async def _parts(
    identity: Identity, enrolled: Enrolled | None, clock: ServerClock, settings: Settings, ready: Ready
) -> AsyncIterator[Parts]:
    """Builds everything, and takes it down again in the opposite order."""
    spool = Spool(settings.worker.spool_dir, settings.worker.spool_max_bytes)
    await spool.open()
    own = OwnAddresses(settings.worker.server_url)
    await NAMES.run(own.find)
    pictures = ThreadPoolExecutor(PICTURE_THREADS, thread_name_prefix="pictures")
    given = _surroundings(identity, clock, settings, spool, pictures, own)
    try:
        context = None if enrolled is None else tls.client_context(enrolled.ca_pem, enrolled.chain_pem)
        connector = aiohttp.TCPConnector(ssl=True if context is None else context)
        async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
            tls_client = TlsClient(enrolled, context, streamer_tls(enrolled))
            parts = _assemble(identity, tls_client, settings, ready, clock, given, own, session)
            try:
                yield parts
            finally:
                await own.close()
                await parts.lives.close()
                await parts.errands.close()
                await parts.intents.close()
                await parts.cameras.close()
    finally:
        await spool.close()
        pictures.shutdown(wait=False, cancel_futures=True)


def _surroundings(
    identity: Identity,
    clock: ServerClock,
    settings: Settings,
    spool: Spool,
    pictures: ThreadPoolExecutor,
    own: OwnAddresses,
) -> Surroundings:
    """What every camera works with."""
    return Surroundings(
        clock,
        identity.boot_id,
        spool,
        Reports(clock),
        pictures,
        settings.gate,
        settings.leases,
        LookCounts(),
        AddressPolicy(settings.worker.allow_loopback, also_own=own),
        looks=settings.looks,
        rings=Rings(settings.worker.ring_max_bytes, settings.worker.ring_sec, clock.boot_ms),
        traces=LookTraces(identity.worker_id, identity.site),
        live_sound=settings.worker.live_sound,
    )


@dataclass(frozen=True, slots=True)
class TlsClient:
    """By what this worker shows who it is; the contexts get the new certificate when it is renewed."""

    enrolled: Enrolled | None
    server: ssl.SSLContext | None  # None: on loopback, without TLS
    streamers: ssl.SSLContext

    def renewing(self, settings: Settings, session: aiohttp.ClientSession, clock: ServerClock) -> Renewing | None:
        if self.enrolled is None or self.server is None:
            return None
        chosen = settings.worker
        contexts = (self.server, self.streamers)
        return Renewing(self.enrolled, chosen.identity_dir, chosen.server_url, session, contexts, clock)


def _assemble(
    identity: Identity,
    tls_client: TlsClient,
    settings: Settings,
    ready: Ready,
    clock: ServerClock,
    given: Surroundings,
    own: OwnAddresses,
    session: aiohttp.ClientSession,
) -> Parts:
    """Every part with the others that it speaks to."""
    chosen, spool, reports = settings.worker, given.spool, given.reports
    states = States(reports)
    cameras = Cameras(given, identity.slots)
    client = UploadClient(session, identity.server_url, identity.worker_id, identity.token)
    lanes = chosen.uploads_in_flight
    uploader = Uploader(spool, client, clock, reports, identity.boot_id, lanes, look_traces=given.traces)
    files = ErrandFiles(chosen.spool_dir / ERRANDS_FOLDER, free_floor_bytes=FREE_FLOOR_BYTES)
    limits = TranscodeLimits(chosen.transcodes_max, chosen.transcode_width, chosen.transcode_fps)
    transcodes = Transcodes(limits)
    errands = Errands(errand_handlers(cameras, clock, given, transcodes), client, files, clock)
    renewing = tls_client.renewing(settings, session, clock)
    lives = Lives(
        cameras, clock, lambda: (link.renew_rtt_ms, spool.looks), tls_client.streamers, transcodes=transcodes
    )
    intents = Intents(cameras, spool, states, clock, lives)
    registered = asyncio.Event()

    def on_registered() -> None:
        registered.set()
        uploader.try_now()
        own.find_again()

    hooks = Hooks(
        on_registered,
        Metrics(clock, cameras, given.counts, given.rings, spool, uploader, reports, errands, lives),
        lambda: report_drops(spool, reports),
        errands.take,
        (lambda: None) if renewing is None else renewing.expired,
    )
    link = Link(identity, session, clock, cameras, intents, states, reports, ready, hooks)
    return Parts(link, uploader, cameras, reports, states, errands, intents, registered, renewing, lives)


def streamer_tls(enrolled: Enrolled | None) -> ssl.SSLContext:
    """For streamers elsewhere: the certificate of an authority that everybody trusts, or of the server's own.

    A worker that was enrolled shows who it is.
    """
    context = ssl.create_default_context()
    if enrolled is not None:
        context.load_verify_locations(cadata=enrolled.ca_pem)
        tls.load_chain(context, enrolled.chain_pem)
    return context


def errand_handlers(
    cameras: Cameras, clock: Clock, given: Surroundings, transcodes: Transcodes
) -> dict[str, Handler]:
    """What this worker can do beside looking, by the errand's kind."""
    return {
        "look": look_handler(cameras, clock),
        "explain": explain_handler(cameras),
        "clip": clip_handler(cameras, clock, given.pictures, transcodes),
        "probe": probe_handler(given.addresses, clock, cameras.doors),
        "discover": discover_handler(given.addresses, clock),
    }


def report_drops(spool: Spool, reports: Reports) -> None:
    """One report a lease for all looks that were dropped since the last heartbeat."""
    for (camera_id, generation), dropped in spool.take_drops().items():
        reports.add(
            Kinds.SPOOL_FULL,
            camera_id,
            generation,
            dropped=dropped.count,
            first_seq=dropped.first_seq,
            last_seq=dropped.last_seq,
        )
