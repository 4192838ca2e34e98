"""What the commands about receivers and deliveries say, in both languages."""

from camserver.commands.shown import Language, reader_language
from camserver.domain.phrases import Phrase

WORDS = {
    "added": Phrase("送り先「{name}」を追加しました。", "Added the receiver {name}."),
    "changed": Phrase("送り先「{name}」を変更しました。", "Changed the receiver {name}."),
    "removed": Phrase("送り先「{name}」を削除しました。", "Removed the receiver {name}."),
    "switched_on": Phrase("送り先「{name}」を有効にしました。", "Switched {name} on."),
    "switched_off": Phrase("送り先「{name}」を無効にしました。", "Switched {name} off."),
    "arrived": Phrase("テストは「{name}」に届きました。", "The trial arrived at {name}."),
    "no_receivers": Phrase(
        "送り先はありません。camserver receiver add で追加してください。",
        "There are no receivers; add one with: camserver receiver add",
    ),
    "none_there": Phrase("なし", "none"),
    "on": Phrase("有効", "on"),
    "off": Phrase("無効", "off"),
    "no_deliveries": Phrase("該当する配信はありません。", "No such deliveries."),
    "more": Phrase("ほかにもあります。--limit を大きくしてください。", "There are more; raise --limit."),
    "requeued": Phrase("{count} 件をキューに戻しました。", "Queued again: {count}."),
}
HEADS: dict[str, dict[Language, tuple[str, ...]]] = {
    "receivers": {
        "ja": ("名前", "種類", "状態", "最後の成功", "エラー"),
        "en": ("NAME", "KIND", "STATE", "LAST OK", "ERROR"),
    },
    "deliveries": {
        "ja": ("配信", "種類", "送り先", "状態", "試行", "経過", "理由"),
        "en": ("DELIVERY", "KIND", "RECEIVER", "STATUS", "TRIES", "AGE", "WHY"),
    },
}


def say(word: str, /, **values: object) -> str:
    phrase = WORDS[word]
    return (phrase.ja if reader_language() == "ja" else phrase.en).format(**values)


def head(name: str) -> tuple[str, ...]:
    return HEADS[name][reader_language()]
