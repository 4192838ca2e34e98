// Makes the world follow a viewing: asks for its lease, keeps it alive, opens its stream on a video element, and lets go
// of everything that the state no longer names. What happens is decided in viewing.ts.

import type { Desk, GrantedLease, Purpose } from "./desk";
import { refusalOf, Unwanted } from "./desk";
import { Heartbeat } from "./heartbeat";
import { openHls } from "./hls-stream";
import { mediaSourceClass } from "./media-sink";
import { SocketStream } from "./socket-stream";
import type { LiveStream, StreamFacts, StreamFigures, StreamListener } from "./stream";
import {
  begin,
  type Happening,
  type Lease,
  type Quality,
  SYSTEM_OVERLOAD,
  secondsLeft,
  step,
  type Viewing,
} from "./viewing";

export interface PlayerView {
  viewing: Viewing;
  facts: StreamFacts;
  secondsLeft: number | null;
  retryInSec: number | null;
}

export interface PlayerOptions {
  cameraId: string;
  purpose: Purpose;
  quality: Quality;
  video: HTMLVideoElement;
  desk: Desk;
  clockMs: () => number;
  /** Called while the last picture can still be taken from the video element. */
  onEnding?: () => void;
}

/** What happens, without the time at which it does. */
type Said = Happening extends infer One ? (One extends { nowMs: number } ? Omit<One, "nowMs"> : never) : never;

const TICK_MS = 500;
const HEALTH_EVERY_MS = 10_000;

export class Player {
  private viewing: Viewing;
  private facts: StreamFacts = {};
  private view: PlayerView;
  private stream: LiveStream | null = null;
  private heartbeat: Heartbeat | null = null;
  private readonly snapshots = new Map<string, string | null>();
  private ticker: ReturnType<typeof setInterval> | undefined;
  private hears = false;
  private isHeard = false; // by the stream that is open
  private healthTimer: ReturnType<typeof setInterval> | undefined;
  private readonly listeners = new Set<() => void>();

