from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.import_frigate import placeholders, read_frigate
from camserver.domain.imports import Imported

ENVIRONMENT = {"FRIGATE_RTSP_USER": "viewer", "FRIGATE_RTSP_PASSWORD": "p%40ss%2Fw:rd"}
CONFIG = """
mqtt: {host: mqtt.lan}
go2rtc:
  streams:
    back:
      - rtsp://{FRIGATE_RTSP_USER}:{FRIGATE_RTSP_PASSWORD}@10.0.10.10:554/cam/realmonitor?channel=1&subtype=0#backchannel=0
      - "ffmpeg:back#audio=opus"
    back_sub: rtsp://{FRIGATE_RTSP_USER}:{FRIGATE_RTSP_PASSWORD}@10.0.10.10:554/cam/realmonitor?channel=1&subtype=1
    porch: ["ffmpeg:porch_raw#video=h264"]
    porch_raw: ["rtspx://10.0.10.12:7441/token"]
cameras:
  back:
    friendly_name: 裏口
    ffmpeg:
      inputs:
        - path: rtsp://127.0.0.1:8554/back?video&audio
          input_args: preset-rtsp-restream
          roles: [record]
        - path: rtsp://127.0.0.1:8554/back_sub
          roles: [detect, audio]
    detect: {width: 1280, height: 720, fps: 5}
    motion:
      mask:
        - 0,0,640,0,640,72,0,72
        - 0.5,0.5,1,0.5,1,1
    zones:
      yard:
        coordinates: 0.1,0.2,0.3,0.2,0.3,0.4
    objects: {mask: "0,0,1,0,1,1"}
  side:
    ffmpeg:
      input_args: preset-rtsp-udp
      inputs:
        - path: rtsp://user:raw@/?#pw@10.0.10.11/live
          roles: [detect, record]
  porch:
    ffmpeg: {inputs: [{path: "rtsp://127.0.0.1:8554/porch", roles: [detect]}]}
  old:
    enabled: false
    ffmpeg: {inputs: [{path: "rtsp://10.0.10.13/live", roles: [detect]}]}
"""


def read(text: str, environment: dict[str, str] | None = None) -> Imported:
    return read_frigate(yaml.safe_load(text), ENVIRONMENT if environment is None else environment)


def test_a_configuration_is_taken_over() -> None:
    imported = read(CONFIG)
    assert not imported.problems
    back, side, porch = imported.cameras
    assert (back.camera_id, back.name) == ("back", "裏口")
    assert back.url == "rtsp://10.0.10.10:554/cam/realmonitor?channel=1&subtype=0"
    assert back.sub_url == "rtsp://10.0.10.10:554/cam/realmonitor?channel=1&subtype=1"
    # go2rtc wants passwords escaped, in variables as well.
    assert (back.user, back.password) == ("viewer", "p@ss/w:rd")
    assert back.values["ignore_masks"] == [
        [[0, 0], [0.5, 0], [0.5, 0.1], [0, 0.1]],
        [[0.5, 0.5], [1, 0.5], [1, 1]],
    ]
    assert "zones" not in back.values, "they would make the camera blind outside of them"
    [with_zones, *_] = read_frigate(yaml.safe_load(CONFIG), ENVIRONMENT, with_zones=True).cameras
    assert with_zones.values["zones"] == [{"name": "yard", "points": [[0.1, 0.2], [0.3, 0.2], [0.3, 0.4]]}]
    assert (side.url, side.sub_url, side.user, side.password) == ("rtsp://10.0.10.11/live", None, "user", "raw@/?#pw")
    assert side.values == {"transport": "udp"}
    assert porch.url == "rtsps://10.0.10.12:7441/token"
    notes = {note.where for note in imported.notes}
    assert notes == {"cameras.back.zones", "cameras.back.objects.mask", "cameras.old", "go2rtc.streams.porch_raw"}
    assert "w:rd" not in repr(imported)


def test_what_it_asks_of_the_environment_is_known() -> None:
    assert placeholders(CONFIG) == {"FRIGATE_RTSP_USER", "FRIGATE_RTSP_PASSWORD"}


