// A browser that plays media, for tests: jsdom has none of it. Everything that can be left over is counted.

import { vi } from "vitest";

export const MIME = 'video/mp4; codecs="avc1.640028"';

/** Fragments of tests: how many seconds of video one holds is its length in bytes. */
export const seconds = (count: number): ArrayBuffer => new ArrayBuffer(count);

class FakeSourceBuffer extends EventTarget {
  updating = false;
  appended: number[] = [];
  types: string[] = [];
  start = 0;
  end = 0;
  /** Thrown by the next append. */
  refuses: DOMException | null = null;

  constructor(mime: string) {
    super();
    this.types.push(mime);
  }

  get buffered() {
    const { start, end } = this;
    return { length: end > start ? 1 : 0, start: () => start, end: () => end };
  }

  appendBuffer(bytes: ArrayBuffer): void {
    const refused = this.refuses;
    this.refuses = null;
    if (refused) throw refused;
    this.appended.push(bytes.byteLength);
    this.end += bytes.byteLength;
    this.update();
  }

  remove(_: number, until: number): void {
    this.start = until;
    this.update();
  }

  changeType(mime: string): void {
    this.types.push(mime);
  }

  abort(): void {}

  private update(): void {
    this.updating = true;
    queueMicrotask(() => {
      this.updating = false;
      this.dispatchEvent(new Event("updateend"));
    });
  }
}

class FakeMediaSource extends EventTarget {
  static made: FakeMediaSource[] = [];
  static supports = (mime: string) => mime.includes("avc1");
  static isTypeSupported(mime: string): boolean {
    return FakeMediaSource.supports(mime);
  }

  readyState = "closed";
  sourceBuffers: FakeSourceBuffer[] = [];
  private length = Number.NaN;

  constructor() {
    super();
    FakeMediaSource.made.push(this);
    queueMicrotask(() => {
      this.readyState = "open";
      queueMicrotask(() => this.dispatchEvent(new Event("sourceopen")));
    });
  }

  get duration(): number {
    return this.length;
  }

  /** As a browser does: not before it is open, and not while a buffer is at work. */
  set duration(seconds: number) {
    if (this.readyState !== "open" || this.sourceBuffers.some((one) => one.updating)) {
      throw new DOMException("it can't be set now", "InvalidStateError");
    }
    this.length = seconds;
  }

  addSourceBuffer(mime: string): FakeSourceBuffer {
    const buffer = new FakeSourceBuffer(mime);
    this.sourceBuffers.push(buffer);
    return buffer;
  }

  removeSourceBuffer(buffer: FakeSourceBuffer): void {
    this.sourceBuffers = this.sourceBuffers.filter((one) => one !== buffer);
  }
}

export class FakeSocket {
  static opened: FakeSocket[] = [];
  /** The newest one of the stream; the feed has its own. */
  static get last(): FakeSocket {
    const found = FakeSocket.opened.findLast((one) => one.address.includes("/stream/"));
    if (!found) throw new Error("no stream was opened");
    return found;
  }
  static get stillOpen(): number {
    return FakeSocket.opened.filter((one) => !one.closed).length;
  }

  binaryType = "";
  onopen: (() => void) | null = null;
  onmessage: ((message: { data: unknown }) => void) | null = null;
  onclose: ((ended: { code: number }) => void) | null = null;
  closed = false;

  constructor(readonly address: string) {
    FakeSocket.opened.push(this);
  }

  /** What the page said on it. */
  sent: string[] = [];

  send(text: string): void {
    this.sent.push(text);
  }

  close(): void {
    this.closed = true;
  }

  says(message: object): void {
    this.onmessage?.({ data: JSON.stringify(message) });
  }

  sends(bytes: ArrayBuffer): void {
    this.onmessage?.({ data: bytes });
  }

  ends(code: number, reason = ""): void {
    if (reason) this.says({ type: "end", reason });
    this.closed = true;
    this.onclose?.({ code });
  }
}

/** What was made and not let go of. */
export interface Leftovers {
  addresses: number;
  sockets: number;
  listeners: string[];
  sourceBuffers: number;
}

