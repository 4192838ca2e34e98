// A MediaSource behind a video element that takes fragments of MP4 as they come: in order, bounded, dropping what was
// played. It knows nothing of where they come from.

import { type Span, spansOf, trimmable } from "./edge";
import type { StreamFault } from "./viewing";

/** More than this waiting means that the browser can't keep up, or stands still. */
const QUEUE_MAX_BYTES = 16_000_000;
const KEPT_WHEN_FULL_SEC = 2;

type Queued = { kind: "type"; mime: string } | { kind: "bytes"; bytes: ArrayBuffer };

interface ManagedWindow {
  ManagedMediaSource?: typeof MediaSource;
}

/** MediaSource; on telephones that have only the managed one, that. */
export function mediaSourceClass(): typeof MediaSource | null {
  if (typeof MediaSource !== "undefined") return MediaSource;
  return (globalThis as ManagedWindow).ManagedMediaSource ?? null;
}

export const plays = (mime: string): boolean => mediaSourceClass()?.isTypeSupported(mime) ?? false;

/** Video codecs that this browser takes, by the server's names. */
export function playableCodecs(): ("h264" | "h265")[] {
  const codecs: ("h264" | "h265")[] = ["h264"];
  if (plays('video/mp4; codecs="hvc1.1.6.L120.B0"')) codecs.push("h265");
  return codecs;
}

/** Whether this browser plays video with such sound, by the server's name of it; "" is none. */
export function playsSound(codec: string): boolean {
  const name = { aac: "mp4a.40.2", opus: "opus" }[codec];
  return name !== undefined && plays(`video/mp4; codecs="avc1.640028,${name}"`);
}

export interface SinkListener {
  /** Something was added or dropped. */
  moved(): void;
  broken(fault: StreamFault): void;
}

export class MediaSink {
  private readonly source: MediaSource;
  private readonly address: string;
  private buffer: SourceBuffer | null = null;
  private queue: Queued[] = [];
  private queuedBytes = 0;
  private isFull = false;
  private closed = false;

  constructor(
    private readonly video: HTMLVideoElement,
    private readonly listener: SinkListener,
  ) {
    const Source = mediaSourceClass();
    if (!Source) throw new Error("this browser has no MediaSource");
    this.source = new Source();
    // The managed one refuses to open while the picture could be sent to another screen.
    if (typeof MediaSource === "undefined") video.disableRemotePlayback = true;
    this.source.addEventListener("sourceopen", this.opened);
    this.address = URL.createObjectURL(this.source);
    video.src = this.address;
    video.addEventListener("error", this.failed);
  }

  get spans(): Span[] {
    // A buffer that was removed throws when it is asked.
    return this.buffer && !this.closed && this.source.readyState !== "closed" ? spansOf(this.buffer.buffered) : [];
  }

  /** The type of what follows; an init segment must. */
  expect(mime: string): void {
    this.queue.push({ kind: "type", mime });
    this.pump();
  }

  append(bytes: ArrayBuffer): void {
    this.queuedBytes += bytes.byteLength;
    if (this.queuedBytes > QUEUE_MAX_BYTES) {
      this.breakOff("media");
      return;
    }
    this.queue.push({ kind: "bytes", bytes });
    this.pump();
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.queue = [];
    this.source.removeEventListener("sourceopen", this.opened);
    this.video.removeEventListener("error", this.failed);
    this.letGoOfBuffer();
    // Without these a browser keeps the decoder and the last megabytes until it pleases to clean up.
    if (this.video.src === this.address) {
      this.video.pause();
      this.video.removeAttribute("src");
      this.video.load();
    }
    URL.revokeObjectURL(this.address);
  }

  private letGoOfBuffer(): void {
    const { buffer, source } = this;
    this.buffer = null;
    if (!buffer) return;
    buffer.removeEventListener("updateend", this.updated);
    if (source.readyState !== "open") return;
    try {
      buffer.abort();
      source.removeSourceBuffer(buffer);
    } catch {
      // It is removed already with a source that ended in an error.
    }
  }

  private readonly opened = () => this.pump();

  private readonly failed = () => this.breakOff("media");

  private readonly updated = () => {
    if (this.closed) return;
    this.listener.moved();
    this.pump();
  };

  private breakOff(fault: StreamFault): void {
    if (this.closed) return;
    this.close();
    this.listener.broken(fault);
  }

  private pump(): void {
    if (this.closed || this.source.readyState !== "open" || this.buffer?.updating) return;
    const first = this.queue[0];
    if (!first) {
      this.trim();
      return;
    }
    try {
      if (first.kind === "type") this.take(first.mime);
      else this.buffer?.appendBuffer(this.taken());
      this.isFull = false;
    } catch (error) {
      this.refused(error);
      return;
    }
    if (first.kind === "type") this.pump();
  }

  private take(mime: string): void {
    this.queue.shift();
    if (!plays(mime)) {
      this.breakOff("unsupported");
    } else if (this.buffer) {
      this.buffer.changeType(mime);
    } else {
      // There is no end: without this some browsers wait for more than they need before they play. Not when it is told to
      // be open: it is so a moment earlier, and by then a buffer may be at work, which forbids it.
      this.source.duration = Number.POSITIVE_INFINITY;
      this.buffer = this.source.addSourceBuffer(mime);
      this.buffer.addEventListener("updateend", this.updated);
    }
  }

  /** Everything that waits up to the next change of type, as one: each append costs a turn of the browser's own. */
  private taken(): ArrayBuffer {
    const until = this.queue.findIndex((one) => one.kind === "type");
    const run = this.queue.splice(0, until < 0 ? this.queue.length : until);
    const parts = run.flatMap((one) => (one.kind === "bytes" ? [one.bytes] : []));
    const size = parts.reduce((sum, part) => sum + part.byteLength, 0);
    this.queuedBytes -= size;
    if (parts.length === 1 && parts[0]) return parts[0];
    const whole = new Uint8Array(size);
    let place = 0;
    for (const part of parts) {
      whole.set(new Uint8Array(part), place);
      place += part.byteLength;
    }
    return whole.buffer;
  }

  private refused(error: unknown): void {
    const isQuota = error instanceof DOMException && error.name === "QuotaExceededError";
    // What was refused is lost, so the picture is broken until the next keyframe; once may happen, twice in a row not.
    if (!isQuota || this.isFull) {
      this.breakOff("media");
      return;
    }
    this.isFull = true;
    this.drop(trimmable(this.video.currentTime, this.spans, KEPT_WHEN_FULL_SEC));
  }

  private trim(): void {
    this.drop(trimmable(this.video.currentTime, this.spans));
  }

  private drop(until: number | null): void {
    if (until !== null && this.buffer && !this.buffer.updating) this.buffer.remove(0, until);
  }
}
