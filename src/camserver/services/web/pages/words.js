// Words in two languages, the API call, and small tools that every page uses.
const WORDS = {
  ja: {
    setup_title: "セットアップ", setup_lead: "最初の管理者アカウントを作成します。", sign_in_title: "サインイン",
    login: "ログイン名", display_name: "表示名", password: "パスワード（10文字以上）", password_plain: "パスワード",
    create: "管理者を作成", sign_in: "サインイン", sign_out: "サインアウト", cameras: "カメラ", events: "最近のイベント",
    no_token: "セットアップ用リンクの全体を開いてください。リンクは `camserver setup-link` で作れます。",
    no_cameras: "カメラはまだありません。`camserver camera add` で追加できます。", no_events: "イベントはまだありません。",
    no_picture: "画像なし", loading: "読み込み中…", offline: "サーバーに接続できません。自動で再接続します。",
    never: "まだ見ていません", ago_sec: "{n}秒前", ago_min: "{n}分前", ago_hours: "{n}時間前", ago_days: "{n}日前",
    summary: "カメラ {cameras} 台・待ちジョブ {jobs} 件・進行中のイベント {open} 件", look_failed: "取得失敗",
    none: "なし", human: "人", animal: "動物", vehicle: "車両", hazard: "危険", camera_issue: "カメラ異常",
    object_missing: "物の紛失", unknown: "不明", open: "進行中", closed: "終了",
  },
  en: {
    setup_title: "Set-up", setup_lead: "Make the first administrator's account.", sign_in_title: "Sign in",
    login: "Login name", display_name: "Display name", password: "Password (10 characters or more)",
    password_plain: "Password", create: "Make the account", sign_in: "Sign in", sign_out: "Sign out",
    cameras: "Cameras", events: "Latest events",
    no_token: "Open the whole set-up link. `camserver setup-link` makes one.",
    no_cameras: "No cameras yet. Add one with `camserver camera add`.", no_events: "No events yet.",
    no_picture: "no picture", loading: "Loading…", offline: "The server can't be reached. Trying again by itself.",
    never: "not looked at yet", ago_sec: "{n} s ago", ago_min: "{n} min ago", ago_hours: "{n} h ago",
    ago_days: "{n} days ago", look_failed: "look failed", open: "going on", closed: "ended",
    summary: "{cameras} cameras · {jobs} jobs waiting · {open} events going on", none: "nothing", human: "person",
    animal: "animal", vehicle: "vehicle", hazard: "hazard", camera_issue: "camera problem",
    object_missing: "object missing", unknown: "unknown",
  },
};
export let language = (navigator.language || "ja").startsWith("ja") ? "ja" : "en";
export const word = (name, values = {}) =>
  (WORDS[language][name] ?? name).replace(/\{(\w+)\}/g, (_, key) => values[key]);
export const find = (id) => document.getElementById(id);

export function translate(chosen) {
  language = chosen === "ja" || chosen === "en" ? chosen : language;
  document.documentElement.lang = language;
  for (const node of document.querySelectorAll("[data-word]")) node.textContent = word(node.dataset.word);
}

export function element(tag, className, text) {
  const made = document.createElement(tag);
  made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

// Answers the body; throws an Error with .status and a message for people.
export async function ask(method, path, body, csrfToken) {
  const headers = { "Accept-Language": language };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (csrfToken) headers["X-CSRF-Token"] = csrfToken;
  let response;
  try {
    response = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw Object.assign(new Error(word("offline")), { status: 0 });
  }
  const answer = response.status === 204 ? null : await response.json().catch(() => ({}));
  if (!response.ok) throw Object.assign(new Error(answer.message ?? word("offline")), { status: response.status });
  return answer;
}

// Runs `work` with the form's values when it is sent; errors are shown below it.
export function onSend(form, work) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button");
    button.disabled = true;
    find("error").textContent = "";
    try {
      await work(Object.fromEntries(new FormData(form)));
    } catch (error) {
      find("error").textContent = error.message;
    } finally {
      button.disabled = false;
    }
  });
}
