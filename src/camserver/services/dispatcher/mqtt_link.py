"""One lasting connection to an MQTT broker: cameras' states there are kept as they are here.

While it is up the broker says "online"; when this process dies the broker itself says "offline" (last will). Home
Assistant is told of cameras by discovery, again whenever it comes up. Cameras that are no more are emptied out, also
those that were removed while nobody was connected: the broker still names them. Messages are sent through here but
made elsewhere; who holds the link is decided in mqtt_links.py.
"""

import asyncio
import json
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from camserver import __version__
from camserver.base.cancelling import apart, go_on_unless_cancelled
from camserver.base.clock import Clock
from camserver.base.errors import BadInput, CamError, NotFound, Retry
from camserver.base.log import get_logger
from camserver.clients.mqtt import Broker, BrokerAway, Connection, Will, connect
from camserver.clients.outgoing import OutgoingPolicy
from camserver.domain import home_assistant
from camserver.domain.mqtt_topics import OFFLINE, ONLINE, Standing, Topics, is_seen, level, state
from camserver.domain.people import Principal, Role
from camserver.media.thumbnails import thumbnail
from camserver.objects.interface import Objects
from camserver.objects.keys import Kind, frame_key
from camserver.store import Store, camera_standings, feed

log = get_logger(__name__)

LOOK_EVERY_SEC: Final = 1.0
# Looks that show nothing new are in no change feed; their age is told this often.
REFRESH_MS: Final = 60_000
PAUSE_MIN_SEC: Final = 1.0
PAUSE_MAX_SEC: Final = 60.0
# A connection that lasted this long was a good one: the next pause is a short one again.
LASTED_MS: Final = 60_000
GOODBYE_SEC: Final = 3.0
EMPTY_OUT_SEC: Final = 30.0
ABREAST: Final = 10
CAMERAS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class LinkTerms:
    """Everything of a receiver that a link depends on: another value is another link."""

    receiver_id: int
    receiver_uuid: str
    tenant_id: int
    broker: Broker
    topics: Topics
    discovery_prefix: str  # empty: Home Assistant is not told
    language: str
    public_url: str


@dataclass(frozen=True, slots=True)
class _Told:
    """What the broker has of a camera."""

    camera_id: str
    discovery: str
    availability: str
    state: str  # without its age, which always is another one
    image: str | None


