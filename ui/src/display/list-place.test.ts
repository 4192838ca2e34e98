import { describe, expect, it } from "vitest";
import { afterDone, besideOf, stepped } from "./list-place";

const IDS = ["a", "b", "c"];

describe("a place in a list", () => {
  it.each([
    [null, 1, "a"],
    [null, -1, "a"],
    ["a", 1, "b"],
    ["c", 1, "c"],
    ["c", -1, "b"],
    ["a", -1, "a"],
    ["gone", 1, "a"],
  ])("from %s by %i is %s", (at, by, next) => {
    expect(stepped(IDS, at, by)).toBe(next);
  });

  it("is none in an empty list", () => {
    expect(stepped([], null, 1)).toBeNull();
    expect(stepped([], "gone", -1)).toBeNull();
  });

  it.each([
    ["a", true, "b"],
    ["a", false, "b"],
    ["c", true, "b"],
    ["c", false, "c"],
  ])("after %s is done (leaves: %s) is %s", (at, leaves, next) => {
    expect(afterDone(IDS, at, leaves)).toBe(next);
  });

  it.each([
    ["a", null, "b"],
    ["b", "a", "c"],
    ["c", "b", null],
    ["gone", null, null],
  ])("%s is between %s and %s", (at, previous, next) => {
    expect(besideOf(IDS, at)).toEqual({ previous, next });
  });

  it("is none after the only one left", () => {
    expect(afterDone(["a"], "a", true)).toBeNull();
    expect(afterDone(["a"], "a", false)).toBe("a");
  });
});
