import { describe, expect, it } from "vitest";
import { frame } from "@/test/samples";
import { beside, nearest } from "./looks";

const looks = [1000, 2000, 5000].map((at) => frame({ frame_uuid: `f${at}`, captured_at: at }));
const [first, second, newest] = looks;

describe("looks of the last minutes", () => {
  it.each([
    [0, "f1000"],
    [1499, "f1000"],
    [1501, "f2000"],
    [9000, "f5000"],
  ])("the nearest to %i is %s", (at, uuid) => {
    expect(nearest(looks, at)?.frame_uuid).toBe(uuid);
  });

  it("has none where there are none", () => {
    expect(nearest([], 5)).toBeUndefined();
    expect(beside([], null, -1)).toBeNull();
  });

  it("goes back from live, stops at the oldest, and is live again beyond the newest", () => {
    expect(beside(looks, null, -1)).toBe(newest);
    expect(beside(looks, null, 1)).toBeNull();
    expect(beside(looks, second ?? null, -1)).toBe(first);
    expect(beside(looks, first ?? null, -1)).toBe(first);
    expect(beside(looks, second ?? null, 1)).toBe(newest);
    expect(beside(looks, newest ?? null, 1)).toBeNull();
  });
});
