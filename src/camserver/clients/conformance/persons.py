"""What an analyzer says of a picture with somebody in it, which only its user can give: the rules about people."""

import json
from typing import Final

from camserver.clients.conformance.checks import REQUEST_ID, answered
from camserver.clients.conformance.findings import Check, Skipped
from camserver.clients.conformance.talking import Stage, expect
from camserver.domain.analysis import Analysis
from camserver.domain.detections import NIGHT_HUMAN_SEVERITY, TAG_MULTIPLE, TAG_SINGLE, Category
from camserver.domain.phrases import Phrase

HUMAN: Final = str(Category.HUMAN)
# The contract leaves open whether hints name what is found or what it counts as.
NAMES: Final = ("person", HUMAN)


async def see_somebody(stage: Stage) -> None:
    analysis = await _said(stage)
    _expect_human(analysis)
    expect(analysis.detected, "detected が true ではありません", "detected is not true")


async def count_people(stage: Stage) -> None:
    analysis = await _said(stage)
    _expect_human(analysis)
    counted = {tag for tag in (TAG_SINGLE, TAG_MULTIPLE) if tag in analysis.tags}
    if any(not stage.held.has(tag) for tag in (TAG_SINGLE, TAG_MULTIPLE)):
        raise Skipped("語彙に count.* がありません", "the vocabulary has no tags of counts")
    expect(
        len(counted) == 1,
        f"{TAG_SINGLE} か {TAG_MULTIPLE} のどちらか一つではありません: {analysis.tags}",
        f"not one of {TAG_SINGLE} and {TAG_MULTIPLE} is among {analysis.tags}",
    )
    if analysis.count_hint is not None:
        expect(
            (analysis.count_hint == 1) == (TAG_SINGLE in counted) and analysis.count_hint > 0,
            f"count_hint が {analysis.count_hint} で、タグは {counted} です",
            f"count_hint is {analysis.count_hint}, but the tag is {counted}",
        )


async def weigh_night(stage: Stage) -> None:
    _expect_human(await _said(stage))
    analysis = await _said(stage, time_band="night")
    expect(
        analysis.severity >= NIGHT_HUMAN_SEVERITY,
        f"夜間の人で severity が {analysis.severity} です",
        f"somebody at night has the severity {analysis.severity}, not {NIGHT_HUMAN_SEVERITY} or more",
    )


async def leave_out(stage: Stage) -> None:
    _expect_human(await _said(stage))
    _expect_nobody(await _said(stage, excluded_objects=list(NAMES)), "excluded_objects")


async def heed_thresholds(stage: Stage) -> None:
    first = await _said(stage)
    _expect_human(first)
    if first.confidence is not None and first.confidence >= 1.0:
        raise Skipped("確度が 1 のため確認できません", "it is so sure that no threshold is above it")
    _expect_nobody(await _said(stage, thresholds=dict.fromkeys(NAMES, 1.0)), "thresholds")


async def _said(stage: Stage, **hints: object) -> Analysis:
    if stage.person is None:
        raise Skipped("--person で画像を指定してください", "give a picture of somebody with --person")
    said = await stage.analyze(stage.person, hints_json=json.dumps(hints) if hints else None, request_id=REQUEST_ID)
    return answered(said, stage.held)


def _expect_human(analysis: Analysis) -> None:
    expect(
        analysis.primary_event == HUMAN,
        f"primary_event が {analysis.primary_event} です ({HUMAN} のはず)",
        f"primary_event is {analysis.primary_event}, not {HUMAN}; is somebody in the picture?",
    )


def _expect_nobody(analysis: Analysis, hint: str) -> None:
    left = sorted(tag for tag in analysis.tags if tag in (TAG_SINGLE, TAG_MULTIPLE))
    expect(
        analysis.primary_event != HUMAN and not left,
        f"{hint} が守られていません: {analysis.primary_event} {left}",
        f"{hint} is not heeded: primary_event is {analysis.primary_event}, tags {left}",
    )


CHECKS: Final = (
    Check("person.human", Phrase("人を human とする", "Somebody is human"), see_somebody),
    Check("person.count", Phrase("人数のタグが一つ付く", "People are counted by one tag"), count_people),
    Check("person.night", Phrase("夜間の人は severity 2 以上", "Somebody at night has severity 2"), weigh_night),
    Check("person.excluded", Phrase("excluded_objects に従う", "excluded_objects is heeded"), leave_out),
    Check("person.thresholds", Phrase("thresholds に従う", "thresholds are heeded"), heed_thresholds),
)
