// Keeps a video element at the live edge and notices when its picture stands. It does not know where media comes from.

import { type Chase, chase, type EdgePolicy, type Span, spansOf, widened } from "./edge";
import { judge, STALLED_AFTER_MS, type Verdict } from "./stall";
import type { StreamFigures } from "./stream";

const LOOK_EVERY_MS = 250;
/** Figures are averages over about this long. */
const FIGURES_EVERY_MS = 1000;
/** At the live edge a browser waits between any two pictures; longer than this somebody sees it. */
const STALL_MIN_MS = 400;
/** One stall is forgotten each time this has passed without another. */
const STALL_FORGOTTEN_MS = 5000;

export interface PlaybackListener {
  verdict(verdict: Verdict): void;
  needsPlay(needed: boolean): void;
}

interface Sample {
  atMs: number;
  frames: number;
  bytes: number;
}

export class Playback {
  private readonly timer: ReturnType<typeof setInterval>;
  private heardAtMs: number;
  private dataAtMs: number | null = null;
  private standsSinceMs: number;
  private stalledAfterMs = STALLED_AFTER_MS;
  private hasShown = false;
  private isTold = false;
  private frames = -1;
  private verdict: Verdict = "waiting";
  private isPausedByBrowser = false;
  private recentStalls = 0;
  private stalls = 0;
  private stalledAtMs = 0;
  private waitingSinceMs: number | null = null;
  private bytes = 0;
  private lagSec = 0;
  private sample: Sample | null = null;
  private fps: number | null = null;
  private kbps: number | null = null;
  private frameCallback = 0;
  private closed = false;

  constructor(
    private readonly video: HTMLVideoElement,
    private readonly listener: PlaybackListener,
    /** Null: the browser follows the edge by itself. */
    private policy: EdgePolicy | null,
    private readonly spans: () => readonly Span[],
    private readonly clockMs: () => number,
  ) {
    this.heardAtMs = clockMs();
    this.standsSinceMs = this.heardAtMs;
    this.timer = setInterval(this.look, LOOK_EVERY_MS);
    video.addEventListener("waiting", this.waited);
    video.addEventListener("loadeddata", this.loaded);
    video.addEventListener("playing", this.playing);
    this.awaitFrame();
  }

  setPolicy(policy: EdgePolicy, stalledAfterMs: number): void {
    this.policy = policy;
    this.stalledAfterMs = stalledAfterMs;
  }

  /** Media arrived. */
  fed(bytes: number): void {
    const nowMs = this.clockMs();
    // While nothing came the picture had to stand.
    if (this.dataAtMs === null || nowMs - this.dataAtMs >= STALLED_AFTER_MS) this.standsSinceMs = nowMs;
    this.bytes += bytes;
    this.dataAtMs = nowMs;
  }

  /** The server said something; whether it was why there are no pictures. */
  told(isTrouble: boolean): void {
    this.heardAtMs = this.clockMs();
    this.isTold = isTrouble;
    this.decide(this.heardAtMs);
  }

  /** The server is there, whatever it said. */
  heard(): void {
    this.heardAtMs = this.clockMs();
  }

  /** What is buffered has changed. */
  follow(): void {
    if (this.closed) return;
    const { video } = this;
    if (this.policy) {
      const next: Chase = chase(video.currentTime, this.spans(), widened(this.policy, this.recentStalls));
      this.lagSec = next.lagSec;
      if (next.seekTo !== null && !video.seeking) video.currentTime = next.seekTo;
      if (video.playbackRate !== next.rate) video.playbackRate = next.rate;
    }
    if (video.paused && !this.isPausedByBrowser && video.readyState > 0) void this.play();
  }

  async play(): Promise<void> {
    try {
      await this.video.play();
      this.setNeedsPlay(false);
    } catch (error) {
      // Only this one means that a person must press; others are plays that a pause or a new source overtook.
      if (error instanceof DOMException && error.name === "NotAllowedError") this.setNeedsPlay(true);
    }
  }

