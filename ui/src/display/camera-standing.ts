// What a wall tile says about its camera.

import type { Camera } from "@/api/types";

export type Standing =
  | { kind: "good" }
  | { kind: "waiting" } // nothing was seen yet
  | { kind: "off" } // switched off by somebody
  | { kind: "failed"; reason: string; since: number | null } // looks fail, or nobody looks
  | { kind: "silent"; since: number }; // looks should come and don't

/** A camera whose newest look is older than this many intervals is not being looked at. */
const SILENT_AFTER_INTERVALS = 3;
const SILENT_MIN_MS = 30_000;
const NOT_LOOKED_AT = new Set(["PAUSED", "ORPHANED", "TERMINATED"]);

export function standingOf(camera: Camera, nowMs: number): Standing {
  if (!camera.enabled) return { kind: "off" };
  const { latest } = camera;
  const lastGood = camera.latest_picture?.captured_at ?? null;
  if (latest && latest.status !== "ok") {
    return { kind: "failed", reason: latest.error_code ?? latest.status, since: lastGood };
  }
  if (NOT_LOOKED_AT.has(camera.state)) {
    return { kind: "failed", reason: camera.state_reason || camera.state.toLowerCase(), since: lastGood };
  }
  if (!latest) return { kind: "waiting" };
  const patienceMs = Math.max(SILENT_MIN_MS, camera.polling_interval_sec * 1000 * SILENT_AFTER_INTERVALS);
  return nowMs - latest.captured_at > patienceMs ? { kind: "silent", since: latest.captured_at } : { kind: "good" };
}

export const isWell = (standing: Standing) => standing.kind === "good" || standing.kind === "waiting";
