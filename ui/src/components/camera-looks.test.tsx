import { act, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it } from "vitest";
import { HOUR_MS } from "@/display/looks-day";
import { dayBeside, dayOf, startOfDay, startOfNextDay } from "@/display/times";
import i18next from "@/i18n";
import { renderAt } from "@/test/render";
import { AROUND, camera, frame, SESSION, WATCHED_LIVE } from "@/test/samples";
import { failing, serve } from "@/test/server";

const NOW = Date.now();
const HOUR = Math.floor(NOW / HOUR_MS) * HOUR_MS;
const YESTERDAY = dayBeside(dayOf(NOW), -1);

const hour = (hour_at: number, given = {}) => ({
  ...{ hour_at, looks: 720, looks_failed: 0, lost: 0, analyzed: 0, detected: 0, events: 0 },
  ...{ severity_max: 0, pictures: 60, quiet: 60 },
  ...given,
});
const LOOKS = {
  camera_id: "entrance",
  from_at: HOUR - 2 * HOUR_MS,
  to_at: HOUR + HOUR_MS,
  timezone: null,
  interval_ms: 5000,
  counted_until: NOW,
  gaps: [] as object[],
  pauses: [],
  hours: [hour(HOUR - 2 * HOUR_MS), hour(HOUR - HOUR_MS), hour(HOUR)],
};
const quiet = (name: string, at: number) =>
  frame({ frame_uuid: name, captured_at: at, event_uuid: null, verdict: "skip", pictures: ["infer"], boxes: [] });
const FRAMES = [quiet("q3", HOUR - 60_000), quiet("q2", HOUR - 120_000)];
const answers = {
  ...AROUND,
  "GET /api/session": SESSION,
  "GET /api/cameras/entrance": camera(),
  "GET /api/cameras/entrance/looks": LOOKS as unknown,
  "GET /api/cameras/entrance/frames": (request: Request) =>
    new URL(request.url).searchParams.has("before")
      ? { frames: [quiet("q1", HOUR - 180_000)], next_before: null }
      : { frames: FRAMES, next_before: "48" },
};
const asked = (all: Request[], path: string) =>
  all.map((one) => new URL(one.url)).filter((one) => one.pathname.endsWith(path));
const bars = async () =>
  within(await screen.findByRole("list", { name: "Looks by the hour" })).getAllByRole("button") as HTMLElement[];
const pictures = async () =>
  within(await screen.findByRole("list", { name: "Pictures, newest first" })).findAllByRole("button");

afterEach(() => i18next.changeLanguage("en"));

describe("a camera's looks", () => {
  it("say that nothing happened, and that it was looked at all the while", async () => {
    serve(answers);
    await renderAt("/cameras/entrance");
    expect(await screen.findByText("It was looked at all the while, and nothing happened.")).toBeVisible();
    expect(screen.getByText(/2,160 looks · 0 failed · 0 events/)).toBeVisible();
    expect(screen.getByText("Never")).toBeVisible();
  });

  it("of a day are asked for by the reader's own time, and lead back to now", async () => {
    const all = serve(answers);
    await renderAt("/cameras/entrance");
    await userEvent.click(await screen.findByRole("button", { name: "The day before" }));
    await waitFor(() => expect(asked(all, "/looks")).toHaveLength(2));
    const query = asked(all, "/looks").at(-1)?.searchParams;
    expect([query?.get("from"), query?.get("to")].map(Number)).toEqual([
      startOfDay(YESTERDAY),
      startOfNextDay(YESTERDAY),
    ]);
    await waitFor(() => expect(screen.getByLabelText("Day")).toHaveValue(YESTERDAY));
    await userEvent.click(screen.getByRole("button", { name: "Last 24 hours" }));
    expect(await screen.findByRole("heading", { name: "Last 24 hours" })).toBeVisible();
    expect(screen.getByRole("button", { name: "The day after" })).toBeDisabled();
  });

  it("name when nobody looked, for how long, and why, in both languages", async () => {
    const start = (startOfDay(YESTERDAY) ?? 0) + 3 * HOUR_MS;
    const gaps = [
      { start_at: start, end_at: start + 1.5 * HOUR_MS, cause: WATCHED_LIVE.cause },
      ...[2, 3, 4, 5, 6].map((later) => ({
        ...{ start_at: start + later * HOUR_MS, end_at: start + later * HOUR_MS + 300_000, cause: null },
      })),
    ];
    serve({ ...answers, "GET /api/cameras/entrance/looks": { ...LOOKS, gaps } });
    await renderAt(`/cameras/entrance?day=${YESTERDAY}`);
    const table = await screen.findByRole("table", { name: "When nobody looked" });
    expect(within(table).getByText(/^03:00.–.04:30$/)).toBeVisible();
    expect(within(table).getByText("1 h 30 min")).toBeVisible();
    expect(within(table).getByText(WATCHED_LIVE.cause.label_en)).toBeVisible();
    expect(within(table).getAllByText("No reason was recorded")).toHaveLength(4);
    await userEvent.click(screen.getByRole("button", { name: "Show all 6" }));
    expect(within(table).getAllByText("No reason was recorded")).toHaveLength(5);
    expect(screen.getByText("Nothing happened while it was looked at.")).toBeVisible();
    await act(() => i18next.changeLanguage("ja"));
    expect(screen.getByText("1 時間 30 分")).toBeVisible();
    expect(screen.getByText(WATCHED_LIVE.cause.label_ja)).toBeVisible();
  });
});

