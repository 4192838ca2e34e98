// The server's clock, as far as its answers tell: ages are shown by it, because a browser's own may be wrong.

// An answer's Date counts whole seconds, so what is smaller than this can't be told from nothing.
const OFFSET_MIN_MS = 2000;

let offsetMs = 0;

export function noteServerDate(date: string | null, nowMs: number = Date.now()): void {
  const served = date === null ? Number.NaN : Date.parse(date);
  if (Number.isNaN(served)) return;
  const found = served + 500 - nowMs;
  offsetMs = Math.abs(found) < OFFSET_MIN_MS ? 0 : found;
}

export function serverNow(): number {
  return Date.now() + offsetMs;
}
