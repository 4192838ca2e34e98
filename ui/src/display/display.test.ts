import { describe, expect, it } from "vitest";
import { COVERED, camera, frame, health, look, NOW, WATCHED_LIVE, WRONG_PASSWORD } from "@/test/samples";
import { ageOf } from "./age";
import { aspectOf, placeBox } from "./boxes";
import { isForAddress, isWatchable, isWell, standingOf } from "./camera-standing";
import { askedFilter, readFilter, writeFilter } from "./event-filter";
import { withoutNames } from "./hints";
import { severityOf } from "./severity";
import { durationText, shortMoment, startOfDay, startOfNextDay } from "./times";

describe("ages", () => {
  it.each([
    [-5000, "seconds", 0],
    [9_999, "seconds", 9],
    [14_999, "seconds", 10],
    [59_999, "seconds", 55],
    [60_000, "minutes", 1],
    [3_599_999, "minutes", 59],
    [3_600_000, "hours", 1],
    [86_399_999, "hours", 23],
    [86_400_000, "days", 1],
  ])("%i ms is %s %i", (ms, unit, count) => {
    expect(ageOf(NOW - ms, NOW)).toEqual({ unit, count });
  });
});

describe("times", () => {
  it("writes durations", () => {
    expect(durationText(0)).toBe("0:00");
    expect(durationText(65_000)).toBe("1:05");
    expect(durationText(3_661_000)).toBe("1:01:01");
  });

  it("leaves the date out for today only", () => {
    expect(shortMoment(NOW, NOW, "en")).toMatch(/^\d{2}:\d{2}:\d{2}$/);
    expect(shortMoment(NOW - 172_800_000, NOW, "en")).toMatch(/Feb 1/);
  });

  it("knows days from what is none", () => {
    expect(startOfDay("2026-02-03")).toBe(new Date(2026, 1, 3).getTime());
    expect(startOfNextDay("2026-02-28")).toBe(new Date(2026, 2, 1).getTime());
    expect(startOfDay("2026-02-31")).toBeUndefined();
    expect(startOfNextDay("yesterday")).toBeUndefined();
  });
});

describe("severity", () => {
  it.each([
    [-1, 0],
    [0, 0],
    [1, 1],
    [2, 2],
    [3, 3],
    [9, 3],
  ])("%i is step %i", (value, step) => {
    expect(severityOf(value)).toBe(step);
  });
});

describe("boxes", () => {
  const box = { x1: 0.25, y1: 0.25, x2: 0.5, y2: 0.75, label: null, conf: null };

  it("lie on the infer picture as they are", () => {
    const letterbox = { top: 140, bottom: 140, left: 0, right: 0 };
    const sizes = { full_w: 1920, full_h: 1080, infer_w: 640, infer_h: 640, letterbox };
    expect(placeBox(box, sizes, "infer")).toEqual({ left: 25, top: 25, width: 25, height: 50 });
  });

  it("are moved by the margins that the full picture does not have", () => {
    const letterbox = { top: 140, bottom: 140, left: 0, right: 0 };
    const sizes = { full_w: 1920, full_h: 1080, infer_w: 640, infer_h: 640, letterbox };
    const placed = placeBox(box, sizes, "full");
    expect(placed?.left).toBe(25);
    expect(placed?.top).toBeCloseTo(((0.25 * 640 - 140) / 360) * 100);
    expect((placed?.top ?? 0) + (placed?.height ?? 0)).toBeCloseTo(((0.75 * 640 - 140) / 360) * 100);
    expect(placeBox({ ...box, y1: 0, y2: 0.1 }, sizes, "full")).toBeNull();
  });

  it.each([
    ["that the camera itself has", { full_w: 1920, full_h: 1080, infer_w: 640, infer_h: 360 }],
    ["of pictures whose sizes were rounded", { full_w: 1917, full_h: 1080, infer_w: 640, infer_h: 361 }],
    ["of a full picture of unknown size", { full_w: null, full_h: null, infer_w: 640, infer_h: 360 }],
    ["with nothing between them", { full_w: 1080, full_h: 1920, infer_w: 160, infer_h: 160 }],
  ])("are not moved by margins %s", (_, sizes) => {
    const letterbox = { top: 0, bottom: 0, left: 80, right: 80 };
    expect(placeBox(box, { ...sizes, letterbox }, "full")).toEqual({ left: 25, top: 25, width: 25, height: 50 });
  });

  it("stay within the picture", () => {
    const sizes = { full_w: null, full_h: null, infer_w: null, infer_h: null, letterbox: null };
    const placed = placeBox({ ...box, x1: -0.5, x2: 1.5 }, sizes, "full");
    expect(placed).toMatchObject({ left: 0, width: 100 });
  });

  it("have the shape of their picture around them", () => {
    expect(aspectOf(frame({ full_w: 400, full_h: 300 }), "full")).toBeCloseTo(4 / 3);
    expect(aspectOf(frame({ infer_w: null }), "infer")).toBeCloseTo(16 / 9);
  });
});

