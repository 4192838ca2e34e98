import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Problem } from "@/api/problem";
import { FakeSocket, type MediaBrowser, MIME, mediaBrowser, seconds, supportOnly } from "@/test/media";
import { type Asked, type Desk, type GrantedLease, Unwanted } from "./desk";
import { Player } from "./player";
import { HIDDEN_GRACE_MS } from "./viewing";

class FakeDesk implements Desk {
  granted = 0;
  held = new Set<string>();
  asked: Asked[] = [];
  beats = 0;
  remainingSec = 300;
  healthy = false;
  problem: Problem | null = null;
  beatProblem: Problem | null = null;
  hlsUrl: string | null = "https://house/hls/L.sig/index.m3u8";
  answer: Promise<void> = Promise.resolve();

  async ask(asked: Asked, isWanted: () => boolean): Promise<GrantedLease> {
    this.asked.push(asked);
    await this.answer;
    if (this.problem) throw this.problem;
    this.granted += 1;
    const leaseId = `L${this.granted}`;
    if (!isWanted()) throw new Unwanted();
    this.held.add(leaseId);
    return {
      leaseId,
      quality: asked.quality,
      streamUrl: `wss://house/stream/${asked.cameraId}?lease=${leaseId}`,
      hlsUrl: this.hlsUrl,
      snapshotUrl: "https://house/snapshot/L",
      remainingMs: this.remainingSec * 1000,
      lengthMs: 300_000,
      beatEveryMs: 30_000,
      graceMs: 45_000,
      note: "",
      units: 1,
    };
  }

  async beat(): Promise<number> {
    this.beats += 1;
    if (this.beatProblem) throw this.beatProblem;
    return this.remainingSec;
  }

  release(leaseId: string): void {
    this.held.delete(leaseId);
  }

  async isHealthy(): Promise<boolean> {
    return this.healthy;
  }
}

let browser: MediaBrowser;
let desk: FakeDesk;
let player: Player;
let video: HTMLVideoElement;

beforeEach(() => {
  vi.useFakeTimers();
  browser = mediaBrowser();
  desk = new FakeDesk();
});

afterEach(() => {
  player?.close();
  document.body.replaceChildren();
  vi.useRealTimers();
});

const settle = () => vi.advanceTimersByTimeAsync(0);
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
const phase = () => player.read().viewing.phase;
const open = (given: { quality?: "sub" | "main"; onEnding?: () => void } = {}) => {
  video = browser.video();
  const clockMs = () => Date.now();
  player = new Player({ cameraId: "entrance", purpose: "modal", quality: "sub", video, desk, clockMs, ...given });
  return settle();
};
/** The camera sends and the browser shows. */
async function plays(secondsSent = 2): Promise<void> {
  FakeSocket.last.says({ type: "status", state: "live", reason: "" });
  FakeSocket.last.says({ type: "init", mime: MIME, note: "" });
  FakeSocket.last.sends(seconds(secondsSent));
  await settle();
  await pass(250);
  browser.shows(video);
  await pass(250);
}
/** Goes on for a while, as a camera does. */
async function playsOn(ms: number): Promise<void> {
  for (let at = 0; at < ms; at += 1000) {
    FakeSocket.last.sends(seconds(1));
    browser.shows(video);
    await pass(1000);
  }
}

