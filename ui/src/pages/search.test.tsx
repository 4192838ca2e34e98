import { readFileSync } from "node:fs";
import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import {
  askedSearch,
  chosenMoment,
  leastSeverities,
  MOST,
  shownDay,
  shownZoom,
  TEXT_MAX_CHARS,
  toggled,
} from "@/display/search-filter";
import { spanOf, stepsOf } from "@/display/timeline";
import { dayBeside, dayOf, startOfDay, startOfNextDay } from "@/display/times";
import { renderAt } from "@/test/render";
import { AROUND, event, NOW, SESSION } from "@/test/samples";
import { serve } from "@/test/server";

const HOUR = 3_600_000;
const address = (text: string) => new URLSearchParams(text);
const value = (name: string, count: number) => ({ value: name, label_ja: name, label_en: name, count });
const FACETS = {
  counted: 2,
  counted_max: 1000,
  is_complete: true,
  oldest_at: NOW,
  sites: [value("main", 2)],
  cameras: [value("entrance", 2)],
  primary_events: [{ value: "human", label_ja: "人を検知", label_en: "Person detected", count: 2 }],
  tags: [],
  severities: [value("2", 1), value("0", 1)],
  unknown: [value("false", 2)],
  scores: [],
  days: [value("2026-02-03", 2)],
};
const found = (given = {}) => ({ ...event(), unknown: false, reviewed_at: null, passages: [], ...given });
const timeline = (from: number, to: number, bucket_ms = HOUR) => {
  const count = (to - from) / bucket_ms;
  return {
    from_at: from,
    to_at: to,
    bucket_ms,
    counted_until: to,
    next_after: null,
    cameras: [
      {
        camera_id: "entrance",
        camera_name: "Entrance",
        site: "main",
        looked: "o".repeat(count),
        severity: `2${"0".repeat(count - 1)}`,
        events: [[0, 3]],
      },
    ],
  };
};
const answers = (events = [found()]) => ({
  ...AROUND,
  "GET /api/search": { events, next_before: null, is_cut: false },
  "GET /api/search/facets": FACETS,
  "GET /api/timeline": (request: Request) => {
    const query = new URL(request.url).searchParams;
    return timeline(Number(query.get("from")), Number(query.get("to")));
  },
});

describe("the search in the address", () => {
  it.each([
    ["", {}],
    [
      "camera=a&camera=b&tag=x&severity=2&unknown=true",
      { camera_id: ["a", "b"], tag: ["x"], severity_min: 2, unknown: true },
    ],
    ["from=2026-02-03&to=2026-02-03", { from: startOfDay("2026-02-03"), to: startOfNextDay("2026-02-03") }],
    ["to=2026-02-03&at=1700000000000", { to: 1_700_000_000_000 }],
    ["severity=7&at=never", {}],
  ])("%s", (text, asked) => {
    expect(askedSearch(address(text), true)).toEqual(asked);
  });

  it("has words only for those who may investigate", () => {
    expect(askedSearch(address("text=red"), true)).toEqual({ text: "red" });
    expect(askedSearch(address("text=red"), false)).toEqual({});
  });

  it("asks for no more at once than the server takes, of each", () => {
    const { paths } = JSON.parse(readFileSync("../docs/ref/openapi.json", "utf8"));
    const taken = Object.fromEntries(
      paths["/api/search"].get.parameters.map(({ name, schema }: { name: string; schema: object }) => [name, schema]),
    );
    const ours = { site: "site", camera: "camera_id", kind: "primary_event", tag: "tag", score: "score" } as const;
    for (const [name, theirs] of Object.entries(ours)) {
      expect(MOST[name as keyof typeof MOST], name).toBe(taken[theirs].maxItems);
    }
    expect(TEXT_MAX_CHARS).toBe(taken.text.anyOf[0].maxLength);
    const many = address(Array.from({ length: 60 }, (_, place) => `camera=c${place}&tag=t${place}`).join("&"));
    const asked = askedSearch(many, true);
    expect([asked.camera_id?.length, asked.tag?.length]).toEqual([50, 10]);
    expect(toggled(["a", "b"], "c", 2)).toEqual(["a", "b"]);
  });

  it("names the day and the step that are shown", () => {
    expect(shownDay(address("day=2026-02-01"), NOW)).toBe("2026-02-01");
    expect(shownDay(address(""), NOW)).toBe(dayOf(NOW));
    // The end of a day is still that day.
    expect(shownDay(address(`at=${startOfDay("2026-02-02")}`), NOW)).toBe("2026-02-01");
    expect([shownZoom(address("zoom=5m")), shownZoom(address("zoom=1y"))]).toEqual(["5m", "1h"]);
    expect(chosenMoment(address("at=-1"))).toBeNull();
    expect(dayBeside("2026-03-01", -1)).toBe("2026-02-28");
    expect(toggled(toggled(["a"], "b", 2), "a", 2)).toEqual(["b"]);
  });
});

