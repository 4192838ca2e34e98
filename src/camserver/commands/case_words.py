"""What `camserver case` and `camserver retention` say, in Japanese and English."""

from collections.abc import Mapping, Sequence

from camserver.commands.shown import reader_language
from camserver.domain.phrases import Phrase

_WORDS: Mapping[str, Phrase] = {
    "none": Phrase(
        "案件はありません。作るには: camserver case create", "No cases; open one with: camserver case create"
    ),
    "open": Phrase("継続中", "open"),
    "closed": Phrase("終了", "closed"),
    "hold": Phrase("保全中", "on hold"),
    "added": Phrase("{count} 件を追加しました。", "Added: {count}."),
    "there_already": Phrase("{count} 件はすでに入っています。", "In the case already: {count}."),
    "removed": Phrase(
        "{count} 件を取り出しました。あと数日は残ります（retention.case_grace_days）。",
        "Taken out: {count}. It stays for some days more (retention.case_grace_days).",
    ),
    "noted": Phrase("メモを追加しました。", "The note is added."),
    "held": Phrase(
        "保全を始めました。終了しても何も消えません。", "On hold: nothing of it is deleted, closed or not."
    ),
    "hold_ended": Phrase("保全を終えました。", "The hold has ended."),
    "is_closed": Phrase("案件を終了しました。", "The case is closed."),
    "reopened": Phrase("案件を再開しました。", "The case is open again."),
    "opened_by": Phrase("開始: {at}（{by}）", "Opened: {at} by {by}"),
    "changed_at": Phrase("更新: {at}", "Changed: {at}"),
    "closed_at": Phrase("終了: {at}", "Closed: {at}"),
    "state": Phrase("状態: {state}", "State: {state}"),
    "note_head": Phrase("メモ {count} 件:", "Notes: {count}"),
    "item_head": Phrase("証拠 {count} 件:", "Items: {count}"),
    "no_items": Phrase(
        "証拠はまだありません。追加するには: camserver case add",
        "Nothing is in it yet; add something with: camserver case add",
    ),
    "is_held": Phrase("保持中", "kept"),
    "is_free": Phrase("通常の期限", "its own class"),
    "is_gone": Phrase("削除済み", "gone"),
    "frame": Phrase("画像", "frame"),
    "event": Phrase("イベント", "event"),
    "clip": Phrase("動画", "clip"),
    "exported": Phrase("{file} に書き出しました（{count} バイト）。", "Written to {file} ({count} bytes)."),
    "missing": Phrase(
        "書き出し時に欠けていたもの: {kind} {uuid}（{reason}）", "Not in the export: {kind} {uuid} ({reason})"
    ),
    "sound": Phrase(
        "{count} 個のファイルすべてが一致し、署名も正しいものです（鍵 {key}）。",
        "All {count} files are as they were written, and the signature is right (key {key}).",
    ),
    "kept": Phrase("保存中: {bytes}（{at} 現在、{age}前に集計）", "Kept: {bytes} (as of {at}, counted {age} ago)"),
    "free": Phrase("空き容量: {free}（下限 {floor}）", "Free: {free} (floor {floor})"),
    "unknown": Phrase("不明", "unknown"),
    "forecast": Phrase(
        "この増え方では約 {days} 日で下限に達します。", "At this growth the floor is reached in {days} days."
    ),
    "below_floor": Phrase(
        "空き容量が下限を下回っているため、通常の古い画像から消しています。",
        "Free space is below the floor: the oldest ordinary pictures go first.",
    ),
    "steady": Phrase("この増え方では下限に達しません。", "At this growth the floor is not reached."),
    "nothing_goes": Phrase("消えるものはありません。", "Nothing would go."),
    "would_go": Phrase("合計で {bytes} が消えます。", "Together {bytes} would go."),
    "would_go_partly": Phrase(
        "少なくとも {bytes} が消えます。多すぎるため、すべては調べていません。",
        "At least {bytes} would go; there was too much to look at all of it.",
    ),
    "asked": Phrase("整理を始めるよう依頼しました。", "A round is asked for."),
    "over": Phrase("整理が終わりました。", "The round is over."),
    "not_over": Phrase(
        "まだ終わっていません。結果は camserver retention show で確かめてください。",
        "It is not over yet; see camserver retention show.",
    ),
}
_HEAD: Mapping[str, Sequence[str]] = {
    "ja": ("案件", "名前", "状態", "証拠", "メモ", "更新"),
    "en": ("CASE", "TITLE", "STATE", "ITEMS", "NOTES", "CHANGED"),
}

_ITEM_HEAD: Mapping[str, Sequence[str]] = {
    "ja": ("種類", "ID", "カメラ", "サイト", "日時", "追加", "追加した人", "保存"),
    "en": ("KIND", "ID", "CAMERA", "SITE", "WHEN", "ADDED", "BY", "KEPT"),
}


def say(name: str, **values: object) -> str:
    phrase = _WORDS[name]
    return (phrase.ja if reader_language() == "ja" else phrase.en).format(**values)


def head() -> Sequence[str]:
    return _HEAD[reader_language()]


def item_head() -> Sequence[str]:
    return _ITEM_HEAD[reader_language()]