describe("a player", () => {
  it("asks, connects, shows, and stays at the edge", async () => {
    const phases: string[] = [];
    await open();
    player.subscribe(() => phases.push(phase()));
    expect(phase()).toBe("connecting");
    await plays();
    expect(phase()).toBe("playing");
    expect(video.currentTime).toBeCloseTo(1.9);
    await playsOn(3000);
    expect(video.currentTime).toBeCloseTo(4.9);
    expect(player.figures()).toMatchObject({ kbps: expect.any(Number), stalls: 0 });
    expect(new Set(phases)).toEqual(new Set(["connecting", "playing"]));
  });

  it("counts down with the server, warns, and stops when the time is over", async () => {
    desk.remainingSec = 31;
    await open();
    await plays();
    expect(player.read().secondsLeft).toBe(31);
    await playsOn(2000);
    expect(phase()).toBe("warning");
    desk.remainingSec = 1;
    await playsOn(30_000);
    expect(phase()).toBe("expired");
    expect(desk.held.size).toBe(0);
    expect(FakeSocket.stillOpen).toBe(0);
    desk.remainingSec = 300;
    player.again();
    await settle();
    expect(phase()).toBe("connecting");
    expect(desk.held).toEqual(new Set(["L2"]));
  });

  it("beats, and quickly again where that fails", async () => {
    await open();
    await plays();
    await playsOn(30_000);
    expect(desk.beats).toBe(1);
    desk.beatProblem = new Problem(0, "unreachable", "");
    await playsOn(34_000);
    expect(desk.beats).toBeGreaterThan(3);
    expect(phase()).toBe("playing");
    desk.beatProblem = null;
    await playsOn(5000);
    const beats = desk.beats;
    await playsOn(20_000);
    expect(desk.beats).toBe(beats);
  });

  it("is lost when no heartbeat is answered for the whole grace", async () => {
    await open();
    await plays();
    desk.beatProblem = new Problem(0, "unreachable", "");
    await playsOn(46_000);
    expect(player.read().viewing).toMatchObject({ phase: "lost", loss: "server" });
    expect(FakeSocket.stillOpen).toBe(0);
    desk.beatProblem = null;
    await pass(3000);
    expect(phase()).toBe("connecting");
  });

  it("is lost when the server has ended it", async () => {
    await open();
    await plays();
    desk.beatProblem = new Problem(404, "not_found", "");
    await playsOn(31_000);
    expect(player.read().viewing).toMatchObject({ phase: "lost", loss: "lease" });
  });

  it("says why there are no pictures, and goes on with the same socket", async () => {
    await open();
    await plays();
    const socket = FakeSocket.last;
    const label = { label_ja: "ない", label_en: "none" };
    socket.says({ type: "status", state: "stalled", reason: "no_video", ...label });
    expect(player.read().viewing).toMatchObject({ phase: "degraded", trouble: { code: "no_video", label } });
    await pass(20_000);
    expect(phase()).toBe("degraded");
    socket.says({ type: "status", state: "live", reason: "" });
    await playsOn(1000);
    expect(phase()).toBe("playing");
    expect(FakeSocket.last).toBe(socket);
  });

  it("sees by itself that nothing comes, and that a connection is dead", async () => {
    await open();
    await plays();
    const socket = FakeSocket.last;
    await pass(4000);
    expect(player.read().viewing).toMatchObject({ phase: "degraded", trouble: { code: "stalled" } });
    await pass(16_000);
    expect(socket.closed).toBe(true);
    expect(FakeSocket.last).not.toBe(socket);
    await plays();
    expect(phase()).toBe("playing");
  });

  it("begins anew where the picture stands although media comes", async () => {
    await open();
    await plays();
    const socket = FakeSocket.last;
    for (let times = 0; times < 8; times += 1) {
      if (!socket.closed) socket.sends(seconds(1));
      await pass(1000);
    }
    expect(socket.closed).toBe(true);
    expect(desk.held.size).toBe(1);
  });

  it("takes another codec or size without a new connection", async () => {
    await open();
    await plays();
    FakeSocket.last.says({
      type: "init",
      mime: 'video/mp4; codecs="avc1.4d001f"',
      note: "transcoded_codec",
      source_codec: "hevc",
    });
    FakeSocket.last.sends(seconds(1));
    await settle();
    expect(browser.buffer().types).toHaveLength(2);
    expect(player.read().facts).toMatchObject({ note: "transcoded_codec", sourceCodec: "hevc" });
  });

  it("asks for a transcode of what this browser does not play, and goes on with it", async () => {
    await open();
    FakeSocket.last.says({ type: "init", mime: 'video/mp4; codecs="hvc1.1.6.L93.90"' });
    FakeSocket.last.sends(seconds(1));
    await settle();
    expect(FakeSocket.last.sent).toEqual(['{"type":"unplayable"}']);
    expect(player.read().viewing.trouble).toEqual({ code: "transcoding" });
    await plays();
    expect(FakeSocket.last.closed).toBe(false);
    expect(player.read().viewing.phase).toBe("playing");
  });

  it("gets sound only when somebody wants to hear it", async () => {
    await open();
    await plays();
    const silent = FakeSocket.last;
    silent.says({ type: "sound", codec: "aac" });
    expect(player.read().facts.hasAudio).toBe(true);
    player.hear(true);
    expect(silent.closed).toBe(true);
    expect(FakeSocket.last.address).toBe(`${silent.address}&sound=1`);
    expect(player.read().facts.hasAudio).toBe(true);
    await plays();
    // Muted again: nothing begins anew.
    const heard = FakeSocket.last;
    player.hear(false);
    player.hear(true);
    expect(FakeSocket.last).toBe(heard);
    heard.says({ type: "sound", codec: "" });
    expect(player.read().facts.hasAudio).toBe(false);
  });

  it("makes room when the browser has none left", async () => {
    await open();
    await plays(30);
    browser.buffer().refuses = new DOMException("full", "QuotaExceededError");
    FakeSocket.last.sends(seconds(1));
    await settle();
    expect(browser.buffer().start).toBeGreaterThan(20);
    await playsOn(1000);
    expect(phase()).toBe("playing");
  });

  it("tells when the browser wants somebody to press play", async () => {
    vi.spyOn(HTMLMediaElement.prototype, "play").mockRejectedValue(new DOMException("no", "NotAllowedError"));
    await open();
    await plays();
    expect(player.read().facts.needsPlay).toBe(true);
  });

  it("hands over the last picture before it is gone", async () => {
    const onEnding = vi.fn();
    await open({ onEnding });
    await plays();
    player.close();
    expect(onEnding).toHaveBeenCalledTimes(1);
  });
});

