// Pictures by HTTP, segment by segment: for networks that let no socket through. A few seconds behind the camera.
//
// The segments are the same fragments that the socket carries, so a small loader feeds the same MediaSource; a library
// for all of HLS would be many times its size. A browser without MediaSource plays the list by itself.

import { segmentEdge } from "./edge";
import { MediaSink, mediaSourceClass } from "./media-sink";
import { Playback } from "./playback";
import { nextSegments, type Playlist, readPlaylist, type Segment } from "./playlist";
import type { Verdict } from "./stall";
import type { LiveStream, StreamFigures, StreamListener } from "./stream";
import type { StreamFault } from "./viewing";

const FIRST_TARGET_SEC = 2;
const REQUEST_TIMEOUT_MS = 20_000;
const FAILURES_MAX = 3;
const MIME_UNSAID = "video/mp4";

const FAULT_OF_STATUS: Record<number, StreamFault> = {
  401: "session",
  403: "forbidden",
  404: "lease",
  410: "camera",
};

/** An answer after which another try is of no use. */
class Refused extends Error {
  constructor(readonly fault: StreamFault) {
    super(fault);
  }
}

/** There is nothing yet; the server will have it in a moment. */
class NotYet extends Error {}

export function openHls(
  address: string,
  video: HTMLVideoElement,
  listener: StreamListener,
  clockMs: () => number,
): LiveStream {
  return mediaSourceClass()
    ? new HlsStream(address, video, listener, clockMs)
    : new NativeHlsStream(address, video, listener, clockMs);
}

export class HlsStream implements LiveStream {
  private readonly sink: MediaSink;
  private readonly playback: Playback;
  private readonly aborter = new AbortController();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private last: number | null = null;
  private init = "";
  private failures = 0;
  private told = "";
  private closed = false;

  constructor(
    private readonly address: string,
    video: HTMLVideoElement,
    private readonly listener: StreamListener,
    clockMs: () => number,
  ) {
    this.sink = new MediaSink(video, {
      moved: () => this.playback.follow(),
      broken: (fault) => this.breakOff(fault),
    });
    const told = { verdict: this.judged, needsPlay: (needsPlay: boolean) => listener.changed({ needsPlay }) };
    this.playback = new Playback(video, told, segmentEdge(FIRST_TARGET_SEC), () => this.sink.spans, clockMs);
    void this.load();
  }

  figures(): StreamFigures {
    return this.playback.figures();
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    clearTimeout(this.timer);
    this.aborter.abort();
    this.playback.close();
    this.sink.close();
  }

  private breakOff(fault: StreamFault): void {
    if (this.closed) return;
    this.close();
    this.listener.broken(fault);
  }

  private readonly judged = (verdict: Verdict) => {
    if (verdict === "flowing") this.listener.picture();
    else if (verdict === "stalled") this.listener.trouble({ code: "stalled" });
    else if (verdict === "stuck") this.breakOff("media");
    else if (verdict === "silent") this.breakOff("silent");
  };

  private async load(): Promise<void> {
    let pauseMs = 1000;
    try {
      const answer = await this.ask(this.address);
      const playlist = readPlaylist(await answer.text(), this.address);
      this.tell(playlist);
      this.failures = 0;
      this.playback.heard();
      this.playback.setPolicy(segmentEdge(playlist.targetSec), playlist.targetSec * 3000 + 2000);
      for (const segment of nextSegments(playlist, this.last)) await this.take(segment);
      if (playlist.isOver) throw new Refused("closed");
      pauseMs = pauseBetween(playlist);
    } catch (error) {
      if (this.closed) return;
      if (error instanceof Refused) {
        this.breakOff(error.fault);
        return;
      }
      if (error instanceof NotYet) this.playback.heard();
      else this.failures += 1;
      if (this.failures >= FAILURES_MAX) {
        this.breakOff("closed");
        return;
      }
    }
    if (!this.closed) this.timer = setTimeout(() => void this.load(), pauseMs);
  }

  /** What the list says beside its segments, when it is something else than before. */
  private tell({ hasSound, note, sourceCodec, units }: Playlist): void {
    const told = JSON.stringify([hasSound, note, sourceCodec, units]);
    if (told === this.told) return;
    this.told = told;
    this.listener.changed({ hasAudio: hasSound, note, sourceCodec, ...(units !== undefined && { units }) });
  }

  private async take(segment: Segment): Promise<void> {
    if (segment.init !== this.init) {
      const answer = await this.ask(segment.init);
      const mime = answer.headers.get("Content-Type") ?? MIME_UNSAID;
      const bytes = await answer.arrayBuffer();
      if (this.closed) return;
      this.init = segment.init;
      this.sink.expect(mime);
      this.sink.append(bytes);
      this.listener.changed({ mime });
    }
    const bytes = await (await this.ask(segment.address)).arrayBuffer();
    if (this.closed) return;
    this.last = segment.number;
    this.playback.fed(bytes.byteLength);
    this.sink.append(bytes);
  }

  private async ask(address: string): Promise<Response> {
    const signal = AbortSignal.any([this.aborter.signal, AbortSignal.timeout(REQUEST_TIMEOUT_MS)]);
    // What it opens is in the address; nothing of this site's is sent to another host.
    const answer = await fetch(address, { signal, credentials: "omit", cache: "no-store" });
    if (answer.ok) return answer;
    const fault = FAULT_OF_STATUS[answer.status];
    if (fault) throw new Refused(fault);
    throw answer.status === 503 ? new NotYet() : new Error(`answered ${answer.status}`);
  }
}

/** Half a segment, as the standard asks: the next one is found soon after it is there. */
function pauseBetween({ segments, targetSec }: Playlist): number {
  const seconds = segments.at(-1)?.seconds || targetSec;
  return Math.min(Math.max(seconds * 500, 250), 3000);
}

/** The browser's own player. It can only be watched. */
export class NativeHlsStream implements LiveStream {
  private readonly playback: Playback;
  private closed = false;

  constructor(
    private readonly address: string,
    private readonly video: HTMLVideoElement,
    private readonly listener: StreamListener,
    clockMs: () => number,
  ) {
    const told = { verdict: this.judged, needsPlay: (needsPlay: boolean) => listener.changed({ needsPlay }) };
    this.playback = new Playback(video, told, null, () => [], clockMs);
    video.addEventListener("error", this.failed);
    if (video.canPlayType("application/vnd.apple.mpegurl") === "") {
      // Said later: whoever opens a stream does not know it yet.
      queueMicrotask(() => this.breakOff("unsupported"));
      return;
    }
    video.src = address;
    void this.playback.play();
  }

  figures(): StreamFigures {
    return this.playback.figures();
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.video.removeEventListener("error", this.failed);
    this.playback.close();
    if (this.video.getAttribute("src") === this.address) {
      this.video.pause();
      this.video.removeAttribute("src");
      this.video.load();
    }
  }

  private readonly failed = () => this.breakOff("media");

  private readonly judged = (verdict: Verdict) => {
    if (verdict === "flowing") this.listener.picture();
    else if (verdict === "stalled") this.listener.trouble({ code: "stalled" });
    else if (verdict === "silent") this.breakOff("silent");
  };

  private breakOff(fault: StreamFault): void {
    if (this.closed) return;
    this.close();
    this.listener.broken(fault);
  }
}
