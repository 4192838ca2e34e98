// What a wall tile says about its camera. Whether a camera works is the server's rule; this only words it.

import type { Camera, CameraIssue, Label } from "@/api/types";

/** Whether a camera went silent is a matter of minutes, so it is judged anew this often; ages tick by themselves. */
export const STANDING_STEP_MS = 10_000;

export type Standing =
  | { kind: "good" }
  | { kind: "waiting" } // nothing was seen yet
  | { kind: "off" } // switched off by somebody
  | { kind: "failed"; cause: Label | null; reason: string; since: number | null } // no pictures come, and why
  | { kind: "unattended"; since: number | null } // the camera may be well, but no worker looks at it
  | { kind: "watched"; cause: Label; since: number } // its device is busy with another camera that somebody watches
  | { kind: "issue"; issues: CameraIssue[] } // pictures come, but not those that should
  | { kind: "silent"; since: number }; // looks should come and don't

/**
 * The server calls a camera down whose looks stopped coming for so long ([health] failing_sec, domain/health.py). Only
 * when it has not said so a while later, because it is away itself, does the tile say it.
 */
const SILENT_AFTER_INTERVALS = 3;
const SILENT_MIN_MS = 180_000;
const SERVER_SAYS_WITHIN_MS = 60_000;
const WATCHED_LIVE = "watched_live";
const NOT_LOOKED_AT = new Set(["PAUSED", "ORPHANED", "TERMINATED"]);

export function standingOf(camera: Camera, nowMs: number): Standing {
  if (!camera.enabled) return { kind: "off" };
  const { latest, health } = camera;
  const lastGood = camera.latest_picture?.captured_at ?? null;
  if (health.cause?.id === "unattended") return { kind: "unattended", since: health.since };
  const fault = camera.stream_fault;
  if (fault?.cause.id === WATCHED_LIVE && fault.over_at === null) {
    return { kind: "watched", cause: fault.cause, since: fault.at };
  }
  // A single look that failed is no outage; with no picture to show, its cause is.
  if (health.state === "down" || (health.cause && lastGood === null)) {
    return { kind: "failed", cause: health.cause, reason: "error", since: lastGood };
  }
  if (health.issues.length > 0) return { kind: "issue", issues: health.issues };
  if (!latest) {
    if (!NOT_LOOKED_AT.has(camera.state)) return { kind: "waiting" };
    return {
      kind: "failed",
      cause: null,
      // "code: what the worker said"; only the code has words in every language.
      reason: camera.state_reason.split(":", 1)[0] || camera.state.toLowerCase(),
      since: lastGood,
    };
  }
  if (health.state === "unknown" && latest.status !== "ok") {
    return { kind: "failed", cause: null, reason: latest.error_code ?? latest.status, since: lastGood };
  }
  const patienceMs = Math.max(SILENT_MIN_MS, camera.polling_interval_sec * 1000 * SILENT_AFTER_INTERVALS);
  const isSilent = nowMs - latest.captured_at > patienceMs + SERVER_SAYS_WITHIN_MS;
  return isSilent ? { kind: "silent", since: latest.captured_at } : { kind: "good" };
}

/** Whether there is a live view of a camera to be asked for. */
export const isWatchable = (camera: Pick<Camera, "enabled" | "do_not_process">) =>
  camera.enabled && !camera.do_not_process;

const SETTLED_BY_ADDRESS = new Set(["unauthorized", "not_found", "refused", "no_route"]);

/** Whether what is wrong with a camera is mended by another address or another login. */
export const isForAddress = (standing: Standing) =>
  standing.kind === "failed" && SETTLED_BY_ADDRESS.has(standing.cause?.id ?? standing.reason);

export const isWell = ({ kind }: Standing) => kind === "good" || kind === "waiting" || kind === "watched";

/** Whether there is a picture worth looking at. */
export const isSeen = (standing: Standing) => isWell(standing) || standing.kind === "issue";
