"""Cameras from a file: what a list of them, as CSV, asks for.

Reading only: what is wrong is a `Problem` that says where it is, nothing is added here. Addresses are checked like
typed ones when the cameras are added. A file of Frigate is read by `import_frigate`.
"""

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from camserver.domain.phrases import Phrase
from camserver.domain.presets import Preset

CAMERAS_MAX = 2_000
PROBLEMS_MAX = 200
CELL_MAX_CHARS = 2_048
CAMERA_ID_FORM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_FINGERPRINT = re.compile(r"(?:[0-9A-Fa-f]{2}:?){32}")
_LOGIN_INSIDE = re.compile(r"^([a-z][a-z0-9+.-]*://)(\S*)@([^@\s]*)$", re.IGNORECASE)
_ESCAPED = re.compile(r"(?:%[0-9A-Fa-f]{2})+")


@dataclass(frozen=True, slots=True)
class WantedCamera:
    """`values` are per-camera values by the names of the API. Nothing here shows a password in a repr."""

    where: str
    camera_id: str
    name: str
    url: str = field(repr=False)
    site: str | None = None
    sub_url: str | None = field(default=None, repr=False)
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    values: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong in a file. `column` and `line` count from 1; `column` is None when the whole line is meant."""

    where: str  # "line 3, column url" or "cameras.front.ffmpeg"
    said: Phrase
    line: int | None = None
    column: str | None = None


@dataclass(frozen=True, slots=True)
class Imported:
    """`notes` are worth knowing and stop nothing."""

    cameras: tuple[WantedCamera, ...]
    problems: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()


class _Wrong(Exception):
    def __init__(self, ja: str, en: str) -> None:
        self.said = Phrase(ja, en)


def _one_of(*allowed: str) -> Callable[[str], object]:
    def read(text: str) -> object:
        if text.lower() not in allowed:
            shown = ", ".join(allowed)
            raise _Wrong(f"{shown} のどれかにしてください。", f"It must be one of {shown}.")
        return text.lower()

    return read


def _number(least: float, greatest: float) -> Callable[[str], object]:
    def read(text: str) -> object:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not least <= value <= greatest:
            raise _Wrong(
                f"{least:g} から {greatest:g} の数値にしてください。",
                f"It must be a number from {least:g} to {greatest:g}.",
            )
        return value

    return read


def _rotation(text: str) -> object:
    return int(str(_one_of("0", "90", "180", "270")(text)))


def _whole(least: int, greatest: int) -> Callable[[str], object]:
    def read(text: str) -> object:
        value = _number(least, greatest)(text)
        if not isinstance(value, float) or not value.is_integer():
            raise _Wrong("整数にしてください。", "It must be a whole number.")
        return int(value)

    return read


def _yes_or_no(text: str) -> object:
    return _one_of("yes", "no", "true", "false", "1", "0")(text) in ("yes", "true", "1")


def _pin(text: str) -> object:
    if not _FINGERPRINT.fullmatch(text):
        raise _Wrong(
            "証明書のSHA-256指紋（16進数64桁）にしてください。",
            "It must be the SHA-256 of a certificate: 64 hexadecimal digits.",
        )
    return text.replace(":", "").lower()


# Column of a per-camera value → how its text is read. Names are those of the API; a preset is one of its hints.
VALUES: Mapping[str, Callable[[str], object]] = {
    "polling_interval_sec": _number(1, 86_400),
    "transport": _one_of("tcp", "udp"),
    "tls_pin": _pin,
    "rotation": _rotation,
    "device": str,
    "streams_max": _whole(1, 64),
    "clip_sec": _number(0, 30),
    "suggest_weight": _whole(0, 10),
    "mask_clock": _yes_or_no,
    "live_sound": _yes_or_no,
    "do_not_process": _yes_or_no,
    "preset": _one_of(*Preset),
}
COLUMNS = ("camera_id", "name", "site", "url", "sub_url", "user", "password", *VALUES)
NEEDED = ("camera_id", "url")


def read_csv(text: str) -> Imported:
    """The cameras of a CSV file whose first line names its columns; separated by comma, semicolon or tab."""
    text = text.removeprefix("\ufeff")
    rows = _rows(text)
    header = next(rows, None)
    if header is None or isinstance(header, Problem):
        return Imported((), (header or _problem(1, None, "ファイルが空です。", "The file is empty."),))
    names = [name.strip().lower() for name in header[1]]
    wrong = _wrong_header(header[0], names)
    if wrong:
        return Imported((), tuple(wrong))
    cameras: list[WantedCamera] = []
    problems: list[Problem] = []
    seen: dict[str, int] = {}
    for row in rows:
        if isinstance(row, Problem):
            problems.append(row)
            break
        line, cells = row
        if not any(cell.strip() for cell in cells) or cells[0].lstrip().startswith("#"):
            continue
        made = _camera(line, names, cells, seen)
        if isinstance(made, WantedCamera):
            cameras.append(made)
        else:
            problems += made
        if len(problems) >= PROBLEMS_MAX or len(cameras) > CAMERAS_MAX:
            problems.append(_problem(line, None, "多すぎます。ここで止めました。", "Too many; stopped here."))
            break
    return Imported(tuple(cameras), tuple(problems))


def _rows(text: str) -> Iterator[tuple[int, list[str]] | Problem]:
    """Each row with the line it begins in; a Problem where the file can't be read further."""
    first = text.partition("\n")[0]
    separator = max(",;\t", key=first.count)
    reader = csv.reader(text.splitlines(keepends=True), delimiter=separator, strict=True)
    line = 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error:
            yield _problem(
                line, None, '引用符（"）の使い方が正しくありません。', 'The quotes (") are not closed properly.'
            )
            return
        yield line, cells
        line = reader.line_num + 1


