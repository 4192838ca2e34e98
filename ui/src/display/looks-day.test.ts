import { describe, expect, it } from "vitest";
import type { CameraLooks } from "@/api/types";
import { chosenHour, HOUR_MS, looksDay, nothingQuiet, quietOf, spanParts } from "./looks-day";
import { dayOf, spanText, startOfDay } from "./times";

const NOW = new Date(2026, 1, 3, 14, 30).getTime();
const hourAt = (hoursAgo: number) => (Math.floor(NOW / HOUR_MS) - hoursAgo) * HOUR_MS;
const address = (text: string) => new URLSearchParams(text);
const hour = (given: Partial<CameraLooks["hours"][number]> = {}): CameraLooks["hours"][number] => ({
  ...{ hour_at: hourAt(1), looks: 720, looks_failed: 0, lost: 0, analyzed: 0, detected: 0, events: 0 },
  ...{ severity_max: 0, pictures: 60, quiet: 60 },
  ...given,
});
const GAP = { start_at: 0, end_at: 1, cause: null };

describe("the day of a camera's looks", () => {
  it("is that of the address, or the last 24 hours", () => {
    expect(looksDay(address("day=2026-02-01"), NOW)).toBe("2026-02-01");
    expect(looksDay(address("day=2026-02-31"), NOW)).toBeNull();
    expect(looksDay(address(""), NOW)).toBeNull();
    expect(looksDay(address(`hour=${hourAt(3)}`), NOW)).toBeNull();
  });

  it("is that of an hour that was among the last 24 once", () => {
    expect(looksDay(address(`hour=${hourAt(49)}`), NOW)).toBe(dayOf(hourAt(49)));
  });

  it.each([
    ["hour=5", null],
    ["hour=never", null],
    ["", null],
    [`hour=${7 * HOUR_MS}`, 7 * HOUR_MS],
  ])("has the hour of %s", (text, found) => expect(chosenHour(address(text))).toBe(found));
});

describe("that nothing happened", () => {
  it.each([
    ["is said of a time that was looked at all the while", { hours: [hour(), hour()], gaps: [] }, "whole"],
    ["is said of the looks only where nobody looked at times", { hours: [hour()], gaps: [GAP] }, "apart"],
    ["and where all looks of an hour failed", { hours: [hour(), hour({ looks_failed: 720 })], gaps: [] }, "apart"],
    ["and where some never arrived", { hours: [hour({ lost: 1 })], gaps: [] }, "apart"],
    ["is not said where something happened", { hours: [hour({ events: 1 })], gaps: [] }, null],
    ["nor where something was found", { hours: [hour({ detected: 1 })], gaps: [] }, null],
    ["nor where nobody looked", { hours: [hour({ looks: 0 })], gaps: [GAP] }, null],
    ["nor where nobody saw anything", { hours: [hour({ looks_failed: 720 })], gaps: [] }, null],
    [
      "is said of the looks only where some are not counted for long",
      { hours: [hour()], gaps: [], counted_until: hourAt(1) },
      "apart",
    ],
    [
      "is said of all of a day that is over, whenever it is looked at",
      { hours: [hour()], gaps: [], to_at: hourAt(9), counted_until: hourAt(9) },
      "whole",
    ],
  ])("%s", (_, looks, said) =>
    expect(quietOf({ to_at: NOW + HOUR_MS, counted_until: NOW - 600_000, ...looks }, NOW)).toBe(said),
  );

  it.each([
    ["notKept", hour()],
    ["notKept", undefined],
    ["notLooked", hour({ looks: 0 })],
    ["notCounted", hour({ looks: 0, hour_at: hourAt(0) })],
    ["allFailed", hour({ looks_failed: 720 })],
  ])("has no pictures, as %s", (why, one) => expect(nothingQuiet(one, NOW)).toBe(why));
});

describe("spans", () => {
  it("have hours and minutes", () => {
    expect(spanParts(5 * 60_000)).toEqual({ hours: 0, minutes: 5 });
    expect(spanParts(25.5 * HOUR_MS)).toEqual({ hours: 25, minutes: 30 });
  });

  it("name their date where it is not the day they stand under", () => {
    const at = (startOfDay("2026-02-03") ?? 0) + 23 * HOUR_MS;
    expect(spanText(at, at + HOUR_MS, "2026-02-03", "en")).toBe("23:00\u2060–\u206000:00");
    expect(spanText(at, at + HOUR_MS, "2026-02-04", "en")).toBe("Feb 3, 23:00\u2060–\u206000:00");
    expect(spanText(at, at + 2 * HOUR_MS, "2026-02-04", "en")).toBe("Feb 3, 23:00\u2060–\u2060Feb 4, 01:00");
  });
});
