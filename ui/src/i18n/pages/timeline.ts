import type { Texts } from "../words";

export const ja = {
  title: "1日の流れ",
  day: "日付",
  dayBefore: "前の日",
  dayAfter: "次の日",
  zoomIn: "拡大",
  zoomOut: "縮小",
  step: { "1h": "1時間ごと", "15m": "15分ごと", "5m": "5分ごと" },
  steps: "時刻を選ぶ（新しい順）",
  future: "この日はまだ始まっていません",
  events_other: "{{time}}: イベント {{count}} 件",
  looked: {
    ok: "{{time}}: 異常なし",
    failed: "{{time}}: 取得に失敗",
    none: "{{time}}: 見ていません",
    watched: "{{time}}: 見ていません（同じ機器がライブ視聴中だったため）",
    unknown: "{{time}}: まだ集計されていません",
  },
};

export const en: Texts<typeof ja> = {
  title: "The day",
  day: "Day",
  dayBefore: "The day before",
  dayAfter: "The day after",
  zoomIn: "Zoom in",
  zoomOut: "Zoom out",
  step: { "1h": "By the hour", "15m": "By 15 minutes", "5m": "By 5 minutes" },
  steps: "Choose a time, newest first",
  future: "This day has not begun yet",
  events_one: "{{time}}: {{count}} event",
  events_other: "{{time}}: {{count}} events",
  looked: {
    ok: "{{time}}: nothing happened",
    failed: "{{time}}: looks failed",
    none: "{{time}}: nobody looked",
    watched: "{{time}}: nobody looked, because the device was watched live",
    unknown: "{{time}}: not counted yet",
  },
};

declare module "../page-word-names" {
  interface PageWords {
    timeline: typeof ja;
  }
}
