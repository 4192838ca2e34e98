"""`camserver llm`: the language model that is asked about unclear events."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from camserver.commands.asking import with_server
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import Language, reader_language
from camserver.domain.phrases import Phrase

if TYPE_CHECKING:
    from camserver.config import Settings

# As much as providers take.
PICTURE_MAX_BYTES = 4_000_000

_WORDS: Mapping[str, Phrase] = {
    "asked": Phrase(
        "{provider} の {model} に質問しました（{seconds:.1f} 秒）", "Asked {model} of {provider} ({seconds:.1f} s)"
    ),
    "label": Phrase("ラベル: {label}", "Label: {label}"),
    "memo": Phrase("メモ: {memo}", "Memo: {memo}"),
    "tokens": Phrase(
        "トークン: 送信 {tokens_in}、回答 {tokens_out}", "Tokens: {tokens_in} sent, {tokens_out} answered"
    ),
    "cost": Phrase("費用: {cost:.6f} ドル", "Cost: {cost:.6f} US dollars"),
    "off": Phrase("言語モデルは設定されていません。[llm] を設定してください", "No model is configured; see [llm]"),
    "today": Phrase(
        "{day} (UTC) の {provider} {model} への質問: {calls} / {calls_max} 回",
        "Questions to {model} of {provider} on {day} (UTC): {calls} of {calls_max}",
    ),
    "spent": Phrase(
        "費用: {cost:.6f} ドル（上限 {cost_max:.2f} ドル）", "Cost: {cost:.6f} of {cost_max:.2f} US dollars"
    ),
    "no_price": Phrase(
        "費用: 不明。[llm] の price_in と price_out で設定できます",
        "Cost: not known; [llm] price_in and price_out set it",
    ),
}


@click.group()
def llm() -> None:
    """Try the language model, and see what it was asked."""


@llm.command("status")
@json_option
@pass_chosen
def llm_status(chosen: Chosen, as_json: bool) -> None:
    """Show what was asked today, and the day's budget.

    \b
    Example:
      camserver llm status
    """
    found = with_server(chosen, lambda server: server.get("/api/llm/budget"))
    click.echo(json.dumps(found, ensure_ascii=False) if as_json else budget_lines(found, reader_language()))


@llm.command("test")
@click.argument("picture", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=False)
@json_option
@pass_chosen
def llm_test(chosen: Chosen, picture: Path | None, as_json: bool) -> None:
    """Ask the configured model about a picture.

    PICTURE is a JPEG, PNG or WebP file; without one a drawn test picture is sent. The model is asked as it would be
    about an unclear event, which may cost a little money. Nothing is stored, and no server need run.

    \b
    Examples:
      camserver llm test
      camserver llm test unclear.jpg --json
    """
    result = asyncio.run(_asked(chosen.settings(), _picture(picture)))
    click.echo(json.dumps(result, ensure_ascii=False) if as_json else described(result, reader_language()))


def _picture(file: Path | None) -> bytes:
    from camserver.base.errors import BadInput
    from camserver.media.test_pictures import draw

    if file is None:
        return draw((640, 360), 3, 8)
    data = file.read_bytes()
    if len(data) > PICTURE_MAX_BYTES:
        raise BadInput(
            f"{file} has {len(data)} bytes; at most {PICTURE_MAX_BYTES} are sent. Choose a smaller picture"
        )
    if not data.startswith((b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n")) and data[:4] + data[8:12] != b"RIFFWEBP":
        raise BadInput(f"{file} is no JPEG, PNG or WebP picture; choose another file")
    return data


async def _asked(settings: "Settings", picture: bytes) -> dict[str, Any]:
    import time
    from datetime import UTC

    from camserver.base.errors import BadSettings, CheckFailed
    from camserver.clients.llm.opening import configured_price, open_configured
    from camserver.clients.llm.questions import LlmError, Prompt
    from camserver.domain import reviews

    chosen, policy = settings.llm, settings.llm_review
    if not chosen.is_configured:
        raise BadSettings(
            "no language model is configured; set provider and key in [llm], see docs/guide/llm-review.md"
        )
    question = reviews.ask(policy.labels, policy.language, round(time.time() * 1000), UTC)
    client = open_configured(chosen)
    began_sec = time.monotonic()
    try:
        prompt = Prompt(question.system, question.text, (picture,))
        answer = await client.ask(prompt, question.schema, chosen.max_tokens)
    except LlmError as error:
        raise CheckFailed(
            f"{error.kind.value}: {error.message}. {_NEXT.get(error.kind.value, '')}".rstrip()
        ) from None
    finally:
        await client.close()
    review = reviews.read_review(answer.parsed or {}, policy.labels)
    if review is None:
        raise CheckFailed("the model answered without a memo; try another model")
    price = configured_price(chosen)
    return {
        "provider": chosen.provider,
        "model": answer.model,
        "label": review.label,
        "memo": review.memo,
        "tokens_in": answer.usage.tokens_in,
        "tokens_out": answer.usage.tokens_out,
        "cost_usd": None if price is None else price.cost_micro(answer.usage) / 1_000_000,
        "seconds": round(time.monotonic() - began_sec, 3),
    }


def budget_lines(found: Mapping[str, Any], language: Language) -> str:
    most = found["cost_micro_max"]
    values = {**found, "cost": found["cost_micro"] / 1_000_000, "cost_max": (most or 0) / 1_000_000}
    lines = ("today", "tokens", "cost" if most is None else "spent") if found["is_configured"] else ("off",)
    return "\n".join(getattr(_WORDS[line], language).format(**values) for line in lines)


def described(result: Mapping[str, Any], language: Language) -> str:
    from camserver.domain.reviews import label_phrase

    label = label_phrase(result["label"])
    values = {**result, "label": label.ja if language == "ja" else label.en, "cost": result["cost_usd"]}
    lines = ("asked", "label", "memo", "tokens", "no_price" if result["cost_usd"] is None else "cost")
    return "\n".join(getattr(_WORDS[line], language).format(**values) for line in lines)


_NEXT: Mapping[str, str] = {
    "bad_key": "Check llm.key.",
    "bad_request": "Check llm.model and llm.base_url.",
    "quota": "Top up the account, or wait until its allowance is back.",
    "connection": "Check llm.base_url and the network.",
    "truncated": "Raise llm.max_tokens.",
    "broken_answer": "Try another model.",
    "timeout": "Raise llm.timeout_sec.",
}
