"""What an analyzer answers when it is asked wrongly, or too much: errors in the contract's words, never a crash."""

import asyncio
from email.utils import parsedate_to_datetime
from typing import Any, Final

from camserver.clients.conformance import samples
from camserver.clients.conformance.checks import REQUEST_ID, answered, health
from camserver.clients.conformance.findings import Check, Failed
from camserver.clients.conformance.talking import SCHEMA_SEC, Said, Stage, expect, expect_object, expect_status
from camserver.domain.phrases import Phrase

REQUIRED: Final = ("camera_id", "captured_at", "schema_version", "infer_image")
UNHEARD_VERSION: Final = "1999-01-01.1"
AT_ONCE: Final = 24
# While it is overloaded an answer may take its time; one that never comes is found all the same.
OVERLOAD_SEC: Final = 60.0


def refused(said: Said, status: int, error: str) -> None:
    expect_status(said, status)
    document = expect_object(said)
    expect(
        document.get("error") == error,
        f"error が {document.get('error')!r} です ({error!r} のはず)",
        f"error is {document.get('error')!r}, not {error!r}",
    )
    expect(isinstance(document.get("message"), str), "message がありません", "message is missing")


async def need_fields(stage: Stage) -> None:
    for name in REQUIRED:
        left_out: dict[str, Any] = {name: None}
        try:
            refused(await stage.analyze(**left_out), 400, "bad_request")
        except Failed as failed:
            raise Failed(f"{name} なし: {failed.why.ja}", f"without {name}: {failed.why.en}") from None


async def refuse_text(stage: Stage) -> None:
    refused(await stage.analyze(b"this is no picture"), 400, "bad_request")


async def refuse_too_large(stage: Stage) -> None:
    refused(await stage.analyze(samples.too_large()), 400, "bad_request")


async def refuse_bomb(stage: Stage) -> None:
    refused(await stage.analyze(samples.bomb()), 400, "bad_request")
    await health(stage)


async def bear_half(stage: Stage) -> None:
    """Half a picture may be read as far as it goes or refused. It is no reason to fail."""
    said = await stage.analyze(samples.cut_off(), request_id=REQUEST_ID)
    if said.status == 200:
        answered(said, stage.held)
    else:
        refused(said, 400, "bad_request")


async def refuse_other_version(stage: Stage) -> None:
    refused(await stage.analyze(schema_version=UNHEARD_VERSION), 409, "schema_mismatch")


async def refuse_broken_vocabulary(stage: Stage) -> None:
    """A vocabulary that is none is refused, and the one before stays in force."""
    version = stage.held.version
    for body in (b"no JSON", {"schema_version": UNHEARD_VERSION}, {"schema": stage.document}):
        refused(await stage.put_vocabulary(body), 400, "bad_request")
    said = await stage.get("/v1/schema", SCHEMA_SEC)
    expect_status(said, 200)
    held = expect_object(said).get("schema_version")
    expect(held == version, f"語彙が {held!r} に変わりました", f"it took {held!r} in place of {version!r}")


async def refuse_hints(stage: Stage) -> None:
    for hints in ("{", "[1]"):
        refused(await stage.analyze(hints_json=hints), 400, "bad_request")


async def refuse_profile(stage: Stage) -> None:
    refused(await stage.analyze(profile="conformance"), 400, "bad_request")


async def bear_broken_previous(stage: Stage) -> None:
    """A previous picture that is none is refused, or done without. It is no reason to fail."""
    for previous in (b"this is no picture", samples.cut_off()):
        said = await stage.analyze(prev_infer_image=previous, request_id=REQUEST_ID)
        if said.status == 200:
            answered(said, stage.held)
        else:
            refused(said, 400, "bad_request")


def _says_when(said: Said) -> bool:
    value = next((text for name, text in said.headers.items() if name.lower() == "retry-after"), "")
    if value.strip().isdecimal():
        return True
    try:
        parsedate_to_datetime(value)
    except (ValueError, TypeError):
        return False
    return True


async def bear_many(stage: Stage) -> None:
    """More at once than it can do: each is answered or refused in the contract's words."""
    asked = [stage.analyze(limit_sec=OVERLOAD_SEC, request_id=REQUEST_ID) for _ in range(AT_ONCE)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    for said in answers:
        if isinstance(said, BaseException):
            raise said
        if said.status == 200:
            answered(said, stage.held)
        elif said.status == 429:
            refused(said, 429, "overloaded")
            expect(
                _says_when(said),
                "429 に Retry-After がないか、読めません",
                "429 came without a Retry-After of seconds or a date",
            )
        else:
            refused(said, 503, "unavailable")
    expect(
        any(isinstance(said, Said) and said.status == 200 for said in answers),
        f"同時 {AT_ONCE} 件のうち 1 件も解析されませんでした",
        f"of {AT_ONCE} at once none was analyzed",
    )
    await health(stage)


CHECKS: Final = (
    Check("error.fields", Phrase("必須項目がなければ 400", "A missing field is 400"), need_fields),
    Check("error.no_image", Phrase("画像でなければ 400", "What is no picture is 400"), refuse_text),
    Check(
        "error.too_large",
        Phrase("5,000,001 バイトの画像は 400", "A picture of 5,000,001 bytes is 400"),
        refuse_too_large,
    ),
    Check(
        "error.bomb", Phrase("展開すると巨大な画像は 400", "A picture that unpacks to gigabytes is 400"), refuse_bomb
    ),
    Check("error.cut_off", Phrase("途中で切れた画像で落ちない", "Half a picture does no harm"), bear_half),
    Check("error.hints", Phrase("壊れた hints_json は 400", "Broken hints_json is 400"), refuse_hints),
    Check("error.profile", Phrase("知らない profile は 400", "An unknown profile is 400"), refuse_profile),
    Check(
        "error.previous",
        Phrase("壊れた直前の画像で落ちない", "A broken previous picture does no harm"),
        bear_broken_previous,
    ),
    Check("error.mismatch", Phrase("別の語彙の版は 409", "Another version is 409"), refuse_other_version),
    Check(
        "error.schema",
        Phrase("壊れた語彙は 400 で前の語彙が残る", "A broken vocabulary is 400, the old one stays"),
        refuse_broken_vocabulary,
    ),
    Check(
        "overload",
        Phrase("同時に多数でも契約どおり", "Many at once are answered by the contract"),
        bear_many,
        disturbs=True,
    ),
)
