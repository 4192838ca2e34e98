"""What an analyzer answers when it is asked rightly."""

from collections.abc import Mapping
from typing import Any, Final

from camserver.clients.conformance import samples
from camserver.clients.conformance.consistency import expect_agreement, expect_named_fields
from camserver.clients.conformance.findings import Check, Failed, Skipped
from camserver.clients.conformance.talking import (
    CAMERA_ID,
    CAPTURED_AT_MS,
    HEALTH_SEC,
    SCHEMA_SEC,
    Said,
    Stage,
    expect,
    expect_object,
    expect_status,
)
from camserver.domain.analysis import Analysis
from camserver.domain.detections import ALL_EVENTS, TAG_BLUR, TAG_DARK, TAG_GLARE
from camserver.domain.phrases import Phrase
from camserver.domain.vocabulary import Vocabulary, parse_vocabulary
from camserver.wire.analyzer import IMAGE_BYTES_MAX, BrokenAnswer, parse_answer

# Shades of pictures that are too dark, too bright, and merely without any detail.
BLACK, WHITE, GREY = 5, 255, 128
# Narrower, nothing can be seen; wider than 8K, no camera's picture is.
WIDTH_MIN, WIDTH_MAX = 64, 7680
REQUEST_ID: Final = "conformance-1"
HINTS: Final = (
    '{"time_band": "day", "network_zone": "local", "location_type": "entrance", "expected_objects": ["car"], '
    '"excluded_objects": ["cat"], "thresholds": {"person": 0.5}, "of_a_newer_server": {"any": [1, 2]}}'
)


def answered(said: Said, vocabulary: Vocabulary, request_id: str = REQUEST_ID) -> Analysis:
    """The analysis of a 200 that keeps contract and vocabulary, as the server itself reads it and stricter."""
    expect_status(said, 200)
    document = expect_object(said)
    try:
        analysis = parse_answer(said.body, CAMERA_ID, CAPTURED_AT_MS, request_id, vocabulary)
    except BrokenAnswer as error:
        raise Failed(f"応答が契約に反しています: {error.message}", error.message) from None
    expect_named_fields(document)
    expect_agreement(analysis, vocabulary)
    return analysis


async def health(stage: Stage) -> None:
    said = await stage.get("/healthz", HEALTH_SEC)
    expect_status(said, 200)
    document = expect_object(said)
    expect(document.get("status") == "ok", 'status が "ok" ではありません', 'status is not "ok"')
    expect(_is_number(document.get("uptime_sec")), "uptime_sec が数値ではありません", "uptime_sec is no number >= 0")


async def capabilities(stage: Stage) -> None:
    said = await stage.get("/v1/capabilities", SCHEMA_SEC)
    expect_status(said, 200)
    document = expect_object(said)
    for name in ("api_version", "runtime"):
        expect(_is_text(document.get(name)), f"{name} がありません", f"{name} is missing or no text")
    model = document.get("model")
    names_it = isinstance(model, dict) and all(_is_text(model.get(name)) for name in ("name", "version"))
    expect(names_it, "model に name と version がありません", "model does not hold name and version")
    events = document.get("supported_primary_events")
    lists_it = isinstance(events, list) and bool(events) and all(_is_text(event) for event in events)
    expect(lists_it, "supported_primary_events がありません", "supported_primary_events is no list of names")
    unheard = sorted(set(document["supported_primary_events"]) - _events(stage))
    expect(
        not unheard,
        f"supported_primary_events の {unheard} は語彙にありません",
        f"supported_primary_events has {unheard}, which the vocabulary lacks",
    )
    most = document.get("max_image_bytes")
    expect(
        type(most) is int and most >= IMAGE_BYTES_MAX,
        f"max_image_bytes が {IMAGE_BYTES_MAX} 以上の数値ではありません",
        f"max_image_bytes is {most!r}, which is no number from {IMAGE_BYTES_MAX} on",
    )
    widths = document.get("recommended_infer_widths")
    fits = isinstance(widths, list) and bool(widths) and all(_is_width(width) for width in widths)
    expect(
        fits,
        f"recommended_infer_widths が {WIDTH_MIN}〜{WIDTH_MAX} の幅のリストではありません",
        f"recommended_infer_widths is no list of widths from {WIDTH_MIN} to {WIDTH_MAX} pixels",
    )