describe("an hour", () => {
  it("is chosen by keys, and shows its quiet pictures, then the earlier ones", async () => {
    const all = serve(answers);
    await renderAt("/cameras/entrance");
    const [, before, now] = await bars();
    expect(now).toHaveAttribute("tabindex", "0");
    now?.focus();
    await userEvent.keyboard("{ArrowLeft}{Enter}");
    await waitFor(() => expect(before).toHaveAttribute("aria-pressed", "true"));
    await waitFor(async () => expect(await pictures()).toHaveLength(2));
    const query = asked(all, "/frames").at(-1)?.searchParams;
    expect(Object.fromEntries(query ?? [])).toMatchObject({
      only: "quiet",
      from: String(HOUR - HOUR_MS),
      to: String(HOUR),
    });
    await userEvent.click(screen.getByRole("button", { name: "Load more" }));
    await waitFor(async () => expect(await pictures()).toHaveLength(3));
    await userEvent.click(screen.getByRole("button", { name: "Close" }));
    expect(await screen.findByText(/Choose an hour/)).toBeVisible();
    expect(screen.queryByRole("list", { name: "Pictures, newest first" })).toBeNull();
  });

  it("leads to those beside it, and no further than now", async () => {
    const all = serve(answers);
    await renderAt(`/cameras/entrance?hour=${HOUR}`);
    const after = await screen.findByRole("button", { name: "The hour after" });
    expect(after).toHaveAttribute("aria-disabled", "true");
    await userEvent.click(screen.getByRole("button", { name: "The hour before" }));
    await waitFor(() => expect(asked(all, "/frames").at(-1)?.searchParams.get("from")).toBe(String(HOUR - HOUR_MS)));
    await waitFor(() => expect(after).toHaveAttribute("aria-disabled", "false"));
  });

  it("shows a picture large, with those beside it by the arrows", async () => {
    serve(answers);
    await renderAt(`/cameras/entrance?hour=${HOUR - HOUR_MS}`);
    const [newest, older] = await pictures();
    newest?.focus();
    await userEvent.keyboard("{ArrowRight}");
    await waitFor(() => expect(older).toHaveFocus());
    await userEvent.keyboard("{Enter}");
    const dialog = await screen.findByRole("dialog");
    const shown = () => within(dialog).getByRole("img").getAttribute("src");
    expect(shown()).toContain("/api/frames/q2/picture?kind=infer");
    within(dialog).getByRole("button", { name: "Close" }).focus();
    await userEvent.keyboard("{ArrowRight}");
    await waitFor(() => expect(shown()).toContain("q3"));
    expect(within(dialog).getByRole("button", { name: "The picture after" })).toHaveAttribute(
      "aria-disabled",
      "true",
    );
    await userEvent.click(within(dialog).getByRole("button", { name: "The picture before" }));
    await waitFor(() => expect(shown()).toContain("q2"));
  });

  it.each([
    ["nobody looked", { looks: 0 }, "Nobody looked in this hour."],
    ["nothing is kept", {}, /No picture of this hour on which nothing happened is kept/],
  ])("says that %s", async (_, given, words) => {
    const looks = { ...LOOKS, hours: [hour(HOUR - HOUR_MS, given), hour(HOUR)] };
    serve({
      ...answers,
      "GET /api/cameras/entrance/looks": looks,
      "GET /api/cameras/entrance/frames": { frames: [], next_before: null },
    });
    await renderAt(`/cameras/entrance?hour=${HOUR - HOUR_MS}`);
    expect(await screen.findByText(words)).toBeVisible();
  });

  it("leads to its events, and says what can't be loaded", async () => {
    const looks = { ...LOOKS, hours: [hour(HOUR - HOUR_MS, { events: 2 }), hour(HOUR)] };
    serve({
      ...answers,
      "GET /api/cameras/entrance/looks": looks,
      "GET /api/cameras/entrance/frames": failing(503, "busy", "The server is busy"),
    });
    await renderAt(`/cameras/entrance?hour=${HOUR - HOUR_MS}`);
    expect(await screen.findByText("The server is busy")).toBeVisible();
    const link = screen.getByRole("link", { name: "Events of this hour (2)" });
    expect(link).toHaveAttribute("href", `/events?camera=entrance&at=${HOUR}`);
  });
});
