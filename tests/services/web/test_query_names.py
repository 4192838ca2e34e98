"""What stands behind the question mark of an address and is not known there: refused where JSON is answered, since a
filter written wrong would find everything; not heeded in pictures, films and pages, whose addresses others add to."""

from tests.services.web.rig import Reply, RunningWeb
from tests.services.web.test_api import CAMERA
from tests.services.web.test_matrix import BODIES, ROUTES, key_of, make_town

REFUSED = {"unknown_parameter", "no_parameters"}
# Opened by browsers, players, mail programs and the provider of sign-ins.
LENIENT = {
    "/api/audit/export",
    "/api/cameras/{camera_id}/latest.jpg",
    "/api/cases/{case_uuid}/export",
    "/api/errands/{errand_uuid}/picture",
    "/api/events/{event_uuid}/clip",
    "/api/feed/events",
    "/api/frames/{frame_uuid}/picture",
    "/api/oidc/callback",
    "/api/oidc/start",
    "/api/scoring/runs/{run_uuid}/files/{document}",
    "/api/scoring/runs/{run_uuid}/result",
    "/api/tenants/{tenant}/export/object",
}


def reason(reply: Reply) -> str | None:
    return reply.body["details"].get("reason") if reply.status >= 400 else None


async def test_each_route_that_answers_json_refuses_what_it_does_not_know(web: RunningWeb) -> None:
    town = await make_town(web)
    who = town.browsers["installation"]
    lenient = set()
    for route in ROUTES:
        method, path = key_of(route)
        if not path.startswith("/api/") or path == "/api/feed/events":
            continue
        reply = await who.ask(method, f"{town.address(path, 'near')}?odd=1", BODIES.get((method, path)))
        if reason(reply) in REFUSED:
            assert (reply.status, reply.body["error_code"]) == (400, "bad_input")
        else:
            lenient.add(path)
    assert lenient == LENIENT - {"/api/feed/events"}


async def test_the_name_and_those_that_are_known_are_told_in_both_languages(web: RunningWeb) -> None:
    owner = await web.owner()
    reply = await owner.get("/api/sessions?camera=x")
    assert reply.body["message"].startswith("camera is not known here: this address takes nothing")
    reply = await owner.get("/api/search?camera_id=a&limit=2&camera=x&text=")
    assert reply.body["message"].startswith("camera is not known here; known behind the question mark are before, ")
    assert "camera_id" in reply.body["details"]["known"].split(", ")
    reply = await owner.ask("GET", "/api/search?%F0%9F%93%B7%00", headers={"Accept-Language": "ja"})
    assert reply.status == 400
    reply = await owner.ask("GET", f"/api/search?{'y' * 4000}", headers={"Accept-Language": "ja"})
    assert reply.body["message"].startswith(f"「{'y' * 64}」という項目はありません。「?」の後に使えるのは before, ")
    reply = await owner.ask("GET", "/api/sessions?x", headers={"Accept-Language": "ja"})
    assert "何も指定できません" in reply.body["message"]


async def test_a_second_value_of_what_takes_one_is_refused(web: RunningWeb) -> None:
    owner = await web.owner()
    await owner.post("/api/cameras", CAMERA)
    for path in ("/api/events?limit=1&limit=2", "/api/search?limit=1&limit=2", "/api/statistics?site=main&site=main"):
        reply = await owner.get(path)
        named = path.rpartition("&")[2].partition("=")[0]
        assert (reply.status, reply.body["details"]["reason"]) == (400, "parameter_twice")
        assert reply.body["details"]["named"] == named
        assert reply.body["message"].startswith(f"{named} is given more than once")
    reply = await owner.ask("GET", "/api/audit?who=a&who=b", headers={"Accept-Language": "ja"})
    assert reply.body["message"] == "「who」には値を1つだけ指定してください。"
    # What takes several values takes them, and pictures heed nothing but what they know.
    many = "camera_id=cam_1&camera_id=cam_1&site=main&site=main"
    for path in ("/api/events", "/api/incidents", "/api/incidents/counts", "/api/search"):
        assert (await owner.get(f"{path}?{many}")).status == 200
    assert (await owner.get("/api/cameras/cam_1/latest.jpg?odd=1&odd=2")).body["details"]["reason"] == "no_picture"


async def test_who_may_not_ask_is_told_so_first(web: RunningWeb) -> None:
    assert (await web.browser().get("/api/cameras?odd=1")).status == 401
