// The change feed: one socket that says what changed, so that pages need not ask.
//
// It connects by itself, again and again with growing pauses, and goes on where it was: the server sends what was
// missed, or `resync` when that is too long ago. It knows nothing of what the changes mean.

import type { Change, FeedMessage } from "./types";

export type FeedState = "connecting" | "live" | "waiting";

export interface FeedListener {
  changes(changes: readonly Change[]): void;
  /** The status of the installation is another one. */
  system(): void;
  /** Changes were missed for good: everything that is shown may be old. */
  resync(): void;
  state(state: FeedState): void;
  /** The server refused: the session may be over. */
  refused(): void;
}

export interface FeedSettings {
  pauseMinMs: number;
  pauseMaxMs: number;
  /** The server pings; when nothing at all was heard for this long the connection is dead. */
  silenceMaxMs: number;
  random: () => number;
}

export const FEED_SETTINGS: FeedSettings = {
  pauseMinMs: 500,
  // A server that comes back is noticed soon, and hundreds of browsers are spread over the pause.
  pauseMaxMs: 10_000,
  silenceMaxMs: 60_000,
  random: Math.random,
};

/** How the server closes a socket whose session is over, or whose person may no longer read. */
const REFUSED_CODES = new Set([4401, 4403]);

export class Feed {
  private socket: WebSocket | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private failures = 0;
  private closed = false;
  /** Null until the server has told where its feed is: the first connection begins with what is new from then on. */
  private lastSeq: number | null = null;

  constructor(
    private readonly address: (after: number | null) => string,
    private readonly listener: FeedListener,
    private readonly settings: FeedSettings = FEED_SETTINGS,
  ) {}

  open(): void {
    if (this.closed || this.socket) return;
    clearTimeout(this.timer);
    this.listener.state("connecting");
    const socket = new WebSocket(this.address(this.lastSeq));
    this.socket = socket;
    socket.onopen = () => {
      this.listener.state("live");
      this.watch();
    };
    socket.onmessage = (message) => this.take(String(message.data));
    socket.onclose = (ended) => this.ended(socket, ended.code);
    this.watch();
  }

  /** Tries at once instead of waiting for the pause to end: the network or the tab came back. */
  hurry(): void {
    if (!this.socket) this.open();
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.socket?.close();
    this.socket = null;
  }

  private take(text: string): void {
    this.failures = 0;
    this.watch();
    const message = JSON.parse(text) as FeedMessage;
    if (message.type === "ping") {
      // One that comes before the server could say where its feed is says nothing of it.
      if (this.lastSeq !== null) this.lastSeq = message.last_seq;
      return;
    }
    const first = this.lastSeq === null;
    this.lastSeq = message.last_seq;
    // What was read before the feed began may be old already, and nothing will tell.
    if (first || message.type === "resync") this.listener.resync();
    else if (message.type === "system") this.listener.system();
    else if (message.type === "changes" && message.changes.length > 0) this.listener.changes(message.changes);
  }

  private watch(): void {
    clearTimeout(this.timer);
    const socket = this.socket;
    // A dead connection may take minutes to close by itself, so it is given up without waiting for that.
    this.timer = setTimeout(() => {
      if (!socket) return;
      socket.onclose = null;
      socket.onmessage = null;
      socket.close();
      this.ended(socket, 1006);
    }, this.settings.silenceMaxMs);
  }

  private ended(socket: WebSocket, code: number): void {
    if (this.closed || socket !== this.socket) return;
    this.socket = null;
    clearTimeout(this.timer);
    this.listener.state("waiting");
    // A handshake that the server refuses looks like any other failure, so a first failure asks too.
    if (REFUSED_CODES.has(code) || this.failures === 0) this.listener.refused();
    this.timer = setTimeout(() => this.open(), pauseMs(this.failures, this.settings));
    this.failures += 1;
  }
}

/** Doubles with every failure up to the longest, and is spread so that many browsers don't return at once. */
export function pauseMs(failures: number, settings: FeedSettings): number {
  const longest = Math.min(settings.pauseMaxMs, settings.pauseMinMs * 2 ** Math.min(failures, 20));
  return longest * (0.5 + settings.random() / 2);
}