def test_a_variable_in_an_input_holds_the_password_as_it_is() -> None:
    text = "cameras: {a: {ffmpeg: {inputs: [{path: 'rtsp://u:{FRIGATE_PW}@10.0.0.1/x', roles: [detect]}]}}}"
    [camera] = read(text, {"FRIGATE_PW": "p@ss/w:rd%41"}).cameras
    assert (camera.url, camera.user, camera.password) == ("rtsp://10.0.0.1/x", "u", "p@ss/w:rd%41")


def test_variables_of_the_file_itself_and_a_restream_with_its_own_login() -> None:
    document = {
        "environment_vars": {"FRIGATE_PW": "of-the-file"},
        "go2rtc": {
            "rtsp": {"username": "x"},
            "streams": {"yard": "ffmpeg:rtsp://u:{FRIGATE_PW}@10.0.0.1/x#video=copy"},
        },
        "cameras": {"a": {"ffmpeg": one_input("rtsp://x:y@127.0.0.1:8554/yard")}},
    }
    [camera] = read_frigate(document, {}).cameras
    assert (camera.url, camera.user, camera.password) == ("rtsp://10.0.0.1/x", "u", "of-the-file")
    [camera] = read_frigate(document, {"FRIGATE_PW": "of-the-shell"}).cameras
    assert camera.password == "of-the-shell"


def test_a_whole_address_may_be_in_a_variable() -> None:
    text = "cameras: {a: {ffmpeg: {inputs: [{path: '{FRIGATE_CAM}', roles: [detect]}]}}}"
    [camera] = read(text, {"FRIGATE_CAM": "rtsp://u:p%40w@10.0.0.1/x"}).cameras
    assert (camera.url, camera.user, camera.password) == ("rtsp://10.0.0.1/x", "u", "p@w")


@pytest.mark.parametrize("mask", ["0.1,0.1,0.9,0.1,0.9,0.9", ["0.1,0.1", "0.9,0.1", "0.9,0.9"],
                                  {"tree": {"coordinates": "0.1,0.1,0.9,0.1,0.9,0.9"}}])  # fmt: skip
def test_masks_as_the_versions_write_them(mask: object) -> None:
    document = {"cameras": {"a": {"ffmpeg": one_input("rtsp://h/1"), "motion": {"mask": mask}}}}
    [camera] = read_frigate(document, {}).cameras
    assert camera.values == {"ignore_masks": [[[0.1, 0.1], [0.9, 0.1], [0.9, 0.9]]]}


def one_input(path: object) -> dict[str, Any]:
    return {"inputs": [{"path": path, "roles": ["detect"]}]}


@pytest.mark.parametrize(
    ("camera", "where"),
    [
        ({}, "cameras.a.ffmpeg.inputs"),
        ({"ffmpeg": one_input(None)}, "cameras.a.ffmpeg.inputs[0].path"),
        ({"ffmpeg": one_input("rtsp://u:{FRIGATE_UNSET}@h/1")}, "cameras.a.ffmpeg.inputs[0].path"),
        ({"ffmpeg": one_input("rtsp://127.0.0.1:8554/none")}, "cameras.a.ffmpeg.inputs[0].path"),
        ({"ffmpeg": one_input("rtsp://127.0.0.1:8554/ring")}, "go2rtc.streams.ring"),
        ({"ffmpeg": one_input("rtsp://127.0.0.1:8554/exec")}, "go2rtc.streams.exec"),
        ({"ffmpeg": one_input("exec:rm -rf /")}, "cameras.a.ffmpeg.inputs[0].path"),
        ({"ffmpeg": one_input("/dev/video0")}, "cameras.a.ffmpeg.inputs[0].path"),
        ({"ffmpeg": one_input("http://h/flv?app=bcs&stream=x")}, "cameras.a.ffmpeg.inputs[0].path"),
        ({"ffmpeg": one_input("rtsp://h/1"), "motion": {"mask": "1,2,3"}}, "cameras.a.motion.mask"),
        ({"ffmpeg": one_input("rtsp://h/1"), "motion": {"mask": "0,0,100,0,100,100"}}, "cameras.a.motion.mask"),
        ({"ffmpeg": one_input("rtsp://h/1"), "zones": {"z": {"coordinates": "a,b"}}}, "cameras.a.zones.z"),
    ],
)
def test_what_can_not_be_taken_over_is_named(camera: dict[str, Any], where: str) -> None:
    streams = {"ring": ["rtsp://127.0.0.1:8554/ring"], "exec": ["exec:ffmpeg -i x"]}
    imported = read_frigate({"cameras": {"a": camera}, "go2rtc": {"streams": streams}}, {}, with_zones=True)
    assert [problem.where for problem in imported.problems] == [where]
    assert not imported.cameras
    assert imported.problems[0].said.ja


