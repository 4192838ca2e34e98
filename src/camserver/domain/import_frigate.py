"""Cameras from a configuration of Frigate, already read from its YAML.

Taken over: the inputs by their roles (record is the main stream, detect the sub stream), logins in addresses,
`{FRIGATE_…}` placeholders, streams that go through go2rtc, the transport, motion masks and zones. Everything else
(objects, recording, hardware) has no counterpart and is left. What can't be taken over is said, never guessed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from camserver.domain.imports import (
    CAMERA_ID_FORM,
    CAMERAS_MAX,
    CELL_MAX_CHARS,
    Imported,
    Problem,
    WantedCamera,
    without_login,
)
from camserver.domain.phrases import Phrase
from camserver.domain.polygons import POINTS_MAX, POLYGONS_MAX, ZONE_NAME_MAX_CHARS

# A stream of go2rtc may name another one; in a ring it never ends.
HOPS_MAX = 8
# Of the sources of one stream only so many are looked at, and of what FFmpeg is told only so much.
SOURCES_MAX = 16
ARGS_MAX = 200
ARGS_MAX_CHARS = 4_096
VARIABLE_MAX_CHARS = 1_024
_PLACEHOLDER = re.compile(r"\$?\{(FRIGATE_[A-Za-z0-9_]{1,100})\}")
_RESTREAM = re.compile(
    r"^rtsp://(?:[^@/]*@)?(?:127\.0\.0\.1|localhost|\[::1\]|go2rtc|frigate):8554/([^?#]+)", re.IGNORECASE
)
_SCHEME = re.compile(r"^([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_WIDTH_HEIGHT = re.compile(r"^[0-9]{1,5}$")

Polygon = list[list[float]]


class _Wrong(Exception):
    def __init__(self, where: str, ja: str, en: str) -> None:
        self.problem = Problem(where, Phrase(ja, en))


@dataclass(frozen=True, slots=True)
class _Input:
    url: str = field(repr=False)
    user: str | None = field(repr=False)
    password: str | None = field(repr=False)
    roles: frozenset[str]
    transport: str | None


@dataclass(slots=True)
class _File:
    """What the cameras of one file have in common."""

    environment: Mapping[str, str] = field(repr=False)
    streams: Mapping[str, object] = field(repr=False)
    input_args: object
    notes: list[Problem]
    with_zones: bool = False


def placeholders(text: str) -> frozenset[str]:
    """The names of the environment variables that a file asks for."""
    return frozenset(_PLACEHOLDER.findall(text))


def read_frigate(document: object, environment: Mapping[str, str], with_zones: bool = False) -> Imported:
    """The cameras of a configuration; `environment` holds the FRIGATE_… variables it may use.

    Zones are taken over only when asked for: in Frigate they name places, here the gate looks inside them only, so a
    camera would be blind elsewhere.
    """
    top = _mapping(document)
    cameras = _mapping(top.get("cameras"))
    if not cameras or len(cameras) > CAMERAS_MAX:
        said = Phrase(
            f"cameras がないか、{CAMERAS_MAX}台を超えています。Frigateの設定ファイルですか。",
            f"There is no section cameras, or it has more than {CAMERAS_MAX}; is this a configuration of Frigate?",
        )
        return Imported((), (Problem("cameras", said),))
    go2rtc = _mapping(top.get("go2rtc"))
    own = {
        name: str(value)
        for name, value in _mapping(top.get("environment_vars")).items()
        if isinstance(value, str | int | float) and len(str(value)) <= VARIABLE_MAX_CHARS
    }
    input_args = _mapping(top.get("ffmpeg")).get("input_args")
    file = _File({**own, **environment}, _mapping(go2rtc.get("streams")), input_args, [], with_zones)
    made: list[WantedCamera] = []
    problems: list[Problem] = []
    for name, section in cameras.items():
        try:
            camera = _camera(file, name, _mapping(section))
        except _Wrong as wrong:
            problems.append(wrong.problem)
        else:
            made += [camera] if camera is not None else []
    return Imported(tuple(made), tuple(problems), tuple(file.notes))


def _camera(file: _File, name: str, section: Mapping[str, object]) -> WantedCamera | None:
    where = f"cameras.{name}"
    if section.get("enabled") is False:
        _note(file, where, "Frigateで無効のため取り込みません。", "It is disabled in Frigate and so left out.")
        return None
    if not CAMERA_ID_FORM.fullmatch(name):
        raise _Wrong(
            where, "名前に使えるのは半角の英数字と . _ - です。", "Its name may hold letters, digits and . _ - only."
        )
    main, sub = _main_and_sub(file, where, section)
    values: dict[str, object] = {}
    if main.transport is not None:
        values["transport"] = main.transport
    values.update(_shapes(file, where, section))
    shown = section.get("friendly_name")
    return WantedCamera(
        where=where,
        camera_id=name,
        name=shown[:128] if isinstance(shown, str) and shown.strip() else name,
        url=main.url,
        sub_url=None if sub is None else sub.url,
        user=main.user,
        password=main.password,
        values=values,
    )


def _main_and_sub(file: _File, where: str, section: Mapping[str, object]) -> tuple[_Input, _Input | None]:
    ffmpeg = _mapping(section.get("ffmpeg"))
    usual_args = ffmpeg.get("input_args", file.input_args)
    inputs = [
        _input(file, f"{where}.ffmpeg.inputs[{number}]", _mapping(one), usual_args)
        for number, one in enumerate(_list(ffmpeg.get("inputs")))
    ]
    if not inputs:
        raise _Wrong(f"{where}.ffmpeg.inputs", "入力がありません。", "There is no input.")
    detect = next((one for one in inputs if "detect" in one.roles), None)
    record = next((one for one in inputs if "record" in one.roles), None)
    main = record or detect or inputs[0]
    if detect is None or detect.url == main.url:
        return main, None
    if (detect.user, detect.password) != (main.user, main.password):
        _note(
            file, f"{where}.ffmpeg.inputs",
            "サブストリームのログインがメインと違うため、メインだけを取り込みます。",
            "Its sub stream has another login than the main one, so only the main one is taken.",
        )  # fmt: skip
        return main, None
    return main, detect


def _input(file: _File, where: str, one: Mapping[str, object], usual_args: object) -> _Input:
    path = one.get("path")
    if not isinstance(path, str) or not path.strip():
        raise _Wrong(f"{where}.path", "アドレスがありません。", "There is no address.")
    url, user, password = _address(file, f"{where}.path", path.strip(), HOPS_MAX)
    roles = frozenset(role for role in _list(one.get("roles")) if isinstance(role, str))
    return _Input(url, user, password, roles, _transport(one.get("input_args", usual_args), url))


def _transport(args: object, url: str) -> str | None:
    first = _list(args)[:ARGS_MAX]
    words = " ".join(word for word in first if isinstance(word, str))[:ARGS_MAX_CHARS]
    is_udp = "preset-rtsp-udp" in words or re.search(r"-rtsp_transport\s+udp", words)
    return "udp" if is_udp and url.startswith("rtsp://") else None


def _address(file: _File, where: str, text: str, hops: int) -> tuple[str, str | None, str | None]:
    """Where a path leads in the end, through go2rtc if need be, and the login that was in it."""
    restream = _RESTREAM.match(text)
    if restream is not None and restream[1] in file.streams:
        if not hops:
            raise _Wrong(where, "go2rtcのストリームが循環しています。", "The streams of go2rtc lead in a ring.")
        return _go2rtc(file, restream[1], hops - 1)
    if restream is not None:
        raise _Wrong(
            where,
            f"go2rtc.streams に {restream[1]} がありません。",
            f"There is no stream {restream[1]} in go2rtc.streams.",
        )
    url, user, password = _without_login(file, where, text, is_escaped=hops < HOPS_MAX)
    scheme = _SCHEME.match(url)
    if scheme is None or scheme[1].lower() not in ("rtsp", "rtsps", "rtspx", "http", "https"):
        raise _Wrong(
            where, "この種類の入力には対応していません。カメラのRTSPアドレスに変えてください。",
            "Inputs of this kind are not supported; use the camera's RTSP address.",
        )  # fmt: skip
    if re.search(r"/flv\b|\.flv\b|\.m3u8\b|\.ts\b", url):
        raise _Wrong(
            where, "HTTPの映像（FLV、HLS）には対応していません。カメラのRTSPアドレスに変えてください。",
            "Video over HTTP (FLV, HLS) is not supported; use the camera's RTSP address.",
        )  # fmt: skip
    if scheme[1].lower() == "rtspx":
        _note(
            file, where, "rtspx は rtsps にしました。証明書の指紋（tls_pin）を設定してください。",
            "rtspx became rtsps; set the certificate's fingerprint (tls_pin).",
        )  # fmt: skip
        url = "rtsps" + url[len("rtspx") :]
    return url, user, password


def _go2rtc(file: _File, name: str, hops: int) -> tuple[str, str | None, str | None]:
    """The first source of a stream that is a camera; the others are usually the same one transcoded."""
    where = f"go2rtc.streams.{name}"
    sources = file.streams[name]
    for source in _list(sources)[:SOURCES_MAX]:
        if not isinstance(source, str):
            continue
        # Behind the last # are go2rtc's own options; a # in a password is written %23 there.
        text = source.removeprefix("ffmpeg:").partition("#")[0].strip()
        if "://" in text:
            return _address(file, where, text, hops)
        if text in file.streams and text != name and hops:
            return _go2rtc(file, text, hops - 1)
    raise _Wrong(where, "カメラのアドレスがありません。", "It has no source that is a camera's address.")


def _without_login(file: _File, where: str, text: str, is_escaped: bool) -> tuple[str, str | None, str | None]:
    """What a variable holds is the password as it is in Frigate's own inputs, and %-escaped in go2rtc's addresses."""
    if is_escaped:
        return without_login(_filled(file, where, text))
    url, user, password = without_login(text)
    if user is None or password is None:
        return without_login(_filled(file, where, url))  # a whole address may be in a variable
    return _filled(file, where, url), _filled(file, where, user), _filled(file, where, password)


def _filled(file: _File, where: str, text: str) -> str:
    def value(found: re.Match[str]) -> str:
        name = found[1]
        if name not in file.environment:
            raise _Wrong(
                where,
                f"環境変数 {name} がありません。",
                f"The environment variable {name} is not set; set it and try again.",
            )
        return file.environment[name]

    filled = _PLACEHOLDER.sub(value, text) if len(text) <= CELL_MAX_CHARS else text
    if len(filled) > CELL_MAX_CHARS:
        raise _Wrong(
            where, f"{CELL_MAX_CHARS}文字を超えています。", f"It is longer than {CELL_MAX_CHARS} characters."
        )
    return filled


def _shapes(file: _File, where: str, section: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Masks and zones as polygons of shares (0..1) of the picture."""
    size = _size(section)
    masks = [
        _polygon(f"{where}.motion.mask", text, size)
        for text in _coordinates(_mapping(section.get("motion")).get("mask"))
    ]
    if masks:
        yield "ignore_masks", _bounded(file, f"{where}.motion.mask", masks)
    drawn = {
        name: texts
        for name, zone in _mapping(section.get("zones")).items()
        if (texts := _coordinates(_mapping(zone).get("coordinates")))
    }
    if drawn and not file.with_zones:
        _note(
            file, f"{where}.zones",
            "ゾーンは取り込みません（ゾーンの外を見なくなるため）。取り込むには --zones を付けてください。",
            "Zones are left out: here a camera does not look outside of them. Take them over with --zones.",
        )  # fmt: skip
    elif drawn:
        zones: list[dict[str, object]] = [
            {"name": name[:ZONE_NAME_MAX_CHARS], "points": _polygon(f"{where}.zones.{name}", text, size)}
            for name, texts in drawn.items()
            for text in texts
        ]
        yield "zones", _bounded(file, f"{where}.zones", zones)
        _note(
            file, f"{where}.zones",
            "ゾーンのあるカメラでは、camserverはゾーンの中だけを見ます。全体を見るならゾーンを外してください。",
            "Where a camera has zones, camserver watches only inside them; leave them out to watch everything.",
        )  # fmt: skip
    if _coordinates(_mapping(section.get("objects")).get("mask")):
        _note(
            file, f"{where}.objects.mask",
            "物体のマスクに当たるものはないため、取り込みません。",
            "Object masks have no counterpart and are left out.",
        )  # fmt: skip


