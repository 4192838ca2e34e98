import type { Texts } from "../words";

export const ja = {
  title: "監査ログ",
  lead: "誰が、いつ、何をしたか。記録は封印され、書き換えられていないか確かめられます。",
  list: "記録の一覧",
  when: "時刻",
  who: "誰が",
  action: "操作",
  object: "対象",
  address: "アドレス",
  details: "詳細",
  filterWho: "ログイン名",
  filterAction: "操作の名前",
  from: "開始日",
  to: "終了日",
  clear: "絞り込みを解除",
  verify: "確かめる",
  verifying: "確かめています… {{count}} 件",
  whole_other: "{{count}} 件を確かめました。書き換えはありません。",
  broken_other: "{{count}} か所に問題があります",
  export: "書き出す",
  exporting: "書き出し中…",
  exported: "書き出しました（{{size}}）",
  emptyTitle: "記録はありません",
  emptyLead: "条件に合う記録がありません。絞り込みを解除してください。",
  end: "これより前の記録はありません",
};

export const en: Texts<typeof ja> = {
  title: "Audit log",
  lead: "Who did what, and when. Entries are sealed, so that changes to them can be found.",
  list: "List of entries",
  when: "When",
  who: "Who",
  action: "Action",
  object: "Object",
  address: "Address",
  details: "Details",
  filterWho: "Login",
  filterAction: "Name of the action",
  from: "From",
  to: "Until",
  clear: "Clear the filter",
  verify: "Verify",
  verifying: "Verifying… {{count}} entries",
  whole_one: "{{count}} entry verified. Nothing was changed.",
  whole_other: "{{count}} entries verified. Nothing was changed.",
  broken_one: "Something is wrong in {{count}} place",
  broken_other: "Something is wrong in {{count}} places",
  export: "Export",
  exporting: "Exporting…",
  exported: "Exported ({{size}})",
  emptyTitle: "There are no entries",
  emptyLead: "Nothing matches. Clear the filter.",
  end: "There are no earlier entries",
};

declare module "../page-word-names" {
  interface PageWords {
    audit: typeof ja;
  }
}
