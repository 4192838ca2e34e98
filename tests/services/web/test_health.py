"""What people see of cameras in trouble: the state with plain words, and issues that lead to their events."""

from camserver.services.web import labels
from camserver.store.cameras import CameraHealth, OpenIssue
from tests.services.web.rig import RunningWeb
from tests.services.web.test_api import CAMERA, home_of
from tests.store.people_rows import add_event, execute


async def test_a_new_camera_is_not_known_to_work(web: RunningWeb) -> None:
    owner = await web.owner()
    made = (await owner.post("/api/cameras", CAMERA)).body
    assert made["health"] == {"state": "unknown", "since": None, "cause": None, "issues": []}


async def test_a_camera_in_trouble_says_so_in_both_languages(web_on_each: RunningWeb) -> None:
    owner = await web_on_each.owner()
    await owner.post("/api/cameras", CAMERA)
    issues = '[{"kind": "offline", "since": 5, "event": "e1"}]'
    await web_on_each.store.write(
        execute,
        "UPDATE camera_state SET health = 'down', health_cause = 'unauthorized', health_since = 5, issues = :issues",
        {"issues": issues},
    )
    [camera] = (await owner.get("/api/cameras")).body["cameras"]
    assert (await owner.get("/api/system/status")).body["health"] == {"down": 1}
    cause = {
        "id": "unauthorized",
        "label_ja": "ユーザー名またはパスワードが違います",
        "label_en": "It refuses user name or password",
    }
    offline = {"id": "offline", "label_ja": "カメラの通信断", "label_en": "Camera offline"}
    assert camera["health"] == {
        "state": "down",
        "since": 5,
        "cause": cause,
        "issues": [{**offline, "since": 5, "event_uuid": "e1"}],
    }
    tags = (("camera.frozen", "notify_safe"),)
    await web_on_each.store.write(add_event, await home_of(web_on_each), "cam_1", "e1", 1000, tags)
    await web_on_each.store.write(
        execute,
        "UPDATE events SET primary_event = 'camera_issue', subject = 'offline', cause = 'unauthorized'",
        {},
    )
    [event] = (await owner.get("/api/events?primary_event=camera_issue&tag=camera.frozen")).body["events"]
    assert (event["issue"], event["cause"]) == (offline, cause)
    assert (event["tags"][0]["label_ja"], event["tags"][0]["group"]) == ("映像の停止", "notify_safe")
    assert (await owner.get("/api/events?tag=camera.moved")).body["events"] == []
    await web_on_each.store.write(execute, "UPDATE events SET subject = '', cause = ''", {})
    detail = (await owner.get("/api/events/e1")).body
    assert (detail["issue"], detail["cause"]) == (None, None)


def test_what_a_newer_worker_calls_it_is_shown_by_its_name() -> None:
    health = CameraHealth("down", "eaten", 1, (OpenIssue("melted", 2, "e1"),))
    shown = labels.shown_health(health)
    assert shown.cause is not None
    assert (shown.cause.label_en, shown.issues[0].label_ja) == ("eaten", "melted")