  figures(): StreamFigures {
    const { video } = this;
    const spans = this.policy ? this.spans() : spansOf(video.buffered);
    return {
      width: video.videoWidth,
      height: video.videoHeight,
      lagSec: this.lagSec,
      fps: this.fps,
      kbps: this.kbps,
      droppedFrames: video.getVideoPlaybackQuality?.().droppedVideoFrames ?? 0,
      bufferedSec: spans.reduce((sum, span) => sum + span.end - span.start, 0),
      stalls: this.stalls,
    };
  }

  close(): void {
    this.closed = true;
    clearInterval(this.timer);
    const { video } = this;
    video.removeEventListener("waiting", this.waited);
    video.removeEventListener("loadeddata", this.loaded);
    video.removeEventListener("playing", this.playing);
    if (this.frameCallback) video.cancelVideoFrameCallback?.(this.frameCallback);
    video.playbackRate = 1;
  }

  private setNeedsPlay(needed: boolean): void {
    if (this.closed || this.isPausedByBrowser === needed) return;
    this.isPausedByBrowser = needed;
    this.listener.needsPlay(needed);
  }

  private awaitFrame(): void {
    // Tells of the first picture at once; later ones are seen by the position moving.
    this.frameCallback = this.video.requestVideoFrameCallback?.(() => this.shown()) ?? 0;
  }

  private shown(): void {
    if (this.closed) return;
    this.hasShown = true;
    this.standsSinceMs = this.clockMs();
    this.look();
  }

  private readonly loaded = () => this.follow();

  private readonly playing = () => {
    this.setNeedsPlay(false);
    const nowMs = this.clockMs();
    if (this.waitingSinceMs !== null && nowMs - this.waitingSinceMs >= STALL_MIN_MS) {
      this.stalledAtMs = nowMs;
      this.recentStalls += 1;
      this.stalls += 1;
    }
    this.waitingSinceMs = null;
  };

  private readonly waited = () => {
    // Before the first picture waiting is no stall, and neither is what follows a jump.
    if (this.hasShown && !this.video.seeking) this.waitingSinceMs ??= this.clockMs();
  };

  private readonly look = () => {
    if (this.closed) return;
    const nowMs = this.clockMs();
    this.follow();
    this.measure(nowMs);
    const frames = this.framesShown();
    if (this.frames >= 0 && frames !== this.frames && this.video.readyState >= 2) {
      this.hasShown = true;
      this.standsSinceMs = nowMs;
      // A browser that plays by itself tells nothing of what arrives; moving is proof enough.
      if (!this.policy) this.dataAtMs = nowMs;
    }
    this.frames = frames;
    if (this.recentStalls > 0 && nowMs - this.stalledAtMs > STALL_FORGOTTEN_MS) {
      this.recentStalls -= 1;
      this.stalledAtMs = nowMs;
    }
    this.decide(nowMs);
  };

  private decide(nowMs: number): void {
    const isUnseen = this.isPausedByBrowser || document.hidden;
    if (isUnseen) this.standsSinceMs = nowMs;
    const flow = {
      heardAtMs: this.heardAtMs,
      dataAtMs: this.dataAtMs,
      stalledAfterMs: this.stalledAfterMs,
      standsSinceMs: this.standsSinceMs,
      hasShown: this.hasShown,
      isTold: this.isTold,
      isUnseen,
    };
    const verdict = judge(flow, nowMs);
    if (verdict === this.verdict) return;
    this.verdict = verdict;
    this.listener.verdict(verdict);
  }

  /** Pictures so far; without a count, the position stands for it. */
  private framesShown(): number {
    return this.video.getVideoPlaybackQuality?.().totalVideoFrames ?? this.video.currentTime;
  }

  private measure(nowMs: number): void {
    const before = this.sample;
    if (before && nowMs - before.atMs < FIGURES_EVERY_MS) return;
    const frames = this.framesShown();
    this.sample = { atMs: nowMs, frames, bytes: this.bytes };
    if (!before) return;
    const seconds = (nowMs - before.atMs) / 1000;
    this.fps = "getVideoPlaybackQuality" in this.video ? Math.max(0, frames - before.frames) / seconds : null;
    this.kbps = ((this.bytes - before.bytes) * 8) / 1000 / seconds;
  }
}
