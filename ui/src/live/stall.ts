// Whether pictures still come, and if not, whose fault it seems to be. Pure; a stream asks it a few times a second.

export interface Flow {
  heardAtMs: number; // when the server last said anything; at first, when the stream was opened
  dataAtMs: number | null; // when media last arrived
  stalledAfterMs: number; // so long may the next media take
  standsSinceMs: number; // since when the picture stands although media arrives
  hasShown: boolean;
  isTold: boolean; // the server has said why there are no pictures
  isUnseen: boolean; // nobody could see it move: the tab is hidden, or the browser wants somebody to press play
}

export type Verdict =
  | "waiting" // nothing yet, and that is no wonder
  | "flowing"
  | "stalled" // no media arrives
  | "stuck" // media arrives, and the picture stands
  | "silent"; // nothing was heard for so long that the connection must be dead

/** The server tells of a stall within 5 s; what a player with a socket sees by itself it says a little earlier. */
export const STALLED_AFTER_MS = 3000;
export const STUCK_AFTER_MS = 6000;
export const SILENT_AFTER_MS = 15_000;
/** While there are no pictures the server may have nothing more to say. */
export const SILENT_TOLD_AFTER_MS = 45_000;

export function judge(flow: Flow, nowMs: number): Verdict {
  const { dataAtMs, isTold } = flow;
  const heardAtMs = Math.max(flow.heardAtMs, dataAtMs ?? 0);
  if (nowMs - heardAtMs >= (isTold ? SILENT_TOLD_AFTER_MS : SILENT_AFTER_MS)) return "silent";
  if (isTold) return "stalled";
  if (dataAtMs === null) return "waiting";
  if (nowMs - dataAtMs >= flow.stalledAfterMs) return "stalled";
  if (!flow.isUnseen && nowMs - flow.standsSinceMs >= STUCK_AFTER_MS) return "stuck";
  return flow.hasShown ? "flowing" : "waiting";
}
