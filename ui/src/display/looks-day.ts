// Whether a camera was looked at, day by day and hour by hour: what is shown, and what can be said of it.

import type { CameraLooks } from "@/api/types";
import { dayOf, startOfDay } from "./times";

export const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Looks are counted every few minutes; what is not counted for longer is not known. */
const COUNTED_WITHIN_MS = 20 * 60_000;

/** The beginning of the hour whose pictures are shown. */
export function chosenHour(address: URLSearchParams): number | null {
  const at = Number(address.get("hour"));
  return Number.isSafeInteger(at) && at > 0 && at % HOUR_MS === 0 ? at : null;
}

/** The day that is shown; null: the last 24 hours. An hour that was among these once is shown with its day later. */
export function looksDay(address: URLSearchParams, nowMs: number): string | null {
  const day = address.get("day");
  if (day && startOfDay(day) !== undefined) return day;
  const hour = chosenHour(address);
  return hour !== null && hour + HOUR_MS <= nowMs - DAY_MS ? dayOf(hour) : null;
}

type Figure = "looks" | "looks_failed" | "lost" | "events" | "detected";

export const totalOf = ({ hours }: Pick<CameraLooks, "hours">, name: Figure) =>
  hours.reduce((sum, hour) => sum + hour[name], 0);

/**
 * What can be said of a time in which nothing happened: that somebody looked all the while, or at times only. Nothing
 * where something happened, or nobody saw anything.
 */
export function quietOf(
  looks: Pick<CameraLooks, "hours" | "gaps" | "to_at" | "counted_until">,
  nowMs: number,
): "whole" | "apart" | null {
  if (totalOf(looks, "looks") === totalOf(looks, "looks_failed")) return null;
  if (totalOf(looks, "events") + totalOf(looks, "detected") > 0) return null;
  const isBlind = looks.hours.some((hour) => hour.looks > 0 && hour.looks === hour.looks_failed);
  const isBehind = looks.counted_until < Math.min(looks.to_at, nowMs) - COUNTED_WITHIN_MS;
  return isBlind || isBehind || looks.gaps.length > 0 || totalOf(looks, "lost") > 0 ? "apart" : "whole";
}

/** A length in hours and minutes. */
export function spanParts(ms: number): { hours: number; minutes: number } {
  const minutes = Math.round(ms / 60_000);
  return { hours: Math.floor(minutes / 60), minutes: minutes % 60 };
}

/** Why an hour has no quiet pictures. */
export function nothingQuiet(hour: CameraLooks["hours"][number] | undefined, countedUntil: number) {
  if (!hour) return "notKept";
  if (hour.looks === 0) return hour.hour_at + HOUR_MS > countedUntil ? "notCounted" : "notLooked";
  return hour.looks === hour.looks_failed ? "allFailed" : "notKept";
}
