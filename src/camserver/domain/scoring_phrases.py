"""What is wrong with a sheet, and why a run is paused, as people read it in Japanese.

In English a finding's or a run's own message is shown, which says more; here is what it is about, by its stable name.
"""

from collections.abc import Mapping
from typing import Final

from camserver.domain.scoring import PauseReason
from camserver.domain.sheet_layout import Finding, Problem

_PROBLEMS: Final[Mapping[Problem, str]] = {
    Problem.NO_CATEGORIES: "カテゴリー名がありません。この行の、ここから右に入力してください",
    Problem.NAME_MISSING: "カテゴリー名が空です。名前を入力するか、列を削除してください",
    Problem.NAME_TWICE: "同じ名前のカテゴリーがほかにあります。別の名前にしてください",
    Problem.TOO_LONG: "文字数が多すぎます",
    Problem.TOO_MANY: "カテゴリーが多すぎます",
    Problem.NO_TEXTS: "採点する文がありません。文を入力するか、別の列を指定してください",
    Problem.TEXT_MISSING: "文のない行があります。その行は採点しません",
    Problem.SAME_TEXT: "同じ文の行があります",
    Problem.ALREADY_FILLED: "入力済みのセルがあります。そのまま残します",
    Problem.PROTECTED: "保護されていて、点数を書き込めません。保護を解除するか、編集を許可してください",
    Problem.MERGED: "点数を書くセルが結合されています。結合を解除してください",
    Problem.LOCKED: "ほかのアプリ（Excel など）で開かれています。点数は閉じられたあとに書き込みます",
    Problem.FORMULA: "一度も計算されていない数式です。Excel で開いて保存してください",
    Problem.READ_ONLY: "点数を書き込めません。書き込みを許可するか、出力先のファイルを指定してください",
}
_REASONS: Final[Mapping[PauseReason, str]] = {
    PauseReason.ASKED: "停止の指示",
    PauseReason.QUOTA: "プロバイダーの残高または利用枠を使い切りました",
    PauseReason.BUDGET: "予算を使い切りました。続けるには --budget を増やしてください",
    PauseReason.KEY: "API キーが正しくありません",
    PauseReason.REQUEST: "プロバイダーが質問を受け付けません。設定を確かめてください",
    PauseReason.SHEET: "シートに書き込めません",
}


def finding_text(finding: Finding, language: str) -> str:
    if language != "ja":
        return finding.message
    where = f"{finding.where}: " if finding.where else ""
    return where + _PROBLEMS[finding.problem]


def pause_text(reason: str | None, message: str | None, language: str) -> str:
    """With the message where it tells what the reason alone does not: which sheet, what the provider said."""
    known = reason in PauseReason.__members__.values()
    message = message and message.rstrip(" .。")  # it stands within a sentence
    if language != "ja" or reason is None or not known:
        return message or reason or ""
    said = _REASONS[PauseReason(reason)]
    return said if message is None or reason == PauseReason.BUDGET else f"{said}: {message}"
