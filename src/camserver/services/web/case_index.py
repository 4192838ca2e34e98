"""The page of an exported case that people read: pictures with their times and boxes, events, notes, what is missing.

One HTML file without scripts or anything from elsewhere, in the reader's language. Everything people or analyzers
wrote is escaped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from html import escape

from camserver.base.zones import zone_of
from camserver.domain.analysis import Box
from camserver.domain.boxes import Shapes, in_full
from camserver.services.web.messages import Language
from camserver.store.cases import CaseSummary, Note
from camserver.store.frame_pages import FrameDetail

_WORDS: Mapping[str, tuple[str, str]] = {
    "case": ("案件", "Case"),
    "state": ("状態", "State"),
    "open": ("継続中", "open"),
    "closed": ("終了", "closed"),
    "hold": ("保全中", "on hold"),
    "created": ("作成", "Created"),
    "exported": ("書き出し", "Exported"),
    "notes": ("メモ", "Notes"),
    "events": ("イベント", "Events"),
    "pictures": ("画像", "Pictures"),
    "clip": ("動画クリップ", "Clip"),
    "missing": ("含まれていないもの", "What is not in this file"),
    "severity": ("重要度", "Severity"),
    "camera": ("カメラ", "Camera"),
    "time": ("時刻", "Time"),
    "kind": ("種類", "Kind"),
    "by": ("記入者", "By"),
    "how": (
        "各ファイルのハッシュは manifest.json にあります。確認: camserver case verify ファイル.zip",
        "manifest.json holds the hash of every file. To check them: camserver case verify FILE.zip",
    ),
}
_REASONS: Mapping[str, tuple[str, str]] = {
    "gone": ("書き出しの前に削除されました", "It was deleted before the export"),
    "no_object": ("記録はありますが、ファイルがありません", "There is a record of it, but no file"),
    "unreadable": ("ファイルを読み出せませんでした", "Its file could not be read"),
    "out_of_reach": ("閲覧できないサイトのものです", "It is of a site beyond the reader's reach"),
}
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;color:#1c1c1c}
table{border-collapse:collapse;width:100%}td,th{border:1px solid #ccc;padding:.3rem .5rem;text-align:left;
vertical-align:top}figure{margin:1.5rem 0}figcaption{margin:.3rem 0}.picture{position:relative;display:inline-block}
.picture img{display:block;max-width:100%}.box{position:absolute;border:2px solid #e11;box-sizing:border-box}
.box span{position:absolute;left:0;top:0;background:#e11;color:#fff;font-size:12px;padding:0 .2rem}
video{max-width:100%}.note{white-space:pre-wrap}
"""


@dataclass(frozen=True, slots=True)
class EventLine:
    event_uuid: str
    camera: str
    phrase: str
    severity: int
    start_at: int
    last_seen_at: int
    timezone: str
    clip_path: str = ""


def word(name: str, language: Language) -> str:
    return _WORDS[name][0 if language == "ja" else 1]


def _said(language: Language, name: str) -> str:
    return escape(word(name, language))


def local_time(at_ms: int, timezone: str) -> str:
    return datetime.fromtimestamp(at_ms / 1000, zone_of(timezone)).isoformat(sep=" ", timespec="seconds")


def utc_stamp(at_ms: int) -> str:
    """A time within a file's name, UTC, that sorts."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y%m%dT%H%M%S") + f"{at_ms % 1000:03d}Z"


def head(case: CaseSummary, notes: Sequence[Note], exported_at: int, timezone: str, language: Language) -> str:
    say = partial(_said, language)
    state = say(case.state) + (f", {say('hold')}" if case.hold else "")
    lines = "".join(
        f"<tr><td>{escape(local_time(note.at, timezone))}</td><td>{escape(note.by)}</td>"
        f'<td class="note">{escape(note.body)}</td></tr>'
        for note in notes
    )
    table = f"<h2>{say('notes')}</h2><table>{lines}</table>" if notes else ""
    return (
        f'<!doctype html><html lang="{language}"><head><meta charset="utf-8"><title>{escape(case.title)}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{escape(case.title)}</h1>"
        f"<p>{say('case')} {escape(case.case_uuid)}<br>{say('state')}: {state}<br>"
        f"{say('created')}: {escape(local_time(case.created_at, timezone))}<br>"
        f"{say('exported')}: {escape(local_time(exported_at, timezone))}</p><p>{say('how')}</p>{table}"
        f"<h2>{say('pictures')}</h2>"
    )


def figure(frame: FrameDetail, path: str, kind: str, timezone: str, labels: Sequence[str]) -> str:
    """`labels` are those of the frame's tags, in the reader's language."""
    found = in_full(frame.boxes, _shapes(frame)) if kind == "full" else frame.boxes
    boxes = "".join(map(_box, found))
    caption = f"{local_time(frame.captured_at, timezone)} {frame.camera_name} ({frame.camera_id}) {', '.join(labels)}"
    return (
        f'<figure><div class="picture"><img loading="lazy" src="{escape(path)}" alt="">{boxes}</div>'
        f"<figcaption>{escape(caption)}<br><small>{escape(frame.frame_uuid)}</small></figcaption>"
        "</figure>\n"
    )


def _box(box: Box) -> str:
    left, top, right, bottom = (min(max(edge, 0.0), 1.0) * 100 for edge in (box.x1, box.y1, box.x2, box.y2))
    place = f"left:{left:.2f}%;top:{top:.2f}%;width:{right - left:.2f}%;height:{bottom - top:.2f}%"
    label = f"<span>{escape(box.label)}</span>" if box.label else ""
    return f'<div class="box" style="{place}">{label}</div>'


def _shapes(frame: FrameDetail) -> Shapes:
    bars = frame.letterbox
    return Shapes(
        full=(frame.full_w, frame.full_h) if frame.full_w and frame.full_h else None,
        infer=(frame.infer_w, frame.infer_h) if frame.infer_w and frame.infer_h else None,
        bars=(0, 0, 0, 0) if bars is None else (bars.top, bars.left, bars.bottom, bars.right),
    )


def tail(events: Sequence[EventLine], missing: Sequence[tuple[str, str, str]], language: Language) -> str:
    """`missing` are (kind, uuid, reason)."""
    say = partial(_said, language)
    text = ""
    if events:
        heads = "".join(f"<th>{say(name)}</th>" for name in ("time", "camera", "kind", "severity", "clip"))
        text += f"<h2>{say('events')}</h2><table><tr>{heads}</tr>{''.join(_event(line) for line in events)}</table>"
    if missing:
        lines = "".join(
            f"<tr><td>{escape(kind)}</td><td>{escape(uuid)}</td><td>{escape(_reason(reason, language))}</td></tr>"
            for kind, uuid, reason in missing
        )
        text += f"<h2>{say('missing')}</h2><table>{lines}</table>"
    return text + "</body></html>\n"


def _event(line: EventLine) -> str:
    span = f"{local_time(line.start_at, line.timezone)} – {local_time(line.last_seen_at, line.timezone)}"
    clip = f'<video controls preload="none" src="{escape(line.clip_path)}"></video>' if line.clip_path else ""
    cells = (span, line.camera, line.phrase, str(line.severity))
    return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}<td>{clip}</td></tr>"


def _reason(reason: str, language: Language) -> str:
    found = _REASONS.get(reason)
    return reason if found is None else found[0 if language == "ja" else 1]
