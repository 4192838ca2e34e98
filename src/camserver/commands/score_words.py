"""What `camserver score` says, in the reader's language."""

from collections.abc import Mapping
from typing import Any

from camserver.commands.shown import reader_language
from camserver.domain.phrases import Phrase

_WORDS: Mapping[str, Phrase] = {
    "sheet": Phrase(
        "{address}: {texts} 行、カテゴリー {categories} 件", "{address}: {texts} rows, {categories} categories"
    ),
    "fine": Phrase("問題は見つかりませんでした。", "Nothing is wrong with it."),
    "error": Phrase("エラー", "error"),
    "warning": Phrase("注意", "warning"),
    "unfit": Phrase("{address} は採点できません: {wrong}", "{address} can't be scored: {wrong}"),
    "stopped": Phrase(
        "一時停止（{reason}）: {why}。同じコマンドで続きから始まります",
        "paused ({reason}): {why}. The same command goes on from here",
    ),
    "begun": Phrase("実行 {run_uuid} を始めます。", "Run {run_uuid} begins."),
    "resumed": Phrase(
        "実行 {run_uuid} の続きから始めます。支払い済みの質問は繰り返しません。",
        "Run {run_uuid} goes on; what was answered is not asked again.",
    ),
    "progress": Phrase(
        "{done}/{tasks} 件（書込 {written}、失敗 {failed}）  {rate:.1f} 件/秒  並列 {limit:.0f}  429 {refused}  "
        "再利用 {hits}  {cost}  残り {eta}",
        "{done}/{tasks} scored ({written} written, {failed} failed)  {rate:.1f}/s  limit {limit:.0f}  429s {refused}"
        "  reused {hits}  {cost}  ETA {eta}",
    ),
    "completed": Phrase(
        "完了: {written} 件を書き込み、{failed} 件は失敗しました。", "Completed: {written} written, {failed} failed."
    ),
    "paused": Phrase(
        "一時停止しました（{reason}）。同じコマンドで続きから始まります。",
        "Paused ({reason}). The same command goes on from here.",
    ),
    "cancelled": Phrase("中止しました。", "Cancelled."),
    "waiting": Phrase(
        "{count} 件の採点結果はまだシートに書かれていません（保存済み）。{why}",
        "Scores that are kept but not in the sheet yet: {count}. {why}",
    ),
    "asked_only": Phrase(
        "質問 {calls} 回（429 は {refused} 回）、再利用 {hits} 件、トークン {tokens_in}+{tokens_out}、{cost}",
        "{calls} questions ({refused} refused as too many), {hits} reused, {tokens_in}+{tokens_out} tokens, {cost}",
    ),
    "notes": Phrase("書き込まれなかった行:", "Rows that are not in the sheet:"),
    "note": Phrase("  {row} 行目: {note}", "  row {row}: {note}"),
    "more": Phrase("  ほか {count} 件", "  and {count} more"),
    "estimate": Phrase(
        "質問 {unique_calls} 回（全 {tasks} 件のうち、同じ質問 {same} 件、再利用 {cache_hits} 件、入力済み "
        "{filled} 件）\nトークン: 送信 約 {tokens_in}、回答 約 {tokens_out}\n費用: {cost}\n時間: 約 {time}{basis}",
        "{unique_calls} questions (of {tasks}: {same} the same as others, {cache_hits} answered before; {filled} "
        "filled already)\nTokens: about {tokens_in} sent, {tokens_out} answered\nCost: {cost}\n"
        "Time: about {time}{basis}",
    ),
    "guessed": Phrase("（実測なし）", " (a guess: this model was not measured yet)"),
    "no_price": Phrase("不明（このモデルの価格が設定されていません）", "not known (no price of this model is set)"),
    "no_cost": Phrase("費用不明", "cost not known"),
    "none": Phrase("実行はありません。", "No runs."),
    "retried": Phrase("{count} 件をもう一度試します。", "To be tried again: {count}."),
    "written": Phrase("{path} を書きました。", "Wrote {path}."),
}
HEADS = {
    "ja": ("実行", "シート", "状態", "済み", "失敗", "費用", "更新"),
    "en": ("RUN", "SHEET", "STATUS", "DONE", "FAILED", "COST", "UPDATED"),
}


def say(name: str, **values: Any) -> str:
    phrase = _WORDS[name]
    return (phrase.ja if reader_language() == "ja" else phrase.en).format(**values)


def money(micro: float | None) -> str:
    return say("no_price") if micro is None else f"${micro / 1_000_000:.4f}"


def spent(micro: float, calls: int) -> str:
    """What a run has cost. Questions that cost nothing were put to a model whose price nobody said."""
    return say("no_cost") if calls and not micro else money(micro)


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 7200 else f"{whole // 3600} h {whole % 3600 // 60} min"
