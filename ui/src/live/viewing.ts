// One viewing of a camera as a state machine: what was, and what happened, give what is. It does nothing itself; the
// player (player.ts) makes the world follow: a request, a lease with its heartbeat, and a stream are open exactly while
// the state names them.

export type Quality = "sub" | "main";
export type Transport = "mse" | "hls";

export type Phase =
  | "requesting" // the server was asked for a lease
  | "connecting" // there is a lease, and no picture yet
  | "playing"
  | "degraded" // pictures came, and stopped coming
  | "warning" // the time is nearly over
  | "expired" // the time is over
  | "lost" // it ended, and nobody here wanted that
  | "released" // it was let go, here
  | "rejected"; // the server gave no lease

/** What the server granted. Times are of the browser's own clock, counted from the answer. */
export interface Lease {
  leaseId: string;
  quality: Quality;
  streamUrl: string;
  hlsUrl: string | null;
  endsAtMs: number;
  lengthMs: number; // of the whole viewing
  beatEveryMs: number;
  graceMs: number; // so long may heartbeats fail
  note: string; // why it is not what was asked for, as a code; "" when it is
  units: number; // of the budget that everybody shares
}

/** Why the server gave no lease. */
export interface Refusal {
  code: string;
  message: string; // the server's own sentence, in the reader's language
  openCamera?: { cameraId: string; name: string; leaseId: string | null }; // what this person watches elsewhere
  units?: { used: number; budget: number };
}

/** Why there are no pictures at the moment: a code of the server's, or one of the player's own. */
export interface Trouble {
  code: string;
  label?: { label_ja: string; label_en: string };
}

export type StreamFault =
  | "unsupported" // this browser can't play it
  | "closed" // the connection broke, or could not be made
  | "media" // the browser could not decode what came
  | "silent" // neither pictures nor a reason came
  | "ttl" // the time is over
  | "lease" // the server knows the lease no more
  | "replaced" // the same viewing is open elsewhere
  | "camera" // the camera is gone
  | "session"
  | "forbidden";

/** Why a viewing was lost. */
export type Loss = "lease" | "server" | "stream" | "codec" | "replaced" | "camera" | "session" | "forbidden";

export interface Stream {
  id: number; // what a stream says after it was replaced is not heard
  transport: Transport;
}

export interface Viewing {
  phase: Phase;
  wanted: Quality;
  count: number; // of requests and streams so far; gives them their ids
  request: { id: number; replaces: string | null } | null;
  lease: Lease | null;
  stream: Stream | null;
  transport: Transport; // of the stream, or of the one that is tried next
  seen: boolean; // this lease has shown a picture
  proven: Transport | null; // the way by which it did
  failures: number; // of streams in a row, without a picture between
  trouble: Trouble | null;
  refusal: Refusal | null;
  loss: Loss | null;
  away: boolean; // it was released because nobody could see it
  hiddenAtMs: number | null;
  /** When the next try is made by itself: of a stream while there is a lease, else of a request. */
  retryAtMs: number | null;
  refusals: number; // in a row
  mayRetry: boolean; // a person may ask again
}

export type Happening =
  | { kind: "granted"; request: number; lease: Lease; nowMs: number }
  | { kind: "refused"; request: number; refusal: Refusal; nowMs: number }
  | { kind: "picture"; stream: number; nowMs: number }
  | { kind: "trouble"; stream: number; trouble: Trouble; nowMs: number }
  | { kind: "broken"; stream: number; fault: StreamFault; nowMs: number }
  | { kind: "beat"; leaseId: string; endsAtMs: number; nowMs: number }
  | { kind: "silence"; leaseId: string; nowMs: number } // no heartbeat was answered for the whole grace
  | { kind: "gone"; leaseId: string; nowMs: number }
  | { kind: "healthy"; nowMs: number } // the server is no longer overloaded
  | { kind: "tick"; nowMs: number }
  | { kind: "hidden"; nowMs: number }
  | { kind: "shown"; nowMs: number }
  | { kind: "left"; nowMs: number } // the page is going, and may come back as it was
  | { kind: "again"; quality?: Quality; replaces?: string; nowMs: number }
  | { kind: "close"; nowMs: number };

export const WARNING_MS = 30_000;
/** A tab that is looked at again within this time was never away. */
export const HIDDEN_GRACE_MS = 7000;
/** How often each way is tried in a row; one that has worked is not given up for a broken connection. */
const TRIES_MAX = { mse: 2, hls: 4 } as const;
const TRIES_PROVEN_MAX = 8;
const STREAM_PAUSES_MS = [250, 1000, 2000, 4000];
const REQUEST_PAUSES_MS = [3000, 6000, 12_000, 24_000, 30_000];

