"""The page of a share, for somebody who never signs in: plain HTML in their language, without a script.

Everything that comes from a row is escaped. Its one style is inline and named in the page's own Content-Security-
Policy by its hash, so nothing else can be smuggled in.
"""

import base64
import hashlib
from datetime import UTC, datetime
from html import escape
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from camserver.domain.phrases import Phrase, primary_event_phrase
from camserver.services.web.messages import Language
from camserver.store.shares import Opened

_STYLE = (
    "body{margin:0;background:#111;color:#eee;font:16px/1.5 system-ui,sans-serif}"
    "main{max-width:60rem;margin:0 auto;padding:1rem}"
    "img,video{width:100%;height:auto;display:block;background:#000;border-radius:4px}"
    "ul{list-style:none;padding:0;display:grid;grid-template-columns:repeat(auto-fill,minmax(10rem,1fr));gap:.5rem}"
    "a{color:inherit}p,time{color:#bbb}"
)
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; img-src 'self'; media-src 'self'; "
    f"style-src 'sha256-{_STYLE_HASH}'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex, nofollow",
    "Cache-Control": "private, no-store",
    "Vary": "Accept-Language",
}
_WORDS = {
    "shared": Phrase("共有された画像", "Shared pictures"),
    "until": Phrase("{time} まで開けます。", "It can be opened until {time}."),
    "best": Phrase("いちばんよく写っている画像", "The best picture"),
    "others": Phrase("ほかの画像", "More pictures"),
    "clip": Phrase("動画", "Film"),
    "none": Phrase("画像の保存期間が過ぎました。", "The pictures are past their retention."),
    "over_title": Phrase("開けません", "Nothing to open"),
    "later_title": Phrase("今は開けません", "Not now"),
    "over": Phrase(
        "このアドレスは正しくないか、共有が終わりました。送った人に確認してください。",
        "This address opens nothing, or what it opened is no longer shared. Ask whoever sent it to you.",
    ),
}


def _type_of(codec: str) -> str:
    """As browsers are asked whether they play it; any profile of it."""
    return 'video/mp4; codecs="hvc1.1.6.L120.B0"' if codec == "hevc" else "video/mp4"


def page(share: Opened, base: str, language: Language) -> str:
    """`base` is the page's own address, below which its pictures are."""
    title = primary_event_phrase(share.primary_event)
    heading = f"{share.camera_name} – {title.ja if language == 'ja' else title.en}"
    times = _time(share.start_at, share.timezone)
    if share.end_at > share.start_at:
        times += f" – {_time(share.end_at, share.timezone)}"
    lines = [f"<h1>{escape(heading)}</h1>", f"<p>{escape(share.site)}<br>{escape(times)}</p>"]
    if share.clip is not None:
        label = escape(_say("clip", language))
        # A browser takes the first that it says to play: as it is, or made anew.
        sources = f"<source src=\"{escape(base)}/clip\" type='{_type_of(share.clip.codec)}'>"
        if share.clip.codec != "h264":
            sources += f'<source src="{escape(base)}/clip?playable=true" type="video/mp4">'
        lines.append(f'<video controls preload="metadata" aria-label="{label}">{sources}</video>')
    if share.pictures:
        lines.append(f"<p>{escape(_say('best', language))}</p>{_picture(share, base, 0)}")
    if len(share.pictures) > 1:
        items = "".join(f"<li>{_picture(share, base, n)}</li>" for n in range(1, len(share.pictures)))
        lines.append(f"<h2>{escape(_say('others', language))}</h2><ul>{items}</ul>")
    if not share.pictures and share.clip is None:
        lines.append(f"<p>{escape(_say('none', language))}</p>")
    if share.expires_at is not None:
        until = _say("until", language).format(time=_time(share.expires_at, share.timezone))
        lines.append(f"<p>{escape(until)}</p>")
    return _html(_say("shared", language), lines, language)


def over_page(language: Language) -> str:
    return _problem_page("over_title", _say("over", language), language)


def later_page(text: str, language: Language) -> str:
    """It may open something, but not at this moment."""
    return _problem_page("later_title", text, language)


def _problem_page(titled: str, text: str, language: Language) -> str:
    title = _say(titled, language)
    return _html(title, [f"<h1>{escape(title)}</h1>", f"<p>{escape(text)}</p>"], language)


def _picture(share: Opened, base: str, n: int) -> str:
    address = f"{escape(base)}/picture/{n}"
    shown = escape(_time(share.pictures[n].captured_at, share.timezone))
    small = "?kind=thumb" if n else ""
    return f'<a href="{address}"><img src="{address}{small}" alt="{shown}" loading="lazy"></a><time>{shown}</time>'


def _html(title: str, lines: list[str], language: Language) -> str:
    return (
        f'<!doctype html><html lang="{language}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="robots" content="noindex">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><main>{''.join(lines)}</main></body></html>"
    )


def _say(name: str, language: Language) -> str:
    phrase = _WORDS[name]
    return phrase.ja if language == "ja" else phrase.en


def _time(at_ms: int, timezone: str) -> str:
    """In the site's own time."""
    try:
        zone: ZoneInfo | None = ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError):
        zone = None
    return datetime.fromtimestamp(at_ms / 1000, zone or UTC).strftime("%Y-%m-%d %H:%M:%S %Z")
