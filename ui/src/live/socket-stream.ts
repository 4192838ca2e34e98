// Pictures over a WebSocket into a MediaSource: the usual way, a fraction of a second behind the camera.

import { SOCKET_EDGE } from "./edge";
import { MediaSink, plays, playsSound } from "./media-sink";
import { Playback } from "./playback";
import type { Verdict } from "./stall";
import type { LiveStream, StreamFacts, StreamFigures, StreamListener } from "./stream";
import type { StreamFault, Trouble } from "./viewing";

/** What the streamer says in text; what is binary belongs to the `init` before it. */
export type SocketMessage =
  | { type: "status"; state: string; reason: string; label_ja?: string; label_en?: string }
  | { type: "init"; mime: string; note?: string; source_codec?: string }
  | { type: "sound"; codec: string }
  | { type: "cost"; units: number }
  | { type: "stats"; viewers?: number; skipped?: number; behind_ms?: number }
  | { type: "end"; reason: string };

/** All that is ever said to the streamer: it has the video transcoded then, if there is room. */
const UNPLAYABLE = '{"type":"unplayable"}';

/** How the streamer closes a socket: with what the next try would meet. */
const FAULT_OF_CODE: Record<number, StreamFault> = {
  4401: "session",
  4403: "forbidden",
  4404: "lease",
  4409: "replaced",
  4410: "camera",
};

export function faultOf(code: number, endReason: string): StreamFault {
  if (endReason === "ttl") return "ttl";
  return FAULT_OF_CODE[code] ?? "closed";
}

/** Null: all is well. */
export function troubleOf(message: Extract<SocketMessage, { type: "status" }>): Trouble | null {
  if (message.state === "live") return null;
  const { label_ja, label_en } = message;
  const code = message.reason || message.state;
  return label_ja && label_en ? { code, label: { label_ja, label_en } } : { code };
}

export class SocketStream implements LiveStream {
  private readonly socket: WebSocket;
  private readonly sink: MediaSink;
  private readonly playback: Playback;
  private endReason = "";
  private isTold = false;
  /** What comes now is of a kind that this browser does not play; the server was asked for another. */
  private isUnplayable = false;
  private closed = false;

  constructor(
    address: string,
    video: HTMLVideoElement,
    private readonly listener: StreamListener,
    clockMs: () => number,
  ) {
    this.sink = new MediaSink(video, {
      moved: () => this.playback.follow(),
      broken: (fault) => this.breakOff(fault),
    });
    const told = { verdict: this.judged, needsPlay: (needsPlay: boolean) => listener.changed({ needsPlay }) };
    this.playback = new Playback(video, told, SOCKET_EDGE, () => this.sink.spans, clockMs);
    this.socket = new WebSocket(address);
    this.socket.binaryType = "arraybuffer";
    this.socket.onmessage = ({ data }) => this.take(data);
    this.socket.onclose = ({ code }) => this.breakOff(faultOf(code, this.endReason));
  }

  figures(): StreamFigures {
    return this.playback.figures();
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.socket.onmessage = null;
    this.socket.onclose = null;
    this.socket.close();
    this.playback.close();
    this.sink.close();
  }

  private breakOff(fault: StreamFault): void {
    if (this.closed) return;
    this.close();
    this.listener.broken(fault);
  }

  private take(data: string | ArrayBuffer): void {
    if (typeof data === "string") {
      this.hear(JSON.parse(data) as SocketMessage);
      return;
    }
    if (this.isUnplayable) return;
    this.playback.fed(data.byteLength);
    this.sink.append(data);
  }

  private hear(message: SocketMessage): void {
    this.playback.heard();
    switch (message.type) {
      case "status": {
        const trouble = troubleOf(message);
        this.isTold = trouble !== null;
        this.playback.told(this.isTold);
        if (trouble) this.listener.trouble(trouble);
        break;
      }
      case "init":
        this.begin(message);
        break;
      case "sound":
        this.listener.changed({ hasAudio: playsSound(message.codec) });
        break;
      case "cost":
        this.listener.changed({ units: message.units });
        break;
      case "stats":
        this.listener.changed(serverFigures(message));
        break;
      case "end":
        this.endReason = message.reason;
        break;
    }
  }

  private begin({ mime, note, source_codec }: Extract<SocketMessage, { type: "init" }>): void {
    // H.264 is what a transcode makes: a browser without it plays nothing at all.
    this.isUnplayable = !plays(mime) && !/avc1/.test(mime);
    if (this.isUnplayable) {
      this.socket.send(UNPLAYABLE);
      this.isTold = true;
      this.playback.told(true);
      this.listener.trouble({ code: "transcoding" });
      return;
    }
    this.sink.expect(mime);
    this.listener.changed({ mime, note: note ?? "", sourceCodec: source_codec ?? "" });
  }

  private readonly judged = (verdict: Verdict) => {
    if (verdict === "flowing") this.listener.picture();
    else if (verdict === "stalled" && !this.isTold) this.listener.trouble({ code: "stalled" });
    else if (verdict === "stuck") this.breakOff("media");
    else if (verdict === "silent") this.breakOff("silent");
  };
}

function serverFigures(message: Extract<SocketMessage, { type: "stats" }>): StreamFacts {
  const { viewers, skipped, behind_ms } = message;
  return {
    ...(viewers === undefined ? {} : { viewers }),
    ...(skipped === undefined ? {} : { skipped }),
    ...(behind_ms === undefined ? {} : { behindMs: behind_ms }),
  };
}