export const OVER_CAPACITY = "OVER_CAPACITY";
export const SYSTEM_OVERLOAD = "SYSTEM_OVERLOAD";
export const USER_ALREADY_HAS_MODAL = "USER_ALREADY_HAS_MODAL";
/** Refusals that pass by themselves. Overload does too, but must not be asked about again and again. */
const PASSING = new Set([
  OVER_CAPACITY,
  "NO_STREAMER",
  "store_busy",
  "unreachable",
  "http_502",
  "http_503",
  "http_504",
]);
/** Losses after which a new lease may help without anybody doing something. */
const PASSING_LOSSES = new Set<Loss>(["lease", "server", "stream"]);

const LIVE = new Set<Phase>(["connecting", "playing", "degraded", "warning"]);
export const isLive = ({ phase }: Viewing) => LIVE.has(phase);

export function begin(wanted: Quality, replaces: string | null = null): Viewing {
  return {
    phase: "requesting",
    wanted,
    count: 1,
    request: { id: 1, replaces },
    lease: null,
    stream: null,
    transport: "mse",
    seen: false,
    proven: null,
    failures: 0,
    trouble: null,
    refusal: null,
    loss: null,
    away: false,
    hiddenAtMs: null,
    retryAtMs: null,
    refusals: 0,
    mayRetry: false,
  };
}

export function step(was: Viewing, happened: Happening): Viewing {
  if (was.phase === "released" && !was.away) return was; // closed for good
  switch (happened.kind) {
    case "granted":
      return was.request?.id === happened.request ? granted(was, happened.lease, happened.nowMs) : was;
    case "refused":
      return was.request?.id === happened.request ? rejected(was, happened.refusal, happened.nowMs) : was;
    case "picture":
      return ofStream(was, happened, () => ({
        ...was,
        seen: true,
        proven: was.transport,
        failures: 0,
        trouble: null,
        refusals: 0,
      }));
    case "trouble":
      return ofStream(was, happened, () => ({ ...was, trouble: happened.trouble }));
    case "broken":
      return was.stream?.id === happened.stream ? broken(was, was.stream, happened.fault, happened.nowMs) : was;
    case "beat":
      if (was.lease?.leaseId !== happened.leaseId) return was;
      return settled({ ...was, lease: { ...was.lease, endsAtMs: happened.endsAtMs } }, happened.nowMs);
    case "silence":
      return was.lease?.leaseId === happened.leaseId ? lost(was, "server", happened.nowMs) : was;
    case "gone":
      return was.lease?.leaseId === happened.leaseId ? leaseGone(was, happened.nowMs) : was;
    case "healthy":
      return was.refusal?.code === SYSTEM_OVERLOAD ? { ...was, mayRetry: true } : was;
    case "tick":
      return ticked(was, happened.nowMs);
    case "hidden":
      return was.hiddenAtMs === null ? { ...was, hiddenAtMs: happened.nowMs } : was;
    case "shown":
      if (was.away) return requested({ ...was, hiddenAtMs: null });
      return was.hiddenAtMs === null ? was : { ...was, hiddenAtMs: null };
    case "left":
      return was.lease || was.request ? { ...ended(was, "released"), away: true } : was;
    case "again":
      return requested({ ...was, wanted: happened.quality ?? was.wanted }, happened.replaces);
    case "close":
      return { ...ended(was, "released"), away: false };
  }
}

function ofStream(was: Viewing, happened: { stream: number; nowMs: number }, then: () => Viewing): Viewing {
  return was.stream?.id === happened.stream ? settled(then(), happened.nowMs) : was;
}

function granted(was: Viewing, lease: Lease, nowMs: number): Viewing {
  const id = was.count + 1;
  return settled(
    {
      ...was,
      count: id,
      request: null,
      lease,
      stream: { id, transport: "mse" },
      transport: "mse",
      seen: false,
      proven: null,
      failures: 0,
      trouble: null,
      refusal: null,
      loss: null,
      retryAtMs: null,
    },
    nowMs,
  );
}

