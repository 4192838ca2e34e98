"""The link to an MQTT broker, against a real Mosquitto."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from uuid_utils import uuid7

from camserver.base.secrets import Secret
from camserver.clients.outgoing import OutgoingPolicy
from camserver.domain import home_assistant
from camserver.domain.deliveries import DeliveryError, Outgoing, Receiver, ReceiverKind, Trouble
from camserver.domain.messages import Language, Text
from camserver.objects.local import LocalObjects
from camserver.services.dispatcher.mqtt_links import MqttLinks, MqttSender
from camserver.store import Store, Tx, duties
from tests.rig import mosquitto as rig
from tests.rig.certificates import self_signed
from tests.rig.mosquitto import Mosquitto, mosquitto
from tests.rig.mqtt_watch import Watch, retained, watch
from tests.rig.pictures import jpeg
from tests.rig.polling import until
from tests.rig.ports import LOOPBACK, free_port
from tests.services.dispatcher.stage import StageClock
from tests.store.scenery import NOW_MS, Scene, furnish, look, recorded

pytestmark = pytest.mark.skipif(rig.PROGRAM is None, reason="mosquitto is not installed")

URL = "https://cameras.example"
FIRST, SECOND, SECRET = (jpeg(shade=shade) for shade in (50, 100, 150))


@dataclass(slots=True)
class House:
    """A tenant with two cameras, one of them with an event, and a receiver."""

    store: Store
    objects: LocalObjects
    scene: Scene
    receivers: list[Receiver]
    clock: StageClock = field(default_factory=StageClock)
    noted: list[str | None] = field(default_factory=list)

    def links(self, name: str = "one", clock: StageClock | None = None) -> MqttLinks:
        policy = OutgoingPolicy(allow_loopback=True)
        return MqttLinks(
            name,
            self.store,
            self.objects,
            clock or self.clock,
            policy,
            URL,
            lambda: list(self.receivers),
            lambda _, error: self.noted.append(error),
        )

    @asynccontextmanager
    async def linked(self, name: str = "one") -> AsyncIterator[MqttLinks]:
        links = self.links(name)
        task = asyncio.create_task(links.run())
        try:
            yield links
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def change(self, camera: int, **columns: object) -> None:
        await self.store.write(_change_camera, self.scene, self.scene.camera_keys[camera], columns)


async def _change_camera(tx: Tx, scene: Scene, camera_key: int, columns: dict[str, object]) -> None:
    for name, value in columns.items():
        table = "cameras" if name in ("name", "deleted_at", "camera_id") else "camera_state"
        await tx.run(
            f"UPDATE {table} SET {name} = :value WHERE camera_key = :camera_key", value=value, camera_key=camera_key
        )
    tx.changed(tenant_id=scene.tenant_id, kind="camera", at_ms=NOW_MS, camera_key=camera_key)


async def _add_event(tx: Tx, scene: Scene, frame_uuid: str, primary_event: str, retention: str) -> int:
    camera_key = scene.camera_keys[0]
    frame = await tx.one("SELECT frame_id FROM frames WHERE frame_uuid = :uuid", uuid=frame_uuid)
    assert frame is not None
    await tx.run(
        "UPDATE frames SET retention_class = :retention WHERE frame_id = :frame_id",
        retention=retention,
        frame_id=frame["frame_id"],
    )
    await tx.run("UPDATE events SET open_key = NULL, state = 'closed' WHERE camera_key = :key", key=camera_key)
    event_id = await tx.insert(
        "INSERT INTO events (event_uuid, tenant_id, site_id, camera_key, incident_id, open_key, state, "
        "primary_event, start_at, last_seen_at, severity_max, best_frame_id, retention_class, created_at, "
        "updated_at) VALUES "
        "(:uuid, :tenant_id, :site_id, :camera_key, 1, :camera_key, 'open', :primary_event, :at, :at, 2, :frame_id, "
        ":retention, :at, :at) RETURNING event_id",
        uuid=str(uuid7()),
        tenant_id=scene.tenant_id,
        site_id=scene.site_id,
        camera_key=camera_key,
        primary_event=primary_event,
        at=NOW_MS + frame["frame_id"],
        frame_id=frame["frame_id"],
        retention=retention,
    )
    tx.changed(tenant_id=scene.tenant_id, kind="event", at_ms=NOW_MS, camera_key=camera_key, object_id=event_id)
    return event_id


async def see(house: House, seq: int, primary_event: str, picture: bytes, retention: str = "normal") -> None:
    """The first camera sees something that goes on."""
    made = look(house.scene, 0, seq, NOW_MS + seq)
    key = (
        f"e{house.scene.epoch_id}/t{house.scene.tenant_id}/c{made.camera_key}/d{made.captured_at // 86_400_000}/"
        f"{made.frame_uuid}.infer.jpg"
    )
    await house.objects.put(key, picture)
    await recorded(house.store, made)
    await house.store.write(_add_event, house.scene, made.frame_uuid, primary_event, retention)


def broker_receiver(tenant_id: int, port: int, **config: object) -> Receiver:
    return Receiver(
        receiver_id=7,
        receiver_uuid="0190a000-0000-7000-8000-00000000beef",
        tenant_id=tenant_id,
        name="broker",
        kind=ReceiverKind.MQTT,
        config={"host": LOOPBACK, "port": port, "installation": "house", **config},
        language="en",
    )


@pytest.fixture
def db_kind() -> str:
    """What is read from the store is tested on every database in tests/store/test_camera_standings.py."""
    return "sqlite"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    with mosquitto(tmp_path) as running:
        yield running


@pytest.fixture
async def house(store: Store, tmp_path: Path, broker: Mosquitto) -> House:
    scene = await furnish(store, 2)
    house = House(store, LocalObjects(tmp_path / "objects"), scene, [])
    house.receivers.append(broker_receiver(scene.tenant_id, broker.port))
    await house.change(0, health="up")
    await house.change(1, health="up")
    await see(house, 1, "human", FIRST)
    return house


def state_of(watched: Watch, camera_id: str) -> dict[str, object]:
    state: dict[str, object] = json.loads(watched.now.get(f"camserver/house/{camera_id}/state", b"{}"))
    return state


@pytest.mark.parametrize("db_kind", ["sqlite", "postgres", "mariadb"])
async def test_states_follow_the_cameras(house: House, broker: Mosquitto) -> None:
    async with watch(broker.port) as watched, house.linked():
        await watched.until_says("camserver/house/availability", "online")
        await watched.until_says("camserver/house/cam_1/availability", "online")
        await watched.until_says("camserver/house/cam_0/image", FIRST)
        state = state_of(watched, "cam_0")
        event = state.pop("last_event")
        assert state == {
            "health": "up",
            "cause": None,
            "issues": [],
            "problem": "OFF",
            "person": "ON",
            "vehicle": "OFF",
            "animal": "OFF",
            "severity": 2,
            "last_look_at": "2027-01-15T08:00:00+00:00",
            "last_look_age_sec": 0,
        }
        assert isinstance(event, dict)
        assert event["primary_event"] == "human"
        assert event["open"] is True

        await see(house, 2, "animal", SECOND)
        await watched.until_says("camserver/house/cam_0/image", SECOND)
        await watched.until(lambda: state_of(watched, "cam_0")["animal"] == "ON", "an animal")
        assert state_of(watched, "cam_0")["person"] == "OFF"

        await house.change(1, health="down", health_cause="timeout", issues='[{"kind": "offline"}]')
        await watched.until_says("camserver/house/cam_1/availability", "offline")
        await watched.until(lambda: state_of(watched, "cam_1")["problem"] == "ON", "a problem")
        assert state_of(watched, "cam_1")["cause"] == "timeout"
        assert state_of(watched, "cam_1")["issues"] == ["offline"]
    # A goodbye in good order.
    assert (await retained(broker.port))["camserver/house/availability"] == b"offline"


async def test_a_picture_of_a_case_is_taken_back(house: House, broker: Mosquitto) -> None:
    async with watch(broker.port) as watched, house.linked():
        await watched.until_says("camserver/house/cam_0/image", FIRST)
        await see(house, 2, "human", SECRET, retention="case")
        await watched.until(lambda: "camserver/house/cam_0/image" not in watched.now, "no picture")
        await house.clock.some_turns()
        assert SECRET not in [payload for _, payload in watched.heard]


# What Home Assistant knows of each platform, besides what all entities have.
COMMON = {"platform", "unique_id", "name", "availability", "availability_mode", "entity_category", "state_topic"}
ATTRIBUTES = {"json_attributes_topic", "json_attributes_template", "enabled_by_default", "device_class"}
PLATFORMS = {
    "binary_sensor": {"value_template", "payload_on", "payload_off"},
    "sensor": {"value_template", "options", "unit_of_measurement"},
    "image": {"image_topic", "content_type"},
    "event": {"event_types"},
}
DEVICE = {
    "identifiers",
    "name",
    "manufacturer",
    "model",
    "sw_version",
    "configuration_url",
    "suggested_area",
    "via_device",
}


def check_discovery(payload: bytes) -> list[str]:
    """Holds a device's discovery against Home Assistant's schema; the unique ids of its entities."""
    found = json.loads(payload)
    assert set(found) == {"device", "origin", "components"}
    assert found["device"]["identifiers"]
    assert set(found["device"]) <= DEVICE
    assert found["origin"]["name"] == "camserver"
    for component in found["components"].values():
        assert set(component) <= COMMON | ATTRIBUTES | PLATFORMS[component["platform"]]
        assert {"platform", "unique_id", "name"} <= set(component)
        assert component.keys() & {"state_topic", "image_topic"}
        for where in component.get("availability", ()):
            assert set(where) == {"topic"}
    return [component["unique_id"] for component in found["components"].values()]


async def test_home_assistant_is_told_of_every_camera_by_one_message(house: House, broker: Mosquitto) -> None:
    async with watch(broker.port) as watched, house.linked():
        await watched.until_says("camserver/house/cam_0/image", FIRST)
        await watched.until_says("camserver/house/cam_1/availability", "online")
        told = {topic: payload for topic, payload in watched.now.items() if topic.startswith("homeassistant/")}
        assert sorted(told) == [
            "homeassistant/device/camserver_house/config",
            "homeassistant/device/camserver_house_cam_0/config",
            "homeassistant/device/camserver_house_cam_1/config",
        ]
        unique_ids = [one for payload in told.values() for one in check_discovery(payload)]
        assert len(set(unique_ids)) == len(unique_ids) == 1 + 2 * 11
        # Whatever an entity reads is a topic that is there.
        for payload in told.values():
            for component in json.loads(payload)["components"].values():
                for topic in [component.get("state_topic"), *(a["topic"] for a in component.get("availability", ()))]:
                    assert topic is None or topic.endswith("/events") or topic in watched.now
        camera = json.loads(told["homeassistant/device/camserver_house_cam_0/config"])
        assert camera["device"]["via_device"] == "camserver_house"
        assert camera["components"]["person"]["name"] == "Person"


async def test_home_assistant_is_told_again_when_it_comes_up(house: House, broker: Mosquitto) -> None:
    async with watch(broker.port) as watched, house.linked():
        topic = "homeassistant/device/camserver_house_cam_1/config"
        await watched.until(lambda: len(watched.of(topic)) == 1, "the first discovery")
        await watched.until_says("camserver/house/cam_0/image", FIRST)
        await house.clock.some_turns()
        before = len(watched.heard)
        await publish(broker.port, "homeassistant/status", b"online")
        await watched.until(lambda: len(watched.of(topic)) == 2, "the second discovery")
        await watched.until(lambda: ("camserver/house/cam_0/image", FIRST) in watched.heard[before:], "states again")


async def test_a_removed_camera_leaves_nothing(house: House, broker: Mosquitto) -> None:
    async with watch(broker.port) as watched, house.linked():
        await watched.until_says("camserver/house/cam_0/image", FIRST)
        await watched.until_says("camserver/house/cam_1/availability", "online")
        await house.change(0, deleted_at=NOW_MS)
        await watched.until(lambda: not any("cam_0" in topic for topic in watched.now), "an end of cam_0")
        assert "homeassistant/device/camserver_house_cam_1/config" in watched.now


async def test_a_camera_that_was_removed_while_nobody_was_connected_leaves_nothing(
    house: House, broker: Mosquitto
) -> None:
    async with watch(broker.port) as watched, house.linked():
        await watched.until_says("camserver/house/cam_0/image", FIRST)
    assert any("cam_0" in topic for topic in await retained(broker.port))
    await house.change(0, deleted_at=NOW_MS)
    async with watch(broker.port) as watched, house.linked():
        await watched.until_says("camserver/house/cam_1/availability", "online")
        await watched.until(lambda: not any("cam_0" in topic for topic in watched.now), "an end of cam_0")
    assert not any("cam_0" in topic for topic in await retained(broker.port))


async def test_a_receiver_that_is_removed_leaves_nothing_and_one_that_is_off_is_offline(
    house: House, broker: Mosquitto
) -> None:
    async with watch(broker.port) as watched, house.linked():
        await watched.until_says("camserver/house/cam_0/image", FIRST)
        on = house.receivers[0]
        house.receivers[0] = replace(on, enabled=False)
        await watched.until_says("camserver/house/availability", "offline")
        assert "homeassistant/device/camserver_house_cam_0/config" in watched.now
        house.receivers[0] = on
        await watched.until_says("camserver/house/availability", "online")
        await watched.until(lambda: len(watched.of("camserver/house/cam_0/image")) == 2, "everything again")
        house.receivers[0] = replace(on, config={**on.config, "prefix": "elsewhere"})
        await watched.until_says("elsewhere/house/availability", "online")
        assert not any(topic.startswith("camserver/") for topic in watched.now)
        await watched.until_says("elsewhere/house/cam_0/image", FIRST)
        await watched.until_says("elsewhere/house/cam_1/availability", "online")
        house.receivers.clear()
        await watched.until(lambda: not watched.now, "nothing")
    assert await retained(broker.port) == {}


async def test_a_broker_that_was_restarted_is_told_everything_again(house: House, broker: Mosquitto) -> None:
    async with house.linked():
        async with watch(broker.port) as watched:
            await watched.until_says("camserver/house/cam_0/image", FIRST)
        broker.crash()
        broker.start()
        async with watch(broker.port) as watched:
            assert watched.now == {}

            async def moved_on() -> None:
                while "camserver/house/cam_0/image" not in watched.now:
                    await house.clock.advance(1_000)
                    await asyncio.sleep(0.01)

            await asyncio.wait_for(moved_on(), 60)
            await watched.until_says("camserver/house/availability", "online")
        # People see in the list of receivers how it is.
        assert house.noted[0] is None
        assert house.noted[1] is not None
        assert house.noted[-1] is None


async def test_tls_and_password(store: Store, tmp_path: Path) -> None:
    certificate = self_signed(tmp_path / "broker.pem")
    pem = certificate.path.read_text().partition("-----BEGIN PRIVATE")[0]
    scene = await furnish(store, 1)
    house = House(store, LocalObjects(tmp_path / "objects"), scene, [])
    with mosquitto(tmp_path, certificate, ("camserver", "right horse")) as running:
        receiver = broker_receiver(scene.tenant_id, running.port, tls=True, ca=pem, username="camserver")
        house.receivers.append(replace(receiver, secrets={"password": Secret("right horse")}))
        async with house.linked() as links:
            await until(lambda: (link := links.link_of(7)) is not None and link.connection is not None, "a link")
            await MqttSender(links, OutgoingPolicy(allow_loopback=True)).send(house.receivers[0], message())
        wrong = replace(receiver, secrets={"password": Secret("wrong horse")})
        sender = MqttSender(house.links(), OutgoingPolicy(allow_loopback=True))
        with pytest.raises(DeliveryError) as refused:
            await sender.send(wrong, message())
        assert refused.value.kind is Trouble.FAILED


# ---------------------------------------------------------------------------------------------------------------
# Messages
# ---------------------------------------------------------------------------------------------------------------


def message(camera_id: str | None = "cam_0", primary_event: str = "human") -> Outgoing:
    body = {"camera_id": camera_id, "primary_event": primary_event, "event_uuid": "e", "title": "main cam_0: 人"}
    return Outgoing("delivery-1", Text(Language.EN, "main cam_0: person", ("Severity: 2/3",)), body)


async def publish(port: int, topic: str, payload: bytes) -> None:
    import aiomqtt

    async with aiomqtt.Client(LOOPBACK, port) as client:
        await client.publish(topic, payload, qos=1)


@pytest.mark.parametrize("has_link", [True, False])
async def test_a_message_is_an_event_of_its_camera(house: House, broker: Mosquitto, has_link: bool) -> None:
    policy = OutgoingPolicy(allow_loopback=True)
    async with watch(broker.port) as watched, house.linked() as holder:
        await until(lambda: (link := holder.link_of(7)) is not None and link.connection is not None, "a link")
        links = holder if has_link else house.links("another")
        done = await MqttSender(links, policy).send(house.receivers[0], message())
        assert done.result == {"topic": "camserver/house/cam_0/events"}
        await watched.until(lambda: len(watched.of("camserver/house/cam_0/events")) == 1, "the event")
        [payload] = watched.of("camserver/house/cam_0/events")
        assert json.loads(payload) == {
            **message().body,
            "delivery_uuid": "delivery-1",
            "event_type": "human",
        }
        await MqttSender(links, policy).send(house.receivers[0], message(None, "of_another_vocabulary"))
        await watched.until(lambda: len(watched.of("camserver/house/notices")) == 1, "the notice")
        assert json.loads(watched.of("camserver/house/notices")[0])["event_type"] == home_assistant.OTHER_EVENT
        # The link is still the holder's: nobody took its name away.
        assert watched.of("camserver/house/availability") == [b"online"]
    assert "camserver/house/cam_0/events" not in await retained(broker.port)


async def test_a_broker_that_is_away_is_tried_again(house: House) -> None:
    away = broker_receiver(house.scene.tenant_id, free_port())
    with pytest.raises(DeliveryError) as refused:
        await MqttSender(house.links(), OutgoingPolicy(allow_loopback=True)).send(away, message())
    assert refused.value.kind is Trouble.RETRY


async def test_a_link_to_a_former_broker_is_not_used(house: House, broker: Mosquitto) -> None:
    """Whoever saves another broker and tries it hears of that one, also while the link still stands."""
    moved = broker_receiver(house.scene.tenant_id, free_port())
    assert moved.receiver_id == house.receivers[0].receiver_id
    async with house.linked() as holder:
        await until(lambda: (link := holder.link_of(7)) is not None and link.connection is not None, "a link")
        with pytest.raises(DeliveryError) as refused:
            await MqttSender(holder, OutgoingPolicy(allow_loopback=True)).send(moved, message())
    assert refused.value.kind is Trouble.RETRY


async def test_a_broker_on_this_machine_needs_leave(house: House) -> None:
    with pytest.raises(DeliveryError) as refused:
        await MqttSender(house.links(), OutgoingPolicy()).send(house.receivers[0], message())
    assert refused.value.kind is Trouble.REFUSED


# ---------------------------------------------------------------------------------------------------------------
# Several dispatchers
# ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("db_kind", ["sqlite", "postgres", "mariadb"])
async def test_of_two_dispatchers_one_holds_the_link_and_the_other_takes_over(
    house: House, broker: Mosquitto
) -> None:
    async with watch(broker.port) as watched:
        async with house.linked("one") as one:
            await watched.until_says("camserver/house/cam_0/image", FIRST)
            async with house.linked("two") as two:
                await house.clock.some_turns()
                assert one.link_of(7) is not None
                assert two.link_of(7) is None
                assert watched.of("camserver/house/availability") == [b"online"]
                # It is renewed while it is held.
                for _ in range(5):
                    await house.clock.advance(10_000)
                    await house.clock.some_turns()
                assert two.link_of(7) is None
        assert await house.store.read(duties.find, f"mqtt:{house.receivers[0].receiver_uuid}") is None
        async with house.linked("two") as two:
            await watched.until(
                lambda: watched.of("camserver/house/availability") == [b"online", b"offline", b"online"],
                "a successor",
            )


async def test_a_dispatcher_that_can_not_renew_lets_go(house: House, broker: Mosquitto) -> None:
    async with watch(broker.port) as watched, house.linked("one") as one:
        await watched.until_says("camserver/house/availability", "online")
        duty = await house.store.read(duties.find, f"mqtt:{house.receivers[0].receiver_uuid}")
        assert duty is not None
        # Somebody else has it now, as after a long sleep of this machine.
        await house.store.write(duties.release, duty.name, duty.token)
        await house.store.write(duties.take, duty.name, "two", "another token", NOW_MS)
        await house.clock.advance(11_000)
        await watched.until_says("camserver/house/availability", "offline")
        await until(lambda: one.link_of(7) is None, "an end of the link")
