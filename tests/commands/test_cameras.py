"""`camserver camera` as a person at a terminal meets it, on answers that a server would give."""

import json
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from PIL import Image

from camserver import cli
from camserver.base.exits import Exit
from camserver.clients.local_server import LocalServer
from camserver.commands import camera_words
from camserver.commands.shown import age, columns_of, reader_language, table
from camserver.domain.presets import Preset
from camserver.wire.api import CameraChange
from tests.rig.pictures import jpeg

NOW_MS = 1_700_000_000_000
STREAM = {
    "codec": "hevc", "width": 2560, "height": 1440, "fps": 25.0, "gop_sec": 2.0, "kbit_per_sec": 4100,
    "has_audio": True, "transport": "tcp",
}  # fmt: skip
STEPS = [{"name": "resolve", "took_ms": 1}, {"name": "connect", "took_ms": 9}]
GOOD = {"cause": "", "said_ja": "", "said_en": "", "steps": STEPS, "stream": STREAM, "stream_kind": "main"}
BAD = {"cause": "wrong_password", "said_ja": "パスワードが違います。", "said_en": "Wrong password.", "steps": STEPS}


PATH = "/api/cameras/yard"


class Api:
    """The answers of a server, by method and path; what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[tuple[str, Any]] = []
        self.is_there = True

    def call(self, method: str, path: str, body: Any) -> dict[str, Any]:
        self.asked.append((f"{method} {path}", body))
        key = f"{method} {path.partition('?')[0]}"
        answer = self.answers[key]
        made: dict[str, Any] = answer.pop(0) if isinstance(answer, list) else answer
        return made

    def errand(self, path: str, **changes: Any) -> None:
        """A path whose errand ends so."""
        ended = {"errand_uuid": "e-1", "camera_id": None, "state": "done", "message": "", "result": GOOD}
        self.answers[f"POST {path}"] = {"errand_uuid": "e-1", "state": "waiting"}
        self.answers.setdefault("GET /api/errands/e-1", []).extend(
            [{"errand_uuid": "e-1", "state": "sent"}, {**ended, "has_picture": False, **changes}]
        )


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Api:
    made = Api()

    async def call(self: LocalServer, method: str, path: str, body: Any = None) -> dict[str, Any]:
        return made.call(method, path, body)

    async def ask(self: LocalServer, method: str, path: str, body: Any) -> tuple[int, bytes]:
        made.asked.append((f"{method} {path}", body))
        return 200, jpeg(scene=0, size=(64, 48))

    async def is_there(self: LocalServer) -> bool:
        return made.is_there

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setattr(LocalServer, "_call", call)
    monkeypatch.setattr(LocalServer, "_ask", ask)
    monkeypatch.setattr(LocalServer, "is_there", is_there)
    return made


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli.main, ["camera", *arguments], input=stdin)


# -- add and list


def test_everything_a_camera_can_be_added_with(api: Api) -> None:
    api.answers["POST /api/cameras"] = {"camera_id": "yard"}
    options = ["--sub", "rtsp://h/2", "--transport", "udp", "--rotation", "90", "--device", "nvr", "--site", "north"]
    result = run(
        "add", "yard", "rtsp://h/1", *options, "--tls-pin", "AB:" * 31 + "CD", "--preset", "parking", "--json"
    )
    assert json.loads(result.output) == {"camera_id": "yard"}
    [(_, body)] = api.asked
    assert body == {
        "camera_id": "yard",
        "name": "yard",
        "source": {"url": "rtsp://h/1", "user": None, "password": None},
        "site": "north",
        "sub": {"url": "rtsp://h/2"},
        "transport": "udp",
        "rotation": 90,
        "device": "nvr",
        "tls_pin": "ab" * 31 + "cd",
        "hints": {"preset": "parking"},
    }


DRAWN = "0,0 1,0 1,0.25"
CORNERS = [[0.0, 0.0], [1.0, 0.0], [1.0, 0.25]]
# Option, its value, and what the API is asked for.
VALUES = [
    (["--interval-sec", "5"], {"polling_interval_sec": 5.0}),
    (["--connect-timeout-sec", "4.5"], {"connect_timeout_sec": 4.5}),
    (["--transport", "udp"], {"transport": "udp"}),
    (["--tls-pin", "AB:" * 31 + "CD"], {"tls_pin": "ab" * 31 + "cd"}),
    (["--rotation", "270"], {"rotation": 270}),
    (["--infer-width", "960"], {"infer_width": 960}),
    (["--diff-width", "160"], {"diff_width": 160}),
    (["--force-every", "10"], {"force_infer_every_n": 10}),
    (["--detect-every", "3"], {"detect_every_n_frames": 3}),
    (["--job-priority", "0"], {"job_priority": 0}),
    (["--device", "nvr"], {"device": "nvr"}),
    (["--streams-max", "2"], {"streams_max": 2}),
    (["--clip-sec", "0"], {"clip_sec": 0.0}),
    (["--suggest-weight", "10"], {"suggest_weight": 10}),
    (["--network-zone", "vpn"], {"network_zone": "vpn"}),
    (["--no-mask-clock"], {"mask_clock": False}),
    (["--mask-clock"], {"mask_clock": True}),
    (["--no-live-sound"], {"live_sound": False}),
    (["--do-not-process"], {"do_not_process": True}),
    (["--process"], {"do_not_process": False}),
    (["--sub", "rtsp://h/2"], {"sub": {"url": "rtsp://h/2"}}),
    (["--mask", DRAWN, "--mask", "0,0 1,1 0,1"], {"ignore_masks": [CORNERS, [[0, 0], [1, 1], [0, 1]]]}),
    (["--privacy-mask", DRAWN], {"privacy_masks": [CORNERS]}),
    (["--zone", f"the door={DRAWN}"], {"zones": [{"name": "the door", "points": CORNERS}]}),
]
OF_A_CHANGE = [
    (["--name", "庭"], {"name": "庭"}),
    (["--site", "north"], {"site": "north"}),
    (["--url", "rtsp://h/3"], {"source": {"url": "rtsp://h/3"}}),
    (["--on"], {"enabled": True}),
    (["--off"], {"enabled": False}),
    (["--no-sub"], {"sub": None}),
    (["--no-login"], {"credentials": None}),
    (["--no-masks"], {"ignore_masks": None}),
    (["--no-privacy-masks", "--no-zones"], {"privacy_masks": None, "zones": None}),
    (["--default", "interval-sec", "--default", "tls-pin"], {"polling_interval_sec": None, "tls_pin": None}),
    (["--default", "mask-clock"], {"mask_clock": None}),
    (["--default", "live-sound"], {"live_sound": None}),
]


@pytest.mark.parametrize(("options", "asked"), [*VALUES, *OF_A_CHANGE], ids=lambda one: str(one)[:40])
def test_a_camera_is_changed_in_what_is_given_and_in_nothing_else(
    api: Api, options: list[str], asked: dict[str, Any]
) -> None:
    api.answers[f"PATCH {PATH}"] = {"camera_id": "yard"}
    result = run("change", "yard", *options)
    assert result.output == "Changed yard.\n"
    assert api.asked == [(f"PATCH {PATH}", asked)]
    # It is what the API takes.
    CameraChange.model_validate(asked)


@pytest.mark.parametrize(("options", "asked"), VALUES, ids=lambda one: str(one)[:40])
def test_a_camera_is_added_with_all_that_it_can_be_changed_in(
    api: Api, options: list[str], asked: dict[str, Any]
) -> None:
    api.answers["POST /api/cameras"] = {"camera_id": "yard"}
    assert run("add", "yard", "rtsp://h/1", *options).output == "Added yard.\n"
    [(_, body)] = api.asked
    assert asked.items() <= body.items()
    assert len(body) == len(asked) + 4  # id, name, site and source


def test_every_value_of_the_api_has_its_option() -> None:
    reached = {name for _, asked in [*VALUES, *OF_A_CHANGE] for name in asked}
    assert reached == CameraChange.model_fields.keys() - {"hints"}  # which have a command of their own


def test_a_mistyped_password_is_corrected_without_showing_it(api: Api) -> None:
    api.answers[f"PATCH {PATH}"] = {"camera_id": "yard"}
    result = run("change", "yard", "--user", "viewer", "--password-stdin", stdin="pass word\n")
    assert api.asked == [(f"PATCH {PATH}", {"credentials": {"user": "viewer", "password": "pass word"}})]
    assert "pass word" not in result.output


@pytest.mark.parametrize(
    "options",
    [
        ["--user", "viewer"],
        ["--password-stdin"],
        ["--no-login", "--user", "viewer"],
        ["--no-masks", "--mask", DRAWN],
        ["--default", "interval-sec", "--interval-sec", "5"],
        ["--no-sub", "--sub", "rtsp://h/2"],
        ["--mask", "0.1;0.2"],
        ["--zone", DRAWN],
        ["--zone", f"={DRAWN}"],
    ],
    ids=" ".join,
)
def test_what_contradicts_itself_is_refused_before_anything_is_asked(api: Api, options: list[str]) -> None:
    assert run("change", "yard", *options, stdin="x\n").exit_code == Exit.REFUSED.value
    assert run("change", "yard").exit_code == Exit.USAGE.value
    assert api.asked == []


SHOWN = {
    "camera_id": "yard", "name": "庭", "site": "main", "enabled": True, "state": "ACTIVE", "state_reason": "",
    "worker_id": "w-1", "polling_interval_sec": 5.0, "do_not_process": False, "sub": None,
    "source": {"type": "rtsp", "url": "rtsp://h/1", "has_credentials": True},
    "caps": {"codec": "h264", "res": "1920x1080", "fps": 25.0, "sub": {"codec": "h264", "width": 640, "height": 360}},
    "last_probe_at": NOW_MS - 7_200_000,
    "latest": {"captured_at": NOW_MS - 12_000, "status": "ok"},
    "latest_picture": {"frame_uuid": "f", "captured_at": NOW_MS - 12_000},
    "own": {"transport": "udp", "mask_clock": False, "tls_pin": None, "ignore_masks": [CORNERS],
            "privacy_masks": None, "zones": [{"name": "door", "points": CORNERS}], "hints": {"preset": "shop"}},
    "stream_fault": {"stream": "sub", "cause": {"id": "no_video", "label_en": "no video", "label_ja": "映像なし"},
                     "message": "", "at": NOW_MS - 60_000, "over_at": NOW_MS},
    "health": {"state": "down", "since": NOW_MS - 90_000, "cause": {"label_en": "no route", "label_ja": "到達不能"},
               "issues": []},
}  # fmt: skip


def test_everything_about_a_camera_is_shown(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: NOW_MS / 1000)
    api.answers[f"GET {PATH}"] = SHOWN
    lines = run("show", "yard").output.splitlines()
    for line in (
        "address: rtsp://h/1 (with a login)",
        "worker: w-1",
        "health: down (no route), 90 s",
        "last look: 12 s",
        "stream fault: sub: no video, 60 s (over)",
        "sends: h264 1920x1080 25 fps (sub: h264 640x360)",
        "probed: 2 h",
        "transport: udp",
        "mask_clock: false",
        f"ignore_masks: {DRAWN}",
        f"zone: door={DRAWN}",
        "preset: shop",
    ):
        assert line in lines
    assert not [line for line in lines if line.startswith("tls_pin")]
    assert json.loads(run("show", "yard", "--json").output) == SHOWN


@pytest.mark.parametrize("grid", [False, True])
def test_the_newest_picture_is_saved_and_a_grid_leaves_its_proportions(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grid: bool
) -> None:
    monkeypatch.setattr("time.time", lambda: NOW_MS / 1000)
    api.answers[f"GET {PATH}"] = SHOWN
    result = run("picture", "yard", "-o", "yard.jpg", *(["--grid"] if grid else []))
    assert result.output == "Saved as yard.jpg; the picture is 12 s old.\n"
    assert api.asked[-1][0] == f"GET {PATH}/latest.jpg"
    with Image.open(tmp_path / "yard.jpg") as picture:
        assert picture.width * 48 == picture.height * 64
        assert (picture.width > 64) is grid


def test_the_list_shows_state_age_codec_and_interval(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: NOW_MS / 1000)
    good = {
        "camera_id": "a", "name": "入口カメラ", "enabled": True, "state": "ACTIVE", "state_reason": "",
        "polling_interval_sec": 5.0, "caps": {"codec": "h264", "res": "1920x1080", "fps": 25.0},
        "last_probe_at": NOW_MS - 7_200_000,
        "latest": {"captured_at": NOW_MS - 12_000, "status": "ok"},
        "own": {"hints": {"preset": "shop", "thresholds": {"person": 0.5}, "shelf_roi": None}},
        "health": {"state": "up", "since": 1, "cause": None, "issues": []},
    }  # fmt: skip
    bad = good | {
        "camera_id": "b", "name": "yard", "state": "PAUSED", "state_reason": "unauthorized",
        "caps": {"error": "wrong_password"},
        "own": None,
        "latest": {"captured_at": NOW_MS - 7_300_000, "status": "error", "error_code": "unauthorized"},
        "health": {"state": "down", "since": 1, "cause": {"label_en": "wrong password", "label_ja": "認証エラー"},
                   "issues": []},
    }  # fmt: skip
    fault = {"stream": "sub", "cause": {"label_en": "no video"}, "at": NOW_MS, "over_at": None}
    bad |= {"stream_fault": fault}
    off = good | {"camera_id": "c", "enabled": False, "latest": None, "own": {"hints": {"preset": "road"}}}
    api.answers["GET /api/cameras"] = {"cameras": [good, bad, off]}
    lines = run("list").output.splitlines()
    assert " ".join(lines[0].split()) == "ID NAME STATE HEALTH LAST LOOK CODEC SIZE FPS PROBED EVERY PRESET"
    assert lines[1].split() == [
        "a",
        "入口カメラ",
        "ACTIVE",
        "up",
        "12",
        "s",
        "h264",
        "1920x1080",
        "25",
        "2",
        "h",
        "5",
        "s",
        "shop",
        "+",
    ]
    assert "PAUSED (unauthorized)" in lines[2]
    assert "down (wrong password)" in lines[2]
    assert "down (wrong password) [sub: no video]" in lines[2]
    assert "2 h unauthorized" in lines[2]
    assert "2 h wrong_password" in lines[2]
    assert " OFF " in lines[3]
    assert [line.split()[-1] for line in lines[2:]] == ["-", "road"]
    # Columns line up although one name is twice as wide as it is long.
    assert len({columns_of(line[: line.index("5 s")]) for line in lines[1:]}) == 1


def test_hints_are_changed_by_what_is_given_and_kept_otherwise(api: Api) -> None:
    before = {"preset": "shop", "thresholds": {"person": 0.5}, "expected_objects": None, "shelf_roi": None}
    after = {**before, "preset": "parking", "expected_objects": ["car", "dog"]}
    api.answers |= {f"GET {PATH}": {"own": {"hints": before}}, f"PATCH {PATH}": {"own": {"hints": after}}}
    result = run("hints", "yard", "--preset", "parking", "--expect", "car", "--expect", "dog")
    assert api.asked[-1] == (f"PATCH {PATH}", {"hints": after})
    assert result.output == "preset: parking\nthresholds: person=0.5\nexpected_objects: car, dog\n"
    run("hints", "yard", "--clear", "--exclude", "Bird", "--threshold", "Human=0.7")
    assert api.asked[-1][1] == {"hints": {"excluded_objects": ["bird"], "thresholds": {"human": 0.7}}}
    run("hints", "yard", "--preset", "none")
    assert api.asked[-1][1] == {"hints": {**before, "preset": None}}


def test_a_name_in_hints_that_means_nothing_is_told(api: Api) -> None:
    hints = {"expected_objects": ["humann"]}
    api.answers[f"GET {PATH}"] = {"own": {"hints": None}}
    api.answers[f"PATCH {PATH}"] = {"own": {"hints": hints}, "unknown_hints": ["humann"]}
    result = run("hints", "yard", "--expect", "humann")
    assert result.exit_code == 0
    assert result.stdout == "expected_objects: humann\n"
    assert "note: nothing here is called 'humann'" in result.stderr
    told = json.loads(run("hints", "yard", "--expect", "humann", "--json").stdout)
    assert told == {"camera_id": "yard", "hints": hints, "unknown_hints": ["humann"]}


@pytest.mark.parametrize("own", [None, {"hints": None}])
def test_without_a_change_hints_are_shown(api: Api, own: object) -> None:
    api.answers[f"GET {PATH}"] = {"own": own}
    assert run("hints", "yard").output == "Nothing is said to the analyzer of yard.\n"
    assert json.loads(run("hints", "yard", "--json").output) == {
        "camera_id": "yard",
        "hints": None,
        "unknown_hints": [],
    }
    assert {call for call, _ in api.asked} == {f"GET {PATH}"}


@pytest.mark.parametrize("odd", ["person", "person=", "person=much", "=0.5", "person=1.5", "person=nan"])
def test_a_threshold_that_is_none_is_refused_before_anything_is_asked(api: Api, odd: str) -> None:
    result = run("hints", "yard", "--threshold", odd)
    assert result.exit_code != 0
    assert api.asked == []


def test_a_shelf_is_given_by_its_corners_or_a_file_and_shown_as_it_is_given(api: Api, tmp_path: Path) -> None:
    corners, text = [[0.1, 0.2], [0.5, 0.25], [1.0, 0.0]], "0.1,0.2 0.5,0.25 1,0"
    before = {"preset": "shop", "shelf_roi": None}
    after = {**before, "shelf_roi": corners}
    api.answers |= {f"GET {PATH}": {"own": {"hints": before}}, f"PATCH {PATH}": {"own": {"hints": after}}}
    assert run("hints", "yard", "--shelf", text).output == f"preset: shop\nshelf_roi: {text}\n"
    assert api.asked[-1] == (f"PATCH {PATH}", {"hints": after})
    file = tmp_path / "shelf.json"
    file.write_text(json.dumps(corners))
    run("hints", "yard", "--shelf-file", str(file))
    assert api.asked[-1][1] == {"hints": after}
    run("hints", "yard", "--shelf", "none")
    assert api.asked[-1][1] == {"hints": before}


@pytest.mark.parametrize("odd", ["", "0.1", "0.1,0.2,0.3", "a,b", "0.1;0.2"])
def test_corners_that_are_none_are_refused_before_anything_is_asked(api: Api, odd: str) -> None:
    result = run("hints", "yard", "--shelf", odd)
    assert (result.exit_code, api.asked) == (Exit.REFUSED.value, [])
    assert "0.1,0.2 0.5,0.2" in result.output


@pytest.mark.parametrize("odd", ["", "{}", "[]", "[[0.1]]", '[["0", "1"]]', "[[true, 1]]", "[0.1, 0.2]"])
def test_a_file_without_corners_is_refused_by_its_name(api: Api, tmp_path: Path, odd: str) -> None:
    file = tmp_path / "shelf.json"
    file.write_text(odd)
    result = run("hints", "yard", "--shelf-file", str(file))
    assert (result.exit_code, api.asked) == (Exit.REFUSED.value, [])
    assert "shelf.json" in result.output
    assert run("hints", "yard", "--shelf", "none", "--shelf-file", str(file)).exit_code == Exit.REFUSED.value


def test_the_presets_are_listed_in_both_languages(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = run("presets").output.splitlines()
    assert lines[0].split() == ["PRESET", "PLACE", "EXPECTED", "BY", "DAY", "EXCLUDED"]
    assert [line.split()[0] for line in lines[1:]] == list(Preset)
    assert [one["preset"] for one in json.loads(run("presets", "--json").output)] == list(Preset)
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    assert "駐車場" in run("presets").output


def test_no_cameras_are_said_apart(api: Api) -> None:
    api.answers["GET /api/cameras"] = {"cameras": []}
    result = run("list")
    assert result.stdout == ""
    assert "camera add" in result.stderr


def test_removing_as_json(api: Api) -> None:
    api.answers["DELETE /api/cameras/a"] = {}
    assert json.loads(run("remove", "a", "--yes", "--json").output) == {"removed": "a"}


# -- probe and test


def test_a_probe_says_what_the_camera_sends_and_keeps_its_picture(api: Api, tmp_path: Path) -> None:
    api.errand("/api/probes", has_picture=True)
    options = ["--user", "viewer", "--password-stdin", "--picture", "shown.jpg"]
    result = run("probe", "rtsp://192.0.2.1/a", *options, stdin="pass word\n")
    assert result.exit_code == 0, result.output
    assert "H.265 2560x1440, 25 fps, a keyframe every 2 s, 4100 kbit/s, with sound, over TCP" in result.output
    assert "connect 9 ms; 10 ms in all" in result.output
    assert "Picture: shown.jpg" in result.output
    assert (tmp_path / "shown.jpg").read_bytes().startswith(b"\xff\xd8")
    path, body = api.asked[0]
    assert path == "POST /api/probes"
    assert body["source"] == {"url": "rtsp://192.0.2.1/a", "user": "viewer", "password": "pass word"}
    assert "pass word" not in result.output


def test_a_picture_without_a_name_goes_to_a_new_file(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    api.errand("/api/probes", has_picture=True)
    assert run("probe", "rtsp://192.0.2.1/a").exit_code == 0
    (picture,) = tmp_path.glob("camserver-probe-*.jpg")
    assert picture.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("locale", "words"), [("C.UTF-8", "Wrong password."), ("ja_JP.UTF-8", "パスワードが違います。")]
)
def test_what_is_wrong_is_said_in_the_terminals_language(
    api: Api, monkeypatch: pytest.MonkeyPatch, locale: str, words: str
) -> None:
    monkeypatch.setenv("LC_ALL", locale)
    api.errand("/api/probes", state="failed", result=BAD)
    result = run("probe", "rtsp://192.0.2.1/a")
    assert result.exit_code == Exit.CHECK_FAILED
    assert words in result.stderr


def test_a_failed_probe_as_json_is_whole_and_has_its_exit_code(api: Api) -> None:
    api.errand("/api/probes", state="failed", result=BAD)
    result = run("probe", "rtsp://192.0.2.1/a", "--json")
    assert result.exit_code == Exit.CHECK_FAILED
    said = json.loads(result.output)
    assert said["ok"] is False
    assert said["probes"][0]["result"]["cause"] == "wrong_password"


@pytest.mark.parametrize("cause", ["wrong_password", "needs_login", "no_route"])
@pytest.mark.parametrize("command", ["probe", "test"])
def test_what_is_wrong_with_the_whole_camera_is_not_tried_with_its_other_stream(
    api: Api, command: str, cause: str
) -> None:
    api.answers["GET /api/cameras/yard"] = {"camera_id": "yard", "sub": {"url": "rtsp://h/2"}}
    api.errand("/api/cameras/yard/probe", camera_id="yard", state="failed", result=BAD | {"cause": cause})
    result = run(command, "yard")
    assert result.exit_code == Exit.CHECK_FAILED
    assert [path for path, _ in api.asked if path.startswith("POST")] == ["POST /api/cameras/yard/probe"]


def test_a_camera_is_probed_with_both_streams(api: Api) -> None:
    api.answers["GET /api/cameras/yard"] = {"camera_id": "yard", "sub": {"url": "rtsp://h/2"}}
    api.errand("/api/cameras/yard/probe", camera_id="yard")
    api.errand("/api/cameras/yard/probe", camera_id="yard", result=GOOD | {"stream_kind": "sub"})
    result = run("probe", "yard", "--seconds", "2")
    assert "yard (main): H.265" in result.output
    assert "yard (sub): H.265" in result.output
    bodies = [body for path, body in api.asked if path.startswith("POST")]
    assert bodies == [{"stream": "main", "measure_sec": 2.0}, {"stream": "sub", "measure_sec": 2.0}]


def test_a_test_measures_nothing_but_time(api: Api) -> None:
    api.answers["GET /api/cameras/yard"] = {"camera_id": "yard", "sub": None}
    api.errand("/api/cameras/yard/probe", camera_id="yard")
    assert "10 ms in all" in run("test", "yard").output
    assert [body for path, body in api.asked if path.startswith("POST")] == [{"stream": "main", "measure_sec": 0}]


def test_a_camera_that_answers_elsewhere_is_offered_to_be_moved(api: Api) -> None:
    api.answers["GET /api/cameras/yard"] = {"camera_id": "yard", "sub": None}
    result = BAD | {"cause": "no_answer", "seen_at": "192.0.2.33"}
    api.errand("/api/cameras/yard/probe", camera_id="yard", state="failed", result=result)
    shown = run("test", "yard")
    assert shown.exit_code == Exit.CHECK_FAILED
    assert "It answers at 192.0.2.33 now" in shown.output
    assert "camserver camera rediscover yard --apply" in shown.output


def test_another_device_at_the_address_is_told(api: Api) -> None:
    api.answers["GET /api/cameras/yard"] = {"camera_id": "yard", "sub": None}
    api.errand("/api/cameras/yard/probe", camera_id="yard", result=GOOD | {"other_reference": "urn:uuid:2"})
    assert "--renew" in run("probe", "yard").output
    api.errand("/api/cameras/yard/probe", camera_id="yard")
    assert "--renew" not in run("probe", "yard", "--renew").output
    assert [body.get("renew") for path, body in api.asked if path.startswith("POST")] == [None, True]


def test_a_cameras_login_is_its_own(api: Api) -> None:
    assert run("probe", "yard", "--user", "x").exit_code == Exit.USAGE
    assert run("probe", "yard", "--here").exit_code == Exit.USAGE


def test_without_a_server_it_says_what_to_do(api: Api) -> None:
    api.is_there = False
    result = run("probe", "rtsp://192.0.2.1/a")
    assert result.exit_code == Exit.SERVER_AWAY
    assert "camserver up" in result.stderr


def test_an_address_can_be_tried_from_here(api: Api, tmp_path: Path) -> None:
    api.is_there = False
    (tmp_path / "a.jpg").write_bytes(jpeg(scene=0, size=(320, 240)))
    result = run("probe", f"file://{tmp_path}/a.jpg", "--here", "--picture", "out.jpg")
    assert result.exit_code == 0, result.output
    assert "JPEG 320x240" in result.output
    assert (tmp_path / "out.jpg").exists()
    refused = run("probe", "rtsp://viewer:secret-word@127.0.0.1:1/a", "--here")
    assert refused.exit_code == Exit.CHECK_FAILED
    assert "closed" in refused.stderr
    assert "secret-word" not in refused.output + refused.stderr


# -- discover and rediscover


DEVICE = {
    "reference": "urn:uuid:1", "address": "192.0.2.10", "service_url": "http://192.0.2.10/x", "name": "Entrance",
    "hardware": "DS-1", "location": "", "mac": "",
}  # fmt: skip


def test_devices_are_listed_with_the_cameras_they_are(api: Api) -> None:
    other = DEVICE | {"reference": "urn:uuid:2", "address": "192.0.2.11", "name": ""}
    api.errand("/api/discovery", result={"devices": [DEVICE, other]})
    api.answers["GET /api/cameras"] = {
        "cameras": [
            {"camera_id": "gate", "source": {"url": "rtsp://192.0.2.99/1"}, "caps": {"onvif": DEVICE}},
            {"camera_id": "yard", "source": {"url": "rtsp://192.0.2.11:8554/1"}, "caps": None},
        ]
    }  # fmt: skip
    lines = run("discover", "--host", "192.0.2.11").output.splitlines()
    assert lines[1].split() == ["192.0.2.10", "Entrance", "DS-1", "gate", "urn:uuid:1"]
    assert lines[2].split() == ["192.0.2.11", "-", "DS-1", "yard", "urn:uuid:2"]
    assert api.asked[0][1] == {"site": None, "hosts": ["192.0.2.11"], "wait_sec": 4.0}


def test_the_streams_of_a_device_with_how_to_add_it(api: Api) -> None:
    def profile(token: str, width: int) -> dict[str, Any]:
        return {"token": token, "name": "", "codec": "H264", "width": width, "height": 9, "fps": 15.0,
                "stream_url": f"rtsp://192.0.2.10/{token}"}  # fmt: skip

    device = {"manufacturer": "ACME", "model": "X", "firmware": "1", "serial": "2"}
    result = {
        "device": device,
        "profiles": [profile("big", 1920), profile("small", 640)],
        "main": "big",
        "sub": "small",
    }
    api.errand("/api/discovery", result=result)
    api.answers["GET /api/cameras"] = {"cameras": []}
    shown = run("discover", "--device", "192.0.2.10", "--user", "u", "--password-stdin", stdin="pw\n")
    assert "camera add ID 'rtsp://192.0.2.10/big' --sub 'rtsp://192.0.2.10/small'" in shown.output
    assert api.asked[0][1]["device"] == {"url": "192.0.2.10", "user": "u", "password": "pw"}


def test_a_camera_that_moved_is_shown_and_only_changed_when_asked(api: Api) -> None:
    api.answers["GET /api/cameras/yard"] = {"camera_id": "yard", "source": {"url": "rtsp://192.0.2.9/1"}}
    api.errand("/api/cameras/yard/rediscover", result={"devices": [DEVICE]})
    assert "192.0.2.10; its address stays" in run("rediscover", "yard").output
    api.errand("/api/cameras/yard/rediscover", result={"devices": [DEVICE]})
    api.errand("/api/cameras/yard/probe")
    api.answers["POST /api/cameras/yard/move"] = {}
    assert "its address is changed" in run("rediscover", "yard", "--apply").output
    assert api.asked[-1] == ("POST /api/cameras/yard/move", {"errand_uuid": "e-1"})


def test_a_camera_that_is_not_proven_to_be_there_does_not_move(api: Api) -> None:
    api.answers["GET /api/cameras/yard"] = {"camera_id": "yard", "source": {"url": "rtsp://192.0.2.9/1"}}
    api.errand("/api/cameras/yard/rediscover", result={"devices": [DEVICE]})
    api.errand("/api/cameras/yard/probe", state="failed", result=BAD)
    result = run("rediscover", "yard", "--apply")
    assert result.exit_code == Exit.CHECK_FAILED
    assert not [path for path, _ in api.asked if path.endswith("/move")]


def test_a_camera_that_nobody_sees(api: Api) -> None:
    api.errand("/api/cameras/yard/rediscover", result={"devices": []})
    result = run("rediscover", "yard")
    assert result.exit_code == Exit.CHECK_FAILED
    assert "reference" in result.stderr


# -- import


def imported(action: str = "added", problems: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    camera = {"camera_id": "cam_1", "where": "line 2", "action": action, "message": ""}
    return {"cameras": [camera], "problems": problems or [], "notes": [{"where": "x", "message": "a note"}]}


@pytest.mark.parametrize(
    "encode", [str.encode, lambda text: text.encode("cp932"), lambda text: text.encode("utf-8-sig")]
)
def test_a_list_is_sent_whatever_spreadsheet_wrote_it(
    api: Api, tmp_path: Path, encode: Callable[[str], bytes]
) -> None:
    text = "camera_id,name,url\ncam_1,入口,rtsp://h/1\n"
    (tmp_path / "a.csv").write_bytes(encode(text))
    api.answers["POST /api/imports"] = imported()
    result = run("import", "a.csv", "--skip-bad")
    assert result.exit_code == 0
    assert "added cam_1 (line 2)" in result.output
    assert "a note" in result.stderr
    expected = {"format": "csv", "text": text, "site": None, "dry_run": False, "skip_bad": True}
    assert api.asked == [("POST /api/imports", expected)]


def test_frigate_gets_only_the_variables_it_names(api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRIGATE_RTSP_PASSWORD", "pw")
    monkeypatch.setenv("FRIGATE_OTHER", "x")
    (tmp_path / "config.yml").write_text("cameras: {a: '{FRIGATE_RTSP_PASSWORD} {FRIGATE_UNSET}'}")
    api.answers["POST /api/imports"] = imported("add")
    assert "would add cam_1" in run("import", "config.yml", "--dry-run").output
    assert api.asked[0][1]["environment"] == {"FRIGATE_RTSP_PASSWORD": "pw"}
    run("import", "config.yml", "--dry-run", "--zones")
    assert [body["zones"] for _, body in api.asked] == [False, True]


def test_what_is_wrong_with_a_file_is_shown_by_place(api: Api, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("camera_id,url\n")
    problem = {"where": "line 3, column url", "line": 3, "column": "url", "message": "It is empty."}
    api.answers["POST /api/imports"] = imported("add", [problem])
    result = run("import", "a.csv")
    assert result.exit_code == Exit.CHECK_FAILED
    assert "line 3, column url: It is empty." in result.stderr
    as_json = run("import", "a.csv", "--json")
    assert as_json.exit_code == Exit.CHECK_FAILED
    assert json.loads(as_json.output)["problems"] == [problem]


def test_files_that_are_none(api: Api, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"\x00")
    assert run("import", "a.bin").exit_code == Exit.USAGE
    (tmp_path / "a.csv").write_bytes(b"\xff\xff\x81")
    assert run("import", "a.csv").exit_code == Exit.REFUSED
    (tmp_path / "b.csv").write_bytes(b"x" * 1_000_000)
    assert run("import", "b.csv").exit_code == Exit.REFUSED


# -- how things are shown


def test_the_words_name_the_same_facts_in_both_languages() -> None:
    def named(text: str) -> set[str]:
        return {name for _, name, _, _ in string.Formatter().parse(text) if name}

    for key, phrase in camera_words._WORDS.items():
        assert phrase.ja
        assert named(phrase.ja) == named(phrase.en), key
    for phrase in camera_words._HEADS.values():
        assert phrase.ja.count("|") == phrase.en.count("|")


def test_a_japanese_terminal_gets_japanese(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    api.answers["GET /api/cameras/yard"] = {"camera_id": "yard", "sub": None}
    api.errand("/api/cameras/yard/probe", camera_id="yard")
    shown = run("probe", "yard").output
    assert "キーフレーム間隔 2 秒, 4100 kbit/s, 音声あり, TCP で受信" in shown
    assert "接続 9 ms; 計 10 ms" in shown


def test_tables_ages_and_languages() -> None:
    assert table(("A", "B"), [("入口", "x"), ("yard", "y")]) == "A     B\n入口  x\nyard  y"
    assert columns_of("か\u3099") == 2
    shown = [age(NOW_MS - seconds * 1000, NOW_MS) for seconds in (0, 119, 120, 7_199, 7_200, 172_800)]
    assert shown == ["0 s", "119 s", "2 min", "119 min", "2 h", "2 d"]
    assert age(None, NOW_MS) == "-"
    assert age(NOW_MS + 5_000, NOW_MS) == "0 s"
    assert reader_language({}) == "en"
    assert reader_language({"LANG": "ja_JP.UTF-8"}) == "ja"
    assert reader_language({"LANG": "ja_JP.UTF-8", "LC_ALL": "C"}) == "en"
