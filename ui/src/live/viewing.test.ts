import { describe, expect, it } from "vitest";
import {
  begin,
  type Happening,
  HIDDEN_GRACE_MS,
  isLive,
  type Lease,
  OVER_CAPACITY,
  type Phase,
  type StreamFault,
  SYSTEM_OVERLOAD,
  secondsLeft,
  step,
  USER_ALREADY_HAS_MODAL,
  type Viewing,
} from "./viewing";

const LENGTH_MS = 300_000;

const lease = (given: Partial<Lease> = {}): Lease => ({
  leaseId: "L1",
  quality: "sub",
  streamUrl: "wss://house/stream/entrance",
  hlsUrl: "https://house/hls/L1/index.m3u8",
  endsAtMs: LENGTH_MS,
  lengthMs: LENGTH_MS,
  beatEveryMs: 30_000,
  graceMs: 45_000,
  note: "",
  units: 1,
  ...given,
});

type Loose = Happening extends infer One
  ? One extends { nowMs: number }
    ? Omit<One, "nowMs"> & { nowMs?: number }
    : never
  : never;
const play = (from: Viewing, ...happenings: Loose[]) =>
  happenings.reduce<Viewing>((is, one) => step(is, { nowMs: 0, ...one } as Happening), from);

const REQUESTING = begin("sub");
const CONNECTING = play(REQUESTING, { kind: "granted", request: 1, lease: lease() });
const STREAM = CONNECTING.stream?.id ?? 0;
const PLAYING = play(CONNECTING, { kind: "picture", stream: STREAM });
const DEGRADED = play(PLAYING, { kind: "trouble", stream: STREAM, trouble: { code: "stalled" } });
const WARNING = play(PLAYING, { kind: "tick", nowMs: LENGTH_MS - 30_000 });
const EXPIRED = play(PLAYING, { kind: "tick", nowMs: LENGTH_MS });
const refused = (code: string, more = {}): Loose => ({
  kind: "refused",
  request: 1,
  refusal: { code, message: "no", ...more },
});
const REJECTED = play(REQUESTING, refused(OVER_CAPACITY));
const LOST = play(PLAYING, { kind: "gone", leaseId: "L1" });
const RELEASED = play(PLAYING, { kind: "close" });
const AWAY = play(PLAYING, { kind: "hidden" }, { kind: "tick", nowMs: HIDDEN_GRACE_MS });

/** Every phase with what can happen in it: where it leads. What is not named changes no phase. */
const TABLE: [string, Viewing, Partial<Record<Happening["kind"], Phase>>][] = [
  ["requesting", REQUESTING, { granted: "connecting", refused: "rejected", left: "released" }],
  [
    "connecting",
    CONNECTING,
    { picture: "playing", silence: "lost", gone: "lost", left: "released", again: "requesting" },
  ],
  [
    "playing",
    PLAYING,
    { trouble: "degraded", silence: "lost", gone: "lost", left: "released", again: "requesting", broken: "degraded" },
  ],
  [
    "degraded",
    DEGRADED,
    { picture: "playing", silence: "lost", gone: "lost", left: "released", again: "requesting" },
  ],
  [
    "warning",
    WARNING,
    {
      silence: "lost",
      gone: "lost",
      left: "released",
      again: "requesting",
      beat: "playing",
      picture: "playing",
      trouble: "degraded",
      tick: "playing",
      broken: "degraded",
    },
  ],
  ["expired", EXPIRED, { again: "requesting" }],
  ["rejected", REJECTED, { again: "requesting" }],
  ["lost", LOST, { again: "requesting" }],
  ["released", RELEASED, { close: "released" }],
  ["released", AWAY, { shown: "requesting", again: "requesting" }],
];

const EVERY: Loose[] = [
  { kind: "granted", request: 1, lease: lease() },
  refused(OVER_CAPACITY),
  { kind: "picture", stream: STREAM },
  { kind: "trouble", stream: STREAM, trouble: { code: "stalled" } },
  { kind: "broken", stream: STREAM, fault: "closed" },
  { kind: "beat", leaseId: "L1", endsAtMs: LENGTH_MS },
  { kind: "silence", leaseId: "L1" },
  { kind: "gone", leaseId: "L1" },
  { kind: "healthy" },
  { kind: "tick" },
  { kind: "hidden" },
  { kind: "shown" },
  { kind: "left" },
  { kind: "again" },
  { kind: "close" },
];

