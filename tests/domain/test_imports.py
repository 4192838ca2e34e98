from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.imports import COLUMNS, PROBLEMS_MAX, Imported, read_csv, without_login
from camserver.domain.presets import Preset

HEADER = "camera_id,name,url,user,password,polling_interval_sec\n"


def problems(imported: Imported) -> list[tuple[int | None, str | None]]:
    assert all(problem.said.ja and problem.said.en for problem in imported.problems)
    return [(problem.line, problem.column) for problem in imported.problems]


def test_a_list_of_cameras() -> None:
    text = (
        "camera_id,name,site,url,sub_url,user,password,polling_interval_sec,transport,tls_pin,rotation,device,"
        "streams_max,clip_sec,suggest_weight,mask_clock,live_sound,do_not_process,preset\n"
        'cam_1,"入口, 北",main,rtsp://10.0.0.9/1,rtsp://10.0.0.9/2,viewer," p,w ",5,UDP,'
        + "AB:"
        * 31
        + "ab,90,nvr1,2,0,8,no,no,yes,Parking\n"
        "\n# a remark\n"
        "cam_2,,,rtsp://10.0.0.10/1\n"
    )
    imported = read_csv(text)
    assert not imported.problems
    first, second = imported.cameras
    assert (first.camera_id, first.name, first.site) == ("cam_1", "入口, 北", "main")
    assert (first.url, first.sub_url) == ("rtsp://10.0.0.9/1", "rtsp://10.0.0.9/2")
    assert (first.user, first.password) == ("viewer", " p,w ")
    assert first.values == {
        "polling_interval_sec": 5.0,
        "transport": "udp",
        "tls_pin": "ab" * 32,
        "rotation": 90,
        "device": "nvr1",
        "streams_max": 2,
        "clip_sec": 0.0,
        "suggest_weight": 8,
        "mask_clock": False,
        "live_sound": False,
        "do_not_process": True,
        "hints": {"preset": "parking"},
    }
    assert (second.camera_id, second.name, second.site, second.values) == ("cam_2", "cam_2", None, {})
    assert second.where == "line 5"
    assert "p,w" not in repr(imported)
    assert "viewer" not in repr(imported)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_separators_line_ends_and_a_byte_order_mark(separator: str, newline: str) -> None:
    text = f"\ufeffcamera_id{separator}URL{newline}cam_1{separator}rtsp://h/1{newline}"
    assert [camera.url for camera in read_csv(text).cameras] == ["rtsp://h/1"]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", [(1, None)]),
        ("camera_id,url,colour\n", [(1, "colour")]),
        ("camera_id,name\n", [(1, "url")]),
        ("camera_id,url,url\n", [(1, "url")]),
        (HEADER + "cam_1,a,rtsp://h/1\ncam_1,b,rtsp://h/2\n", [(3, "camera_id")]),
        (HEADER + "cam 1,a,rtsp://h/1\n", [(2, "camera_id")]),
        (HEADER + ",a,\n", [(2, "camera_id"), (2, "url")]),
        (HEADER + "cam_1,a,rtsp://h/1,,,soon\n", [(2, "polling_interval_sec")]),
        (HEADER + "cam_1,a,rtsp://h/1,,,nan\n", [(2, "polling_interval_sec")]),
        (HEADER + "cam_1,a,rtsp://h/1,,,0\n", [(2, "polling_interval_sec")]),
        (HEADER + "cam_1,a,rtsp://h/1,,,5,6\n", [(2, None)]),
        (HEADER + 'cam_1,"a\nb",rtsp://h/1\ncam_2,b,\n', [(4, "url")]),
        (HEADER + 'cam_1,"a" b,rtsp://h/1\n', [(2, None)]),
        (HEADER + f"cam_1,a,rtsp://h/{'x' * 3000}\n", [(2, "url")]),
        ("camera_id,url,rotation,streams_max,tls_pin\ncam_1,rtsp://h/1,45,1.5,abc\n",
         [(2, "tls_pin"), (2, "rotation"), (2, "streams_max")]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_by_line_and_column(text: str, wrong: list[tuple[int, str | None]]) -> None:
    assert problems(read_csv(text)) == wrong


def test_an_unknown_preset_names_the_known_ones() -> None:
    (problem,) = read_csv("camera_id,url,preset\ncam_1,rtsp://h/1,garden\n").problems
    assert (problem.line, problem.column) == (2, "preset")
    for preset in Preset:
        assert preset in problem.said.ja
        assert preset in problem.said.en


def test_the_good_lines_of_a_bad_file_are_known() -> None:
    imported = read_csv(HEADER + "cam_1,a,rtsp://h/1\ncam_2,b,\n")
    assert [camera.camera_id for camera in imported.cameras] == ["cam_1"]
    assert problems(imported) == [(3, "url")]


def test_a_file_without_end_is_left() -> None:
    imported = read_csv(HEADER + "bad id,a,\n" * 1000)
    assert len(imported.problems) <= PROBLEMS_MAX + 3


@given(st.text(max_size=300))
def test_no_text_breaks_it(text: str) -> None:
    read_csv(text)
    read_csv(",".join(COLUMNS) + "\n" + text)


@given(st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=1, max_size=20))
def test_a_login_is_taken_out_of_an_address_however_it_is_written(password: str) -> None:
    address = "rtsp://10.0.0.9:554/live"
    assert without_login(f"rtsp://user:{quote(password, safe='')}@10.0.0.9:554/live") == (address, "user", password)
    if "%" not in password:
        assert without_login(f"rtsp://user:{password}@10.0.0.9:554/live") == (address, "user", password)


def test_an_address_without_a_login_stays() -> None:
    assert without_login("rtsp://10.0.0.9/live?a=b") == ("rtsp://10.0.0.9/live?a=b", None, None)
    assert without_login("rtsp://user@10.0.0.9/live") == ("rtsp://10.0.0.9/live", "user", "")
    assert without_login("rtsp://user:50%@10.0.0.9/live") == ("rtsp://10.0.0.9/live", "user", "50%")
