// Asks the server for leases, keeps them alive and gives them back.
//
// A session has one viewing at a time, so requests and releases of a page go out one after the other: a camera that is
// opened right after another was closed must not be refused because of it.

import { answered, api } from "@/api/client";
import { asProblem, Problem } from "@/api/problem";
import { playableCodecs } from "./media-sink";
import type { Lease, Quality, Refusal } from "./viewing";

export type Purpose = "modal" | "suggest";

export interface Asked {
  cameraId: string;
  quality: Quality;
  purpose: Purpose;
  replaces: string | null; // a lease that is given back first
}

export interface Desk {
  /** Rejects with a Problem when it is refused, and with `Unwanted` when nobody waits for it any more. */
  ask(asked: Asked, isWanted: () => boolean): Promise<GrantedLease>;
  /** What is left of the time, in seconds. */
  beat(leaseId: string, signal: AbortSignal): Promise<number>;
  release(leaseId: string): void;
  isHealthy(): Promise<boolean>;
}

/** A lease as it is granted: how long it lasts, not until when. */
export interface GrantedLease extends Omit<Lease, "endsAtMs"> {
  remainingMs: number;
  snapshotUrl: string | null;
}

export class Unwanted extends Error {}

const ASK_TIMEOUT_MS = 20_000;
/** Kept for the tab alone, so that a page that is loaded again takes the place of what it was. */
const KEPT_NAME = "camserver.viewing";

export class ServerDesk implements Desk {
  private tail: Promise<unknown> = Promise.resolve();

  ask(asked: Asked, isWanted: () => boolean): Promise<GrantedLease> {
    return this.queued(async () => {
      if (!isWanted()) throw new Unwanted();
      const replaces = asked.replaces ?? ownLease(asked.purpose);
      if (replaces) await this.giveBack(replaces);
      const lease = await requested(asked);
      if (isWanted()) {
        keepOwnLease(asked.purpose, lease.leaseId);
        return lease;
      }
      await this.giveBack(lease.leaseId);
      throw new Unwanted();
    });
  }

  async beat(leaseId: string, signal: AbortSignal): Promise<number> {
    const params = { path: { lease_id: leaseId } };
    const { remaining_sec } = await answered(api.POST("/api/modal/lease/{lease_id}/heartbeat", { params, signal }));
    return remaining_sec;
  }

  release(leaseId: string): void {
    // Sent at once, for the page may be going; others wait until it was answered. A page that is gone by then has not
    // forgotten it, so that the next one waits for it, too.
    const sent = this.giveBack(leaseId).then(() => forgetOwnLease(leaseId));
    void this.queued(() => sent);
  }

  async isHealthy(): Promise<boolean> {
    return (await answered(api.GET("/api/system/status"))).healthy;
  }

  private queued<T>(work: () => Promise<T>): Promise<T> {
    const done = this.tail.then(work, work);
    this.tail = done.catch(() => undefined);
    return done;
  }

  private async giveBack(leaseId: string): Promise<void> {
    const options = {
      params: { path: { lease_id: leaseId } },
      keepalive: true,
      signal: AbortSignal.timeout(ASK_TIMEOUT_MS),
    };
    try {
      await answered(api.DELETE("/api/modal/lease/{lease_id}", options));
    } catch {
      // The server lets go of it by itself when heartbeats stop.
    }
  }
}

async function requested({ cameraId, quality, purpose }: Asked): Promise<GrantedLease> {
  const body = { camera_id: cameraId, quality, purpose, plays: playableCodecs() };
  const signal = AbortSignal.timeout(ASK_TIMEOUT_MS);
  const given = await answered(api.POST("/api/modal/lease", { body, signal }));
  return {
    leaseId: given.lease_id,
    quality: given.allowed_quality,
    streamUrl: given.stream_url,
    hlsUrl: given.hls_url || null,
    snapshotUrl: given.snapshot_url || null,
    remainingMs: given.remaining_sec * 1000,
    lengthMs: given.ttl_sec * 1000,
    beatEveryMs: given.heartbeat_interval_sec * 1000,
    graceMs: given.heartbeat_grace_sec * 1000,
    note: given.note,
    units: given.units,
  };
}

/** A refusal out of what the server said, or out of its silence. */
export function refusalOf(error: unknown): Refusal {
  const problem = error instanceof Problem ? error : asProblem(error);
  const { code, message, details } = problem;
  const refusal: Refusal = { code, message };
  if (typeof details.camera_id === "string" && code === "USER_ALREADY_HAS_MODAL") {
    refusal.openCamera = {
      cameraId: details.camera_id,
      name: typeof details.camera_name === "string" ? details.camera_name : details.camera_id,
      leaseId: typeof details.lease_id === "string" ? details.lease_id : null,
    };
  }
  if (typeof details.units_used === "number" && typeof details.units_budget === "number") {
    refusal.units = { used: details.units_used, budget: details.units_budget };
  }
  return refusal;
}

function ownLease(purpose: Purpose): string | null {
  try {
    return sessionStorage.getItem(`${KEPT_NAME}.${purpose}`);
  } catch {
    return null;
  }
}

function keepOwnLease(purpose: Purpose, leaseId: string): void {
  try {
    sessionStorage.setItem(`${KEPT_NAME}.${purpose}`, leaseId);
  } catch {
    // Without it a page that is loaded again may have to ask twice.
  }
}

function forgetOwnLease(leaseId: string): void {
  for (const purpose of ["modal", "suggest"] as const) {
    if (ownLease(purpose) !== leaseId) continue;
    try {
      sessionStorage.removeItem(`${KEPT_NAME}.${purpose}`);
    } catch {
      // As above.
    }
  }
}
