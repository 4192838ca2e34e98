"""Runs the web service: prepares the database, offers a set-up link, serves until cancelled."""

import asyncio
import ipaddress
import socket
from urllib.parse import urlsplit

from camserver.base import asgi
from camserver.base import figures as own_figures
from camserver.base.bells import Bells
from camserver.base.clock import Clock
from camserver.base.errors import Retry
from camserver.base.http_connections import Limits
from camserver.base.log import get_logger
from camserver.base.ready import Ready
from camserver.config import Settings, make_secrets
from camserver.objects.local import Objects
from camserver.services.web import live_rounds, setup_link, system_rounds
from camserver.services.web.admission_desk import AdmissionDesk
from camserver.services.web.app import build_app
from camserver.services.web.archive_files import ArchiveFiles
from camserver.services.web.calls import Web
from camserver.services.web.drawings import Drawings
from camserver.services.web.feeds import Feeds
from camserver.services.web.figures import InstallationFigures
from camserver.services.web.note_desk import NoteDesk
from camserver.services.web.oidc import OidcSignIn
from camserver.services.web.passwords import Passwords
from camserver.services.web.playable import PlayableFilms
from camserver.services.web.remembered import Remembered
from camserver.services.web.throttle import Devices, Throttle
from camserver.services.web.thumbnails import Thumbnails
from camserver.services.web.ui_files import FOLDER, UiFiles, load_ui
from camserver.store import Store, password_links, request_keys, sessions, shares
from camserver.store.first_start import prepare_store

log = get_logger(__name__)

SWEEP_EVERY_SEC = 600.0


async def run(
    store: Store,
    objects: Objects,
    clock: Clock,
    settings: Settings,
    ready: Ready,
    sock: socket.socket,
    bells: Bells | None = None,
    *,
    for_people: bool = True,
) -> None:
    """`bells` are those of the process, where control may be as well. `for_people` False serves the API to a tool on
    this machine: there are no pages, and nobody is told an address or offered a link."""
    web = await _make_web(store, objects, clock, settings, ready, sock, bells or Bells())
    ui = UiFiles({})
    proxies = settings.web.trusted_proxies
    limits = Limits(connections_per_address=settings.web.connections_per_address, spares=proxies)
    forget_source = own_figures.add_source(web.figures.families)
    try:
        if for_people:
            ui = await asyncio.to_thread(load_ui, FOLDER)
            await setup_link.offer(store, web.public_url, settings.server.data_dir, clock.now_ms())
            _tell_where(settings, web.public_url)
        async with asyncio.TaskGroup() as group:
            group.create_task(_sweep(store, clock))
            if for_people and web.oidc is not None:
                group.create_task(web.oidc.prepare())
            group.create_task(live_rounds.run(store, clock, settings, web.feeds))
            group.create_task(system_rounds.run(store, clock, settings.admission, web.feeds))
            serving = asgi.serve(
                build_app(web, ui), sock, lambda: ready.set("web"), limits=limits, trusted_proxies=proxies
            )
            group.create_task(serving)
    finally:
        forget_source()
        await web.feeds.close()
        await web.desk.close()
        await web.notes.close()
        await web.archive_files.close()
        if web.oidc is not None:
            await web.oidc.close()
        web.passwords.close()
        web.drawings.close()
        web.playable_films.close()


async def _make_web(
    store: Store,
    objects: Objects,
    clock: Clock,
    settings: Settings,
    ready: Ready,
    sock: socket.socket,
    bells: Bells,
) -> Web:
    secrets = await asyncio.to_thread(make_secrets, settings)
    home = await prepare_store(store, settings.vocabulary.schema_version, clock.now_ms())
    public_url = _public_url(settings, sock)
    drawings = Drawings()
    return Web(
        store=store,
        objects=objects,
        clock=clock,
        settings=settings,
        secrets=secrets,
        ready=ready,
        bells=bells,
        home=home,
        public_url=public_url,
        passwords=await asyncio.to_thread(Passwords),
        throttle=Throttle(),
        devices=Devices(secrets.session_key),
        feeds=Feeds(store, clock),
        desk=AdmissionDesk(store, settings.admission),
        notes=NoteDesk(store),
        archive_files=ArchiveFiles(clock, settings, secrets),
        oidc=OidcSignIn(settings, secrets.session_key, public_url, clock) if settings.oidc.issuer else None,
        drawings=drawings,
        thumbnails=Thumbnails(drawings),
        playable_films=PlayableFilms(objects),
        figures=InstallationFigures(store, objects, clock, settings),
        remembered=Remembered(store),
    )


def _public_url(settings: Settings, sock: socket.socket) -> str:
    """The configured address; where any free port was asked for, with the one that was got."""
    parts = urlsplit(settings.server.public_url)
    if parts.port == 0:
        parts = parts._replace(netloc=f"{parts.netloc.rpartition(':')[0]}:{sock.getsockname()[1]}")
    return parts.geturl().rstrip("/")


def _tell_where(settings: Settings, public_url: str) -> None:
    log.info("web pages are served", url=public_url)
    try:
        elsewhere = not ipaddress.ip_address(settings.web.host).is_loopback
    except ValueError:
        elsewhere = settings.web.host != "localhost"
    if elsewhere and urlsplit(public_url).scheme != "https":
        log.warning(
            "web pages can be reached from other machines without encryption; put a reverse proxy with TLS in front "
            "and set server.public_url to its https address",
            host=settings.web.host,
        )


async def _sweep(store: Store, clock: Clock) -> None:
    """Removes sign-ins and links that are over, now and then."""
    while True:
        try:
            while await store.write(sessions.sweep, clock.now_ms()) == sessions.SWEEP_BATCH:
                pass
            await store.write(password_links.sweep, clock.now_ms())
            while await store.write(request_keys.sweep, clock.now_ms()) == request_keys.SWEEP_BATCH:
                pass
            while await store.write(shares.sweep, clock.now_ms()) == shares.SWEEP_BATCH:
                pass
        except Retry as error:
            log.warning("ended sign-ins could not be removed; tried again later", cause=error.message)
        await clock.sleep(SWEEP_EVERY_SEC)
