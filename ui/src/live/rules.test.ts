import { describe, expect, it } from "vitest";
import { chase, SOCKET_EDGE, segmentEdge, trimmable, widened } from "./edge";
import { nextSegments, readPlaylist } from "./playlist";
import { faultOf, troubleOf } from "./socket-stream";
import { type Flow, judge, SILENT_AFTER_MS, STALLED_AFTER_MS, STUCK_AFTER_MS, type Verdict } from "./stall";

describe("the live edge", () => {
  it.each([
    ["nothing is there", 0, [], null, 1],
    ["at the edge", 9.9, [[0, 10]], null, 1],
    ["a little behind", 9.7, [[0, 10]], null, 1.1],
    ["far behind", 9.4, [[0, 10]], 9.9, 1],
    ["before the first picture", 0, [[100, 102]], 101.9, 1],
    [
      "in a gap",
      12,
      [
        [0, 10],
        [15, 15.3],
      ],
      15.2,
      1,
    ],
    ["less there than a jump lands before the end", 0, [[5, 5.05]], 5, 1],
    ["ahead of everything, after a new beginning", 50, [[0, 10]], 9.9, 1],
  ] as const)("%s", (_, position, spans, seekTo, rate) => {
    const next = chase(
      position,
      spans.map(([start, end]) => ({ start, end })),
      SOCKET_EDGE,
    );
    if (seekTo === null) expect(next.seekTo).toBeNull();
    else expect(next.seekTo).toBeCloseTo(seekTo);
    expect(next.rate).toBe(rate);
  });

  it("is further away on a line that delivers in bursts, within limits", () => {
    expect(widened(SOCKET_EDGE, 0)).toEqual(SOCKET_EDGE);
    expect(widened(SOCKET_EDGE, 2).seekAboveSec).toBeCloseTo(1);
    expect(widened(SOCKET_EDGE, 1000)).toEqual(widened(SOCKET_EDGE, 6));
  });

  it("of segments leaves room for one", () => {
    const policy = segmentEdge(2);
    expect(chase(6, [{ start: 0, end: 10 }], policy)).toMatchObject({ seekTo: null, rate: 1 });
    expect(chase(1, [{ start: 0, end: 10 }], policy).seekTo).toBe(8);
  });

  it("drops what was played long ago", () => {
    expect(trimmable(15, [{ start: 0, end: 16 }])).toBeNull();
    expect(trimmable(25, [{ start: 0, end: 26 }])).toBe(15);
    expect(trimmable(5, [{ start: 0, end: 6 }], 2)).toBe(3);
    expect(trimmable(5, [])).toBeNull();
  });
});

describe("the flow of pictures", () => {
  const flow = (given: Partial<Flow>): Flow => ({
    heardAtMs: 0,
    dataAtMs: 0,
    stalledAfterMs: STALLED_AFTER_MS,
    standsSinceMs: 0,
    hasShown: true,
    isTold: false,
    isUnseen: false,
    ...given,
  });
  const NOW = 100_000;
  const lately = { heardAtMs: NOW - 100, dataAtMs: NOW - 100, standsSinceMs: NOW - 100 };
  it.each<[string, Partial<Flow>, Verdict]>([
    ["nothing came yet", { heardAtMs: NOW - 1000, dataAtMs: null, hasShown: false }, "waiting"],
    ["media came, no picture yet", { ...lately, hasShown: false }, "waiting"],
    ["all is well", lately, "flowing"],
    ["media stopped", { ...lately, dataAtMs: NOW - STALLED_AFTER_MS }, "stalled"],
    ["the server says why", { ...lately, isTold: true }, "stalled"],
    [
      "the server says why, before any media",
      { ...lately, dataAtMs: null, isTold: true, hasShown: false },
      "stalled",
    ],
    ["the picture stands while media comes", { ...lately, standsSinceMs: NOW - STUCK_AFTER_MS }, "stuck"],
    ["it stands, but nobody could see it move", { ...lately, standsSinceMs: 0, isUnseen: true }, "flowing"],
    ["the connection is dead", { heardAtMs: NOW - SILENT_AFTER_MS, dataAtMs: NOW - SILENT_AFTER_MS }, "silent"],
    ["dead from the first", { heardAtMs: NOW - SILENT_AFTER_MS, dataAtMs: null, hasShown: false }, "silent"],
    ["the server said why and is patient", { heardAtMs: NOW - 20_000, dataAtMs: null, isTold: true }, "stalled"],
  ])("%s", (_, given, verdict) => expect(judge(flow(given), NOW)).toBe(verdict));
});

