import { QueryClient } from "@tanstack/react-query";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Gatherer, keysOf } from "./live";
import { keys } from "./queries";
import type { Change } from "./types";

const change = (kind: string, object: string | null = null): Change => ({
  seq: 1,
  kind,
  at: 1,
  site: "main",
  camera_id: "entrance",
  object,
});

beforeEach(() => void vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

describe("what a change makes old", () => {
  it.each([
    [change("camera"), [["cameras"], ["camera"]]],
    [change("look"), [["cameras"]]],
    [change("event", "e1"), [["cameras"], ["events"], ["search"], ["event", "e1"]]],
    [change("incident", "i1"), [["incidents"]]],
    [change("case"), [["cases"], ["case"]]],
    [change("something new"), []],
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
      ["event", "e1"],
      ["event", "e2"],
    ]);
    gatherer.add([change("summary")]);
    vi.runAllTimers();
    expect(invalidate).toHaveBeenCalledTimes(5);
  });

  it("is asked for soon in a quiet house, and less often in a busy one", () => {
    const client = new QueryClient();
    const invalidate = vi.spyOn(client, "invalidateQueries").mockResolvedValue();
    const gatherer = new Gatherer(client);
    for (let part = 0; part < 100; part += 1) {
      gatherer.add([change("look")]);
      vi.advanceTimersByTime(100);
      if (part === 4) expect(invalidate).toHaveBeenCalledTimes(1);
    }
    expect(invalidate).toHaveBeenCalledTimes(5);
  });

  it("waits longer among many cameras where only stills are new, and no longer where something happened", () => {
    const client = new QueryClient();
    client.setQueryData(keys.cameras, { pages: [{ cameras: Array(200).fill({}) }], pageParams: [""] });
    const invalidate = vi.spyOn(client, "invalidateQueries").mockResolvedValue();
    const gatherer = new Gatherer(client);
    gatherer.add([change("frame")]);
    vi.advanceTimersByTime(500);
    expect(invalidate).toHaveBeenCalledTimes(1);
    gatherer.add([change("frame")]);
    vi.advanceTimersByTime(4000);
    expect(invalidate).toHaveBeenCalledTimes(1);
    gatherer.add([change("incident")]);
    vi.advanceTimersByTime(500);
    expect(invalidate.mock.calls.slice(1).map(([filter]) => filter?.queryKey)).toEqual([["cameras"], ["incidents"]]);
  });
});
