// How long ago something was, as a number and a unit that the words of each language are made for.

export type AgeUnit = "seconds" | "minutes" | "hours" | "days";

export interface Age {
  unit: AgeUnit;
  count: number;
}

/** From here on seconds go in steps: a wall of ages that all count is restless, and is drawn anew all the time. */
const STEPS_FROM_SEC = 10;
const STEP_SEC = 5;

export function ageOf(thenMs: number, nowMs: number): Age {
  const seconds = Math.max(0, Math.floor((nowMs - thenMs) / 1000));
  if (seconds < STEPS_FROM_SEC) return { unit: "seconds", count: seconds };
  if (seconds < 60) return { unit: "seconds", count: Math.floor(seconds / STEP_SEC) * STEP_SEC };
  if (seconds < 3600) return { unit: "minutes", count: Math.floor(seconds / 60) };
  if (seconds < 86_400) return { unit: "hours", count: Math.floor(seconds / 3600) };
  return { unit: "days", count: Math.floor(seconds / 86_400) };
}
