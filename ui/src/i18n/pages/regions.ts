import type { Texts } from "../words";

export const ja = {
  picture: "範囲を描くための画像",
  how: "角をドラッグします。角を選んで矢印キー（Shiftで大きく）、+ で角を追加、Delete で角を削除。",
  corner: "角 {{number}}（横 {{x}}%、縦 {{y}}%）",
  cornerHint: "ドラッグまたは矢印キーで動かす。ダブルクリックで角を追加",
  list: "描いた範囲",
  name: "ゾーンの名前",
  zoneName: "ゾーン",
  kind: { ignore: "無視する範囲", privacy: "黒く隠す範囲", zone: "見るゾーン" },
  hint: {
    ignore: "道路や旗など、変化を見ない場所。画像には残ります。",
    privacy: "誰にも、どこにも見えなくなります。",
    zone: "あれば、その中だけを見ます。",
  },
};

export const en: Texts<typeof ja> = {
  picture: "Picture to draw on",
  how: "Drag the corners. Or choose one and use the arrow keys (faster with Shift), + for another corner, Delete to take it away.",
  corner: "Corner {{number}} ({{x}}% across, {{y}}% down)",
  cornerHint: "Drag it or use the arrow keys. Double click for another corner",
  list: "What is drawn",
  name: "Name of the zone",
  zoneName: "zone",
  kind: { ignore: "Ignore mask", privacy: "Privacy mask", zone: "Zone" },
  hint: {
    ignore: "Changes there don't count: a road, a flag. It stays in the picture.",
    privacy: "Black for everybody and everywhere.",
    zone: "Where there is one, only what is inside counts.",
  },
};

declare module "../page-word-names" {
  interface PageWords {
    regions: typeof ja;
  }
}
