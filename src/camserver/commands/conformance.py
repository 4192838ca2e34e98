"""`camserver conformance`: whether an analyzer, anybody's, keeps the analyzer contract."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from camserver.base.errors import BadInput
from camserver.base.exits import Exit
from camserver.commands.root import json_option
from camserver.commands.shown import Language, columns_of, reader_language
from camserver.domain.phrases import Phrase

if TYPE_CHECKING:
    from camserver.clients.conformance.findings import Finding

_STANDINGS = {
    "ok": Phrase("合格", "ok"),
    "failed": Phrase("不合格", "failed"),
    "skipped": Phrase("省略", "skipped"),
}
_COLOURS = {"ok": "green", "failed": "red", "skipped": "yellow"}
_SUM = Phrase("合格 {ok}、不合格 {failed}、省略 {skipped}", "{ok} ok, {failed} failed, {skipped} skipped")
_STANDING_COLUMNS = 7


@click.command()
@click.argument("url")
@click.option("--only", multiple=True, metavar="NAME", help="Only this check; may be given several times.")
@click.option("--gentle", is_flag=True, help="Leave out what an analyzer's other users would notice.")
@click.option("--person", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="A picture of somebody: checks the rules about people too.", show_default="none")  # fmt: skip
@json_option
def conformance(url: str, only: tuple[str, ...], gentle: bool, person: Path | None, as_json: bool) -> None:
    """Check whether an analyzer keeps the analyzer contract.

    Runs the contract's checks against the analyzer at URL and prints a line for each. Two of them disturb others that
    use it: another vocabulary is put for a moment, and many pictures are sent at once; --gentle leaves them out. The
    vocabulary that was in force is in force afterwards. Ends with code 12 when a check failed.

    \b
    Examples:
      camserver conformance http://127.0.0.1:9000
      camserver conformance http://127.0.0.1:9000 --gentle --json
      camserver conformance http://127.0.0.1:9000 --only analyze.jpeg
      camserver conformance http://127.0.0.1:9000 --person somebody.jpg
    """
    language = reader_language()
    try:
        picture = None if person is None else person.read_bytes()
    except OSError as error:
        raise BadInput(f"{person} can't be read: {error.strerror}") from None

    async def work() -> "list[Finding]":
        from camserver.clients.conformance.running import NAMES, run_checks

        findings = []
        width = max(map(len, NAMES))
        async for finding in run_checks(url, only, gentle=gentle, person=picture):
            findings.append(finding)
            if not as_json:
                click.echo(line_of(finding, language, width))
        return findings

    findings = asyncio.run(work())
    counted = Counter(str(finding.standing) for finding in findings)
    if as_json:
        click.echo(json.dumps(_document(url, findings, language), ensure_ascii=False))
    else:
        click.echo(_in(_SUM, language).format(**{name: counted[name] for name in _STANDINGS}))
    click.get_current_context().exit(Exit.CHECK_FAILED.value if counted["failed"] else 0)


def line_of(finding: "Finding", language: Language, width: int) -> str:
    """One check as people read it: its name, how it ended, and why or what it was about."""
    standing = str(finding.standing)
    shown = _in(_STANDINGS[standing], language)
    padded = click.style(shown, fg=_COLOURS[standing]) + " " * max(_STANDING_COLUMNS - columns_of(shown), 0)
    title, why = _in(finding.title, language), _in(finding.why, language)
    return f"{finding.name:<{width}}  {padded}  {title}{f': {why}' if why else ''}"


def _document(url: str, findings: "list[Finding]", language: Language) -> dict[str, object]:
    return {
        "url": url,
        "conforms": all(finding.standing != "failed" for finding in findings),
        "checks": [
            {
                "name": finding.name,
                "title": _in(finding.title, language),
                "standing": str(finding.standing),
                "why": _in(finding.why, language) or None,
            }
            for finding in findings
        ],
    }


def _in(phrase: Phrase, language: Language) -> str:
    return phrase.ja if language == "ja" else phrase.en