def _coordinates(given: object) -> list[str]:
    """One polygon, several, or named ones, as Frigate's versions write them."""
    if isinstance(given, str):
        return [given] if given.strip() else []
    if isinstance(given, Mapping):
        return [text for one in given.values() for text in _coordinates(_mapping(one).get("coordinates", one))]
    texts = [text for text in _list(given) if isinstance(text, str | int | float)]
    if texts and all(_is_point(str(text)) for text in texts):
        return [",".join(map(str, texts))]  # a list of points, not of polygons
    return [str(text) for text in texts]


def _is_point(text: str) -> bool:
    return text.count(",") <= 1


def _polygon(where: str, text: str, size: tuple[int, int] | None) -> Polygon:
    try:
        numbers = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        numbers = []
    if len(numbers) < 6 or len(numbers) % 2 or len(numbers) > 2 * POINTS_MAX or not all(n >= 0 for n in numbers):
        raise _Wrong(
            where, f"多角形は3から{POINTS_MAX}個の点（x,y,x,y,…）で書いてください。",
            f"A polygon is 3 to {POINTS_MAX} points, written x,y,x,y,…",
        )  # fmt: skip
    if max(numbers) > 1:
        if size is None:
            raise _Wrong(
                where, "ピクセルで書かれた多角形には detect.width と detect.height が必要です。",
                "A polygon in pixels needs detect.width and detect.height.",
            )  # fmt: skip
        numbers = [number / size[index % 2] for index, number in enumerate(numbers)]
    shares = [round(min(number, 1.0), 5) for number in numbers]
    return [list(pair) for pair in zip(shares[::2], shares[1::2], strict=True)]


def _size(section: Mapping[str, object]) -> tuple[int, int] | None:
    detect = _mapping(section.get("detect"))
    width, height = (str(detect.get(name, "")) for name in ("width", "height"))
    if not _WIDTH_HEIGHT.match(width) or not _WIDTH_HEIGHT.match(height) or not int(width) * int(height):
        return None
    return int(width), int(height)


def _bounded(file: _File, where: str, polygons: list[Polygon] | list[dict[str, object]]) -> object:
    if len(polygons) > POLYGONS_MAX:
        _note(
            file, where, f"最初の{POLYGONS_MAX}個だけを取り込みます。", f"Only the first {POLYGONS_MAX} are taken."
        )  # fmt: skip
    return polygons[:POLYGONS_MAX]


def _note(file: _File, where: str, ja: str, en: str) -> None:
    file.notes.append(Problem(where, Phrase(ja, en)))


def _mapping(given: object) -> Mapping[str, object]:
    return {str(name): value for name, value in given.items()} if isinstance(given, Mapping) else {}


def _list(given: object) -> Sequence[object]:
    return given if isinstance(given, list) else [] if given is None else [given]