def _events(stage: Stage) -> set[str]:
    """Those of the vocabulary in force, and the contract's own: what can be told does not follow a vocabulary."""
    return {*parse_vocabulary(stage.document or samples.shipped_vocabulary()).primary_events, *ALL_EVENTS}


async def put_vocabulary(stage: Stage) -> None:
    """Puts what the analyzer holds, or ours where it holds none; from here on it is the stage's."""
    document = stage.document or samples.shipped_vocabulary()
    await _put(stage, document)
    stage.document, stage.vocabulary = document, parse_vocabulary(document)


async def get_vocabulary(stage: Stage) -> None:
    version = stage.held.version
    said = await stage.get("/v1/schema", SCHEMA_SEC)
    expect_status(said, 200)
    document = expect_object(said)
    expect(
        document.get("schema_version") == version,
        f"schema_version が {document.get('schema_version')!r} です ({version!r} のはず)",
        f"schema_version is {document.get('schema_version')!r} after {version!r} was put",
    )
    expect(
        document.get("schema") == stage.document,
        "schema が送ったものと違います",
        "schema is not the document that was put",
    )
    expect(_is_text(document.get("received_at")), "received_at がありません", "received_at is missing")


async def follow_vocabulary(stage: Stage) -> None:
    """Another vocabulary is put for a moment, and the first one again, whatever happens."""
    first = stage.held
    document = samples.other_vocabulary(stage.document)
    other = parse_vocabulary(document)
    try:
        await _put(stage, document)
        said = await stage.analyze(samples.plain(BLACK), schema_version=other.version, request_id=REQUEST_ID)
        answered(said, other)
        late = await stage.analyze(schema_version=first.version)
        expect_status(late, 409)
    finally:
        await _restore(stage)


async def _restore(stage: Stage) -> None:
    try:
        await _put(stage, stage.document)
    except Failed as failed:
        version = stage.document["schema_version"]
        raise Failed(
            f"前の語彙 {version} に戻せませんでした。もう一度送ってください: {failed.why.ja}",
            f"the vocabulary {version} could not be put again, put it yourself: {failed.why.en}",
        ) from None


async def _put(stage: Stage, document: Mapping[str, Any]) -> None:
    version = document["schema_version"]
    said = await stage.put_vocabulary({"schema_version": version, "schema": document})
    expect_status(said, 200)
    told = expect_object(said)
    expect(
        told.get("schema_version") == version and told.get("status") == "accepted",
        f"PUT /v1/schema の応答が正しくありません: {said.shown}",
        f"PUT /v1/schema did not answer schema_version and status accepted: {said.shown}",
    )


async def answer_jpeg(stage: Stage) -> None:
    answered(await stage.analyze(request_id=REQUEST_ID), stage.held)


async def answer_png(stage: Stage) -> None:
    answered(await stage.analyze(samples.scene("PNG"), request_id=REQUEST_ID), stage.held)


async def answer_largest(stage: Stage) -> None:
    answered(await stage.analyze(samples.largest(), request_id=REQUEST_ID), stage.held)


async def echo_request_id(stage: Stage) -> None:
    said = await stage.analyze(request_id=REQUEST_ID)
    answered(said, stage.held)
    echoed = said.document.get("request_id")
    expect(
        echoed == REQUEST_ID, f"request_id が {echoed!r} です", f"request_id {REQUEST_ID!r} came back as {echoed!r}"
    )
    without = await stage.analyze()
    answered(without, stage.held, request_id="")


async def leave_boxes_out(stage: Stage) -> None:
    said = await stage.analyze(return_bboxes="false", request_id=REQUEST_ID)
    answered(said, stage.held)
    expect(not said.document.get("bboxes"), "bboxes が返されました", "there are bboxes, though none were wanted")


async def take_profiles(stage: Stage) -> None:
    for profile in ("fast", "standard"):
        answered(await stage.analyze(profile=profile, request_id=REQUEST_ID), stage.held)


async def take_previous(stage: Stage) -> None:
    said = await stage.analyze(prev_infer_image=samples.plain(GREY), request_id=REQUEST_ID)
    answered(said, stage.held)


async def take_hints(stage: Stage) -> None:
    answered(await stage.analyze(hints_json=HINTS, request_id=REQUEST_ID), stage.held)