def test_streams_with_different_logins_can_not_be_one_camera() -> None:
    inputs = [
        {"path": "rtsp://a:1@h/1", "roles": ["record"]},
        {"path": "rtsp://b:2@h/2", "roles": ["detect"]},
    ]
    imported = read_frigate({"cameras": {"a": {"ffmpeg": {"inputs": inputs}}}}, {})
    [camera] = imported.cameras
    assert (camera.url, camera.sub_url, camera.user) == ("rtsp://h/1", None, "a")
    assert [note.where for note in imported.notes] == ["cameras.a.ffmpeg.inputs"]


@pytest.mark.parametrize("document", [None, [], "x", {}, {"cameras": None}, {"cameras": []}])
def test_something_else_than_a_configuration(document: object) -> None:
    assert [problem.where for problem in read_frigate(document, {}).problems] == ["cameras"]


WORDS = ("cameras", "ffmpeg", "inputs", "path", "roles", "detect", "motion", "mask", "zones", "coordinates", "go2rtc")
ADDRESSES = ("rtsp://h/1", "rtsp://127.0.0.1:8554/a", "{FRIGATE_X}", "0,0,1,0,1,1", "ffmpeg:a#video")
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from(ADDRESSES)
DOCUMENTS = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from((*WORDS, "streams", "a")), inner),
    max_leaves=30,
)


@given(DOCUMENTS, DOCUMENTS)
def test_no_document_breaks_it(camera: object, streams: object) -> None:
    read_frigate(camera, {})
    imported = read_frigate({"cameras": {"a": camera}, "go2rtc": {"streams": streams}}, {"FRIGATE_X": "rtsp://h/1"})
    assert len(imported.cameras) + len(imported.problems) <= 1


def one_camera(path: str, **top: object) -> Imported:
    camera = {"ffmpeg": {"inputs": [{"path": path, "roles": ["detect"]}]}}
    return read_frigate({**top, "cameras": {"a": camera}}, {})


def test_variables_of_the_file_are_single_values_and_short() -> None:
    """A list that stands for gigabytes is not written out, and what is long is not repeated in each address."""

    class Unwritten(list[object]):
        def __str__(self) -> str:
            raise AssertionError("it was written out")

    path = "rtsp://10.0.0.9/{FRIGATE_X}"
    assert [one.url for one in one_camera(path, environment_vars={"FRIGATE_X": 5}).cameras] == ["rtsp://10.0.0.9/5"]
    for value in (Unwritten(), {"a": "b"}, "x" * 1025, None):
        [problem] = one_camera(path, environment_vars={"FRIGATE_X": value}).problems
        assert "FRIGATE_X" in problem.said.en
    [problem] = one_camera(path * 20, environment_vars={"FRIGATE_X": "x" * 1000}).problems
    assert "2048" in problem.said.en


def test_long_lists_in_a_file_are_not_gone_through_for_each_camera() -> None:
    """Only their beginnings are looked at: counted by what is asked of the words."""
    looked = 0

    class Word(str):
        def removeprefix(self, prefix: str, /) -> str:
            nonlocal looked
            looked += 1
            return super().removeprefix(prefix)

    words = [Word("none")] * 10_000
    inputs = [{"path": "rtsp://127.0.0.1:8554/s", "roles": ["detect"]}]
    file = {
        "go2rtc": {"streams": {"s": words}},
        "cameras": {str(n): {"ffmpeg": {"inputs": inputs}} for n in range(100)},
    }
    assert len(read_frigate(file, {}).problems) == 100
    assert looked < 100 * 100
    args = ["-x"] * 100_000 + ["-rtsp_transport", "udp"]
    [camera] = one_camera("rtsp://10.0.0.9/1", ffmpeg={"input_args": args}).cameras
    assert not camera.values
