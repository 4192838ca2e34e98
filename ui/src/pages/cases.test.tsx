import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it, vi } from "vitest";
import { download } from "@/api/download";
import type { CaseDetail, CaseItem } from "@/api/types";
import { bytesText } from "@/display/sizes";
import { dismissNotices } from "@/shell/notices";
import { renderAt } from "@/test/render";
import { AROUND, event, frame, NOW } from "@/test/samples";
import { failing, serve } from "@/test/server";

const CASE: CaseDetail = {
  case_uuid: "c1",
  title: "Bicycle",
  state: "open",
  hold: false,
  created_at: NOW,
  created_by: "owner",
  updated_at: NOW,
  closed_at: null,
  items: 1,
  notes: 1,
  note_list: [{ at: NOW, by: "owner", body: "Reported on Monday" }],
};
const ITEM: CaseItem = {
  kind: "event",
  uuid: "e1",
  camera_id: "entrance",
  camera_name: "Entrance",
  site: "main",
  happened_at: NOW,
  added_at: NOW,
  added_by: "owner",
  held: true,
  gone: false,
};
const found = { ...event(), unknown: false, reviewed_at: null, passages: [] };
const answers = (given: Partial<CaseDetail> = {}, items = [ITEM]) => ({
  ...AROUND,
  "GET /api/cases": { cases: [CASE], next_before: null },
  "GET /api/cases/c1": { ...CASE, ...given },
  "GET /api/cases/c1/items": { items, next_after: null },
  "GET /api/search": { events: [found], next_before: null, is_cut: false },
});

afterEach(dismissNotices);

describe("bookmarks", () => {
  const MINE = { ...CASE, case_uuid: "b1", title: "★ Bookmarks of First", created_by: "first-admin" };
  const posted = (asked: Request[], path: string) =>
    asked.filter((one) => one.method === "POST" && new URL(one.url).pathname === path);

  it("are made by B in the list, in a case of one's own that the first one makes, with a way back", async () => {
    let cases = [{ ...CASE, title: "★ somebody else's" }];
    const asked = serve({
      ...answers(),
      "GET /api/events": { events: [event()], next_before: null },
      "GET /api/cases": () => ({ cases, next_before: null }),
      "POST /api/cases": () => {
        cases = [MINE, ...cases];
        return MINE;
      },
      "POST /api/cases/b1/items": { added: true },
      "DELETE /api/cases/b1/items/event/e1": null,
    });
    await renderAt("/events");
    await screen.findByRole("article");
    // Nothing is chosen yet.
    fireEvent.keyDown(document.body, { key: "b" });
    fireEvent.keyDown(document.body, { key: "j" });
    fireEvent.keyDown(document.body, { key: "b" });
    fireEvent.keyDown(document.body, { key: "b" });
    await waitFor(() => expect(posted(asked, "/api/cases/b1/items")).toHaveLength(2));
    expect(await posted(asked, "/api/cases/b1/items")[0]?.json()).toEqual({ kind: "event", uuid: "e1" });
    const made = posted(asked, "/api/cases");
    expect(made).toHaveLength(1);
    expect(await made[0]?.json()).toEqual({ title: MINE.title, note: null });
    await userEvent.click((await screen.findAllByRole("button", { name: "Undo" }))[0] as HTMLElement);
    await waitFor(() => expect(asked.some((one) => one.method === "DELETE")).toBe(true));
  });

  it("say that something is there already, and C asks for the case", async () => {
    serve({
      ...answers(),
      "GET /api/events": { events: [event()], next_before: null },
      "GET /api/cases": { cases: [MINE], next_before: null },
      "POST /api/cases/b1/items": { added: false },
    });
    await renderAt("/events");
    await screen.findByRole("article");
    fireEvent.keyDown(document.body, { key: "j" });
    fireEvent.keyDown(document.body, { key: "b" });
    expect(await screen.findByText("It is bookmarked already")).toBeVisible();
    fireEvent.keyDown(document.body, { key: "c" });
    expect(await screen.findByRole("dialog", { name: "Add to a case" })).toBeVisible();
  });
});

describe("cases", () => {
  it("are listed, and one is made", async () => {
    const asked = serve({ ...answers(), "POST /api/cases": { ...CASE, case_uuid: "c1" } });
    await renderAt("/cases");
    expect(await screen.findByRole("link", { name: "Bicycle" })).toHaveAttribute("href", "/cases/c1");
    await userEvent.click(screen.getByRole("button", { name: "New case" }));
    const dialog = screen.getByRole("dialog");
    await userEvent.type(within(dialog).getByLabelText("Title"), "Bicycle");
    await userEvent.click(within(dialog).getByRole("button", { name: "New case" }));
    expect(await screen.findByRole("heading", { level: 1, name: "Bicycle" })).toBeVisible();
    expect(await asked.find((one) => one.method === "POST")?.json()).toEqual({ title: "Bicycle", note: null });
  });

  it("that are none lead on", async () => {
    serve({ ...answers(), "GET /api/cases": { cases: [], next_before: null } });
    await renderAt("/cases");
    expect(await screen.findByText("No cases yet")).toBeVisible();
  });
});

