import { act, fireEvent, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it } from "vitest";
import type { Camera, Errand } from "@/api/types";
import { suggestedId } from "@/display/camera-names";
import { devicesOf, explainedOf, knownStream, offerOf, saidBy, streamText } from "@/display/errands";
import {
  at,
  drawnValues,
  freshName,
  movedPoint,
  newRegion,
  regionsOf,
  splitSide,
  withoutPoint,
} from "@/display/regions";
import i18next from "@/i18n";
import { dismissNotices } from "@/shell/notices";
import { renderAt } from "@/test/render";
import { ADMIN, AROUND, camera, health, look, NOW, SESSION, WATCHED_LIVE, WRONG_PASSWORD } from "@/test/samples";
import { failing, serve } from "@/test/server";

const errand = (given: Partial<Errand> = {}): Errand => ({
  errand_uuid: "q1",
  kind: "probe",
  camera_id: null,
  state: "done",
  message: "",
  result: null,
  has_picture: false,
  created_at: NOW,
  expires_at: NOW + 60_000,
  done_at: NOW,
  ...given,
});
const OWN = {
  ...{ clip_sec: null, connect_timeout_sec: null, detect_every_n_frames: null, device: null, diff_width: null },
  ...{ force_infer_every_n: null, hints: null, ignore_masks: null, infer_width: null, job_priority: null },
  ...{ mask_clock: null, network_zone: "local" as const, polling_interval_sec: null, privacy_masks: null },
  ...{ rotation: null, streams_max: null, suggest_weight: null, tls_pin: null, transport: null, zones: null },
  live_sound: null,
};
const answers = (one = camera({ own: OWN })) => ({
  ...AROUND,
  "GET /api/cameras": { cameras: [one], next_after: null },
  "GET /api/cameras/entrance": one,
  "GET /api/cameras/entrance/why": {
    camera_id: "entrance",
    is_running: true,
    lines: [{ code: "running", text_ja: "動いています", text_en: "It runs on shop-1" }],
  },
  "GET /api/cameras/entrance/looks": {
    camera_id: "entrance",
    from_at: NOW - 3_600_000,
    to_at: NOW,
    interval_ms: 5000,
    counted_until: NOW,
    gaps: [],
    pauses: [],
    hours: [
      {
        ...{ hour_at: NOW - 3_600_000, looks: 700, looks_failed: 2, lost: 0, pictures: 3, quiet: 0 },
        ...{ analyzed: 9, detected: 1, events: 1, severity_max: 1 },
      },
    ],
  },
  "GET /api/sites": {
    sites: [{ name: "main", cameras: 1, workers: 1, site_uuid: "s", created_at: 0, timezone: "UTC" }],
  },
});

afterEach(dismissNotices);

describe("regions", () => {
  const square = newRegion("ignore", "");

  it("go to the server and come back", () => {
    const drawn = [square, { ...newRegion("zone", "door"), points: [at(0, 0), at(1, 0), at(1.5, -1)] }];
    const values = drawnValues(drawn);
    expect(values.privacy_masks).toBeNull();
    expect(values.zones).toEqual([
      {
        name: "door",
        points: [
          [0, 0],
          [1, 0],
          [1, 0],
        ],
      },
    ]);
    expect(regionsOf({ ...OWN, ...values } as never)).toEqual(drawn);
    expect(drawnValues([])).toEqual({ ignore_masks: null, privacy_masks: null, zones: null });
  });

  it("stay inside the picture and keep three corners", () => {
    expect(movedPoint(square, 0, [-1, 0.1]).points[0]).toEqual([0, 0.45]);
    expect(splitSide(square, 3).points).toHaveLength(5);
    expect(splitSide(square, 3).points[4]).toEqual([0.35, 0.5]);
    const three = withoutPoint(square, 1);
    expect(withoutPoint(three, 0)).toBe(three);
    expect(freshName([newRegion("zone", "zone 1")], "zone")).toBe("zone 2");
  });
});

