import type { Texts } from "../words";

export const ja = {
  title: "インシデント",
  lead: "続けて起きたイベントをカメラごとにまとめたものです。確認したものは一覧から消えます。",
  severity: "重要度",
  every: "すべて",
  view: "確認の状態",
  open: "未確認",
  all: "すべて",
  done: "確認済み",
  day: "日付",
  list: "インシデントの一覧",
  events_other: "イベント {{count}} 件",
  reviewers_other: "{{count}} 人が確認",
  mark: "確認済みにする",
  unmark: "未確認に戻す",
  marked: "{{name}} を確認済みにしました",
  unmarked: "{{name}} を未確認に戻しました",
  failed: "変更できませんでした（コード: {{code}}）",
  next: "次のインシデント",
  previous: "前のインシデント",
  openOne: "イベントを開く",
  clear: "絞り込みを解除",
  emptyTitle: "確認するものはありません",
  emptyLead: "新しいインシデントが起きると、ここに自動で表示されます。",
  emptyFilteredTitle: "条件に合うインシデントはありません",
  emptyFilteredLead: "絞り込みを緩めるか、解除してください。",
  end: "これより前のインシデントはありません",
};

export const en: Texts<typeof ja> = {
  title: "Incidents",
  lead: "Events of one camera that follow each other. What you have reviewed leaves the list.",
  severity: "Severity",
  every: "All",
  view: "Review",
  open: "To review",
  all: "All",
  done: "Reviewed",
  day: "Day",
  list: "List of incidents",
  events_one: "{{count}} event",
  events_other: "{{count}} events",
  reviewers_one: "{{count}} person reviewed it",
  reviewers_other: "{{count}} people reviewed it",
  mark: "Mark as reviewed",
  unmark: "Take the review back",
  marked: "{{name}}: marked as reviewed",
  unmarked: "{{name}}: to review again",
  failed: "It could not be changed (code: {{code}})",
  next: "Next incident",
  previous: "Previous incident",
  openOne: "Open its event",
  clear: "Clear the filter",
  emptyTitle: "Nothing to review",
  emptyLead: "As soon as something happens, it appears here by itself.",
  emptyFilteredTitle: "No incident matches",
  emptyFilteredLead: "Widen the filter or clear it.",
  end: "There are no earlier incidents",
};

declare module "../page-word-names" {
  interface PageWords {
    incidents: typeof ja;
  }
}