export interface MediaBrowser {
  video(): HTMLVideoElement;
  /** The browser shows a picture. */
  shows(video: HTMLVideoElement): void;
  buffer(): FakeSourceBuffer;
  source(): FakeMediaSource;
  hide(hidden: boolean): void;
  leftovers(): Leftovers;
}

export function mediaBrowser(): MediaBrowser {
  FakeSocket.opened = [];
  FakeMediaSource.made = [];
  FakeMediaSource.supports = (mime) => mime.includes("avc1");
  vi.stubGlobal("MediaSource", FakeMediaSource);
  vi.stubGlobal("WebSocket", FakeSocket);
  const addresses = new Set<string>();
  let count = 0;
  vi.spyOn(URL, "createObjectURL").mockImplementation(() => {
    count += 1;
    addresses.add(`blob:${count}`);
    return `blob:${count}`;
  });
  vi.spyOn(URL, "revokeObjectURL").mockImplementation((address) => void addresses.delete(address));
  const frames = new WeakMap<HTMLMediaElement, number>();
  const media = HTMLMediaElement.prototype;
  vi.spyOn(media, "play").mockImplementation(async () => undefined);
  vi.spyOn(media, "pause").mockImplementation(() => undefined);
  vi.spyOn(media, "load").mockImplementation(() => undefined);
  vi.spyOn(media, "readyState", "get").mockReturnValue(4);
  Object.assign(HTMLVideoElement.prototype, {
    getVideoPlaybackQuality(this: HTMLVideoElement) {
      return { totalVideoFrames: frames.get(this) ?? 0, droppedVideoFrames: 0 };
    },
  });
  let hidden = false;
  vi.spyOn(document, "hidden", "get").mockImplementation(() => hidden);
  const listeners = countedListeners();
  return {
    video: () => document.body.appendChild(document.createElement("video")),
    shows: (video) => void frames.set(video, (frames.get(video) ?? 0) + 1),
    buffer: () => {
      const found = FakeMediaSource.made.at(-1)?.sourceBuffers.at(-1);
      if (!found) throw new Error("no source buffer was made");
      return found;
    },
    source: () => {
      const found = FakeMediaSource.made.at(-1);
      if (!found) throw new Error("no media source was made");
      return found;
    },
    hide: (now) => {
      hidden = now;
      document.dispatchEvent(new Event("visibilitychange"));
    },
    leftovers: () => ({
      addresses: addresses.size,
      sockets: FakeSocket.stillOpen,
      listeners: listeners(),
      sourceBuffers: FakeMediaSource.made.flatMap((source) => source.sourceBuffers).length,
    }),
  };
}

/** Sets what MediaSource takes. */
export function supportOnly(supports: (mime: string) => boolean): void {
  FakeMediaSource.supports = supports;
}

/** Counts listeners on everything; what is added and removed again leaves nothing. */
function countedListeners(): () => string[] {
  const kept: [EventTarget, string, unknown][] = [];
  const { addEventListener, removeEventListener } = EventTarget.prototype;
  vi.spyOn(EventTarget.prototype, "addEventListener").mockImplementation(function (
    this: EventTarget,
    name,
    listener,
    options,
  ) {
    // Called without an object it belongs to the window.
    const target = this ?? window;
    kept.push([target, name, listener]);
    addEventListener.call(target, name, listener, options);
  });
  vi.spyOn(EventTarget.prototype, "removeEventListener").mockImplementation(function (
    this: EventTarget,
    name,
    listener,
    options,
  ) {
    const target = this ?? window;
    const place = kept.findIndex(([one, of, what]) => one === target && of === name && what === listener);
    if (place >= 0) kept.splice(place, 1);
    removeEventListener.call(target, name, listener, options);
  });
  // What is on an element that left the page goes with it.
  const isThere = ([target]: [EventTarget, string, unknown]) => !(target instanceof Node) || target.isConnected;
  return () => kept.filter(isThere).map(([target, name]) => `${target.constructor.name} ${name}`);
}