describe("what workers say", () => {
  it("is read as far as it is understood", () => {
    expect(
      devicesOf(errand({ result: { devices: [{ address: "192.0.2.7", name: "Cam" }, { name: "?" }, 7] } })),
    ).toEqual([{ address: "192.0.2.7", name: "Cam", hardware: "", reference: "" }]);
    expect(offerOf(errand({ result: null }))).toEqual({ maker: "", streams: [], main: null, sub: null });
    expect(explainedOf(errand({ result: { rule: "contrast", looks: [{}] } })).looks).toHaveLength(1);
    expect(saidBy(errand({ message: "m", result: { said_en: "wrong password" } }), "en")).toBe("wrong password");
    expect(saidBy(errand({ message: "m" }), "ja")).toBe("m");
    const stream = knownStream({ codec: "h264", res: "1920x1080", fps: 14.97 });
    expect(stream && streamText(stream)).toBe("H264 1920×1080, 15 fps");
    expect(knownStream({ error: "timeout" })).toBeNull();
  });

  it.each([
    ["Back gate", "rtsp://a/1", [], "back-gate"],
    ["Back gate", "rtsp://a/1", ["back-gate"], "back-gate-2"],
    ["裏口", "rtsp://user:pw@192.0.2.7:554/1", [], "camera-192-0-2-7"],
    ["裏口", "", [], "camera"],
  ])("%s at %s is called by itself", (name, url, taken, id) => {
    expect(suggestedId(name, url, taken)).toBe(id);
  });
});

describe("the cameras", () => {
  it("say how they stand, and are found by name and trouble", async () => {
    const bad = camera({
      camera_id: "cellar",
      name: "Cellar",
      latest_picture: null,
      health: health({ state: "down", cause: WRONG_PASSWORD }),
    });
    const good = camera({ latest: look({ captured_at: Date.now() }) });
    serve({ ...answers(), "GET /api/cameras": { cameras: [good, bad], next_after: null } });
    await renderAt("/cameras");
    expect(await screen.findByText(WRONG_PASSWORD.label_en)).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: "In trouble" }));
    expect(screen.queryByRole("link", { name: "Entrance" })).toBeNull();
    await userEvent.type(screen.getByRole("searchbox"), "nobody");
    expect(screen.getByText("No camera matches")).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: "Clear the filter" }));
    expect(screen.getByRole("link", { name: "Entrance" })).toHaveAttribute("href", "/cameras/entrance");
  });

  it("have no worker in the eyes of those who are not told of it", async () => {
    const one = camera({ worker_id: null });
    const served = { ...answers(one), "GET /api/session": SESSION };
    serve(served);
    const { unmount } = await renderAt("/cameras");
    expect(await screen.findByRole("link", { name: "Entrance" })).toBeVisible();
    expect(screen.queryByText("Worker")).toBeNull();
    unmount();
    serve(served);
    await renderAt("/cameras/entrance");
    expect(await screen.findByText("Looks every")).toBeVisible();
    expect(screen.queryByText("Worker")).toBeNull();
  });

  it("that are none lead to the wizard, for those who may", async () => {
    serve({ ...answers(), "GET /api/cameras": { cameras: [], next_after: null } });
    await renderAt("/cameras");
    const links = await screen.findAllByRole("link", { name: "Add a camera" });
    expect(links[0]).toHaveAttribute("href", "/cameras/add");
  });
});