class MqttLink:
    def __init__(
        self,
        terms: LinkTerms,
        store: Store,
        objects: Objects,
        clock: Clock,
        policy: OutgoingPolicy,
        note: Callable[[str | None], None],
    ) -> None:
        """`note` is told why there is no connection, and None when there is one."""
        self.terms = terms
        # In nobody's name: whoever may read the broker's topics sees all cameras of the tenant.
        self._store = store.as_(Principal(terms.tenant_id, None, Role.SYSTEM_ADMIN))
        self._objects = objects
        self._clock = clock
        self._policy = policy
        self._note = note
        self._told: dict[int, _Told] = {}
        self._named_by_broker: set[str] = set()  # levels of topics
        self._is_born = False  # Home Assistant came up
        # Set before it is ended for good: whatever it published is emptied out.
        self.leaves_nothing = False
        self.connection: Connection | None = None  # while it is up

    async def run(self) -> None:
        """Keeps the connection until cancelled; a broker that is away is tried again and again."""
        pause_sec = PAUSE_MIN_SEC
        while True:
            started_ms = self._clock.boot_ms()
            try:
                await apart(self._connected())
            except CamError as error:
                log.warning("mqtt_link_down", receiver=self.terms.receiver_uuid, why=error.message)
                self._note(error.message)
            except Exception:
                # What is broken here must not keep other deliveries from going on.
                log.exception("mqtt_link_broke", receiver=self.terms.receiver_uuid)
            go_on_unless_cancelled()
            if self._clock.boot_ms() - started_ms >= LASTED_MS:
                pause_sec = PAUSE_MIN_SEC
            # Spread out, or all that lost the same broker come back at the same moment.
            await self._clock.sleep(pause_sec * random.uniform(0.5, 1.0))
            pause_sec = min(pause_sec * 2, PAUSE_MAX_SEC)

    async def _connected(self) -> None:
        broker, topics = self.terms.broker, self.terms.topics
        place = await self._policy.resolve(broker.host, broker.port)
        async with connect(broker, place.address, Will(topics.availability, OFFLINE)) as connection:
            self._told.clear()
            self._named_by_broker.clear()
            await connection.subscribe(topics.every_camera)
            if self.terms.discovery_prefix:
                await connection.subscribe(self._status_topic)
            await connection.publish(topics.availability, ONLINE, retain=True)
            log.info("mqtt_link_up", receiver=self.terms.receiver_uuid, host=broker.host)
            self._note(None)
            self.connection = connection
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._listen(connection))
                    group.create_task(self._follow(connection))
            except BaseExceptionGroup as failed:
                raise _first_of(failed) from failed
            finally:
                self.connection = None
                await self._leave(connection)

    @property
    def _status_topic(self) -> str:
        return f"{self.terms.discovery_prefix}/{home_assistant.STATUS_TOPIC}"

    async def _listen(self, connection: Connection) -> None:
        async for heard in connection.heard():
            if heard.topic == self._status_topic:
                # What is retained there was said before we came, and everything is told at first anyway.
                self._is_born |= heard.payload == home_assistant.BORN.encode() and not heard.retained
                continue
            named = self.terms.topics.camera_level(heard.topic)
            if named is not None and heard.payload and len(self._named_by_broker) < CAMERAS_MAX:
                self._named_by_broker.add(named)

    async def _follow(self, connection: Connection) -> None:
        """Brings the broker up to date, and keeps it so. A store that is away is waited for."""
        seq: int | None = None
        refreshed_ms = 0
        while True:
            try:
                is_stale = self._clock.boot_ms() - refreshed_ms >= REFRESH_MS
                if self._is_born or seq is None or is_stale:
                    refreshed_ms = self._clock.boot_ms()
                    # Numbered before it is read: what changes meanwhile is read again.
                    seq = await self._store.read(feed.newest)
                    await self._tell_all(connection)
                else:
                    changed = await self._store.read(camera_standings.changed, seq)
                    if changed.camera_keys is None:
                        refreshed_ms = self._clock.boot_ms() - REFRESH_MS
                        continue
                    seq = changed.last_seq
                    await self._tell_some(connection, tuple(sorted(changed.camera_keys)))
                await self._forget_strangers(connection)
            except BrokerAway:
                raise
            except Retry as error:
                log.warning("mqtt_states_put_off", why=error.message)
            go_on_unless_cancelled()
            await self._clock.sleep(LOOK_EVERY_SEC)

    async def _tell_all(self, connection: Connection) -> None:
        if self._is_born:
            self._is_born = False
            self._told.clear()
        if self.terms.discovery_prefix:
            await self._announce(connection)
        found: list[int] = []
        after_key = 0
        while len(found) < CAMERAS_MAX:
            standings = await self._store.read(camera_standings.page, after_key)
            await apart(self._tell(connection, standings))
            found += [standing.camera_key for standing in standings]
            if len(standings) < camera_standings.PAGE:
                await self._forget(connection, set(self._told) - set(found))
                return
            after_key = standings[-1].camera_key
        log.warning("mqtt_cameras_beyond_bound", most=CAMERAS_MAX)

    async def _tell_some(self, connection: Connection, camera_keys: tuple[int, ...]) -> None:
        if not camera_keys:
            return
        standings = await self._store.read(camera_standings.some, camera_keys)
        await apart(self._tell(connection, standings))
        await self._forget(connection, set(camera_keys) - {standing.camera_key for standing in standings})

    async def _announce(self, connection: Connection) -> None:
        """The server's own device, which those of cameras refer to."""
        terms = self.terms
        device = home_assistant.installation_device(terms.topics, __version__, terms.public_url, terms.language)
        await connection.publish(self._discovery_topic(None), json.dumps(device, ensure_ascii=False), retain=True)

    async def _tell(self, connection: Connection, standings: Sequence[Standing]) -> None:
        for start in range(0, len(standings), ABREAST):
            try:
                # All end before one's failure is told: none must go on with the next connection's memory.
                async with asyncio.TaskGroup() as group:
                    for standing in standings[start : start + ABREAST]:
                        group.create_task(self._tell_camera(connection, standing))
            except BaseExceptionGroup as failed:
                raise _first_of(failed) from failed

    async def _tell_camera(self, connection: Connection, standing: Standing) -> None:
        """Publishes what the broker does not have yet."""
        terms = self.terms
        topics = terms.topics.camera(standing.camera_id)
        had = self._told.get(standing.camera_key)
        if had is not None and had.camera_id != standing.camera_id:
            await self._forget(connection, {standing.camera_key})
            had = None
        if had is None:
            # Before anything of it is published: whatever happens then, it is known to be there.
            self._told[standing.camera_key] = _Told(standing.camera_id, "", "", "", None)
        discovery = ""
        if terms.discovery_prefix:
            device = home_assistant.camera_device(
                terms.topics, standing, __version__, terms.public_url, terms.language
            )
            discovery = json.dumps(device, ensure_ascii=False)
            if had is None or had.discovery != discovery:
                await connection.publish(self._discovery_topic(standing.camera_id), discovery, retain=True)
        availability = ONLINE if is_seen(standing) else OFFLINE
        if had is None or had.availability != availability:
            await connection.publish(topics.availability, availability, retain=True)
        now = state(standing, self._clock.now_ms())
        lasting = json.dumps({name: value for name, value in now.items() if name != "last_look_age_sec"})
        if had is None or had.state != lasting:
            await connection.publish(topics.state, json.dumps(now), retain=True)
        image = await self._tell_image(connection, standing, None if had is None else had.image)
        self._told[standing.camera_key] = _Told(standing.camera_id, discovery, availability, lasting, image)

    async def _tell_image(self, connection: Connection, standing: Standing, had: str | None) -> str | None:
        """Publishes the picture of the newest event; the frame that the broker has then."""
        picture = standing.picture
        topic = self.terms.topics.camera(standing.camera_id).image
        if picture is None:
            if had is not None:
                await connection.publish(topic, b"", retain=True)
            return None
        if picture.frame_uuid == had:
            return had
        key = frame_key(
            picture.epoch_id,
            self.terms.tenant_id,
            standing.camera_key,
            picture.captured_at,
            picture.frame_uuid,
            Kind.INFER,
        )
        try:
            jpeg = await asyncio.to_thread(thumbnail, await self._objects.get(key))
        except NotFound:
            return had  # retention was quicker
        except BadInput as error:
            log.warning("mqtt_image_unreadable", frame_uuid=picture.frame_uuid, why=error.message)
            return picture.frame_uuid
        await connection.publish(topic, jpeg, retain=True)
        return picture.frame_uuid

    async def _forget(self, connection: Connection, camera_keys: Iterable[int]) -> None:
        for camera_key in camera_keys:
            told = self._told.pop(camera_key, None)
            if told is not None:
                await self._empty(connection, told.camera_id)
                log.info("mqtt_camera_removed", camera_id=told.camera_id)

    async def _forget_strangers(self, connection: Connection) -> None:
        """Empties out cameras that only the broker remembers."""
        known = {level(told.camera_id) for told in self._told.values()}
        strangers, self._named_by_broker = self._named_by_broker - known, set()
        for named in strangers:
            await self._empty(connection, unquote(named))
            log.info("mqtt_camera_removed", camera_id=unquote(named))

    async def _empty(self, connection: Connection, camera_id: str) -> None:
        """An empty retained message removes the one before it, and Home Assistant's device."""
        if self.terms.discovery_prefix:
            await connection.publish(self._discovery_topic(camera_id), b"", retain=True)
        for topic in self.terms.topics.camera(camera_id).retained:
            await connection.publish(topic, b"", retain=True)

    async def _leave(self, connection: Connection) -> None:
        """Says goodbye. Where the connection itself is gone, the broker says so: it has the will."""
        try:
            if self.leaves_nothing:
                async with asyncio.timeout(EMPTY_OUT_SEC):
                    await self._forget(connection, list(self._told))
                    if self.terms.discovery_prefix:
                        await connection.publish(self._discovery_topic(None), b"", retain=True)
            async with asyncio.timeout(GOODBYE_SEC):
                last_word = b"" if self.leaves_nothing else OFFLINE
                await connection.publish(self.terms.topics.availability, last_word, retain=True)
        except (BrokerAway, TimeoutError):
            log.warning("mqtt_goodbye_not_said", receiver=self.terms.receiver_uuid)

    def _discovery_topic(self, camera_id: str | None) -> str:
        device = home_assistant.device_id(self.terms.topics.installation, camera_id)
        return home_assistant.discovery_topic(self.terms.discovery_prefix, device)


def _first_of(failed: BaseExceptionGroup[BaseException]) -> BaseException:
    """Of several failures one that is expected, else the first."""
    leaves = list(failed.exceptions)
    return next((leaf for leaf in leaves if isinstance(leaf, CamError)), leaves[0])
