// Tells the server again and again that somebody still watches. A beat that fails is repeated quickly, as long as the
// server still keeps the lease.

import { asProblem } from "@/api/problem";

export interface BeatListener {
  beat(remainingSec: number): void;
  /** The server says that it is over. */
  gone(): void;
  /** None was answered for the whole grace. */
  silence(): void;
}

export interface BeatPace {
  everyMs: number;
  graceMs: number;
}

const RETRY_PAUSES_MS = [500, 1000, 2000, 4000];
/** One answer may be waited for this long: a hanging one must not use up the grace. */
export const BEAT_TIMEOUT_MS = 8000;
/** Answers that say that it is over; every other failure passes. */
const OVER = new Set([401, 403, 404, 410]);

export class Heartbeat {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private aborter: AbortController | null = null;
  private failures = 0;
  private answeredAtMs: number;
  private stopped = false;

  constructor(
    private readonly send: (signal: AbortSignal) => Promise<number>,
    private readonly listener: BeatListener,
    private readonly pace: BeatPace,
    private readonly clockMs: () => number,
  ) {
    this.answeredAtMs = clockMs();
    this.wait(pace.everyMs);
  }

  /** Beats at once: the network or the tab came back. */
  hurry(): void {
    if (!this.stopped && !this.aborter) this.wait(0);
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
    this.aborter?.abort();
    this.aborter = null;
  }

  private wait(ms: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.beat(), ms);
  }

  private async beat(): Promise<void> {
    const aborter = new AbortController();
    this.aborter = aborter;
    const limit = setTimeout(() => aborter.abort(), BEAT_TIMEOUT_MS);
    const sentAtMs = this.clockMs();
    try {
      const remainingSec = await this.send(aborter.signal);
      if (this.stopped) return;
      this.failures = 0;
      this.answeredAtMs = sentAtMs; // the server counts from when it heard us, which is not earlier
      this.listener.beat(remainingSec);
      this.wait(this.pace.everyMs);
    } catch (error) {
      if (!this.stopped) this.failed(asProblem(error).status);
    } finally {
      clearTimeout(limit);
      if (this.aborter === aborter) this.aborter = null;
    }
  }

  private failed(status: number): void {
    if (OVER.has(status)) {
      this.stop();
      this.listener.gone();
      return;
    }
    const leftMs = this.pace.graceMs - (this.clockMs() - this.answeredAtMs);
    if (leftMs <= 0) {
      this.stop();
      this.listener.silence();
      return;
    }
    const pauseMs = RETRY_PAUSES_MS[Math.min(this.failures, RETRY_PAUSES_MS.length - 1)] ?? 0;
    this.failures += 1;
    this.wait(Math.min(pauseMs, leftMs));
  }
}
