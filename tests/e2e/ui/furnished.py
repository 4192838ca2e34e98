"""An installation as one finds it after a while: people, sites, receivers, rules, cases, a scoring run, what failed.

All of it is made through the API, as people make it.
"""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import av
import numpy as np
from av.video.frame import VideoFrame
from PIL import Image

from camserver.media.clips import encode_frames
from tests.e2e.installation import seen

HEAD_OFFICE, WAREHOUSE = "本社ビル", "物流倉庫"
LONG_SITE = "東京都千代田区丸の内一丁目中央ビルディング新館地下二階"
LONG_CAMERA = "三階東側非常階段踊り場入口付近防犯カメラ、Third-floor emergency staircase landing"
FPS = 12
SIZE = (960, 540)
# The footage is cut from several views, each of which is a camera of its own: its first picture and the one after its
# last.
VIEWS = {"taxis": (31, 76), "crossing": (77, 137), "street": (138, 187), "stand": (188, 242)}


def cut_views(footage: Path, folder: Path) -> dict[str, Path]:
    """A film for each view: there and back again, so that nothing jumps where it begins anew."""
    made = {name: folder / f"view-{name}.mp4" for name in VIEWS}
    if all(target.exists() for target in made.values()):
        return made
    with av.open(str(footage)) as container:
        decoded: Iterator[Any] = container.decode(video=0)
        pictures: list[Image.Image] = [frame.to_image() for frame in decoded]
    for name, target in made.items():
        first, last = VIEWS[name]
        there = [picture.resize(SIZE, Image.Resampling.LANCZOS) for picture in pictures[first:last]]
        arrays = (np.asarray(one.convert("RGB")) for one in [*there, *there[-2:0:-1]])
        encode_frames((VideoFrame.from_ndarray(one, format="rgb24") for one in arrays), FPS, SIZE, target)
    return made


async def post(browser: aiohttp.ClientSession, path: str, body: object = None) -> Any:
    async with browser.post(path, json=body if body is not None else {}) as answer:
        assert answer.status in (200, 201, 202, 204), f"POST {path}: {answer.status} {await answer.text()}"
        return await answer.json() if answer.content_type == "application/json" else None


async def get(browser: aiohttp.ClientSession, path: str) -> Any:
    async with browser.get(path) as answer:
        assert answer.status == 200, f"GET {path}: {answer.status} {await answer.text()}"
        return await answer.json()


async def add_places(browser: aiohttp.ClientSession) -> None:
    """The site of this machine's worker, and one without any."""
    async with browser.patch("/api/sites/main", json={"name": HEAD_OFFICE, "timezone": "Asia/Tokyo"}) as answer:
        assert answer.status == 200, await answer.text()
    await post(browser, "/api/sites", {"name": WAREHOUSE, "timezone": "Asia/Tokyo"})


async def add_people(browser: aiohttp.ClientSession) -> None:
    for login, name, role in (
        ("sato", "佐藤 花子", "tenant_admin"),
        ("tanaka", "田中 一郎", "site_manager"),
        ("m.jones", "Mary Jones", "viewer"),
    ):
        password = f"a-password-of-{login}-that-is-long"
        await post(browser, "/api/users", {"login": login, "display_name": name, "role": role, "password": password})
    await post(browser, "/api/tokens", {"name": "Home Assistant", "scopes": ["read"], "days": 365})
    tenant = {"name": "みどり商店会", "admin": "midori-admin", "admin_name": "緑川 誠", "timezone": "Asia/Tokyo"}
    await post(browser, "/api/tenants", tenant)


async def add_receivers(browser: aiohttp.ClientSession, good_url: str, bad_url: str) -> None:
    office = await post(browser, "/api/receivers", _webhook("防災センター / Control room", good_url))
    night = await post(browser, "/api/receivers", _webhook("夜間当番 / Night shift", bad_url))
    everything = {"name": "すべて / Everything", "min_severity": 0, "receivers": [office["name"], night["name"]]}
    await post(browser, "/api/notify/rules", everything)
    quiet = {"from": "22:00", "to": "06:00", "days": [0, 1, 2, 3, 4], "through_severity": 3}
    nights = {
        "name": "夜は重大のみ / Nights: critical",
        "min_severity": 2,
        "quiet": quiet,
        "receivers": [night["name"]],
    }
    await post(browser, "/api/notify/rules", nights)
    snooze = {
        "duration_sec": 7200,
        "reason": "外壁工事 / Works at the façade",
        "receiver_uuid": night["receiver_uuid"],
    }
    await post(browser, "/api/snoozes", snooze)


