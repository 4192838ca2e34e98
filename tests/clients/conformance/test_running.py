"""Our own analyzer keeps the contract, and every lie of the fake analyzer is found."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from camserver.base.errors import BadInput, Unavailable
from camserver.clients.conformance.findings import Finding, Standing
from camserver.clients.conformance.running import NAMES, run_checks
from tests.fakes.analyzer import BOASTS, BREAKS, SLIPS, FakeAnalyzer, Fault, Rule, Seen
from tests.rig.pictures import jpeg
from tests.rig.polling import until
from tests.rig.ports import LOOPBACK, free_port
from tests.rig.processes import REPOSITORY
from tests.services.analyzer.rig import DOCUMENT, PERSON, SHARP, ScriptedDetector, running_analyzer

# The fake looks at hints in pictures, not at pictures, and unpacks whatever it is sent.
PEOPLE = tuple(name for name in NAMES if name.startswith("person."))
BEYOND_THE_FAKE = {"quality.dark", "quality.glare", "quality.blur", "error.bomb"}


async def found(url: str, *only: str, gentle: bool = False, person: bytes | None = None) -> dict[str, Finding]:
    return {finding.name: finding async for finding in run_checks(url, only, gentle=gentle, person=person)}


def names_of(findings: dict[str, Finding], standing: Standing) -> set[str]:
    return {name for name, finding in findings.items() if finding.standing is standing}


@pytest.fixture
async def fake(tmp_path: Path) -> AsyncIterator[FakeAnalyzer]:
    async with FakeAnalyzer(tmp_path / "state.json") as analyzer:
        yield analyzer


@pytest.mark.parametrize("finds", [(), (PERSON,)], ids=["nothing", "a person"])
async def test_our_analyzer_conforms(tmp_path: Path, finds: tuple[()]) -> None:
    async with running_analyzer(tmp_path, [ScriptedDetector(finds)], waiting_max=4) as analyzer:
        findings = await found(analyzer.url)
        assert [finding for finding in findings.values() if finding.standing is not Standing.OK] == []
        assert tuple(findings) == tuple(name for name in NAMES if not name.startswith("person."))


async def test_our_analyzer_keeps_the_rules_about_people(tmp_path: Path) -> None:
    async with running_analyzer(tmp_path, [ScriptedDetector([PERSON])]) as analyzer:
        findings = await found(analyzer.url, person=SHARP)
        assert names_of(findings, Standing.OK) == set(NAMES)


async def test_who_breaks_the_rules_about_people_is_found(fake: FakeAnalyzer) -> None:
    """The fake says what the picture tells it to, whatever the hints are."""
    somebody = jpeg(Seen("human", ("count.single",), count_hint=2, severity=1).hint())
    findings = await found(fake.url, *PEOPLE, person=somebody)
    assert names_of(findings, Standing.OK) == {"person.human"}
    nobody = jpeg(Seen("none", ()).hint())
    findings = await found(fake.url, *PEOPLE, person=nobody)
    assert names_of(findings, Standing.FAILED) == set(PEOPLE)
    assert names_of(await found(fake.url, *PEOPLE), Standing.SKIPPED) == set(PEOPLE)


async def test_a_refusal_says_when_to_come_again(fake: FakeAnalyzer) -> None:
    for retry_after, standing in ((None, Standing.FAILED), ("soon", Standing.FAILED), ("3", Standing.OK)):
        fake.add_fault(Rule(Fault.answer_status(429, retry_after), after=3))
        assert names_of(await found(fake.url, "overload"), standing) == {"overload"}, retry_after
        fake.heal()


async def test_the_vocabulary_in_force_is_in_force_afterwards(tmp_path: Path) -> None:
    async with running_analyzer(tmp_path) as analyzer:
        own = {**DOCUMENT, "schema_version": "of-this-house.7"}
        await analyzer.put_vocabulary(own)
        findings = await found(analyzer.url)
        assert names_of(findings, Standing.FAILED) == set()
        _, held, _ = await analyzer.ask("GET", "/v1/schema")
        assert (held["schema_version"], held["schema"]) == ("of-this-house.7", own)


async def test_gentle_checks_put_no_other_vocabulary(fake: FakeAnalyzer) -> None:
    findings = await found(fake.url, gentle=True)
    assert names_of(findings, Standing.SKIPPED) == {"schema.follow", "overload"}
    put = [record for record in fake.requests if record.method == "PUT" and record.status == 200]
    assert {record.schema_version for record in put} == {fake.schema_version}


async def test_the_fake_fails_where_it_is_no_analyzer(fake: FakeAnalyzer) -> None:
    findings = await found(fake.url)
    assert names_of(findings, Standing.FAILED) == BEYOND_THE_FAKE
    assert "camera.dark" in findings["quality.dark"].why.en
    assert findings["quality.dark"].why.ja != ""


async def test_every_breach_of_the_contract_is_found(fake: FakeAnalyzer) -> None:
    unfound = []
    for breach in BREAKS:
        fake.add_fault(Fault.break_contract(breach))
        findings = await found(fake.url, "analyze.jpeg")
        if names_of(findings, Standing.FAILED) != {"analyze.jpeg"}:
            unfound.append(breach)
        fake.heal()
    assert unfound == []


@pytest.mark.parametrize(
    ("breach", "why"),
    [
        ("detected:nothing", "primary_event is none"),
        ("detected:not_the_human", "detected is false, but primary_event is human"),
        ("unknown_flag:of_nothing", "detected is false, but unknown_flag"),
        ("unknown_flag:unsure", "confidence of 0.4 for human"),
        ("unknown_flag:unsure_hazard", "confidence of 0.6 for hazard"),
        ("primary_event:not_the_hazard", "a hazard comes first"),
        ("tags:both_counts", "both among the tags"),
        ("answer:prose", "no field description"),
        ("diff:more", r"no field diff.comment"),
        ("model_info:more", "no field model_info.vendor"),
        ("bboxes:more", "no field bboxes.age"),
    ],
)
async def test_fields_that_do_not_agree_are_found(fake: FakeAnalyzer, breach: str, why: str) -> None:
    fake.add_fault(Fault.break_contract(breach))
    findings = await found(fake.url, "analyze.jpeg", "analyze.hints", "analyze.previous")
    assert names_of(findings, Standing.FAILED) == {"analyze.jpeg", "analyze.hints", "analyze.previous"}
    assert why in findings["analyze.jpeg"].why.en


def test_each_slip_is_tried() -> None:
    (marked,) = [one for one in test_fields_that_do_not_agree_are_found.pytestmark if one.name == "parametrize"]
    assert {breach for breach, _ in marked.args[1]} == set(SLIPS)


async def test_what_was_detected_without_an_event_is_a_doubt(fake: FakeAnalyzer) -> None:
    something = jpeg(Seen("none", detected=True, unknown_flag=True).hint())
    findings = await found(fake.url, "person.human", person=something)
    assert "primary_event" in findings["person.human"].why.en, "nothing else is wrong with it"
    assert "detected" not in findings["person.human"].why.en


@pytest.mark.parametrize("boast", BOASTS)
async def test_capabilities_that_can_not_be_are_found(fake: FakeAnalyzer, boast: str) -> None:
    fake.add_fault(Rule(Fault.break_contract(boast), path="/v1/capabilities"))
    findings = await found(fake.url, "capabilities")
    assert names_of(findings, Standing.FAILED) == {"capabilities"}
    assert boast.partition(":")[0] in findings["capabilities"].why.en


@pytest.mark.parametrize(
    "fault",
    [
        Fault.answer_status(500),
        Fault.answer_status(204),
        Fault.reset(),
        Fault.cut_off(),
        Fault.malformed(),
        Fault.huge(2_000_000),
        Fault.redirect("/healthz"),
    ],
    ids=lambda fault: f"{fault.kind}-{fault.status}",
)
async def test_an_answer_that_is_none_is_found(fake: FakeAnalyzer, fault: Fault) -> None:
    fake.add_fault(fault)
    findings = await found(fake.url, "analyze.jpeg", "error.mismatch")
    assert names_of(findings, Standing.FAILED) == {"analyze.jpeg", "error.mismatch"}


@pytest.mark.parametrize(("path", "name"), [("/healthz", "health"), ("/v1/capabilities", "capabilities")])
async def test_other_calls_are_checked_too(fake: FakeAnalyzer, path: str, name: str) -> None:
    fake.add_fault(Rule(Fault.answer_status(503), path=path))
    assert names_of(await found(fake.url, name), Standing.FAILED) == {name}


async def test_without_a_vocabulary_nothing_else_can_be_said(fake: FakeAnalyzer) -> None:
    fake.add_fault(Rule(Fault.answer_status(400), path="/v1/schema", method="PUT"))
    findings = await found(fake.url)
    assert "schema.put" in names_of(findings, Standing.FAILED)
    assert {"analyze.jpeg", "error.fields", "overload"} <= names_of(findings, Standing.SKIPPED)


async def test_a_failed_put_is_told_although_only_another_check_was_wanted(fake: FakeAnalyzer) -> None:
    fake.add_fault(Rule(Fault.answer_status(400), path="/v1/schema", method="PUT"))
    assert set(await found(fake.url, "analyze.png")) == {"schema.put", "analyze.png"}


async def test_only_what_was_asked_for_is_told(fake: FakeAnalyzer) -> None:
    assert set(await found(fake.url, "analyze.png")) == {"analyze.png"}


async def test_the_old_vocabulary_comes_back_when_the_other_is_answered_wrongly(fake: FakeAnalyzer) -> None:
    await found(fake.url, "analyze.png")
    before = fake.schema_version
    fake.add_fault(Fault.answer_status(500))
    findings = await found(fake.url, "schema.follow")
    assert names_of(findings, Standing.FAILED) == {"schema.follow"}
    assert fake.schema_version == before


async def test_a_vocabulary_that_can_not_be_put_again_is_told(fake: FakeAnalyzer) -> None:
    # The first is for the check's own start, the second for the other vocabulary.
    fake.add_fault(Rule(Fault.answer_status(503), path="/v1/schema", method="PUT", after=2))
    findings = await found(fake.url, "schema.follow")
    assert "could not be put again" in findings["schema.follow"].why.en


async def test_an_interrupted_run_leaves_the_vocabulary_as_it_was(fake: FakeAnalyzer) -> None:
    await found(fake.url, "analyze.png")
    before = fake.schema_version
    fake.add_fault(Fault.hold())
    running = asyncio.create_task(found(fake.url, "schema.follow"))
    await until(lambda: fake.schema_version != before, "the other vocabulary is in force")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert fake.schema_version == before


async def test_nobody_there_is_no_finding() -> None:
    with pytest.raises(Unavailable, match="no analyzer answers"):
        await found(f"http://{LOOPBACK}:{free_port()}")


@pytest.mark.parametrize("url", ["analyzer:9000", "file:///etc/passwd"])
async def test_an_address_is_one_of_http(url: str) -> None:
    with pytest.raises(BadInput, match="http://"):
        await found(url)


async def test_a_check_that_is_none_is_named(fake: FakeAnalyzer) -> None:
    with pytest.raises(BadInput, match=r"'analyze\.gif'.*analyze\.jpeg"):
        await found(fake.url, "analyze.gif")


def test_every_check_is_described_on_its_page() -> None:
    page = (REPOSITORY / "docs/ref/conformance.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^\| `([a-z_.]+)` \|", page, re.MULTILINE)) == NAMES
