import { act, fireEvent, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import i18next from "@/i18n";
import { FakeSocket, type MediaBrowser, MIME, mediaBrowser, seconds } from "@/test/media";
import { renderAt } from "@/test/render";
import { camera, event, frame, NOW, SESSION, VOCABULARY } from "@/test/samples";
import { failing, serve } from "@/test/server";
import { liveTarget, withoutLive } from "./addresses";
import { fileName } from "./pictures";

const LEASE = {
  lease_id: "L1",
  camera_id: "entrance",
  allowed_quality: "sub",
  expires_at: "2026-02-03T04:10:06Z",
  stream_url: "ws://house/stream/entrance?lease=L1&sig=s",
  hls_url: "http://house/hls/L1.s/index.m3u8",
  snapshot_url: "http://house/snapshot/L1.s",
  remaining_sec: 300,
  ttl_sec: 300,
  heartbeat_interval_sec: 30,
  heartbeat_grace_sec: 45,
  units: 1,
  transcoded: false,
  note: "",
};

const HOUSE = {
  "GET /api/session": SESSION,
  "GET /api/vocabulary": VOCABULARY,
  "GET /api/cameras": { cameras: [camera()], next_after: null },
  "GET /api/cameras/entrance": camera(),
  "GET /api/cameras/entrance/frames": { frames: [], next_before: null },
  "GET /api/events": { events: [], next_before: null },
  "GET /api/suggest": { suggestion: null },
  "POST /api/modal/lease": LEASE,
  "POST /api/modal/lease/L1/heartbeat": { ok: true, remaining_sec: 270 },
  "DELETE /api/modal/lease/L1": { ok: true },
};

let browser: MediaBrowser;
const NOTHING = { addresses: 0, sockets: 0, sourceBuffers: 0 };

beforeEach(() => {
  browser = mediaBrowser();
});
afterEach(() => vi.useRealTimers());

const dialog = () => screen.findByRole("dialog");
const asked = (all: Request[], method: string, path: string) =>
  all.filter((one) => one.method === method && new URL(one.url).pathname === path);
/** What was asked for the last seconds, with what. */
const questions = (all: Request[]) =>
  asked(all, "POST", "/api/cameras/entrance/recent-clip").map((one) => new URL(one.url).search);
const streamOpened = () =>
  waitFor(() => expect(FakeSocket.opened.some((one) => one.address.includes("/stream/"))).toBe(true));

/** The camera sends, and the browser shows it. */
async function plays(): Promise<void> {
  await streamOpened();
  const video = document.querySelector("dialog video") as HTMLVideoElement;
  act(() => {
    FakeSocket.last.says({ type: "status", state: "live", reason: "" });
    FakeSocket.last.says({ type: "init", mime: MIME });
    FakeSocket.last.sends(seconds(2));
  });
  browser.shows(video);
  await waitFor(() => {
    browser.shows(video);
    expect(video).not.toHaveClass("invisible");
  });
}

describe("live view", () => {
  it("opens from a tile with the still at once, plays, and gives everything back when closed", async () => {
    const requests = serve(HOUSE);
    await renderAt("/", FakeSocket);
    const tile = await screen.findByRole("link", { name: "Watch Entrance live" });
    await userEvent.click(tile);
    const modal = await dialog();
    expect(within(modal).getByRole("heading", { name: "Entrance live" })).toBeVisible();
    expect(await within(modal).findByAltText("Latest still picture of Entrance")).toBeVisible();
    await plays();
    // Five minutes, less what a busy machine took to get here.
    expect(within(modal).getByText(/^(5:00|4:\d\d) left$/)).toBeVisible();
    expect(await asked(requests, "POST", "/api/modal/lease")[0]?.json()).toEqual({
      camera_id: "entrance",
      quality: "sub",
      purpose: "modal",
      plays: ["h264"],
    });
    await userEvent.click(within(modal).getByRole("button", { name: "Close" }));
    await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
    expect(asked(requests, "DELETE", "/api/modal/lease/L1")).toHaveLength(1);
    expect(asked(requests, "DELETE", "/api/modal/lease/L1")[0]?.keepalive).toBe(true);
    expect(FakeSocket.last.closed).toBe(true);
    expect(browser.leftovers()).toMatchObject({ addresses: 0, sourceBuffers: 0 });
  });

  it("has an address on every page, and opens from an event", async () => {
    serve({
      ...HOUSE,
      "GET /api/events/e1": { ...event(), tags: [], incident: null, best_frame: frame(), scores: [] },
      "GET /api/events/e1/frames": { frames: [frame()], next_after: null },
    });
    const shown = await renderAt("/events/e1", FakeSocket);
    const link = await screen.findByRole("link", { name: "Watch live" });
    expect(link).toHaveAttribute("href", "/events/e1?live=entrance");
    shown.unmount();
    await renderAt("/events?severity=2&live=entrance", FakeSocket);
    expect(within(await dialog()).getByRole("heading", { name: "Entrance live" })).toBeVisible();
    fireEvent(await dialog(), new Event("cancel", { cancelable: true })); // Esc
    await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  });

  it("keeps what else the address says", () => {
    expect(liveTarget("?severity=2", "gate & yard").search).toBe("?severity=2&live=gate+%26+yard");
    expect(withoutLive(new URLSearchParams("severity=2&live=x")).toString()).toBe("severity=2");
  });

  it("says what is wrong with the camera, in words, and goes on when it is over", async () => {
    serve(HOUSE);
    await renderAt("/?live=entrance", FakeSocket);
    const modal = await dialog();
    await plays();
    act(() => FakeSocket.last.says({ type: "status", state: "stalled", reason: "" }));
    expect((await within(modal).findAllByText("No video arrives from the camera")).length).toBeGreaterThan(0);
    const label = { label_ja: "新しい理由", label_en: "a new reason" };
    act(() => FakeSocket.last.says({ type: "status", state: "waiting", reason: "something_new", ...label }));
    expect(within(modal).getAllByText("a new reason").length).toBeGreaterThan(0);
    await act(() => i18next.changeLanguage("ja"));
    expect(within(modal).getAllByText("新しい理由").length).toBeGreaterThan(0);
    await plays();
    await waitFor(() => expect(within(modal).queryByText("新しい理由")).toBeNull());
  });

  it("shows figures by key, but not while somebody types", async () => {
    serve(HOUSE);
    await renderAt("/?live=entrance", FakeSocket);
    const modal = await dialog();
    await plays();
    fireEvent.keyDown(within(modal).getByLabelText("Quality"), { key: "i" });
    expect(screen.queryByRole("region", { name: "Figures" })).toBeNull();
    fireEvent.keyDown(modal, { key: "i", isComposing: true });
    expect(screen.queryByRole("region", { name: "Figures" })).toBeNull();
    fireEvent.keyDown(modal, { key: "i" });
    const figures = await screen.findByRole("region", { name: "Figures" });
    expect(figures).toHaveTextContent("WebSocket (MSE)");
    expect(figures).toHaveTextContent("avc1.640028");
  });

  it("asks for the other quality with a new lease", async () => {
    const requests = serve({ ...HOUSE, "POST /api/modal/lease": { ...LEASE, note: "lowered_no_budget" } });
    await renderAt("/?live=entrance", FakeSocket);
    const modal = await dialog();
    await plays();
    await userEvent.selectOptions(within(modal).getByLabelText("Quality"), "main");
    await waitFor(() => expect(asked(requests, "POST", "/api/modal/lease")).toHaveLength(2));
    const order = requests.filter((one) => one.url.includes("/modal/")).map((one) => one.method);
    expect(order).toEqual(["POST", "DELETE", "POST"]);
    expect(await within(modal).findByText(/no room for more/)).toBeVisible();
  });

  it.each([
    ["en", /^Converted video.*uses 4 stream units$/],
    ["ja", /配信枠を4ユニット使用$/],
  ])("says what a transcoded picture costs (%s)", async (language, words) => {
    const lease = { ...LEASE, units: 4, transcoded: true, note: "transcoded_mask" };
    serve({ ...HOUSE, "POST /api/modal/lease": lease });
    await renderAt("/?live=entrance", FakeSocket);
    const modal = await dialog();
    await plays();
    await act(() => i18next.changeLanguage(language));
    expect(within(modal).getByText(words)).toBeVisible();
  });

  it("says what a transcode costs that began later, and what it costs then", async () => {
    serve(HOUSE);
    await renderAt("/?live=entrance", FakeSocket);
    const modal = await dialog();
    await plays();
    expect(within(modal).queryByText(/stream unit/)).toBeNull();
    const note = { note: "transcoded_codec", source_codec: "hevc" };
    act(() => {
      FakeSocket.last.says({ type: "cost", units: 4 });
      FakeSocket.last.says({ type: "init", mime: MIME, ...note });
    });
    expect(within(modal).getByText(/H\.265 → H\.264\) · uses 4 stream units$/)).toBeVisible();
    act(() => FakeSocket.last.says({ type: "cost", units: 1 }));
    expect(within(modal).getByText(/uses 1 stream unit$/)).toBeVisible();
    await act(() => i18next.changeLanguage("ja"));
    expect(within(modal).getByText(/配信枠を1ユニット使用/)).toBeVisible();
  });

  it("saves a picture and shows the last 30 seconds", async () => {
    const errand = { errand_uuid: "r1", state: "sent", has_picture: false, message: "" };
    serve({
      ...HOUSE,
      "POST /api/cameras/entrance/recent-clip": errand,
      "GET /api/errands/r1": { ...errand, state: "done", has_picture: true },
      "GET /api/errands/r1/picture": { film: "as bytes" },
    });
    const clicked = vi.spyOn(HTMLAnchorElement.prototype, "click").mockImplementation(() => undefined);
    await renderAt("/?live=entrance", FakeSocket);
    const modal = await dialog();
    await plays();
    const served = globalThis.fetch;
    vi.stubGlobal("fetch", async (request: Request | string) =>
      typeof request === "string" ? new Response("jpeg") : served(request),
    );
    await userEvent.click(within(modal).getByRole("button", { name: "Save picture" }));
    expect(await within(modal).findByText("The picture was saved")).toBeVisible();
    expect(clicked).toHaveBeenCalledTimes(1);
    fireEvent.keyDown(modal, { key: "l" });
    const film = await screen.findByRole("region", { name: "The last 30 seconds" });
    await within(film).findByRole("button", { name: "Save" });
    await userEvent.click(within(film).getByRole("button", { name: "Back to live" }));
    expect(screen.queryByRole("region", { name: "The last 30 seconds" })).toBeNull();
  });

  it.each([
    ["en", "The last 30 seconds", "Converted video, so that this browser can play it (transcoded: H.265 → H.264)"],
    ["ja", "直近30秒の映像", "このブラウザーで再生できるように変換した映像です（変換: H.265 → H.264）"],
  ])("says that the last seconds were transcoded (%s)", async (language, title, words) => {
    const result = { note: "transcoded_codec", source_codec: "hevc" };
    const requests = serve({
      ...HOUSE,
      "POST /api/cameras/entrance/recent-clip": {
        errand_uuid: "r1",
        state: "done",
        has_picture: true,
        message: "",
        result,
      },
      "GET /api/errands/r1/picture": { film: "as bytes" },
    });
    await renderAt("/?live=entrance", FakeSocket);
    const modal = await dialog();
    await act(() => i18next.changeLanguage(language));
    fireEvent.keyDown(modal, { key: "l" });
    const film = await screen.findByRole("region", { name: title });
    expect(await within(film).findByText(words)).toBeVisible();
    expect(questions(requests)).toEqual(["?sec=30&plays=h264"]);
  });

  it("has the last seconds transcoded when the browser does not play what it said it would", async () => {
    const requests = serve({
      ...HOUSE,
      "POST /api/cameras/entrance/recent-clip": {
        errand_uuid: "r1",
        state: "done",
        has_picture: true,
        message: "",
      },
      "GET /api/errands/r1/picture": { film: "as bytes" },
    });
    await renderAt("/?live=entrance", FakeSocket);
    const modal = await dialog();
    vi.spyOn(MediaSource, "isTypeSupported").mockReturnValue(true);
    fireEvent.keyDown(modal, { key: "l" });
    const film = await screen.findByRole("region", { name: "The last 30 seconds" });
    fireEvent.error(await within(film).findByLabelText("The last 30 seconds"));
    await waitFor(() => expect(questions(requests)).toEqual(["?sec=30&plays=h264&plays=h265", "?sec=30&plays=h264"]));
    expect(await within(film).findByLabelText("The last 30 seconds")).toBeVisible();
    fireEvent.error(within(film).getByLabelText("The last 30 seconds"));
    expect(within(film).getByRole("alert")).toHaveTextContent(/can't play.*Save it/);
  });

  it("says when nothing recent is kept", async () => {
    const errand = { errand_uuid: "r1", state: "failed", has_picture: false, message: "nothing was kept" };
    serve({ ...HOUSE, "POST /api/cameras/entrance/recent-clip": errand });
    await renderAt("/?live=entrance", FakeSocket);
    fireEvent.keyDown(await dialog(), { key: "l" });
    expect(await screen.findByRole("alert")).toHaveTextContent(/could not be fetched.*nothing was kept/);
  });

  it.each([
    ["en", "The last 30 seconds", /^This browser can't play.*Save it/, "Save"],
    ["ja", "直近30秒の映像", /^このブラウザーでは.*保存してから/, "保存"],
  ])("offers to save a film that this browser can't play (%s)", async (language, title, words, button) => {
    const errand = { errand_uuid: "r1", state: "done", has_picture: true, message: "" };
    serve({
      ...HOUSE,
      "POST /api/cameras/entrance/recent-clip": errand,
      "GET /api/errands/r1/picture": { film: "as bytes" },
    });
    await renderAt("/?live=entrance", FakeSocket);
    const modal = await dialog();
    await act(() => i18next.changeLanguage(language));
    fireEvent.keyDown(modal, { key: "l" });
    const film = await screen.findByRole("region", { name: title });
    fireEvent.error(await within(film).findByLabelText(title));
    expect(within(film).getByRole("alert")).toHaveTextContent(words);
    expect(within(film).getByRole("button", { name: button })).toBeEnabled();
  });

  it.each([
    ["failed", { reason: "not_connected" }, /直前までカメラに接続し続けていませんでした/],
    ["failed", { reason: "busy" }, /ワーカーが混み合っています/],
    ["failed", { reason: "transcode_full" }, /ワーカーが同時に変換できる数の上限に達しています/],
    ["failed", { reason: "too_slow" }, /変換が必要ですが、時間内に終わりませんでした/],
    ["expired", null, /ワーカーから時間内に応答がありませんでした/],
  ])("says in the reader's language why there is no film (%s, %j)", async (state, result, words) => {
    const errand = { errand_uuid: "r1", state, has_picture: false, message: "in English", result };
    serve({ ...HOUSE, "POST /api/cameras/entrance/recent-clip": errand });
    await renderAt("/?live=entrance", FakeSocket);
    const modal = await dialog();
    await act(() => i18next.changeLanguage("ja"));
    fireEvent.keyDown(modal, { key: "l" });
    const alert = await screen.findByRole("alert");
    expect(alert).toHaveTextContent(words);
    expect(alert).not.toHaveTextContent("in English");
  });

  it("names its files by camera and time", () => {
    expect(fileName("entrance", "jpg", new Date(2026, 1, 3, 4, 5, 6))).toBe("entrance-20260203-040506.jpg");
  });
});

describe("what was recorded", () => {
  const LOOKS = [
    frame({ frame_uuid: "f3", captured_at: NOW - 20_000, event_uuid: null, pictures: ["infer"] }),
    frame({ frame_uuid: "f2", captured_at: NOW - 120_000 }),
    frame({ frame_uuid: "f1", captured_at: NOW - 300_000, event_uuid: null, pictures: ["infer"] }),
  ];
  const answers = {
    ...HOUSE,
    "GET /api/session": { ...SESSION, permissions: [...SESSION.permissions, "investigate"] },
    "GET /api/cameras/entrance/frames": { frames: LOOKS, next_before: null },
    "GET /api/cases": { cases: [], next_before: null },
    "POST /api/cases": { case_uuid: "c1", title: "Bicycle" },
    "POST /api/cases/c1/items": { added: true },
  };

  it("is gone back to by keys, leads to its event, and live is one key away", async () => {
    serve(answers);
    await renderAt("/events?live=entrance", FakeSocket);
    const strip = await within(await dialog()).findByRole("slider", { name: "Looks of the last 10 minutes" });
    expect(strip).toHaveAttribute("aria-valuetext", "Live");
    strip.focus();
    await waitFor(async () => {
      fireEvent.keyDown(strip, { key: "Home" });
      expect(screen.getByAltText(/^Picture of Entrance at/)).toHaveAttribute("src", expect.stringContaining("/f1/"));
    });
    await userEvent.keyboard("{ArrowRight}");
    expect(screen.getByAltText(/^Picture of Entrance at/)).toHaveAttribute("src", expect.stringContaining("/f2/"));
    expect(screen.getByRole("link", { name: "Person detected" })).toHaveAttribute("href", "/events/e1");
    await userEvent.keyboard("{End}");
    expect(screen.queryByAltText(/^Picture of Entrance at/)).toBeNull();
  });

  it("is bookmarked by B", async () => {
    const requests = serve(answers);
    await renderAt("/events?live=entrance", FakeSocket);
    await within(await dialog()).findByRole("button", { name: "Bookmark" });
    fireEvent.keyDown(await dialog(), { key: "b" });
    expect(await screen.findByText(/The look is bookmarked/)).toBeVisible();
    const [sent] = asked(requests, "POST", "/api/cases/c1/items");
    expect(await sent?.json()).toEqual({ kind: "frame", uuid: "f3" });
  });

  it("goes into a case: the look that is shown, or the newest", async () => {
    const requests = serve(answers);
    await renderAt("/events?live=entrance", FakeSocket);
    await userEvent.click(await within(await dialog()).findByRole("button", { name: "Add to a case" }));
    const form = await screen.findByRole("dialog", { name: "Add to a case" });
    await userEvent.type(await within(form).findByLabelText("Title"), "Bicycle");
    await userEvent.click(within(form).getByRole("button", { name: "Add" }));
    await waitFor(() => expect(asked(requests, "POST", "/api/cases/c1/items")).toHaveLength(1));
    const [sent] = asked(requests, "POST", "/api/cases/c1/items");
    expect(await sent?.json()).toEqual({ kind: "frame", uuid: "f3" });
  });
});

describe("the end of the time", () => {
  it("asks whether to go on", async () => {
    const requests = serve({ ...HOUSE, "POST /api/modal/lease": { ...LEASE, remaining_sec: 20 } });
    await renderAt("/?live=entrance", FakeSocket);
    await dialog();
    await plays();
    expect((await screen.findAllByText("The viewing time is nearly over")).length).toBeGreaterThan(0);
    act(() => FakeSocket.last.ends(4404, "ttl"));
    const panel = await screen.findByRole("alertdialog", { name: "The viewing time is over" });
    expect(panel).toHaveAccessibleDescription("Go on watching?");
    const again = within(panel).getByRole("button", { name: "Reconnect" });
    expect(again).toHaveFocus();
    expect(asked(requests, "DELETE", "/api/modal/lease/L1")).toHaveLength(1);
    await userEvent.click(again);
    await waitFor(() => expect(asked(requests, "POST", "/api/modal/lease")).toHaveLength(2));
    await waitFor(() => expect(screen.queryByRole("alertdialog")).toBeNull());
    await waitFor(() => expect(FakeSocket.last.closed).toBe(false));
    act(() => FakeSocket.last.ends(4404, "ttl"));
    const second = await screen.findByRole("alertdialog");
    await userEvent.click(within(second).getByRole("button", { name: "Close" }));
    await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  });
});

describe("a refusal", () => {
  const refusing = (status: number, error_code: string, details = {}) => ({
    status,
    body: { error_code, message: "the server's own words", details },
  });

  it.each([
    ["en", "Many people are watching, and no more streams can be opened at the moment"],
    ["ja", "現在多数のアクセスがありストリーム数が上限に達しています"],
  ])("for want of room names the units and tries again (%s)", async (language, words) => {
    serve({
      ...HOUSE,
      "POST /api/modal/lease": refusing(503, "OVER_CAPACITY", { units_used: 35, units_budget: 35 }),
    });
    await renderAt("/?live=entrance", FakeSocket);
    const panel = await screen.findByRole("alertdialog");
    await act(() => i18next.changeLanguage(language));
    expect(panel).toHaveTextContent(words);
    expect(panel).toHaveTextContent(/35\D+35/);
    expect(within(panel).getByText(/Tries again by itself|自動で再試行/)).toBeVisible();
  });

  it("because another camera is open names it and offers to switch", async () => {
    let first = true;
    const requests = serve({
      ...HOUSE,
      "POST /api/modal/lease": () => {
        const answer = first
          ? refusing(409, "USER_ALREADY_HAS_MODAL", { lease_id: "L0", camera_id: "gate", camera_name: "Gate" })
          : LEASE;
        first = false;
        return answer;
      },
      "DELETE /api/modal/lease/L0": { ok: true },
    });
    await renderAt("/?live=entrance", FakeSocket);
    const panel = await screen.findByRole("alertdialog");
    expect(panel).toHaveTextContent("You are already watching another camera");
    expect(panel).toHaveTextContent("Open camera: Gate");
    await userEvent.click(within(panel).getByRole("button", { name: "Switch to this one" }));
    await streamOpened();
    expect(asked(requests, "DELETE", "/api/modal/lease/L0")).toHaveLength(1);
  });

  it("for overload can't be retried until the server is well", async () => {
    vi.useFakeTimers({ shouldAdvanceTime: true });
    let healthy = false;
    serve({
      ...HOUSE,
      "POST /api/modal/lease": refusing(503, "SYSTEM_OVERLOAD"),
      "GET /api/system/status": () => ({ healthy }),
    });
    await renderAt("/?live=entrance", FakeSocket);
    const panel = await screen.findByRole("alertdialog");
    expect(panel).toHaveTextContent("The server is under heavy load");
    const again = within(panel).getByRole("button", { name: "Reconnect" });
    expect(again).toBeDisabled();
    healthy = true;
    await act(() => vi.advanceTimersByTimeAsync(10_000));
    await waitFor(() => expect(again).toBeEnabled());
  });

  it("that has no words here is told in the server's", async () => {
    serve({ ...HOUSE, "POST /api/modal/lease": refusing(409, "SOMETHING_NEW") });
    await renderAt("/?live=entrance", FakeSocket);
    expect(await screen.findByRole("alertdialog")).toHaveTextContent("the server's own words");
  });
});

describe("the suggested camera", () => {
  const suggestion = {
    camera_id: "entrance",
    camera_name: "Entrance",
    site: "main",
    score: 90,
    reason_code: "event",
    reason: "Person detected (Alarm)",
    manual: false,
    event_uuid: "e1",
    since: Date.now(),
    until: Date.now() + 60_000,
  };
  const MANAGER = { ...SESSION, permissions: ["read", "manage_cameras"] };

  it("is shown with its reason and played, and can be opened", async () => {
    const requests = serve({ ...HOUSE, "GET /api/suggest": { suggestion } });
    await renderAt("/", FakeSocket);
    const pane = await screen.findByRole("region", { name: "Camera to watch now" });
    expect(await within(pane).findByText("Why: Person detected (Alarm)")).toBeVisible();
    expect(within(pane).getByRole("link", { name: "Watch live" })).toHaveAttribute("href", "/?live=entrance");
    expect(within(pane).getByRole("link", { name: "See the event" })).toHaveAttribute("href", "/events/e1");
    await streamOpened();
    expect(await asked(requests, "POST", "/api/modal/lease")[0]?.json()).toMatchObject({ purpose: "suggest" });
    expect(within(pane).queryByRole("button", { name: "Clear" })).toBeNull();
  });

  it("shows stills where there is no room", async () => {
    const full = failing(503, "OVER_CAPACITY");
    serve({ ...HOUSE, "GET /api/suggest": { suggestion }, "POST /api/modal/lease": full });
    await renderAt("/", FakeSocket);
    expect(await screen.findByText(/Still pictures/)).toBeVisible();
  });

  it("can be pinned and cleared by those who may", async () => {
    const pinned = { suggestion: { ...suggestion, manual: true, reason: "Pinned by hand" } };
    let current: object = { suggestion: null };
    const requests = serve({
      ...HOUSE,
      "GET /api/session": MANAGER,
      "GET /api/suggest": () => current,
      "POST /api/suggest/manual": () => {
        current = pinned;
        return pinned;
      },
      "DELETE /api/suggest": () => {
        current = { suggestion: null };
        return null;
      },
    });
    await renderAt("/", FakeSocket);
    expect(await screen.findByText("No camera needs watching at the moment")).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: "Pin a camera" }));
    await userEvent.selectOptions(await screen.findByLabelText("Pin for"), "15");
    await userEvent.click(screen.getByRole("button", { name: "Pin this camera" }));
    expect(await screen.findByText("Why: Pinned by hand")).toBeVisible();
    expect(await asked(requests, "POST", "/api/suggest/manual")[0]?.json()).toEqual({
      camera_id: "entrance",
      duration_sec: 900,
    });
    await userEvent.click(screen.getByRole("button", { name: "Clear" }));
    expect(await screen.findByText("No camera needs watching at the moment")).toBeVisible();
  });
});

describe("what the page keeps", () => {
  // What a player itself leaves is counted in player.test.ts, over many more.
  it("after 40 live views that were opened and closed is nothing", async () => {
    serve(HOUSE);
    const { unmount } = await renderAt("/", FakeSocket);
    const open = async () => {
      fireEvent.click(await screen.findByLabelText("Watch Entrance live"));
      await waitFor(() => expect(document.querySelector("dialog")).not.toBeNull());
    };
    const close = async () => {
      fireEvent(document.querySelector("dialog") as Element, new Event("cancel", { cancelable: true }));
      await waitFor(() => expect(document.querySelector("dialog")).toBeNull());
    };
    await open();
    await plays();
    await close();
    const before = browser.leftovers();
    const nodes = document.querySelectorAll("*").length;
    for (let times = 0; times < 40; times += 1) {
      await open();
      if (times % 10 === 0) await plays();
      await close();
    }
    const after = browser.leftovers();
    expect(after).toEqual(before);
    expect(after).toMatchObject({ addresses: 0, sourceBuffers: 0, sockets: 1 }); // the feed's own
    expect(document.querySelectorAll("*").length).toBe(nodes);
    unmount();
    expect(browser.leftovers()).toMatchObject(NOTHING);
  });
});