describe("a case", () => {
  it("shows evidence and notes, and takes a note", async () => {
    const asked = serve({ ...answers(), "POST /api/cases/c1/notes": { at: NOW, by: "me", body: "x" } });
    await renderAt("/cases/c1");
    expect(await screen.findByText("Reported on Monday")).toBeVisible();
    expect(await screen.findByRole("link", { name: /Person detected/ })).toHaveAttribute("href", "/events/e1");
    await userEvent.type(screen.getByLabelText("Note"), "Seen again");
    await userEvent.click(screen.getByRole("button", { name: "Add a note" }));
    await waitFor(() => expect(screen.getByLabelText("Note")).toHaveValue(""));
    expect(await asked.find((one) => one.method === "POST")?.json()).toEqual({ body: "Seen again" });
  });

  it("is held with a way back, and closed only when asked again", async () => {
    const asked = serve({ ...answers(), "PATCH /api/cases/c1": CASE });
    await renderAt("/cases/c1");
    const sent = async () =>
      Promise.all(asked.filter((one) => one.method === "PATCH").map((one) => one.clone().json()));
    await userEvent.click(await screen.findByRole("button", { name: "Put on hold" }));
    await userEvent.click(await screen.findByRole("button", { name: "Undo" }));
    await waitFor(async () => expect(await sent()).toEqual([{ hold: true }, { hold: false }]));
    await userEvent.click(screen.getByRole("button", { name: "Close the case" }));
    expect(await sent()).toHaveLength(2);
    await userEvent.click(within(screen.getByRole("dialog")).getByRole("button", { name: "Close the case" }));
    await waitFor(async () => expect((await sent()).at(-1)).toEqual({ state: "closed" }));
  });

  it("on hold gives nothing away", async () => {
    serve(answers({ hold: true }));
    await renderAt("/cases/c1");
    await screen.findByRole("link", { name: /Person detected/ });
    expect(screen.queryByRole("button", { name: /Take out/ })).toBeNull();
  });

  it("says what went wrong where something is taken out", async () => {
    serve({ ...answers(), "DELETE /api/cases/c1/items/event/e1": failing(409, "conflict", "the case is on hold") });
    await renderAt("/cases/c1");
    await userEvent.click(await screen.findByRole("button", { name: /Take out/ }));
    await userEvent.click(within(screen.getByRole("dialog")).getByRole("button", { name: "Take out of the case" }));
    expect(await screen.findByText(/the case is on hold \(Code: conflict\)/)).toBeVisible();
  });

  it("that is not there says so", async () => {
    serve({ ...answers(), "GET /api/cases/c1": failing(404, "not_found", "no such case") });
    await renderAt("/cases/c1");
    expect(await screen.findByText("There is no such case")).toBeVisible();
  });
});

describe("a download", () => {
  const answer = (body: BodyInit, init?: ResponseInit) =>
    vi.stubGlobal("fetch", async () => new Response(body, init));

  it("tells how much has come", async () => {
    answer("twelve bytes");
    const told: number[] = [];
    const { file } = await download("/x", (bytes) => told.push(bytes), new AbortController().signal);
    expect([file?.size, told.at(-1)]).toEqual([12, 12]);
  });

  it("names the server's reason", async () => {
    answer(JSON.stringify({ error_code: "unavailable", message: "too many exports", details: {} }), { status: 503 });
    const failed = download("/x", () => undefined, new AbortController().signal);
    await expect(failed).rejects.toMatchObject({ code: "unavailable", message: "too many exports" });
  });

  it("that was stopped has no file", async () => {
    const stop = new AbortController();
    vi.stubGlobal("fetch", async () => {
      stop.abort();
      throw new DOMException("stopped", "AbortError");
    });
    expect((await download("/x", () => undefined, stop.signal)).file).toBeNull();
  });

  it("has a size people can read", () => {
    expect([0, 999, 1000, 1_234_567, 987_654_321].map((bytes) => bytesText(bytes, "en"))).toEqual([
      "0 B",
      "999 B",
      "1.0 kB",
      "1.2 MB",
      "988 MB",
    ]);
  });
});

describe("an event", () => {
  it("is added to a case by C", async () => {
    const asked = serve({
      ...answers(),
      "GET /api/events/e1": {
        ...event(),
        incident: null,
        best_frame: frame(),
        clip: null,
        llm_review: null,
        scores: [],
      },
      "GET /api/events/e1/frames": { frames: [frame()], next_after: null },
      "POST /api/cases/c1/items": { added: true },
    });
    await renderAt("/events/e1");
    await screen.findByRole("button", { name: "Add to a case" });
    fireEvent.keyDown(document.body, { key: "c" });
    const dialog = await screen.findByRole("dialog", { name: "Add to a case" });
    await waitFor(() => expect(within(dialog).getByLabelText("Open cases")).toHaveValue("c1"));
    await userEvent.click(within(dialog).getByRole("button", { name: "Add" }));
    expect(await screen.findByText("Added to “Bicycle”")).toBeVisible();
    expect(await asked.find((one) => one.method === "POST")?.json()).toEqual({ kind: "event", uuid: "e1" });
  });
});