describe("severities", () => {
  it("are counted with what is above them, as a choice narrows by them", () => {
    const counted = [value("0", 9), value("1", 4), value("3", 2)];
    expect(leastSeverities(counted, [])).toEqual([
      { value: "3", count: 2 },
      { value: "2", count: 2 },
      { value: "1", count: 6 },
    ]);
    expect(leastSeverities([value("0", 9)], ["2"])).toEqual([{ value: "2", count: 0 }]);
  });
});

describe("the day", () => {
  const day = { from: 0, to: 24 * HOUR };

  it("is shown whole, or in part where its steps are small", () => {
    expect(spanOf(day, "15m", 5 * HOUR)).toEqual(day);
    expect(spanOf(day, "5m", 12 * HOUR)).toEqual({ from: 9 * HOUR, to: 15 * HOUR });
    expect(spanOf(day, "5m", 23 * HOUR)).toEqual({ from: 18 * HOUR, to: 24 * HOUR });
    expect(spanOf(day, "5m", HOUR)).toEqual({ from: 0, to: 6 * HOUR });
  });

  it("takes all cameras together, newest first, and nothing of the future", () => {
    const cameras = [
      { looked: "o.x?", severity: "0120", events: [[1, 2]] },
      { looked: "..x?", severity: "1000", events: [[1, 1]] },
    ];
    const steps = stepsOf({ from_at: 0, to_at: 4 * HOUR, bucket_ms: HOUR, cameras }, 3 * HOUR - 1);
    expect(steps.map(({ at, severity, events, looked }) => [at / HOUR, severity, events, looked])).toEqual([
      [2, 2, 0, "failed"],
      [1, 1, 3, "none"],
      [0, 1, 0, "ok"],
    ]);
  });

  it("tells what was not looked at because of a live view from what was not looked at", () => {
    const cameras = [
      { looked: "ww.?", severity: "0000", events: [] },
      { looked: "?ow?", severity: "0000", events: [] },
    ];
    const steps = stepsOf({ from_at: 0, to_at: 4 * HOUR, bucket_ms: HOUR, cameras }, 4 * HOUR);
    expect(steps.map(({ looked }) => looked)).toEqual(["unknown", "none", "ok", "watched"]);
  });
});