describe("a camera", () => {
  it.each([
    ["en", "Looks wait", WATCHED_LIVE.cause.label_en],
    ["ja", "撮影を見合わせています", WATCHED_LIVE.cause.label_ja],
  ])("whose device is busy with another one says so to whoever may see it (%s)", async (language, badge, words) => {
    const waiting = camera({ stream_fault: WATCHED_LIVE });
    serve({ ...answers(), "GET /api/session": SESSION, "GET /api/cameras/entrance": waiting });
    await renderAt("/cameras/entrance");
    await screen.findByRole("heading", { name: "Entrance" });
    await act(() => i18next.changeLanguage(language));
    expect(await screen.findByText(new RegExp(`^${words}`))).toBeVisible();
    expect(screen.getByText(badge)).toBeVisible();
  });

  it("leads to live view, unless it is switched off", async () => {
    serve(answers());
    await renderAt("/cameras/entrance");
    expect(await screen.findByRole("link", { name: "Watch live" })).toHaveAttribute(
      "href",
      "/cameras/entrance?live=entrance",
    );
  });

  it("that is switched off has no live view", async () => {
    serve(answers(camera({ enabled: false, own: OWN })));
    await renderAt("/cameras/entrance");
    await screen.findByRole("heading", { name: "Entrance" });
    expect(screen.queryByRole("link", { name: "Watch live" })).toBeNull();
  });

  it("whose address is at fault leads to changing it", async () => {
    serve(answers(camera({ own: OWN, health: health({ state: "down", cause: WRONG_PASSWORD }) })));
    await renderAt("/cameras/entrance");
    expect(await screen.findByRole("link", { name: "Change the address" })).toHaveAttribute(
      "href",
      "/cameras/entrance/settings",
    );
  });

  it("shows why it runs and its hours, and looks now", async () => {
    serve({
      ...answers(),
      "POST /api/cameras/entrance/look": errand({ kind: "look", state: "waiting" }),
      "GET /api/errands/q1": errand({ kind: "look", state: "failed", message: "no worker" }),
    });
    await renderAt("/cameras/entrance");
    expect(await screen.findByText("It runs on shop-1")).toBeVisible();
    expect(await screen.findByText(/700 looks · 2 failed · 1 event/)).toBeVisible();
    const picture = await screen.findByRole("img", { name: "Newest picture of Entrance" });
    expect(picture).toHaveAttribute("src", "/api/frames/f1/picture?kind=infer");
    await userEvent.click(screen.getByRole("button", { name: "Look now" }));
    expect(await screen.findByText("It could not look: no worker")).toBeVisible();
  });

  it.each([
    ["en", "Another camera was watched (3:30)"],
    ["ja", "別のカメラが視聴中でした（3:30）"],
  ])("says for how long looks were put off, and why (%s)", async (language, words) => {
    const cause = {
      id: "watched_live",
      label_en: "Another camera was watched",
      label_ja: "別のカメラが視聴中でした",
    };
    const usual = answers();
    const pauses = [
      { start_at: NOW - 900_000, end_at: NOW - 720_000, cause },
      { start_at: NOW - 60_000, end_at: NOW - 30_000, cause },
    ];
    serve({
      ...usual,
      "GET /api/cameras/entrance/looks": { ...usual["GET /api/cameras/entrance/looks"], pauses },
    });
    await renderAt("/cameras/entrance");
    await screen.findByText("It runs on shop-1");
    await act(() => i18next.changeLanguage(language));
    expect(await screen.findByText(words)).toBeVisible();
  });

  it("is removed only by typing its id", async () => {
    const asked = serve({ ...answers(), "DELETE /api/cameras/entrance": null });
    await renderAt("/cameras/entrance");
    await userEvent.click(await screen.findByRole("button", { name: "Remove" }));
    const dialog = screen.getByRole("dialog");
    const button = within(dialog).getByRole("button", { name: "Remove" });
    expect(button).toBeDisabled();
    await userEvent.type(within(dialog).getByLabelText(/Type “entrance”/), "entrance");
    await userEvent.click(button);
    expect(await screen.findByText("Entrance was removed")).toBeVisible();
    expect(asked.some((one) => one.method === "DELETE")).toBe(true);
  });

  it("is switched off with a way back", async () => {
    const asked = serve({ ...answers(), "PATCH /api/cameras/entrance": camera() });
    await renderAt("/cameras/entrance");
    await userEvent.click(await screen.findByRole("button", { name: "Switch off" }));
    await userEvent.click(await screen.findByRole("button", { name: "Undo" }));
    await waitFor(() => expect(asked.filter((one) => one.method === "PATCH")).toHaveLength(2));
    const sent = await Promise.all(asked.filter((one) => one.method === "PATCH").map((one) => one.json()));
    expect(sent).toEqual([{ enabled: false }, { enabled: true }]);
  });

  it("has masks that are drawn by keys and saved", async () => {
    const asked = serve({ ...answers(), "PATCH /api/cameras/entrance": camera() });
    await renderAt("/cameras/entrance/regions");
    await userEvent.click(await screen.findByRole("button", { name: "Ignore mask" }));
    const corner = screen.getByRole("button", { name: /^Corner 1/ });
    fireEvent.keyDown(corner, { key: "ArrowLeft" });
    fireEvent.keyDown(corner, { key: "ArrowUp", shiftKey: true });
    expect(screen.getByRole("button", { name: "Corner 1 (34% across, 30% down)" })).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: "Save" }));
    expect(await screen.findByText("Masks and zones saved")).toBeVisible();
    const sent = await asked.find((one) => one.method === "PATCH")?.json();
    expect(sent.ignore_masks[0][0]).toEqual([0.34, 0.3]);
    expect(sent.zones).toBeNull();
  });

  it("tells why the gate let something pass", async () => {
    const looks = [{ captured_at: NOW, verdict: "analyze", reason: "change", z_max: 31.7, diff_ratio: 0.0186 }];
    serve({
      ...answers(),
      "POST /api/cameras/entrance/explain": errand({
        kind: "explain",
        has_picture: true,
        result: { rule: "contrast", z_pass: 4, learned: 512, clock_cells: 11, looks },
      }),
    });
    await renderAt("/cameras/entrance/gate");
    await userEvent.click(await screen.findByRole("button", { name: "Find out" }));
    expect(await screen.findByText("Passes from a strength (Z) of 4; learned from 512 looks.")).toBeVisible();
    const table = screen.getByRole("table", { name: "Last looks" });
    expect(within(table).getByText("something changed")).toBeVisible();
    expect(within(table).getByText("31.7")).toBeVisible();
  });

  it("names hints that nobody knows, and is rid of them with a way back", async () => {
    const hints = { preset: "shop" as const, expected_objects: ["cart"], excluded_objects: ["unicron", "dog"] };
    const known = camera({ unknown_hints: ["unicron"], own: { hints } as Camera["own"] });
    const asked = serve({ ...answers(known), "PATCH /api/cameras/entrance": known });
    const sent = () => asked.filter((one) => one.method === "PATCH");
    await renderAt("/cameras/entrance");
    await userEvent.click(await screen.findByRole("link", { name: /does not know: unicron/ }));
    await userEvent.click(await screen.findByRole("button", { name: "Remove them" }));
    await userEvent.click(await screen.findByRole("button", { name: "Undo" }));
    await waitFor(() => expect(sent()).toHaveLength(2));
    expect(await sent()[0]?.json()).toEqual({
      hints: { preset: "shop", expected_objects: ["cart"], excluded_objects: ["dog"], thresholds: null },
    });
    expect(await sent()[1]?.json()).toEqual({ hints });
  });

  it("is changed in its settings, which others do not see", async () => {
    const asked = serve({ ...answers(), "PATCH /api/cameras/entrance": failing(422, "bad_input", "name too long") });
    const shown = await renderAt("/cameras/entrance/settings");
    await userEvent.selectOptions(await screen.findByLabelText("Kind of place"), "parking");
    await userEvent.click(screen.getByRole("button", { name: "Save" }));
    expect(await screen.findByText(/name too long \(Code: bad_input\)/)).toBeVisible();
    const sent = await asked.find((one) => one.method === "PATCH")?.json();
    expect([sent.hints, sent.polling_interval_sec, sent.live_sound]).toEqual([{ preset: "parking" }, null, null]);
    // Nobody is to hear it: the camera's own no, whatever is configured.
    await userEvent.click(screen.getByLabelText("Its sound may be heard live"));
    await userEvent.click(screen.getByRole("button", { name: "Save" }));
    await waitFor(() => expect(asked.filter((one) => one.method === "PATCH")).toHaveLength(2));
    const silenced = await asked.filter((one) => one.method === "PATCH")[1]?.json();
    expect(silenced?.live_sound).toBe(false);
    shown.unmount();
    serve({ ...answers(camera()), "GET /api/session": SESSION });
    await renderAt("/cameras/entrance/settings");
    expect(await screen.findByRole("heading", { level: 1, name: "Entrance" })).toBeVisible();
    expect(screen.queryByLabelText("Kind of place")).toBeNull();
  });
});