def _webhook(name: str, url: str) -> dict[str, object]:
    return {"name": name, "kind": "webhook", "secrets": {"url": url}, "language": "ja", "hourly_cap": 200}


async def add_cases(browser: aiohttp.ClientSession) -> None:
    events = [one for one in (await get(browser, "/api/events?limit=60"))["events"] if one["issue"] is None]
    for place, (title, note, change) in enumerate(
        (
            ("駐輪場の自転車盗難", "19日 18:40 ごろ、黒い上着の人物。警察へ提出予定。", {"hold": True}),
            ("Delivery van blocks the emergency exit", "Third time this month. Told the carrier.", {}),
            ("正面入口の不審者", "警備員が声かけ。問題なし。", {"state": "closed"}),
        )
    ):
        case = await post(browser, "/api/cases", {"title": title, "note": note})
        path = f"/api/cases/{case['case_uuid']}"
        for event in events[place * 4 : place * 4 + 4]:
            await post(browser, f"{path}/items", {"kind": "event", "uuid": event["event_uuid"]})
        if change:
            async with browser.patch(path, json=change) as answer:
                assert answer.status == 200, await answer.text()


async def review_some(browser: aiohttp.ClientSession) -> None:
    incidents = (await get(browser, "/api/incidents?limit=60"))["incidents"]
    for incident in incidents[8:60:3]:
        await post(browser, f"/api/incidents/{incident['incident_uuid']}/review")


def _sheet() -> bytes:
    texts = (
        "エレベーターが途中で止まり、10分待たされました。",
        "受付の方がとても親切でした。",
        "The car park is too dark in the evening.",
        "清掃が行き届いていて気持ちがよい。",
        "Somebody follows people through the side door.",
        "空調の音がうるさくて会議に集中できません。",
    )
    out = io.StringIO()
    headers = [
        ["来館者アンケート"],
        ["", "", "", "安全", "清掃", "設備"],
        ["", "", "", "危険や不安", "清潔さ", "故障、騒音"],
    ]
    rows = [["", str(number), f"{texts[number % len(texts)]} ({number})"] for number in range(240)]
    csv.writer(out).writerows([*headers, [], *rows])
    return out.getvalue().encode()


async def score(browser: aiohttp.ClientSession) -> None:
    """A sheet that is scored, and one that waits for somebody to say so."""
    for name, begins in (("来館者アンケート_11月.csv", True), ("visitor-survey-october.csv", False)):
        data = _sheet()
        asked = {"kind": "file", "name": name, "size_bytes": len(data)}
        sheet = (await post(browser, "/api/scoring/sheets", asked))["sheet_uuid"]
        path = f"/api/scoring/sheets/{sheet}"
        async with browser.post(f"{path}/parts/0", data=data) as answer:
            assert answer.status == 200, await answer.text()
        await seen(browser, path, lambda body: body["state"] == "looked")
        if begins:
            run = await post(browser, f"{path}/runs", {})
            await seen(browser, f"/api/scoring/runs/{run['run_uuid']}", lambda body: body["status"] != "running", 120)


async def lengthen(browser: aiohttp.ClientSession) -> None:
    """Names as long as people give them, to see whether pages have room for them."""
    for camera in (await get(browser, "/api/cameras?limit=100"))["cameras"]:
        name = f"{camera['name']} {LONG_CAMERA}"[:60]
        async with browser.patch(f"/api/cameras/{camera['camera_id']}", json={"name": name}) as answer:
            assert answer.status == 200, await answer.text()
    for site in (HEAD_OFFICE, WAREHOUSE):
        async with browser.patch(f"/api/sites/{site}", json={"name": f"{site}{LONG_SITE}"[:30]}) as answer:
            assert answer.status == 200, await answer.text()


async def furnish(browser: aiohttp.ClientSession) -> None:
    """What needs events to be there; the rest was made before."""
    await add_cases(browser)
    await review_some(browser)