describe.each(TABLE)("a viewing that is %s", (phase, viewing, leads) => {
  it.each(EVERY.map((one) => [one.kind, one] as const))("after %s", (kind, happened) => {
    const is = play(viewing, happened);
    const expected = kind === "close" ? "released" : (leads[kind] ?? phase);
    expect(is.phase).toBe(expected);
    // Nothing is kept open that the phase has no use for.
    expect(is.lease !== null).toBe(isLive(is));
    expect(is.request !== null).toBe(is.phase === "requesting");
    if (!isLive(is)) expect(is.stream).toBeNull();
  });
});

describe("the time of a viewing", () => {
  it("is the server's: a heartbeat moves its end", () => {
    const shorter = play(PLAYING, { kind: "beat", leaseId: "L1", endsAtMs: 20_000 });
    expect(shorter.phase).toBe("warning");
    expect(secondsLeft(shorter, 0)).toBe(20);
    expect(secondsLeft(shorter, 19_001)).toBe(1);
    expect(play(shorter, { kind: "tick", nowMs: 20_000 }).phase).toBe("expired");
    expect(play(PLAYING, { kind: "beat", leaseId: "another", endsAtMs: 1 })).toBe(PLAYING);
  });

  it("has no countdown without a lease", () => expect(secondsLeft(REQUESTING, 0)).toBeNull());

  it("is over when the server says so", () => {
    expect(play(PLAYING, { kind: "broken", stream: STREAM, fault: "ttl" }).phase).toBe("expired");
    // The lease is gone a moment before our clock says so: that is no loss.
    expect(play(WARNING, { kind: "gone", leaseId: "L1", nowMs: LENGTH_MS - 2000 }).phase).toBe("expired");
  });

  it("warns in trouble too, and keeps what the trouble is", () => {
    const is = play(DEGRADED, { kind: "tick", nowMs: LENGTH_MS - 1000 });
    expect(is).toMatchObject({ phase: "warning", trouble: { code: "stalled" } });
  });
});

describe("what comes late", () => {
  it("is not heard: answers to an earlier request, words of a stream that was replaced", () => {
    const again = play(PLAYING, { kind: "again" });
    expect(play(again, { kind: "granted", request: 1, lease: lease() })).toBe(again);
    expect(play(again, refused(OVER_CAPACITY))).toBe(again);
    expect(play(again, { kind: "broken", stream: STREAM, fault: "closed" })).toBe(again);
    expect(play(again, { kind: "gone", leaseId: "L1" })).toBe(again);
  });

  it("does not wake what was closed", () => {
    for (const one of EVERY) expect(play(RELEASED, one).phase, one.kind).toBe("released");
  });
});

describe("a stream that breaks", () => {
  const broken = (viewing: Viewing, fault: StreamFault, nowMs = 0): Loose => ({
    kind: "broken",
    stream: viewing.stream?.id ?? -1,
    fault,
    nowMs,
  });
  const reopened = (viewing: Viewing) => play(viewing, { kind: "tick", nowMs: viewing.retryAtMs ?? 0 });

  it("is opened again after a pause, under the same lease", () => {
    const paused = play(PLAYING, broken(PLAYING, "closed"));
    expect(paused).toMatchObject({ stream: null, trouble: { code: "closed" }, retryAtMs: 250 });
    expect(play(paused, { kind: "tick", nowMs: 249 }).stream).toBeNull();
    const open = reopened(paused);
    expect(open.stream).toMatchObject({ transport: "mse" });
    expect(open.stream?.id).not.toBe(STREAM);
    expect(open.lease?.leaseId).toBe("L1");
  });

  it("that never showed anything is replaced by segments after two tries", () => {
    const paused = play(CONNECTING, broken(CONNECTING, "closed"));
    const second = reopened(paused);
    const hls = play(second, broken(second, "closed"));
    expect(hls.stream).toMatchObject({ transport: "hls" });
    expect(hls.phase).toBe("connecting");
  });

  it("that has worked is not given up for a broken line", () => {
    let is = PLAYING;
    for (let times = 0; times < 5; times += 1) is = reopened(play(is, broken(is, "closed")));
    expect(is.stream).toMatchObject({ transport: "mse" });
  });

  it("is lost when nothing helps, and then tried anew with a new lease", () => {
    let is = CONNECTING;
    for (let times = 0; times < 20 && is.phase !== "lost"; times += 1) {
      is = is.stream ? play(is, broken(is, "closed")) : reopened(is);
    }
    expect(is).toMatchObject({ phase: "lost", loss: "stream", lease: null });
    const again = play(is, { kind: "tick", nowMs: is.retryAtMs ?? -1 });
    expect(again.phase).toBe("requesting");
  });

  it("stays with segments while those are tried", () => {
    let is = play(CONNECTING, broken(CONNECTING, "unsupported"));
    expect(is.stream?.transport).toBe("hls");
    is = reopened(play(is, broken(is, "closed")));
    expect(is.stream?.transport).toBe("hls");
  });

  it.each<[StreamFault, string]>([
    ["session", "session"],
    ["forbidden", "forbidden"],
    ["camera", "camera"],
    ["replaced", "replaced"],
    ["lease", "lease"],
  ])("with %s is lost by %s", (fault, loss) => {
    const is = play(PLAYING, broken(PLAYING, fault));
    expect(is).toMatchObject({ phase: "lost", loss, stream: null, lease: null });
    expect(is.retryAtMs !== null).toBe(loss === "lease");
  });

  it("that this browser can't play is lost by its codec, where there is no other way", () => {
    const alone = play(REQUESTING, { kind: "granted", request: 1, lease: lease({ hlsUrl: null }) });
    expect(play(alone, broken(alone, "unsupported"))).toMatchObject({
      phase: "lost",
      loss: "codec",
      retryAtMs: null,
    });
  });
});

