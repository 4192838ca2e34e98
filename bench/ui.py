"""A wall of 200 cameras in Chromium: when it is of use, what it costs at rest and over an hour, how much of it jumps.

Beside each figure stands the limit that it has to stay below. The hour is played faster: every camera looks as often
as it would in an hour at a look a minute, and the page asks for what is new as often as it can.
"""

import gzip
import json
import re
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench._child import Child, child
from bench._report import QUICK, Row, figure, less_is_better, report, say
from bench._search_fill import CAMERAS
from tests.e2e.ui.browser import BUILT, UI, chromium, missing, node_folder
from tests.rig.ports import free_port

LIMIT = "the limit"
BUNDLE_MAX_KB, USEFUL_MAX_MS, REST_MAX_PERCENT, SHIFT_MAX, GROWTH_MAX_PERCENT = 220.0, 1500.0, 5.0, 0.01, 10.0
OPENINGS = 3 if QUICK else 7
REST_SEC = 10 if QUICK else 30
# Looks a minute for an hour; each minute takes so long.
MINUTES = 10 if QUICK else 60
MINUTE_MS = 1500
WARM_MINUTES = 5
PARTS = ("bundle", "wall")


def first_loaded(index: Path) -> list[Path]:
    """What a browser loads before it shows anything: the scripts that the page names."""
    named = re.findall(r'(?:src|href)="(/[^"]+\.js)"', index.read_text())
    return [index.parent / name.lstrip("/") for name in named]


def measure_bundle() -> list[Row]:
    kb = sum(len(gzip.compress(path.read_bytes(), 9)) for path in first_loaded(BUILT)) / 1000
    return [less_is_better("scripts loaded first, compressed", kb, BUNDLE_MAX_KB, LIMIT, "kB", 1)]


class Browser:
    """Chromium with the wall in it, told and answering by lines (ui/e2e/wall-figures.mjs)."""

    def __init__(self, line: Child) -> None:
        self._line = line

    def ask(self, line: str) -> dict[str, Any]:
        self._line.tell(line)
        return self.hear()

    def tell(self, line: str) -> None:
        self._line.tell(line)

    def hear(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._line.hear())
        return answer


@contextmanager
def opened(url: str, token: str) -> Iterator[Browser]:
    node = Path(node_folder()) / "node"
    asked = {"url": url, "token": token, "chromium": chromium(), "cameras": CAMERAS}
    with closing(Child("the browser", asked, [str(node), "e2e/wall-figures.mjs"], UI)) as line:
        browser = Browser(line)
        browser.hear()
        yield browser


def measure_opening(browser: Browser) -> list[Row]:
    found = [browser.ask("open") for _ in range(OPENINGS)]
    useful = statistics.median(one["usefulMs"] for one in found)
    return [
        less_is_better("first useful paint", useful, USEFUL_MAX_MS, LIMIT, "ms", 1),
        # What seconds on a busy machine do not tell: an idle one is done with it in less than this.
        figure("CPU of the whole browser until then", statistics.median(one["cpuMs"] for one in found), "ms"),
        figure("cameras on the wall", found[-1]["tiles"], ""),
        figure("pictures drawn of them", found[-1]["pictures"], ""),
    ]


def measure_rest(server: Child, browser: Browser) -> list[Row]:
    # A look a minute, as cameras do it, while nobody touches the page.
    server.tell(f"calm {REST_SEC}")
    spent = browser.ask(f"rest {REST_SEC}")
    server.hear()
    return [
        less_is_better("CPU of the tab at rest", spent["renderer"] * 100, REST_MAX_PERCENT, LIMIT, "%", 1),
        figure("time in which the page's own thread had work", spent["mainThread"] * 100, "%"),
    ]


def measure_hour(server: Child, browser: Browser) -> list[Row]:
    def look(minutes: int) -> dict[str, Any]:
        server.tell(f"looks {minutes} {MINUTE_MS}")
        server.hear()
        return browser.ask("memory")

    before, after = look(WARM_MINUTES), look(MINUTES)
    growth = max(0.01, (after["heapBytes"] / before["heapBytes"] - 1) * 100)
    return [
        less_is_better("memory after an hour, growth", growth, GROWTH_MAX_PERCENT, LIMIT, "%", 1),
        figure("memory of the page", after["heapBytes"] / 1e6, "MB"),
        figure("nodes of the page, growth", after["nodes"] - before["nodes"], ""),
        # A perfect page has none, of which there is no ratio.
        less_is_better("layout shift of all that", max(0.0001, after["shift"]), SHIFT_MAX, LIMIT, "", 1),
    ]


def measure_wall() -> list[Row]:
    with TemporaryDirectory(prefix="camserver-bench-") as folder:
        port = free_port()
        with child("_ui_server", folder=folder, port=port) as server:
            made = json.loads(server.hear())
            with opened(f"http://127.0.0.1:{port}", made["token"]) as browser:
                return [
                    *measure_opening(browser),
                    *measure_rest(server, browser),
                    *measure_hour(server, browser),
                ]


def measured(parts: Sequence[str]) -> list[Row]:
    rows: list[Row] = []
    if "bundle" in parts:
        rows += measure_bundle()
    if "wall" in parts:
        rows += measure_wall()
    return rows


def main() -> None:
    parts = sys.argv[1:] or PARTS
    if unknown := set(parts) - set(PARTS):
        raise SystemExit(f"there is no part {', '.join(sorted(unknown))}; there are: {', '.join(PARTS)}")
    if (lacking := missing()) is not None:
        say(f"error: {lacking}")
        raise SystemExit(1)
    report("ui", measured(parts))


if __name__ == "__main__":
    main()