describe("a list of segments", () => {
  const LIST = [
    "#EXTM3U",
    "#EXT-X-VERSION:7",
    "#EXT-X-TARGETDURATION:2",
    "#EXT-X-MEDIA-SEQUENCE:7",
    '#EXT-X-MAP:URI="init-1.mp4"',
    "#EXTINF:2.000,",
    "7.m4s",
    "#EXTINF:1.5,",
    "8.m4s",
    "#EXT-X-DISCONTINUITY",
    '#EXT-X-MAP:URI="init-2.mp4"',
    "#EXTINF:2.000,",
    "9.m4s",
  ].join("\r\n");
  const playlist = readPlaylist(LIST, "https://house:8443/hls/L1.sig/index.m3u8");

  it("is read with numbers, lengths and what goes before", () => {
    expect(playlist.targetSec).toBe(2);
    expect(playlist.isOver).toBe(false);
    expect(playlist.segments.map(({ number, seconds }) => [number, seconds])).toEqual([
      [7, 2],
      [8, 1.5],
      [9, 2],
    ]);
    expect(playlist.segments[1]?.init).toBe("https://house:8443/hls/L1.sig/init-1.mp4");
    expect(playlist.segments[2]).toMatchObject({
      init: "https://house:8443/hls/L1.sig/init-2.mp4",
      address: "https://house:8443/hls/L1.sig/9.m4s",
    });
  });

  it("says what began later: a transcode, its cause and its cost", () => {
    expect(playlist).toMatchObject({ note: "", sourceCodec: "" });
    expect(playlist.units).toBeUndefined();
    const told = readPlaylist(`${LIST}\n#CAMSERVER-NOTE:transcoded_codec,hevc\n#CAMSERVER-UNITS:4`, "https://house/");
    expect(told).toMatchObject({ note: "transcoded_codec", sourceCodec: "hevc", units: 4 });
  });

  it.each([
    [null, [8, 9]],
    [7, [8, 9]],
    [9, []],
    [11, []],
    [3, [8, 9]],
  ])("after %s goes on with %j", (last, numbers) => {
    expect(nextSegments(playlist, last).map((one) => one.number)).toEqual(numbers);
  });

  it("may be empty, or over", () => {
    expect(readPlaylist("#EXTM3U\n#EXT-X-ENDLIST", "https://house/")).toMatchObject({ segments: [], isOver: true });
  });
});

describe("what the streamer says", () => {
  it.each([
    [4401, "session_over", "session"],
    [4404, "ttl", "ttl"],
    [4404, "released", "lease"],
    [4404, "", "lease"],
    [4409, "", "replaced"],
    [4410, "camera_gone", "camera"],
    [1001, "", "closed"],
    [1006, "", "closed"],
  ])("closing with %i (%s) means %s", (code, reason, fault) => expect(faultOf(code, reason)).toBe(fault));

  it("about trouble is its reason, or its state where it gives none", () => {
    const label = { label_ja: "違います", label_en: "wrong" };
    expect(troubleOf({ type: "status", state: "live", reason: "" })).toBeNull();
    expect(troubleOf({ type: "status", state: "stalled", reason: "" })).toEqual({ code: "stalled" });
    const refused = troubleOf({ type: "status", state: "refused", reason: "unauthorized", ...label });
    expect(refused).toEqual({ code: "unauthorized", label });
  });
});