describe("the search", () => {
  it("finds, narrows by what was found, and goes to a time in two clicks", async () => {
    const asked = serve(answers());
    await renderAt("/search?day=2026-02-03");
    expect(await screen.findByRole("article")).toBeVisible();
    const counted = new URL(asked.find((one) => one.url.includes("/facets?"))?.url ?? "").searchParams;
    expect(counted.get("timezone")).toBe(Intl.DateTimeFormat().resolvedOptions().timeZone);
    await userEvent.click(await screen.findByRole("button", { name: /^Person detected/ }));
    expect(screen.getByRole("button", { name: /^Person detected/ })).toHaveAttribute("aria-pressed", "true");
    const last = () => new URL(asked.findLast((one) => one.url.includes("/api/search?"))?.url ?? "").searchParams;
    expect(last().get("primary_event")).toBe("human");
    const steps = await screen.findByRole("list", { name: "Choose a time, newest first" });
    await userEvent.click(within(steps).getByRole("button", { name: /3 events/ }));
    expect(await screen.findByText(/Showing what began before/)).toBeVisible();
    expect(Number(last().get("to"))).toBe((startOfDay("2026-02-03") ?? 0) + HOUR);
    await userEvent.click(screen.getByRole("button", { name: "Back to the newest" }));
    expect(screen.queryByText(/Showing what began before/)).toBeNull();
  });

  it("says of severities how many a click leads to", async () => {
    const asked = serve({
      ...answers(),
      "GET /api/search/facets": { ...FACETS, severities: [value("2", 2), value("3", 2), value("1", 1)] },
    });
    await renderAt("/search");
    const group = await screen.findByRole("group", { name: "Severity" });
    const buttons = within(group).getAllByRole("button");
    expect(buttons.map((one) => one.textContent)).toEqual(["Alarm2", "Warning or more4", "Notice or more5"]);
    await userEvent.click(buttons[1] as HTMLElement);
    expect(asked.some((one) => one.url.includes("severity_min=2"))).toBe(true);
  });

  it("lets nobody choose more than is asked for", async () => {
    const tags = Array.from({ length: 11 }, (_, place) => value(`tag.${place}`, 1));
    serve({ ...answers(), "GET /api/search/facets": { ...FACETS, tags } });
    await renderAt(
      `/search?${tags
        .slice(1)
        .map((tag) => `tag=${tag.value}`)
        .join("&")}`,
    );
    const left = await screen.findByRole("button", { name: /^tag.0/ });
    expect(left).toBeDisabled();
    expect(screen.getByText("No more than 10 at once")).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: /^tag.9/ }));
    expect(left).toBeEnabled();
    await userEvent.click(left);
    expect(left).toHaveAttribute("aria-pressed", "true");
  });

  it("is gone through by the keys of the events' list", async () => {
    serve(answers([found(), found({ event_uuid: "e2", camera_name: "Yard" })]));
    await renderAt("/search");
    expect(await screen.findAllByRole("article")).toHaveLength(2);
    await userEvent.keyboard("j");
    await userEvent.keyboard("j");
    expect(screen.getAllByRole("article")[1]).toHaveAttribute("aria-current", "true");
    await userEvent.keyboard("?");
    const help = await screen.findByRole("dialog", { name: "Keyboard shortcuts" });
    expect(within(help).getByText("On this page")).toBeVisible();
    for (const name of ["Next event", "Open the event", "Mark as reviewed", "Bookmark", "Add to a case"]) {
      expect(within(help).getByText(name)).toBeVisible();
    }
  });

  it("shows in its day all cameras, more than are answered at once, too", async () => {
    serve({
      ...answers(),
      "GET /api/timeline": (request: Request) => {
        const query = new URL(request.url).searchParams;
        const page = timeline(Number(query.get("from")), Number(query.get("to")));
        return query.get("after") ? page : { ...page, next_after: "entrance" };
      },
    });
    await renderAt("/search?day=2026-02-03");
    expect(await screen.findByRole("button", { name: /6 events/ })).toBeVisible();
  });

  it("looks closer, and goes by arrows", async () => {
    serve(answers());
    await renderAt("/search?day=2026-02-03");
    const steps = await screen.findByRole("list", { name: "Choose a time, newest first" });
    const [first, second] = within(steps).getAllByRole("button") as [HTMLElement, HTMLElement];
    first.focus();
    await userEvent.keyboard("{ArrowDown}");
    expect(second).toHaveFocus();
    await userEvent.click(screen.getByRole("button", { name: "Zoom in" }));
    expect(screen.getByText("By 15 minutes")).toBeVisible();
  });

  it("has words, and where they were found, for those who may investigate", async () => {
    const asked = serve(answers([found({ passages: [{ kind: "memo", case_uuid: null, excerpt: "a red jacket" }] })]));
    await renderAt("/search");
    await userEvent.type(await screen.findByRole("searchbox"), "red{Enter}");
    expect(await screen.findByText("a red jacket")).toBeVisible();
    expect(asked.some((one) => one.url.includes("text=red"))).toBe(true);
  });

  it("counts days by the sites' own time where the server does not know the reader's zone", async () => {
    const noZone = { status: 400, body: { error_code: "bad_input", message: "", details: { reason: "no_zone" } } };
    serve({
      ...answers(),
      "GET /api/search/facets": (request: Request) =>
        new URL(request.url).searchParams.has("timezone") ? noZone : FACETS,
    });
    await renderAt("/search");
    expect(await screen.findByRole("button", { name: /^Person detected/ })).toBeVisible();
  });

  it("says that only a part was looked through where nothing was found in it", async () => {
    const asked = serve({
      ...answers(),
      "GET /api/search": (request: Request) =>
        new URL(request.url).searchParams.has("before")
          ? { events: [found()], next_before: null, is_cut: false }
          : { events: [], next_before: "4000", is_cut: false },
    });
    await renderAt("/search?tag=rare");
    expect(await screen.findByText(/Only a part was looked through/)).toBeVisible();
    expect(screen.queryByText("Nothing found")).toBeNull();
    await userEvent.click(screen.getByRole("button", { name: "Load more" }));
    expect(await screen.findByRole("article")).toBeVisible();
    expect(screen.queryByText(/Only a part was looked through/)).toBeNull();
    expect(screen.getByText("There is nothing earlier")).toBeVisible();
    expect(asked.some((one) => one.url.includes("before=4000"))).toBe(true);
  });

  it.each([
    ["something", [found()]],
    ["nothing", []],
  ])("asks for more words where not all cases were followed, and %s was found", async (_, events) => {
    serve({ ...answers(), "GET /api/search": { events, next_before: null, is_cut: true } });
    await renderAt("/search?text=red");
    expect(await screen.findByText(/not all cases were followed. Give more words/)).toBeVisible();
    expect(screen.queryByText("There is nothing earlier")).toBeNull();
  });

  it("leads on where nothing is found", async () => {
    serve({ ...answers([]), "GET /api/session": SESSION });
    await renderAt("/search?camera=gone");
    expect(await screen.findByText("Nothing found")).toBeVisible();
    expect(screen.queryByRole("searchbox")).toBeNull();
    await userEvent.click(screen.getAllByRole("button", { name: "Clear all" })[0] as HTMLElement);
    expect(screen.queryByRole("button", { name: "Clear all" })).toBeNull();
  });
});