async def repeat_itself(stage: Stage) -> None:
    """A picture's answer depends on nothing but the request: any number of analyzers may share the work."""
    first = answered(await stage.analyze(request_id=REQUEST_ID), stage.held)
    answered(await stage.analyze(samples.plain(BLACK), request_id=REQUEST_ID), stage.held)
    again = answered(await stage.analyze(request_id=REQUEST_ID), stage.held)
    told, told_again = ((one.primary_event, one.tags, one.severity) for one in (first, again))
    expect(
        told == told_again,
        f"同じ画像への応答が変わりました: {told} → {told_again}",
        f"the same picture got another answer: {told}, then {told_again}",
    )


async def tell_dark(stage: Stage) -> None:
    await _tell(stage, samples.plain(BLACK), TAG_DARK)


async def tell_glare(stage: Stage) -> None:
    await _tell(stage, samples.plain(WHITE), TAG_GLARE)


async def tell_blur(stage: Stage) -> None:
    await _tell(stage, samples.plain(GREY), TAG_BLUR)


async def _tell(stage: Stage, picture: bytes, tag: str) -> None:
    if not stage.held.has(tag):
        raise Skipped(f"語彙に {tag} がありません", f"{tag} is not in the vocabulary")
    analysis = answered(await stage.analyze(picture, request_id=REQUEST_ID), stage.held)
    expect(tag in analysis.tags, f"{tag} がありません: {analysis.tags}", f"{tag} is not among {analysis.tags}")


async def weigh_severity(stage: Stage) -> None:
    vocabulary = stage.held
    for picture in (samples.plain(BLACK), samples.scene()):
        analysis = answered(await stage.analyze(picture, request_id=REQUEST_ID), vocabulary)
        known = [tag for tag in map(vocabulary.tag, analysis.tags) if tag is not None]
        highest = max((tag.severity_default for tag in known), default=0)
        expect(
            analysis.severity == highest,
            f"severity が {analysis.severity} です (タグの最大は {highest})",
            f"severity is {analysis.severity}, the highest of its tags {analysis.tags} is {highest}",
        )


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_width(value: object) -> bool:
    return type(value) is int and WIDTH_MIN <= value <= WIDTH_MAX


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


CHECKS: Final = (
    Check("health", Phrase("GET /healthz に応答する", "GET /healthz answers"), health),
    Check("capabilities", Phrase("GET /v1/capabilities に応答する", "GET /v1/capabilities answers"), capabilities),
    Check("schema.put", Phrase("語彙を受け取る", "A vocabulary is taken"), put_vocabulary),
    Check("schema.get", Phrase("受け取った語彙を返す", "The vocabulary is given back"), get_vocabulary),
    Check("analyze.jpeg", Phrase("JPEG に契約どおり応答する", "A JPEG is answered by the contract"), answer_jpeg),
    Check("analyze.png", Phrase("PNG に契約どおり応答する", "A PNG is answered by the contract"), answer_png),
    Check(
        "analyze.largest",
        Phrase("5,000,000 バイトの画像を受け取る", "A picture of 5,000,000 bytes is taken"),
        answer_largest,
    ),
    Check("analyze.echo", Phrase("request_id を返す", "request_id is echoed"), echo_request_id),
    Check("analyze.no_boxes", Phrase("return_bboxes=false に従う", "return_bboxes=false is obeyed"), leave_boxes_out),
    Check(
        "analyze.profile",
        Phrase("profile の fast と standard を受け取る", "profile fast and standard are taken"),
        take_profiles,
    ),
    Check("analyze.previous", Phrase("直前の画像を受け取る", "A previous picture is taken"), take_previous),
    Check("analyze.hints", Phrase("ヒントを受け取る", "Hints are taken"), take_hints),
    Check("analyze.same", Phrase("同じ画像に同じ応答をする", "The same picture gets the same answer"), repeat_itself),
    Check("quality.dark", Phrase("暗い画像を camera.dark とする", "A dark picture is camera.dark"), tell_dark),
    Check(
        "quality.glare", Phrase("白飛びの画像を camera.glare とする", "A glaring picture is camera.glare"), tell_glare
    ),
    Check("quality.blur", Phrase("ぼけた画像を camera.blur とする", "A blurred picture is camera.blur"), tell_blur),
    Check("severity", Phrase("severity はタグの最大値", "severity is the highest of the tags"), weigh_severity),
    Check(
        "schema.follow",
        Phrase("新しい語彙に従う", "Another vocabulary is followed"),
        follow_vocabulary,
        disturbs=True,
    ),
)
