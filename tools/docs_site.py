"""Builds the documentation as a static site, and says which links lead nowhere.

    .venv/bin/python tools/docs_site.py build/docs

Every page is made of one Markdown file: the pages at the top of the repository and everything below docs/. The site
needs no server and fetches nothing from elsewhere. Search is a list of sections that the browser reads as a script.

Markdown is read by a library; around it is what generators of sites do not: pages stay where readers find them in the
repository, links between them and to other files are those of the repository, and search finds Japanese.
"""

import argparse
import html
import json
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from unicodedata import east_asian_width
from urllib.parse import quote, unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[1]
FILES = Path(__file__).resolve().parent / "docs_site_files"
TOP_PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
INDEX = "README.md"
# In the order of the navigation; a page belongs to the first whose beginning fits.
SECTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("日本語", ("docs/guide/ja/", "docs/guide/first-steps.ja.md", "docs/guide/workers.ja.md")),
    ("Guide", ("README.md", "docs/guide/", "docs/rollout.md", "docs/delegation_debug.md")),
    ("Reference", ("docs/ref/", "docs/protocol.md", "CHANGELOG.md")),
    ("Design", ("ARCHITECTURE.md", "docs/design/", "docs/performance.md", "docs/quality.md", "CONTRIBUTING.md")),
    ("Decisions", ("docs/adr/",)),
)
# First in their section; the others follow by their title.
FIRST = (
    "README.md", "docs/guide/ja/README.md", "docs/guide/first-steps.ja.md", "docs/guide/ja/install.md",
    "docs/guide/ja/cameras.md", "docs/guide/ja/notify.md", "docs/guide/ja/daily.md", "docs/guide/ja/troubleshoot.md",
    "docs/guide/ja/upgrade.md", "docs/guide/first-steps.md",
    "docs/guide/install.md", "docs/guide/set-up.md", "docs/guide/cameras.md", "docs/guide/notifications.md",
    "docs/guide/fleet.md", "docs/guide/upgrade.md", "docs/guide/troubleshoot.md", "ARCHITECTURE.md",
)  # fmt: skip
CONTENTS_LEVELS = (2, 3)
FOREIGN = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it, for search."""

    anchor: str
    level: int
    title: str
    text: str


@dataclass(slots=True)
class Page:
    name: str  # its path in the repository
    title: str
    tokens: list[Token]
    sections: list[Section]
    problems: list[str] = field(default_factory=list)

    @property
    def output(self) -> str:
        if self.name == INDEX:
            return "index.html"
        return self.name.removesuffix(".md") + ".html"

    @property
    def root(self) -> str:
        """The way from this page to the site's first folder."""
        return "../" * self.output.count("/")

    @property
    def lang(self) -> str:
        return "ja" if self.name.endswith(".ja.md") or "/ja/" in self.name else "en"

    @property
    def anchors(self) -> set[str]:
        return {section.anchor for section in self.sections}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the site is written; what was there before goes")
    folder = parser.parse_args().folder
    problems = build(ROOT, folder)
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    if problems:
        sys.exit(1)
    print(f"The documentation is at {folder / 'index.html'}")


def build(repository: Path, folder: Path) -> list[str]:
    """Writes the whole site; the links that lead nowhere, as sentences."""
    pages = {page.name: page for page in read_pages(repository)}
    if folder.exists():
        if any(folder.iterdir()) and not (folder / "search-index.js").exists():
            return [f"{folder} holds something else than a documentation; name another folder"]
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    wanted: set[str] = set()
    markdown = parser_of_markdown()
    template = (FILES / "page.html").read_text()
    navigation = sorted_pages(pages.values())
    for page in pages.values():
        wanted |= relink(page, pages, repository)
        body = markdown.renderer.render(page.tokens, markdown.options, {})
        target = folder / page.output
        target.parent.mkdir(parents=True, exist_ok=True)
        values = {"lang": page.lang, "title": html.escape(page.title), "root": page.root, "body": body}
        target.write_text(filled(template, values | {"nav": nav(page, navigation), "contents": contents(page)}))
    for name in sorted(wanted):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(repository / name, folder / name)
    for name in ("site.css", "search.js"):
        shutil.copyfile(FILES / name, folder / name)
    (folder / "search-index.js").write_text(search_index(pages.values()))
    return [problem for page in pages.values() for problem in page.problems]