describe("a player that is refused", () => {
  it("for want of room tries again by itself", async () => {
    desk.problem = new Problem(503, "OVER_CAPACITY", "full", { units_used: 35, units_budget: 35 });
    await open();
    expect(player.read()).toMatchObject({
      retryInSec: 3,
      viewing: { phase: "rejected", refusal: { code: "OVER_CAPACITY", units: { used: 35, budget: 35 } } },
    });
    desk.problem = null;
    await pass(3500);
    expect(phase()).toBe("connecting");
  });

  it("for overload waits until the server is well", async () => {
    desk.problem = new Problem(503, "SYSTEM_OVERLOAD", "busy");
    await open();
    await pass(60_000);
    expect(player.read().viewing).toMatchObject({ phase: "rejected", mayRetry: false });
    expect(desk.asked).toHaveLength(1);
    desk.healthy = true;
    await pass(10_000);
    expect(player.read().viewing.mayRetry).toBe(true);
  });

  it("because another camera is open takes its place when asked to", async () => {
    const details = { camera_id: "gate", camera_name: "Gate", lease_id: "L0" };
    desk.problem = new Problem(409, "USER_ALREADY_HAS_MODAL", "open", details);
    await open();
    expect(player.read().viewing.refusal?.openCamera).toEqual({ cameraId: "gate", name: "Gate", leaseId: "L0" });
    desk.problem = null;
    player.takeOver();
    await settle();
    expect(desk.asked.at(-1)?.replaces).toBe("L0");
    expect(phase()).toBe("connecting");
  });
});