describe("a refusal", () => {
  it("for want of room is tried again, less and less often", () => {
    let is = REQUESTING;
    const pausesMs: number[] = [];
    for (let times = 0; times < 6; times += 1) {
      is = play(is, { kind: "refused", request: is.request?.id ?? 0, refusal: { code: OVER_CAPACITY, message: "" } });
      pausesMs.push(is.retryAtMs ?? -1);
      is = play(is, { kind: "tick", nowMs: is.retryAtMs ?? 0 });
      expect(is.phase).toBe("requesting");
    }
    expect(pausesMs).toEqual([3000, 6000, 12_000, 24_000, 30_000, 30_000]);
  });

  it("for overload waits until the server is well, and then for a person", () => {
    const is = play(REQUESTING, refused(SYSTEM_OVERLOAD));
    expect(is).toMatchObject({ mayRetry: false, retryAtMs: null });
    const well = play(is, { kind: "healthy" });
    expect(well).toMatchObject({ phase: "rejected", mayRetry: true, retryAtMs: null });
  });

  it("because another camera is open may be overruled", () => {
    const openCamera = { cameraId: "gate", name: "Gate", leaseId: "L0" };
    const is = play(REQUESTING, refused(USER_ALREADY_HAS_MODAL, { openCamera }));
    expect(is).toMatchObject({ retryAtMs: null, mayRetry: true, refusal: { openCamera } });
    expect(play(is, { kind: "again", replaces: "L0" }).request).toMatchObject({ replaces: "L0" });
  });

  it("of another kind is final", () => {
    expect(play(REQUESTING, refused("not_found"))).toMatchObject({ phase: "rejected", retryAtMs: null });
  });

  it("of the main stream can be asked again as the sub stream", () => {
    const is = play(begin("main"), refused(OVER_CAPACITY), { kind: "again", quality: "sub" });
    expect(is).toMatchObject({ phase: "requesting", wanted: "sub" });
  });
});

describe("a hidden tab", () => {
  it("lets go after a grace, and comes back when it is looked at", () => {
    const hidden = play(PLAYING, { kind: "hidden", nowMs: 1000 });
    expect(play(hidden, { kind: "tick", nowMs: 1000 + HIDDEN_GRACE_MS - 1 }).phase).toBe("playing");
    const away = play(hidden, { kind: "tick", nowMs: 1000 + HIDDEN_GRACE_MS });
    expect(away).toMatchObject({ phase: "released", away: true, lease: null });
    expect(play(away, { kind: "shown" })).toMatchObject({ phase: "requesting", hiddenAtMs: null });
  });

  it("that was only glanced away from goes on", () => {
    const is = play(PLAYING, { kind: "hidden" }, { kind: "shown" }, { kind: "tick", nowMs: HIDDEN_GRACE_MS * 2 });
    expect(is.phase).toBe("playing");
  });

  it("asks for nothing", () => {
    const is = play(REJECTED, { kind: "hidden" }, { kind: "tick", nowMs: 60_000 });
    expect(is.phase).toBe("rejected");
    expect(play(is, { kind: "shown" }, { kind: "tick", nowMs: 60_000 }).phase).toBe("requesting");
  });
});
