import re
from importlib import resources

import pytest

from tests.services.web.rig import RunningWeb

PAGES = resources.files("camserver.services.web").joinpath("pages")


def source(name: str) -> str:
    return PAGES.joinpath(name).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", ["/", "/sign-in", "/setup"])
async def test_a_page_and_all_it_refers_to_is_served(web: RunningWeb, path: str) -> None:
    browser = web.browser()
    page = await browser.get(path)
    assert page.status == 200
    assert page.headers["Content-Type"].startswith("text/html")
    references = re.findall(r'(?:src|href)="([^"]+)"', page.content.decode())
    assert len(references) == 2
    for reference in references:
        found = await browser.get(reference)
        assert found.status == 200, reference
        for imported in re.findall(r'from "\./([^"]+)"', found.content.decode()):
            assert (await browser.get(f"/pages/{imported}")).status == 200
    unchanged = await browser.get(path, {"If-None-Match": page.headers["ETag"]})
    assert (unchanged.status, unchanged.content) == (304, b"")


@pytest.mark.parametrize("name", ["status.html", "sign-in.html", "setup.html"])
def test_nothing_is_inline(name: str) -> None:
    text = source(name)
    assert re.search(r"<script(?![^>]*\bsrc=)|<style|\bon\w+=|\bstyle=|javascript:", text) is None


def test_every_word_is_in_both_languages() -> None:
    words = source("words.js")
    japanese, english = (
        set(re.findall(r"(\w+): \"", block)) for block in re.findall(r"\n  \w\w: \{(.*?)\n  \},", words, re.S)
    )
    assert japanese == english
    used = {
        name
        for page in ("status.html", "sign-in.html", "setup.html")
        for name in re.findall(r'data-word="(\w+)"', source(page))
    } | {
        name
        for script in ("words.js", "setup.js", "sign-in.js", "status.js")
        for name in re.findall(r'word\("(\w+)"', source(script))
    }
    assert used <= japanese


def test_pages_write_text_and_never_markup() -> None:
    """Names of cameras come from people; as text they can't become script."""
    for script in ("words.js", "setup.js", "sign-in.js", "status.js"):
        assert re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", source(script)) is None