  constructor(private readonly options: PlayerOptions) {
    this.viewing = begin(options.quality);
    this.view = this.drawn();
    this.ticker = setInterval(() => this.say({ kind: "tick" }), TICK_MS);
    document.addEventListener("visibilitychange", this.looked);
    window.addEventListener("pagehide", this.left);
    window.addEventListener("pageshow", this.looked);
    window.addEventListener("online", this.online);
    this.request(this.viewing);
    if (document.hidden) this.say({ kind: "hidden" });
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly read = (): PlayerView => this.view;

  figures(): StreamFigures | null {
    return this.stream?.figures() ?? null;
  }

  /** Where a picture of this moment can be had; null while there is none. */
  get snapshotUrl(): string | null {
    const { lease } = this.viewing;
    return lease ? (this.snapshots.get(lease.leaseId) ?? null) : null;
  }

  /** Asks for a new lease; with another quality if one is named. */
  again(quality?: Quality): void {
    this.say({ kind: "again", ...(quality ? { quality } : {}) });
  }

  /** Ends what this person watches elsewhere, and watches here. */
  takeOver(): void {
    const replaces = this.viewing.refusal?.openCamera?.leaseId;
    this.say({ kind: "again", ...(replaces ? { replaces } : {}) });
  }

  /**
   * Whether somebody wants to hear it. Sound comes only to who does, so the stream begins anew when it was without;
   * one that has it goes on with it, and whoever mutes it does so at the video element.
   */
  hear(wanted: boolean): void {
    const isNew = wanted && !this.isHeard;
    this.hears = wanted;
    if (!isNew || !this.stream) return;
    this.options.onEnding?.();
    this.stream.close();
    this.open(this.viewing);
  }

  close(): void {
    this.say({ kind: "close" });
    clearInterval(this.ticker);
    document.removeEventListener("visibilitychange", this.looked);
    window.removeEventListener("pagehide", this.left);
    window.removeEventListener("pageshow", this.looked);
    window.removeEventListener("online", this.online);
    this.listeners.clear();
  }

  private readonly looked = () => this.say({ kind: document.hidden ? "hidden" : "shown" });
  private readonly left = () => this.say({ kind: "left" });
  private readonly online = () => this.heartbeat?.hurry();

  private say(said: Said): void {
    const nowMs = this.options.clockMs();
    const was = this.viewing;
    this.viewing = step(was, { ...said, nowMs } as Happening);
    if (was !== this.viewing) this.followFrom(was);
    this.draw();
  }

  private followFrom(was: Viewing): void {
    const is = this.viewing;
    if (was.stream?.id !== is.stream?.id) this.shut();
    if (was.lease && was.lease.leaseId !== is.lease?.leaseId) this.letGo(was.lease);
    if (is.lease && is.lease.leaseId !== was.lease?.leaseId) this.beat(is.lease);
    if (is.stream && is.stream.id !== was.stream?.id) this.open(is);
    if (is.request && is.request.id !== was.request?.id) this.request(is);
    this.watchHealth(is.refusal?.code === SYSTEM_OVERLOAD && !is.mayRetry);
  }

  // --- the lease ---

  private request({ request, wanted }: Viewing): void {
    if (!request) return;
    const { id, replaces } = request;
    const { cameraId, purpose, desk } = this.options;
    const isWanted = () => this.viewing.request?.id === id;
    desk.ask({ cameraId, purpose, quality: wanted, replaces }, isWanted).then(
      (lease) => this.granted(id, lease),
      (error: unknown) => {
        if (!(error instanceof Unwanted)) this.say({ kind: "refused", request: id, refusal: refusalOf(error) });
      },
    );
  }

  private granted(id: number, given: GrantedLease): void {
    // Between the answer and now it may have been closed.
    if (this.viewing.request?.id !== id) {
      this.options.desk.release(given.leaseId);
      return;
    }
    const { remainingMs, snapshotUrl, ...lease } = given;
    this.snapshots.set(lease.leaseId, snapshotUrl);
    this.say({
      kind: "granted",
      request: id,
      lease: { ...lease, endsAtMs: this.options.clockMs() + remainingMs },
    });
  }

  private beat({ leaseId, beatEveryMs, graceMs }: Lease): void {
    const { desk, clockMs } = this.options;
    const listener = {
      beat: (remainingSec: number) => {
        this.say({ kind: "beat", leaseId, endsAtMs: clockMs() + remainingSec * 1000 });
      },
      gone: () => this.say({ kind: "gone", leaseId }),
      silence: () => this.say({ kind: "silence", leaseId }),
    };
    const pace = { everyMs: beatEveryMs, graceMs };
    this.heartbeat = new Heartbeat((signal) => desk.beat(leaseId, signal), listener, pace, clockMs);
  }

  private letGo({ leaseId }: Lease): void {
    this.heartbeat?.stop();
    this.heartbeat = null;
    this.snapshots.delete(leaseId);
    this.options.desk.release(leaseId);
  }

  private watchHealth(wanted: boolean): void {
    if (!wanted) {
      clearInterval(this.healthTimer);
      this.healthTimer = undefined;
      return;
    }
    this.healthTimer ??= setInterval(() => {
      this.options.desk.isHealthy().then(
        (isHealthy) => isHealthy && this.say({ kind: "healthy" }),
        () => undefined, // asked again in a moment
      );
    }, HEALTH_EVERY_MS);
  }

  // --- the stream ---

  private open({ stream, lease }: Viewing): void {
    if (!stream || !lease) return;
    const { id, transport } = stream;
    const { video, clockMs } = this.options;
    const listener: StreamListener = {
      picture: () => this.say({ kind: "picture", stream: id }),
      trouble: (trouble) => this.say({ kind: "trouble", stream: id, trouble }),
      broken: (fault) => this.say({ kind: "broken", stream: id, fault }),
      changed: (facts) => {
        this.facts = { ...this.facts, ...facts };
        this.draw();
      },
    };
    // What can be heard stays known, lest the button for it comes and goes.
    this.facts = this.facts.hasAudio === undefined ? {} : { hasAudio: this.facts.hasAudio };
    this.isHeard = this.hears;
    if (transport === "hls") {
      this.stream = openHls(listOf(lease.hlsUrl ?? "", this.hears), video, listener, clockMs);
    } else if (mediaSourceClass()) {
      this.stream = new SocketStream(socketOf(lease.streamUrl, this.hears), video, listener, clockMs);
    } else {
      queueMicrotask(() => listener.broken("unsupported"));
    }
  }

  private shut(): void {
    if (!this.stream) return;
    this.options.onEnding?.();
    this.stream.close();
    this.stream = null;
  }

  // --- who looks at it ---

  private drawn(): PlayerView {
    const { viewing, facts } = this;
    const nowMs = this.options.clockMs();
    const { retryAtMs, lease } = viewing;
    const retryInSec = retryAtMs === null || lease ? null : Math.max(0, Math.ceil((retryAtMs - nowMs) / 1000));
    return { viewing, facts, secondsLeft: secondsLeft(viewing, nowMs), retryInSec };
  }

  private draw(): void {
    const view = this.drawn();
    const before = this.view;
    const isSame =
      view.viewing === before.viewing &&
      view.facts === before.facts &&
      view.secondsLeft === before.secondsLeft &&
      view.retryInSec === before.retryInSec;
    if (isSame) return;
    this.view = view;
    for (const listener of this.listeners) listener();
  }
}

const socketOf = (address: string, hears: boolean): string => (hears ? `${address}&sound=1` : address);

const listOf = (address: string, hears: boolean): string =>
  hears ? address.replace(/index\.m3u8$/, "sound.m3u8") : address;
