import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { feedAddress } from "./addresses";
import { Feed, type FeedSettings, pauseMs } from "./feed";

class FakeSocket {
  static opened: FakeSocket[] = [];
  static get last(): FakeSocket {
    const found = FakeSocket.opened.at(-1);
    if (!found) throw new Error("no socket was opened");
    return found;
  }
  onopen: (() => void) | null = null;
  onmessage: ((message: { data: string }) => void) | null = null;
  onclose: ((ended: { code: number }) => void) | null = null;
  closed = false;

  constructor(readonly address: string) {
    FakeSocket.opened.push(this);
  }
  close(): void {
    this.closed = true;
  }
  says(message: object): void {
    this.onmessage?.({ data: JSON.stringify(message) });
  }
}

const SETTINGS: FeedSettings = { pauseMinMs: 100, pauseMaxMs: 1000, silenceMaxMs: 5000, random: () => 1 };
const CHANGE = { seq: 8, kind: "event", at: 1, site: null, camera_id: null, object: "e1" };

function listener() {
  return { changes: vi.fn(), system: vi.fn(), resync: vi.fn(), state: vi.fn(), refused: vi.fn() };
}

function opened(heard = listener()) {
  const feed = new Feed((after) => `feed?${after}`, heard, SETTINGS);
  feed.open();
  FakeSocket.last.onopen?.();
  return { feed, heard };
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("WebSocket", FakeSocket);
  FakeSocket.opened = [];
});
afterEach(() => vi.useRealTimers());

describe("the feed", () => {
  it("begins with what is new, and everything read before it counts as old", () => {
    const { heard } = opened();
    expect(FakeSocket.last.address).toBe("feed?null");
    FakeSocket.last.says({ type: "changes", changes: [], last_seq: 7, live: false });
    expect(heard.resync).toHaveBeenCalledTimes(1);
    FakeSocket.last.says({ type: "changes", changes: [CHANGE], last_seq: 8, live: true });
    expect(heard.changes).toHaveBeenCalledWith([CHANGE]);
    expect(heard.resync).toHaveBeenCalledTimes(1);
  });

  it("hears that the status of the installation is another one", () => {
    const { heard } = opened();
    FakeSocket.last.says({ type: "changes", changes: [], last_seq: 7, live: false });
    FakeSocket.last.says({ type: "system", last_seq: 7 });
    expect(heard.system).toHaveBeenCalledTimes(1);
    expect(heard.changes).not.toHaveBeenCalled();
    expect(heard.resync).toHaveBeenCalledTimes(1);
  });

  it("comes back where it was", () => {
    const { heard } = opened();
    FakeSocket.last.says({ type: "changes", changes: [], last_seq: 7, live: false });
    FakeSocket.last.onclose?.({ code: 1006 });
    expect(heard.state).toHaveBeenLastCalledWith("waiting");
    vi.advanceTimersByTime(99);
    expect(FakeSocket.opened).toHaveLength(1);
    vi.advanceTimersByTime(1);
    expect(FakeSocket.last.address).toBe("feed?7");
    FakeSocket.last.onopen?.();
    FakeSocket.last.says({ type: "changes", changes: [CHANGE], last_seq: 8, live: false });
    expect(heard.changes).toHaveBeenCalledWith([CHANGE]);
    expect(heard.state).toHaveBeenLastCalledWith("live");
  });

  it("waits longer after every failure, up to a bound", () => {
    expect([0, 1, 2, 3, 4, 50].map((failures) => pauseMs(failures, SETTINGS))).toEqual([
      100, 200, 400, 800, 1000, 1000,
    ]);
    expect(pauseMs(0, { ...SETTINGS, random: () => 0 })).toBe(50);
  });

  it("begins behind pings as it does without", () => {
    const { heard } = opened();
    FakeSocket.last.says({ type: "ping", last_seq: 0 });
    expect(heard.resync).not.toHaveBeenCalled();
    FakeSocket.last.says({ type: "changes", changes: [], last_seq: 7, live: false });
    expect(heard.resync).toHaveBeenCalledTimes(1);
    FakeSocket.last.says({ type: "ping", last_seq: 9 });
    FakeSocket.last.onclose?.({ code: 1006 });
    vi.advanceTimersByTime(100);
    expect(FakeSocket.last.address).toBe("feed?9");
  });

  it("says that all is old when changes were missed for good", () => {
    const { heard } = opened();
    FakeSocket.last.says({ type: "changes", changes: [], last_seq: 1, live: false });
    FakeSocket.last.says({ type: "resync", last_seq: 900 });
    expect(heard.resync).toHaveBeenCalledTimes(2);
    FakeSocket.last.onclose?.({ code: 4008 });
    vi.advanceTimersByTime(100);
    expect(FakeSocket.last.address).toBe("feed?900");
  });

  it("gives a silent connection up", () => {
    opened();
    const first = FakeSocket.last;
    first.says({ type: "ping", last_seq: 1 });
    vi.advanceTimersByTime(4999);
    expect(first.closed).toBe(false);
    vi.advanceTimersByTime(1);
    expect(first.closed).toBe(true);
    vi.advanceTimersByTime(100);
    expect(FakeSocket.opened).toHaveLength(2);
  });

  it("asks whether the session is over", () => {
    const { heard } = opened();
    FakeSocket.last.says({ type: "ping", last_seq: 1 });
    FakeSocket.last.onclose?.({ code: 4401 });
    expect(heard.refused).toHaveBeenCalledTimes(1);
    vi.advanceTimersByTime(100);
    FakeSocket.last.onclose?.({ code: 1006 });
    expect(heard.refused).toHaveBeenCalledTimes(1);
  });

  it("tries at once when told to hurry", () => {
    const { feed } = opened();
    FakeSocket.last.onclose?.({ code: 1006 });
    feed.hurry();
    expect(FakeSocket.opened).toHaveLength(2);
    feed.hurry();
    expect(FakeSocket.opened).toHaveLength(2);
  });

  it("ends for good", () => {
    const { feed } = opened();
    feed.close();
    FakeSocket.last.onclose?.({ code: 1000 });
    vi.advanceTimersByTime(60_000);
    expect(FakeSocket.opened).toHaveLength(1);
  });

  it("is at the page's own server", () => {
    expect(feedAddress(null, { protocol: "http:", host: "house:8080" })).toBe("ws://house:8080/api/feed");
    expect(feedAddress(5, { protocol: "https:", host: "house" })).toBe("wss://house/api/feed?after=5");
  });
});
