import { QueryClient } from "@tanstack/react-query";
import { afterEach, beforeEach, describe, expect, it, type MockInstance, vi } from "vitest";
import { Gatherer, invalidateFailed, keysOf } from "./live";
import { Problem } from "./problem";
import { keys } from "./queries";
import type { Change } from "./types";

const change = (kind: Change["kind"], object: string | null = null): Change => ({
  seq: 1,
  kind,
  at: 1,
  site: "main",
  camera_id: "entrance",
  object,
});

/** How often cameras were asked for. */
const rounds = (invalidate: MockInstance<QueryClient["invalidateQueries"]>) =>
  invalidate.mock.calls.filter(([filter]) => filter?.queryKey?.[0] === "cameras").length;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

describe("what a change makes old", () => {
  it.each([
    [change("camera"), [["cameras"], ["camera"]]],
    [change("look"), [["cameras"], ["jobs"]]],
    [change("event", "e1"), [["cameras"], ["events"], ["search"], ["incidents"], ["event", "e1"]]],
    [change("incident", "i1"), [["incidents"]]],
    [change("case"), [["cases"], ["case"]]],
    // An open page outlives an upgrade of the server, which may tell of what it has no word for.
    [change("something new" as Change["kind"]), []],
  ])("%j", (given, keys) => {
    expect(keysOf(given)).toEqual(keys);
  });

  it("is asked for once, however much changes", () => {
    const client = new QueryClient();
    const invalidate = vi.spyOn(client, "invalidateQueries").mockResolvedValue();
    const gatherer = new Gatherer(client);
    gatherer.add([change("event", "e1"), change("event", "e1")]);
    gatherer.add([change("event", "e2")]);
    expect(invalidate).not.toHaveBeenCalled();
    vi.runAllTimers();
    expect(invalidate.mock.calls.map(([filter]) => filter?.queryKey)).toEqual([
      ["cameras"],
      ["events"],
      ["search"],
      ["incidents"],
      ["event", "e1"],
      ["event", "e2"],
    ]);
    gatherer.add([change("summary")]);
    vi.runAllTimers();
    expect(invalidate).toHaveBeenCalledTimes(6);
  });

  it("is asked for soon in a quiet house, and less often in a busy one", () => {
    const client = new QueryClient();
    const invalidate = vi.spyOn(client, "invalidateQueries").mockResolvedValue();
    const gatherer = new Gatherer(client);
    for (let part = 0; part < 100; part += 1) {
      gatherer.add([change("look")]);
      vi.advanceTimersByTime(100);
      if (part === 4) expect(rounds(invalidate)).toBe(1);
    }
    expect(rounds(invalidate)).toBe(5);
  });

  it("waits longer among many cameras where only stills are new, and no longer where something happened", () => {
    const client = new QueryClient();
    client.setQueryData(keys.cameras, { pages: [{ cameras: Array(200).fill({}) }], pageParams: [""] });
    const invalidate = vi.spyOn(client, "invalidateQueries").mockResolvedValue();
    const gatherer = new Gatherer(client);
    gatherer.add([change("frame")]);
    vi.advanceTimersByTime(500);
    expect(rounds(invalidate)).toBe(1);
    gatherer.add([change("frame")]);
    vi.advanceTimersByTime(4000);
    expect(rounds(invalidate)).toBe(1);
    invalidate.mockClear();
    gatherer.add([change("incident")]);
    vi.advanceTimersByTime(500);
    expect(invalidate.mock.calls.map(([filter]) => filter?.queryKey)).toEqual([["cameras"], ["jobs"], ["incidents"]]);
  });
});

describe("what failed", () => {
  it("is asked for again where that may pass, and only there", async () => {
    vi.useRealTimers();
    const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
    const failing = (status: number) => () => Promise.reject(new Problem(status, "code", "said"));
    for (const [key, status] of [
      ["away", 0],
      ["busy", 503],
      ["gone", 404],
    ] as const) {
      await client.prefetchQuery({ queryKey: [key], queryFn: failing(status) });
    }
    await client.prefetchQuery({ queryKey: ["fine"], queryFn: () => "said" });
    const invalidate = vi.spyOn(client, "invalidateQueries").mockResolvedValue();
    invalidateFailed(client);
    const asked = client.getQueryCache().findAll(invalidate.mock.calls[0]?.[0]);
    expect(asked.map(({ queryKey }) => queryKey[0])).toEqual(["away", "busy"]);
  });
});
