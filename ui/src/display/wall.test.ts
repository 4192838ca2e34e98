import { beforeEach, describe, expect, it } from "vitest";
import { camera, health, NOW, WRONG_PASSWORD } from "@/test/samples";
import { barShare, momentAt, only, stripHours, stripRows } from "./day-strip";
import { formatOf, readText } from "./import-file";
import { keep } from "./kept";
import {
  besides,
  camerasOf,
  GROUPS_MAX,
  keepOwnGroups,
  type OwnGroup,
  readLayout,
  readOwnGroups,
  sitesOf,
  withGroup,
} from "./wall";

const HOUR_MS = 3_600_000;
const CAMERAS = [
  camera({ camera_id: "a", site: "yard" }),
  camera({ camera_id: "b", site: "house", health: health({ state: "down", cause: WRONG_PASSWORD }) }),
  camera({ camera_id: "c", site: "house", enabled: false }),
];
const ids = (group: string, own: OwnGroup[] = []) => camerasOf(group, CAMERAS, own, NOW).map((one) => one.camera_id);

beforeEach(() => localStorage.clear());

describe("groups of the wall", () => {
  it.each([
    ["all", ["a", "b", "c"]],
    ["site:house", ["b", "c"]],
    ["site:gone", ["a", "b", "c"]],
    ["troubled", ["b"]],
    ["ongoing", []],
    ["own:night", ["c", "a"].sort()],
    ["own:gone", ["a", "b", "c"]],
  ])("%s has %j", (group, wanted) => {
    expect(ids(group, [{ name: "night", cameras: ["c", "a", "removed"] }])).toEqual(wanted);
  });

  it("are by site, each once", () => expect(sitesOf(CAMERAS)).toEqual(["house", "yard"]));

  it("are kept, changed in their place, and bounded", () => {
    keepOwnGroups(Array.from({ length: GROUPS_MAX + 5 }, (_, number) => ({ name: `g${number}`, cameras: ["a"] })));
    expect(readOwnGroups()).toHaveLength(GROUPS_MAX);
    const groups = [
      { name: "x", cameras: ["a"] },
      { name: "y", cameras: ["b"] },
    ];
    expect(withGroup(groups, { name: "z", cameras: ["c"] }, "x").map((one) => one.name)).toEqual(["z", "y"]);
    expect(withGroup(groups, { name: "y", cameras: ["c"] }, null)).toEqual([
      groups[0],
      { name: "y", cameras: ["c"] },
    ]);
    expect(withGroup(groups, { name: "y", cameras: ["c"] }, "x").map((one) => one.name)).toEqual(["y"]);
  });

  it("survive whatever else was written there", () => {
    for (const text of ["{", '{"a": 1}', '[1, null, {"name": ""}]']) {
      keep("wall.groups", text);
      expect(readOwnGroups()).toEqual([]);
    }
  });
});

describe("the wall's layout", () => {
  it("is the address's, then the remembered one", () => {
    expect(readLayout(null)).toBe("auto");
    keep("wall.layout", "4");
    expect(readLayout(null)).toBe("4");
    expect(readLayout("2")).toBe("2");
    expect(readLayout("99")).toBe("auto");
  });

  it.each([
    [0, "ArrowRight", 1],
    [0, "ArrowLeft", 0],
    [1, "ArrowDown", 4],
    [5, "ArrowDown", 5],
    [4, "ArrowUp", 1],
    [0, "x", 0],
  ])("goes from %i by %s to %i", (place, key, wanted) => expect(besides(place, 7, 3, key)).toBe(wanted));
});

describe("the last 24 hours", () => {
  const strips = {
    from_at: 0,
    to_at: 24 * HOUR_MS,
    bucket_ms: HOUR_MS / 4,
    counted_until: 24 * HOUR_MS,
    cameras: [
      { camera_id: "a", camera_name: "A", looked: "", severity: "0100", events: [[1, 3]] },
      { camera_id: "b", camera_name: "B", looked: "", severity: "0000030", events: [[5, 1]] },
      { camera_id: "c", camera_name: "C", looked: "", severity: "", events: [] },
    ],
  };

  it("are 24 hours of all cameras", () => {
    const hours = stripHours(strips);
    expect(hours).toHaveLength(24);
    expect(hours[0]).toEqual({ at: 0, end: HOUR_MS, events: 3, severity: 1 });
    expect(hours[1]).toMatchObject({ events: 1, severity: 3 });
  });

  it("are a row for each camera that saw something, the gravest first", () => {
    expect(stripRows(strips).map((row) => [row.name, row.events, row.severity])).toEqual([
      ["B", 1, 3],
      ["A", 3, 1],
    ]);
    expect(stripRows(only(strips, new Set(["a"])))).toHaveLength(1);
  });

  it.each([
    [0, 0.25],
    [0.5, 12.25],
    [1, 24],
    [2, 24],
  ])("are at %f of the width hour %f", (share, hours) => expect(momentAt(strips, share)).toBe(hours * HOUR_MS));
});

describe("a bar of the last 24 hours", () => {
  it.each([
    [0, 100, 0],
    [1, 100, 0.12],
    [25, 100, 0.5],
    [100, 100, 1],
    [0, 0, 0],
  ])("%i of %i stands %d high", (count, most, share) => {
    expect(barShare(count, most)).toBeCloseTo(share);
  });
});

describe("a file with cameras", () => {
  it("is told by its name", () => {
    expect(["a.csv", "b.YML", "config.yaml", "c"].map(formatOf)).toEqual(["csv", "frigate", "frigate", "csv"]);
  });

  it("may be UTF-8 or Shift JIS", () => {
    const shiftJis = new Uint8Array([0x93, 0xfc, 0x8c, 0xfb]);
    expect(readText(shiftJis.buffer)).toBe("入口");
    expect(readText(new TextEncoder().encode("入口").buffer as ArrayBuffer)).toBe("入口");
  });
});