describe("segments", () => {
  const LIST =
    '#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:1\n#EXT-X-MAP:URI="init-1.mp4"\n#EXTINF:2,\n1.m4s';
  let number = 1;
  let told = "";

  const serveSegments = (answers: { list?: number } = {}) =>
    vi.stubGlobal("fetch", async (address: string) => {
      if (address.endsWith(".m3u8")) {
        return new Response(
          answers.list ? null : LIST.replace("1.m4s", `${number}.m4s`).replace(":1\n", `:${number}\n${told}`),
          {
            status: answers.list ?? 200,
          },
        );
      }
      return new Response(seconds(2), { headers: { "Content-Type": MIME } });
    });

  it("come where the socket can't be had, and go on", async () => {
    number = 1;
    serveSegments();
    await open();
    FakeSocket.last.ends(1006);
    await pass(500);
    FakeSocket.last.ends(1006);
    await pass(100);
    expect(player.read().viewing.stream).toMatchObject({ transport: "hls" });
    await pass(300);
    browser.shows(video);
    await pass(300);
    expect(phase()).toBe("playing");
    const { end } = browser.buffer();
    number = 2;
    browser.shows(video);
    await pass(1500);
    expect(browser.buffer().end).toBe(end + 2);
    told = "#CAMSERVER-NOTE:transcoded_codec,hevc\n#CAMSERVER-UNITS:4\n";
    browser.shows(video);
    await pass(1500);
    expect(player.read().facts).toMatchObject({ note: "transcoded_codec", sourceCodec: "hevc", units: 4 });
  });

  it("end with the viewing", async () => {
    serveSegments({ list: 404 });
    await open();
    supportOnly(() => false);
    FakeSocket.last.says({ type: "init", mime: MIME });
    await pass(100);
    expect(player.read().viewing).toMatchObject({ phase: "lost", loss: "lease" });
  });
});

describe("a tab that nobody looks at", () => {
  it("lets go after a grace, and comes back by itself", async () => {
    await open();
    await plays();
    browser.hide(true);
    await pass(HIDDEN_GRACE_MS + 500);
    expect(player.read().viewing).toMatchObject({ phase: "released", away: true });
    expect(desk.held.size).toBe(0);
    browser.hide(false);
    await settle();
    expect(phase()).toBe("connecting");
  });

  it("gives its lease back at once when the page goes", async () => {
    await open();
    await plays();
    window.dispatchEvent(new Event("pagehide"));
    expect(desk.held.size).toBe(0);
    expect(FakeSocket.stillOpen).toBe(0);
    window.dispatchEvent(new Event("pageshow"));
    await settle();
    expect(phase()).toBe("connecting");
  });
});

describe("what is left", () => {
  it("after 200 viewings, closed in every state, is nothing", async () => {
    let finish = () => {};
    const before = browser.leftovers();
    const endings = [
      async () => undefined, // while connecting
      async () => plays(),
      async () => {
        await plays();
        FakeSocket.last.says({ type: "status", state: "stalled", reason: "no_video" });
      },
      async () => {
        await plays();
        FakeSocket.last.ends(1006); // while it pauses before the next try
      },
      async () => {
        FakeSocket.last.ends(4404, "ttl");
      },
      async () => {
        await plays();
        browser.hide(true);
        await pass(HIDDEN_GRACE_MS + 500);
        browser.hide(false);
      },
    ];
    for (let times = 0; times < 200; times += 1) {
      await open();
      await endings[times % endings.length]?.();
      player.close();
      if (times % 10 === 0) {
        // Closed before the server has answered: the lease comes late.
        desk.answer = new Promise((resolve) => {
          finish = resolve;
        });
        await open();
        player.close();
        finish();
        desk.answer = Promise.resolve();
      }
      await settle();
    }
    expect(browser.leftovers()).toEqual(before);
    expect(browser.leftovers()).toMatchObject({ addresses: 0, sockets: 0, sourceBuffers: 0 });
    expect(desk.held.size).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
    expect(desk.granted).toBeGreaterThanOrEqual(200);
  });
});
