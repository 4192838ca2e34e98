// What the two ways of getting pictures have in common: a stream puts them on a video element until it is closed or
// breaks, and says what happens meanwhile. It never comes back by itself; the player opens another one.

import type { StreamFault, Trouble } from "./viewing";

export interface StreamListener {
  /** A picture is shown: the first one, or again after trouble. */
  picture(): void;
  trouble(trouble: Trouble): void;
  /** Said once; the stream has closed itself. */
  broken(fault: StreamFault): void;
  changed(facts: StreamFacts): void;
}

/** What can be said about a stream beside its pictures. */
export interface StreamFacts {
  mime?: string;
  /** Why it is not as the camera sends it, as a code; "" when it is. */
  note?: string;
  /** What the camera sends, where that is transcoded; "" when it is not. */
  sourceCodec?: string;
  /** What a transcoded one takes of the budget that everybody shares, as it is now. */
  units?: number;
  /** Whether there is something to hear that this browser plays, heard or not. */
  hasAudio?: boolean;
  /** The browser wants somebody to press play. */
  needsPlay?: boolean;
  viewers?: number;
  skipped?: number;
  behindMs?: number; // how old pictures are when the server sends them
}

/** Figures for those who want to know; null where they are not known (yet). */
export interface StreamFigures {
  width: number;
  height: number;
  lagSec: number;
  fps: number | null;
  kbps: number | null;
  droppedFrames: number;
  bufferedSec: number;
  stalls: number;
}

export interface LiveStream {
  figures(): StreamFigures;
  /** Lets go of everything: connection, media source, object address, listeners, timers. */
  close(): void;
}

/** As people know it; unknown ones by the server's name. */
export function codecName(codec: string): string {
  return { hevc: "H.265", h264: "H.264", mjpeg: "MJPEG", rawvideo: "RAW" }[codec] ?? codec.toUpperCase();
}
