"""What `camserver audit` says, in Japanese and English."""

from camserver.commands.shown import reader_language
from camserver.domain.phrases import Phrase

_WORDS = {
    "none": Phrase("該当する記録はありません。", "No such entries."),
    "more": Phrase("ほかにもあります。--limit を大きくしてください。", "There are more; raise --limit."),
    "checking": Phrase("確認中", "Checking"),
    "whole": Phrase(
        "{tenant}: 異常なし（{batches} バッチ、{entries} 件）",
        "{tenant}: whole ({batches} batches, {entries} entries)",
    ),
    "not_whole": Phrase(
        "{tenant}: 異常あり（{batches} バッチ、{entries} 件）",
        "{tenant}: NOT whole ({batches} batches, {entries} entries)",
    ),
    "key": Phrase("署名を鍵 {key_id} で確かめました。", "Signatures were checked with the key {key_id}."),
    "no_key": Phrase(
        "鍵がないため、署名は確かめていません（ハッシュのみ）。",
        "Without the key only hashes were checked, no signatures.",
    ),
    "last": Phrase("最後の封印: バッチ {batch}、{hash}", "Last seal: batch {batch}, {hash}"),
    "unsealed": Phrase("まだ封印されていない記録: {count} 件", "Not sealed yet: {count}"),
    "unsealed_late": Phrase(
        "まだ封印されていない記録: {count} 件。ディスパッチャーが動いていない可能性があります。",
        "Not sealed yet: {count}, some for more than ten minutes; does a dispatcher run?",
    ),
    "late": Phrase(
        "{tenant} の監査ログに、10分以上封印されていない記録があります（未封印 {count} 件）。封印されるまで"
        "確かめられません。カメラサーバーを起動して数分待ってください。動いている場合はディスパッチャーのログを"
        "調べてください。",
        "the audit log of {tenant} has entries that are not sealed after more than ten minutes ({count} not sealed), "
        "so they can't be checked; start camserver and wait some minutes, or, where it runs, look at the log of the "
        "dispatcher",
    ),
    "broken": Phrase(
        "{tenant} の監査ログに異常があります。最初の異常: {what}",
        "the audit log of {tenant} is not whole; first: {what}",
    ),
    "exported": Phrase("{file} に書き出しました（{bytes} バイト）。", "Written to {file} ({bytes} bytes)."),
}
HEADS: dict[str, tuple[str, ...]] = {
    "ja": ("日時（UTC）", "だれ", "操作", "対象", "詳細", "アドレス"),
    "en": ("TIME (UTC)", "WHO", "ACTION", "OBJECT", "DETAILS", "ADDRESS"),
}


def say(name: str, **values: object) -> str:
    phrase = _WORDS[name]
    return (phrase.ja if reader_language() == "ja" else phrase.en).format(**values)
