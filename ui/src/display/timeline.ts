// A day of many cameras as one column: what was gravest, how much happened, and whether anybody looked.

export const ZOOMS = ["1h", "15m", "5m"] as const;
export type Zoom = (typeof ZOOMS)[number];

const HOUR_MS = 3_600_000;
const BUCKET_MS: Record<Zoom, number> = { "1h": HOUR_MS, "15m": HOUR_MS / 4, "5m": HOUR_MS / 12 };
/** With the smallest steps only a part of the day is shown. */
const CLOSE_MS = 6 * HOUR_MS;

/** The server's answer, as far as it matters here. */
export interface Strips {
  from_at: number;
  to_at: number;
  bucket_ms: number;
  /** A letter of looks and a digit of severity for each bucket; events as bucket and count, where there are any. */
  cameras: readonly { looked: string; severity: string; events: readonly (readonly number[])[] }[];
}

export type Looked = "ok" | "failed" | "none" | "watched" | "unknown";

export interface TimeStep {
  at: number;
  end: number;
  severity: number;
  events: number;
  looked: Looked;
}

export interface TimeSpan {
  from: number;
  to: number;
}

export const bucketMs = (zoom: Zoom) => BUCKET_MS[zoom];

/** What is asked for: the whole day, or the hours around a moment of it. */
export function spanOf(day: TimeSpan, zoom: Zoom, around: number): TimeSpan {
  if (zoom !== "5m") return day;
  const from = Math.max(day.from, Math.floor((around - CLOSE_MS / 2) / HOUR_MS) * HOUR_MS);
  const to = Math.min(day.to, from + CLOSE_MS);
  return { from: Math.max(day.from, to - CLOSE_MS), to };
}

/** All cameras together, the newest step first; none of the future. */
export function stepsOf(timeline: Strips, nowMs: number): TimeStep[] {
  const { from_at, to_at, bucket_ms, cameras } = timeline;
  const count = Math.round((to_at - from_at) / bucket_ms);
  const steps: TimeStep[] = [];
  for (let place = count - 1; place >= 0; place -= 1) {
    const at = from_at + place * bucket_ms;
    if (at > nowMs) continue;
    const letters = cameras.map((camera) => camera.looked[place] ?? "?");
    steps.push({
      at,
      end: at + bucket_ms,
      severity: Math.max(0, ...cameras.map((camera) => Number(camera.severity[place] ?? 0))),
      events: sum(cameras.map((camera) => camera.events.find(([bucket]) => bucket === place)?.[1] ?? 0)),
      looked: lookedOf(letters),
    });
  }
  return steps;
}

function lookedOf(letters: readonly string[]): Looked {
  if (letters.some((letter) => letter === "o" || letter === "m")) return "ok";
  if (letters.includes("x")) return "failed";
  if (letters.includes(".")) return "none";
  return letters.includes("w") ? "watched" : "unknown";
}

/** How long looks were put off, by the cause. */
export function pausedTime<Cause extends { id: string }>(
  pauses: readonly { start_at: number; end_at: number; cause: Cause }[],
): { cause: Cause; ms: number }[] {
  const found = new Map<string, { cause: Cause; ms: number }>();
  for (const { start_at, end_at, cause } of pauses) {
    const before = found.get(cause.id)?.ms ?? 0;
    found.set(cause.id, { cause, ms: before + end_at - start_at });
  }
  return [...found.values()];
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