def filled(template: str, values: dict[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: values[found[1]], template)


# Reading ---------------------------------------------------------------------------------------------------------


def parser_of_markdown() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table")


def read_pages(repository: Path) -> Iterator[Page]:
    """Every page, parsed, with an id at each heading."""
    names = [name for name in TOP_PAGES if (repository / name).is_file()]
    names += sorted(path.relative_to(repository).as_posix() for path in (repository / "docs").rglob("*.md"))
    for name in names:
        yield read_page(name, (repository / name).read_text())


def read_page(name: str, text: str) -> Page:
    tokens = parser_of_markdown().parse(text)
    close_lines(tokens)
    sections: list[Section] = []
    seen: Counter[str] = Counter()
    heading: tuple[str, int, str] | None = None
    words: list[str] = []
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            if heading is not None:
                sections.append(Section(*heading, " ".join(words)))
            title = plain(tokens[at + 1])
            anchor = anchor_of(title)
            token.attrSet("id", f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
            seen[anchor] += 1
            heading, words = (str(token.attrGet("id")), int(token.tag[1]), title), []
        elif token.type == "inline" and tokens[at - 1].type != "heading_open":
            words.append(plain(token))
        elif token.type in ("fence", "code_block"):
            words.append(token.content)
    if heading is not None:
        sections.append(Section(*heading, " ".join(words)))
    problems = [] if sections and sections[0].level == 1 else [f"{name} does not begin with a title"]
    title = sections[0].title if sections else name
    return Page(name, title, tokens, sections, problems)


def close_lines(tokens: Sequence[Token]) -> None:
    """Where a line of Japanese ends and the next begins, there is no space between."""
    for token in tokens:
        children = token.children or []
        for before, at, after in zip(children, children[1:], children[2:], strict=False):
            around = before.content[-1:], after.content[:1]
            if at.type == "softbreak" and all(sign and east_asian_width(sign) in "WF" for sign in around):
                at.type, at.content = "text", ""


def plain(inline: Token) -> str:
    """The text of a line without its marks."""
    shown = ("text", "code_inline", "softbreak")
    return "".join(
        " " if one.type == "softbreak" else one.content for one in inline.children or () if one.type in shown
    )


def anchor_of(title: str) -> str:
    """As the usual hosts of repositories make it: lower case, letters, digits and dashes."""
    kept = re.sub(r"[^\w\- ]", "", title.strip().lower())
    return kept.replace(" ", "-")


# Links -----------------------------------------------------------------------------------------------------------


def relink(page: Page, pages: dict[str, Page], repository: Path) -> set[str]:
    """Makes links of the repository into links of the site; the other files that it links to, to be copied."""
    wanted = set()
    for token in _inline(page.tokens):
        name = "href" if token.type == "link_open" else "src"
        target = str(token.attrGet(name) or "")
        if FOREIGN.match(target):
            continue
        path, _, anchor = unquote(target).partition("#")
        whole = os.path.normpath(os.path.join(os.path.dirname(page.name), path)) if path else page.name
        if whole in pages:
            if anchor and anchor not in pages[whole].anchors:
                page.problems.append(f"{page.name}: {target} names no heading of {whole}")
            link = os.path.relpath(pages[whole].output, os.path.dirname(page.output) or ".")
            token.attrSet(name, f"{link}#{quote(anchor)}" if anchor else link)
        elif not whole.startswith("..") and (repository / whole).is_file():
            wanted.add(whole)
            token.attrSet(name, os.path.relpath(whole, os.path.dirname(page.output) or "."))
        else:
            page.problems.append(f"{page.name}: {target} leads nowhere")
    return wanted


def _inline(tokens: Sequence[Token]) -> Iterator[Token]:
    for token in tokens:
        for one in token.children or ():
            if one.type in ("link_open", "image"):
                yield one


# Around a page ---------------------------------------------------------------------------------------------------


def section_of(name: str) -> str | None:
    return next((title for title, begins in SECTIONS if name.startswith(begins)), None)


def sorted_pages(pages: Iterable[Page]) -> dict[str, list[Page]]:
    """The pages of each section, in their order."""
    found: dict[str, list[Page]] = {title: [] for title, _ in SECTIONS}
    for page in pages:
        section = section_of(page.name)
        if section is None:
            page.problems.append(f"{page.name} belongs to no section of the site (SECTIONS of tools/docs_site.py)")
        else:
            found[section].append(page)
    for section, own in found.items():
        own.sort(key=lambda page: _rank(page, section))
    return found


def _rank(page: Page, section: str) -> tuple[int, str]:
    first = FIRST.index(page.name) if page.name in FIRST else len(FIRST)
    return first, page.name if section == "Decisions" else page.title.lower()


def nav(page: Page, navigation: dict[str, list[Page]]) -> str:
    parts = []
    for section, pages in navigation.items():
        if not pages:
            continue
        items = "".join(_nav_item(page, other) for other in pages)
        parts.append(f"<h2>{section}</h2><ul>{items}</ul>")
    return "".join(parts)


def _nav_item(page: Page, other: Page) -> str:
    current = ' aria-current="page"' if other is page else ""
    return f'<li><a href="{page.root}{other.output}"{current}>{html.escape(other.title)}</a></li>'


def contents(page: Page) -> str:
    shown = [section for section in page.sections if section.level in CONTENTS_LEVELS]
    items = (
        f"<li{' class=inner' if section.level > CONTENTS_LEVELS[0] else ''}>"
        f'<a href="#{section.anchor}">{html.escape(section.title)}</a></li>'
        for section in shown
    )
    return f"<ul>{''.join(items)}</ul>" if len(shown) > 1 else ""


def search_index(pages: Iterable[Page]) -> str:
    entries = [
        {
            "url": f"{page.output}#{section.anchor}",
            "title": page.title if section.level == 1 else f"{page.title} › {section.title}",
            "text": re.sub(r"\s+", " ", section.text),
        }
        for page in pages
        for section in page.sections
    ]
    return f"const INDEX = {json.dumps(entries, ensure_ascii=False)};\n"


if __name__ == "__main__":
    main()
