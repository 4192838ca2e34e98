"""What is said of a chain of the audit log that is not whole, and what to do, in Japanese and English."""

from collections.abc import Mapping

from camserver.domain.audit import Finding, Wrong
from camserver.domain.phrases import Phrase

_ENTRIES = ": {entries}"
WHAT: Mapping[Wrong, Phrase] = {
    Wrong.ENTRY_CHANGED: Phrase("バッチ {batch} の記録が書き換えられています", "Batch {batch}: entries were changed"),
    Wrong.ENTRY_REMOVED: Phrase("バッチ {batch} の記録が消されています", "Batch {batch}: entries were removed"),
    Wrong.ENTRY_ADDED: Phrase("バッチ {batch} に後から記録が加えられています", "Batch {batch}: entries were added"),
    Wrong.SEAL_CHANGED: Phrase("バッチ {batch} の封印が書き換えられています", "Batch {batch}: its seal was changed"),
    Wrong.SEAL_MISSING: Phrase("バッチ {batch} の封印がありません", "Batch {batch}: its seal is missing"),
    Wrong.CHAIN_CUT: Phrase(
        "このマシンが覚えているバッチ {batch} の封印が、データベースにないか、別のものになっています",
        "Batch {batch}: this machine made a seal that the database lacks or has otherwise",
    ),
    Wrong.CHAIN_GONE: Phrase(
        "このマシンがバッチ {batch} まで封印したテナント番号 {tenant} の監査ログがありません。"
        "このテナントの消去は依頼されていません",
        "The log of the tenant with the number {tenant}, which this machine sealed up to batch {batch}, is gone; "
        "nobody asked for that tenant to be erased",
    ),
    Wrong.ANCHORS_UNREADABLE: Phrase(
        "このマシンが覚えている最後の封印（audit-anchors.json）を読めません",
        "What this machine remembers of the last seals (audit-anchors.json) can't be read",
    ),
    Wrong.FORGED: Phrase("バッチ {batch} の署名が正しくありません", "Batch {batch}: its signature is wrong"),
    Wrong.OTHER_KEY: Phrase(
        "バッチ {batch} は、ここにない鍵で署名されています", "Batch {batch}: it is signed with a key that is not here"
    ),
    Wrong.PRUNED_EARLY: Phrase(
        "バッチ {batch} の記録が、保存期間より早く消されています",
        "Batch {batch}: its entries were deleted earlier than retention deletes any",
    ),
    Wrong.PRUNED_UNLOGGED: Phrase(
        "バッチ {batch} の記録が、保存期間の処理によらずに消されています",
        "Batch {batch}: its entries were deleted, and not by retention",
    ),
    Wrong.PRUNED_FORGED: Phrase(
        "バッチ {batch} の記録が消されていますが、保存期間の処理による署名がないか、正しくありません",
        "Batch {batch}: its entries were deleted, and retention's signature for that is missing or wrong",
    ),
}
_TAMPERED = Phrase(
    "カメラサーバー以外がデータベースを書き換えた可能性があります。データベースを使える人とそのログを調べ、"
    "バックアップや書き出したファイルと比べてください。",
    "Something other than camserver wrote to the database: find out who can, look at the database's own log, and "
    "compare with a backup or an export.",
)
_RESTORED = Phrase(
    "データベースを古いバックアップに戻しましたか。戻していなければ、新しい記録が消されています。"
    "戻したのなら、データフォルダーの audit-anchors.json を別の場所に移してください。",
    "Was the database restored from an older backup? If not, the newest entries were taken away. If it was, move "
    "audit-anchors.json out of the data folder.",
)
WHAT_TO_DO: Mapping[Wrong, Phrase] = {
    Wrong.OTHER_KEY: Phrase(
        "封印したマシンの audit_key をここの秘密フォルダーに置いてください。鍵を失った場合は --without-key で"
        "ハッシュだけを確かめられます。",
        "Put the file audit_key of the machine that sealed it into the secrets folder here. Where that key is lost, "
        "--without-key checks the hashes alone.",
    ),
    Wrong.CHAIN_CUT: _RESTORED,
    Wrong.CHAIN_GONE: _RESTORED,
    Wrong.ANCHORS_UNREADABLE: Phrase(
        "新しい記録が消されていても、いまは分かりません。ファイルが壊れた原因を調べ、データフォルダーの "
        "audit-anchors.json を別の場所に移してください（消さないでください）。次の封印で作り直されます。",
        "Newest entries that were taken away would not be noticed now. Find out what damaged the file, move it out "
        "of the data folder and keep it; the next sealing makes another one.",
    ),
}


def what_is_wrong(finding: Finding) -> Phrase:
    said = WHAT[finding.wrong]
    tail = _ENTRIES.format(entries=", ".join(map(str, finding.entry_ids))) if finding.entry_ids else ""
    values = {"batch": finding.batch_no, "tenant": finding.tenant_id}
    return Phrase(said.ja.format(**values) + tail, said.en.format(**values) + tail)


def what_to_do(finding: Finding) -> Phrase:
    return WHAT_TO_DO.get(finding.wrong, _TAMPERED)
