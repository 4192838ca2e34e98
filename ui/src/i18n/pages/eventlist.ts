import type { Texts } from "../words";

export const ja = {
  next: "次のイベント",
  previous: "前のイベント",
  open: "イベントを開く",
  mark: "確認済みにする",
  unmark: "未確認に戻す",
  done: "確認済み",
  toList: "一覧へ戻る",
  marked: "{{name}} を確認済みにしました",
  unmarked: "{{name}} を未確認に戻しました",
  timeline: "時刻へ移動",
  until: "{{time}} までのイベント",
  toNow: "最新に戻る",
  told: "通知と配送",
  toldNobody: "このイベントの配送はありません",
  toldMore: "すべての配送を見る",
  share: "共有",
};

export const en: Texts<typeof ja> = {
  next: "Next event",
  previous: "Previous event",
  open: "Open the event",
  mark: "Mark as reviewed",
  unmark: "Take the review back",
  done: "Reviewed",
  toList: "Back to the list",
  marked: "{{name}} was reviewed",
  unmarked: "{{name}} is to be reviewed again",
  timeline: "Go to a time",
  until: "Events until {{time}}",
  toNow: "Back to now",
  told: "Deliveries",
  toldNobody: "Nothing was sent about this event",
  toldMore: "See all deliveries",
  share: "Share",
};

declare module "../page-word-names" {
  interface PageWords {
    eventlist: typeof ja;
  }
}