function rejected(was: Viewing, refusal: Refusal, nowMs: number): Viewing {
  const passes = PASSING.has(refusal.code);
  return {
    ...ended(was, "rejected"),
    refusal,
    refusals: was.refusals + 1,
    retryAtMs: passes ? nowMs + pause(REQUEST_PAUSES_MS, was.refusals) : null,
    mayRetry: refusal.code !== SYSTEM_OVERLOAD,
  };
}

/** Which live phase it is, by what is shown and how much time is left. */
function settled(is: Viewing, nowMs: number): Viewing {
  if (!is.lease) return is;
  const leftMs = is.lease.endsAtMs - nowMs;
  if (leftMs <= 0) return ended(is, "expired");
  const phase = livePhase(is, leftMs);
  return phase === is.phase ? is : { ...is, phase };
}

function livePhase({ seen, trouble, stream }: Viewing, leftMs: number): Phase {
  if (!seen) return "connecting";
  if (leftMs <= WARNING_MS) return "warning";
  return trouble || !stream ? "degraded" : "playing";
}

function broken(was: Viewing, stream: Stream, fault: StreamFault, nowMs: number): Viewing {
  if (fault === "ttl") return ended(was, "expired");
  if (fault === "lease") return leaseGone(was, nowMs);
  if (fault === "session" || fault === "forbidden" || fault === "replaced" || fault === "camera") {
    return lost(was, fault, nowMs);
  }
  const { transport } = stream;
  const failures = was.failures + 1;
  const isProven = was.proven === transport;
  const triesMax = isProven ? TRIES_PROVEN_MAX : TRIES_MAX[transport];
  const isHopeless = fault === "unsupported" || failures >= triesMax;
  if (isHopeless && transport === "mse" && !isProven && was.lease?.hlsUrl) return opened(was, "hls", 0, nowMs);
  if (isHopeless) return lost(was, fault === "unsupported" ? "codec" : "stream", nowMs);
  const pausing: Viewing = {
    ...was,
    stream: null,
    failures,
    trouble: was.trouble ?? { code: fault },
    retryAtMs: nowMs + pause(STREAM_PAUSES_MS, failures - 1),
  };
  return settled(pausing, nowMs);
}

function opened(was: Viewing, transport: Transport, failures: number, nowMs: number): Viewing {
  const id = was.count + 1;
  return settled({ ...was, count: id, stream: { id, transport }, transport, failures, retryAtMs: null }, nowMs);
}

function leaseGone(was: Viewing, nowMs: number): Viewing {
  // Our clock and the server's differ by a little; in the last moments it is the time that ended it.
  const leftMs = (was.lease?.endsAtMs ?? nowMs) - nowMs;
  return leftMs < 5000 ? ended(was, "expired") : lost(was, "lease", nowMs);
}

function lost(was: Viewing, loss: Loss, nowMs: number): Viewing {
  const passes = PASSING_LOSSES.has(loss);
  return {
    ...ended(was, "lost"),
    loss,
    refusals: was.refusals + 1,
    retryAtMs: passes ? nowMs + pause(REQUEST_PAUSES_MS, was.refusals) : null,
  };
}

function ended(was: Viewing, phase: "expired" | "lost" | "released" | "rejected"): Viewing {
  return {
    ...was,
    phase,
    request: null,
    lease: null,
    stream: null,
    trouble: null,
    refusal: null,
    loss: null,
    away: false,
    retryAtMs: null,
    mayRetry: phase !== "released",
  };
}

function requested(was: Viewing, replaces: string | null = null): Viewing {
  const id = was.count + 1;
  return { ...ended(was, "expired"), phase: "requesting", count: id, request: { id, replaces }, mayRetry: false };
}

function ticked(was: Viewing, nowMs: number): Viewing {
  const isAway = was.hiddenAtMs !== null && nowMs - was.hiddenAtMs >= HIDDEN_GRACE_MS;
  if (isAway && (was.lease || was.request)) return { ...ended(was, "released"), away: true };
  const is = settled(was, nowMs);
  if (is.retryAtMs === null || nowMs < is.retryAtMs) return is;
  if (is.lease) return opened(is, is.transport, is.failures, nowMs);
  // Nobody would see it.
  return isAway ? is : requested(is);
}

function pause(pausesMs: readonly number[], failures: number): number {
  return pausesMs[Math.min(failures, pausesMs.length - 1)] ?? 0;
}

/** What is left of the time, in whole seconds as a countdown shows them; null without a lease. */
export function secondsLeft({ lease }: Viewing, nowMs: number): number | null {
  return lease ? Math.max(0, Math.ceil((lease.endsAtMs - nowMs) / 1000)) : null;
}
