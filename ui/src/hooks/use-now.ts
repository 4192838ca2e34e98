import { useSyncExternalStore } from "react";
import { serverNow } from "@/api/server-clock";

// One ticking clock for the whole page, and none while nothing shows an age.
const TICK_MS = 1000;
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;
let now = serverNow();

function tick(): void {
  now = serverNow();
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(tick, TICK_MS);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

function read(): number {
  // While nobody listened the clock stood still.
  if (!timer) now = Math.max(now, Math.floor(serverNow() / TICK_MS) * TICK_MS);
  return now;
}

/** The server's time in milliseconds, new every second. */
export const useNow = () => useSyncExternalStore(subscribe, read);

/** The same for what need not be drawn every second: new at every whole step only. */
export const useNowBy = (stepMs: number) =>
  useSyncExternalStore(subscribe, () => Math.floor(read() / stepMs) * stepMs);

/** What the time means to somebody, drawn anew only when that is something else: a number or a text. */
export const useOfNow = <T extends string | number>(meaning: (nowMs: number) => T): T =>
  useSyncExternalStore(subscribe, () => meaning(read()));