def _wrong_header(line: int, names: list[str]) -> list[Problem]:
    known = ", ".join(COLUMNS)
    problems = [
        _problem(
            line,
            name,
            f"この列は使えません。使えるのは {known} です。",
            f"There is no such column; there are {known}.",
        )
        for name in names
        if name not in COLUMNS
    ]
    problems += [
        _problem(line, name, "この列が2つあります。", "This column is there twice.")
        for name in sorted({name for name in names if names.count(name) > 1})
    ]
    problems += [
        _problem(line, name, "この列が必要です。", "This column is needed.") for name in NEEDED if name not in names
    ]
    return problems


def _camera(line: int, names: list[str], cells: list[str], seen: dict[str, int]) -> WantedCamera | list[Problem]:
    if len(cells) > len(names):
        return [
            _problem(
                line, None, f"列が{len(cells)}個あります（見出しは{len(names)}個）。",
                f"There are {len(cells)} columns, but the header names {len(names)}.",
            )
        ]  # fmt: skip
    given = {
        # A password may begin or end with a blank; nothing else may.
        name: cell if name == "password" else cell.strip()
        for name, cell in zip(names, cells, strict=False)
        if cell.strip()
    }
    problems = list(_wrong_cells(line, given, seen))
    values: dict[str, object] = {}
    for name in VALUES.keys() & given.keys():
        try:
            values[name] = VALUES[name](given[name])
        except _Wrong as wrong:
            problems.append(Problem(f"line {line}, column {name}", wrong.said, line, name))
    if problems:
        return sorted(problems, key=lambda problem: COLUMNS.index(problem.column or COLUMNS[0]))
    if "preset" in values:
        values["hints"] = {"preset": values.pop("preset")}
    seen[given["camera_id"]] = line
    return WantedCamera(
        where=f"line {line}",
        camera_id=given["camera_id"],
        name=given.get("name", given["camera_id"]),
        site=given.get("site"),
        url=given["url"],
        sub_url=given.get("sub_url"),
        user=given.get("user"),
        password=given.get("password"),
        values=values,
    )


def _wrong_cells(line: int, given: Mapping[str, str], seen: Mapping[str, int]) -> Iterator[Problem]:
    for name in NEEDED:
        if name not in given:
            yield _problem(line, name, "空です。", "It is empty.")
    for name, cell in given.items():
        if len(cell) > CELL_MAX_CHARS:
            yield _problem(line, name, "長すぎます。", "It is too long.")
    camera_id = given.get("camera_id", "")
    if camera_id and not CAMERA_ID_FORM.fullmatch(camera_id):
        yield _problem(
            line, "camera_id", "使えるのは半角の英数字と . _ - で、64文字までです。",
            "It may hold letters, digits and . _ -, at most 64 of them.",
        )  # fmt: skip
    if camera_id in seen:
        before = seen[camera_id]
        yield _problem(line, "camera_id", f"{before}行目と同じです。", f"Line {before} has the same one.")


def _problem(line: int, column: str | None, ja: str, en: str) -> Problem:
    where = f"line {line}" if column is None else f"line {line}, column {column}"
    return Problem(where, Phrase(ja, en), line, column)


def without_login(url: str) -> tuple[str, str | None, str | None]:
    """An address, and the user and password that were in it.

    A password may be written as it is, also with / ? and # in it, or with %-escapes: a % that begins no escape is one
    that was written as it is.
    """
    found = _LOGIN_INSIDE.match(url)
    if found is None:
        return url, None, None
    user, _, password = found[2].partition(":")
    return found[1] + found[3], _unescaped(user), _unescaped(password)


def _unescaped(text: str) -> str:
    def decoded(found: re.Match[str]) -> str:
        return bytes.fromhex(found[0].replace("%", "")).decode(errors="replace")

    return _ESCAPED.sub(decoded, text)