describe("the wizard", () => {
  it("looks in the site that is chosen; at first that is the oldest, which the server would take", async () => {
    const site = { cameras: 1, workers: 1, timezone: "UTC" };
    const asked = serve({
      ...answers(),
      "GET /api/session": ADMIN,
      "GET /api/sites": {
        sites: [
          { ...site, name: "annex", site_uuid: "a", created_at: 9 },
          { ...site, name: "main", site_uuid: "m", created_at: 1 },
        ],
      },
      "POST /api/discovery": errand({ kind: "discover", result: { devices: [] } }),
    });
    await renderAt("/cameras/add");
    const choice = await screen.findByLabelText("Site");
    expect(choice).toHaveValue("main");
    await userEvent.selectOptions(choice, "annex");
    await userEvent.click(screen.getByRole("button", { name: "Look for cameras in the network" }));
    await waitFor(() => expect(asked.some((one) => one.url.endsWith("/api/discovery"))).toBe(true));
    const [sent] = asked.filter((one) => one.url.endsWith("/api/discovery"));
    expect(await sent?.json()).toMatchObject({ site: "annex" });
  });

  it("goes from discovery to a test look", async () => {
    const profiles = [
      {
        token: "a",
        name: "Main",
        codec: "h264",
        width: 1920,
        height: 1080,
        fps: 15,
        stream_url: "rtsp://192.0.2.7/1",
      },
      { token: "b", name: "Sub", codec: "h264", width: 640, height: 360, fps: 15, stream_url: "rtsp://192.0.2.7/2" },
    ];
    const asked = serve({
      ...answers(),
      "GET /api/session": ADMIN,
      "POST /api/discovery": async (request: Request) => {
        const { device } = await request.clone().json();
        const result = device
          ? { device: { manufacturer: "Example", model: "X" }, profiles, main: "a", sub: "b" }
          : { devices: [{ address: "192.0.2.7", name: "Yard", hardware: "X", reference: "r" }] };
        return errand({ kind: "discover", result });
      },
      "POST /api/probes": errand({
        has_picture: true,
        result: { stream: { codec: "h264", width: 1920, height: 1080 } },
      }),
      "POST /api/cameras": camera({ camera_id: "yard", name: "Yard" }),
      "POST /api/cameras/yard/look": errand({ kind: "look", has_picture: true }),
    });
    await renderAt("/cameras/add");
    await userEvent.click(await screen.findByRole("button", { name: "Look for cameras in the network" }));
    await userEvent.click(await screen.findByRole("button", { name: /Yard/ }));
    await userEvent.type(screen.getByLabelText("User name"), "viewer");
    await userEvent.click(screen.getByRole("button", { name: "List its streams" }));
    await userEvent.click(await screen.findByRole("button", { name: "Choose" }));
    await userEvent.click(await screen.findByRole("button", { name: "Connect and try" }));
    expect(await screen.findByText("It works: H264 1920×1080")).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: "Next" }));
    await userEvent.click(screen.getByRole("button", { name: "Privacy mask" }));
    await userEvent.click(screen.getByRole("button", { name: "Next" }));
    expect(screen.getByLabelText("ID")).toHaveValue("yard");
    await userEvent.selectOptions(screen.getByLabelText("Kind of place"), "outdoor");
    await userEvent.click(screen.getByRole("button", { name: "Add the camera" }));
    await userEvent.click(await screen.findByRole("button", { name: "Look once" }));
    expect(await screen.findByText("A picture has come. The camera is ready.")).toBeVisible();
    const sent = await asked.find((one) => one.method === "POST" && one.url.endsWith("/api/cameras"))?.json();
    expect(sent).toMatchObject({
      camera_id: "yard",
      name: "Yard",
      source: { url: "rtsp://192.0.2.7/1", user: "viewer" },
      sub: { url: "rtsp://192.0.2.7/2" },
      hints: { preset: "outdoor" },
    });
    expect(sent.privacy_masks).toHaveLength(1);
  });

  it("says what is wrong with an address, and lets people go on", async () => {
    serve({
      ...answers(),
      "POST /api/probes": errand({ state: "failed", result: { said_ja: "違います", said_en: "wrong password" } }),
    });
    await renderAt("/cameras/add");
    await userEvent.type(await screen.findByLabelText("Address"), "rtsp://192.0.2.9/x");
    await userEvent.click(screen.getByRole("button", { name: "Next" }));
    await userEvent.click(screen.getByRole("button", { name: "Connect and try" }));
    expect(await screen.findByText("wrong password")).toBeVisible();
    expect(screen.getByRole("button", { name: "Next" })).toBeDisabled();
    await userEvent.click(screen.getByRole("button", { name: "Go on without trying" }));
    expect(screen.getByText(/Draw what to leave out/)).toBeVisible();
  });
});