describe("a camera's standing", () => {
  it.each([
    ["works", {}, "good"],
    ["is switched off", { enabled: false }, "off"],
    ["was not looked at yet", { latest: null, latest_picture: null }, "waiting"],
    ["never got going", { latest: null, latest_picture: null, state: "PAUSED", state_reason: "no_ack" }, "failed"],
    ["failed a single look", { latest: look({ status: "error", error_code: "no_video" }) }, "good"],
    ["is down", { health: health({ state: "down", cause: WRONG_PASSWORD }) }, "failed"],
    ["has no picture yet and fails", { latest_picture: null, health: health({ cause: WRONG_PASSWORD }) }, "failed"],
    [
      "nobody looks at",
      { health: health({ state: "unknown", cause: { ...WRONG_PASSWORD, id: "unattended" } }) },
      "unattended",
    ],
    ["is covered", { health: health({ issues: [{ ...COVERED, since: 1, event_uuid: "e9" }] }) }, "issue"],
    [
      "waits while another one is watched",
      { stream_fault: WATCHED_LIVE, health: health({ state: "down" }) },
      "watched",
    ],
    ["has waited for that", { stream_fault: { ...WATCHED_LIVE, over_at: NOW } }, "good"],
    ["was not heard of", { latest: look({ captured_at: NOW - 241_000 }) }, "silent"],
    ["is left to the server to be called down", { latest: look({ captured_at: NOW - 239_000 }) }, "good"],
    ["is looked at rarely", { polling_interval_sec: 60, latest: look({ captured_at: NOW - 100_000 }) }, "good"],
  ] as const)("that %s", (_, given, kind) => {
    expect(standingOf(camera(given), NOW).kind).toBe(kind);
  });

  it("names the reason and the last good picture", () => {
    const broken = camera({
      latest: look({ status: "timeout" }),
      latest_picture: { frame_uuid: "f0", captured_at: 7 },
      health: health({ state: "down", cause: WRONG_PASSWORD }),
    });
    expect(standingOf(broken, NOW)).toEqual({ kind: "failed", cause: WRONG_PASSWORD, reason: "error", since: 7 });
    expect(isWell(standingOf(broken, NOW))).toBe(false);
  });

  it.each([
    ["a password that is refused", { health: health({ state: "down", cause: WRONG_PASSWORD }) }, true],
    [
      "nothing at the address",
      { latest: null, latest_picture: null, state: "PAUSED", state_reason: "not_found: no such path" },
      true,
    ],
    [
      "a worker that does not answer",
      { latest: null, latest_picture: null, state: "PAUSED", state_reason: "no_ack" },
      false,
    ],
    ["nothing", {}, false],
  ] as const)("by %s is (or is not) mended by another address", (_, given, mended) => {
    expect(isForAddress(standingOf(camera(given), NOW))).toBe(mended);
  });

  it.each([
    [{}, true],
    [{ enabled: false }, false],
    [{ do_not_process: true }, false],
  ])("%o can be watched live: %s", (given, watchable) => {
    expect(isWatchable(camera(given))).toBe(watchable);
  });
});

describe("the filter of events", () => {
  it("survives the address", () => {
    let address = new URLSearchParams();
    address = writeFilter(address, "camera", "entrance");
    address = writeFilter(address, "severity", "2");
    address = writeFilter(address, "state", "open");
    expect(readFilter(new URLSearchParams(address.toString()))).toEqual({
      camera: "entrance",
      severity: "2",
      state: "open",
    });
    expect(readFilter(writeFilter(address, "camera", ""))).toEqual({ severity: "2", state: "open" });
  });

  it("asks for an issue of cameras by its tag", () => {
    expect(askedFilter({ kind: "camera.offline" })).toEqual({ tag: ["camera.offline"] });
  });

  it("is asked as the server knows it", () => {
    const chosen = {
      camera: "entrance",
      kind: "human",
      severity: "3",
      state: "closed",
      from: "2026-02-03",
      to: "2026-02-03",
    };
    expect(askedFilter(chosen)).toEqual({
      camera_id: ["entrance"],
      primary_event: ["human"],
      severity_min: 3,
      state: "closed",
      from: new Date(2026, 1, 3).getTime(),
      to: new Date(2026, 1, 4).getTime(),
    });
  });

  it("leaves out what makes no sense", () => {
    expect(askedFilter({ severity: "9", state: "maybe", from: "soon", to: "2026-99-99" })).toEqual({});
  });
});

describe("hints without names", () => {
  it("lose those names everywhere, and say nothing where nothing is left", () => {
    const hints = {
      expected_objects: ["cart", "unicron"],
      excluded_objects: ["unicron"],
      thresholds: { unicron: 0.5, dog: 0.4 },
    };
    expect(withoutNames(hints, ["unicron"])).toEqual({
      expected_objects: ["cart"],
      excluded_objects: null,
      thresholds: { dog: 0.4 },
    });
  });
});
