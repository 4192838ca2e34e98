import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it } from "vitest";
import { askedIncidents, atLeast, fitsReview } from "@/display/incident-filter";
import { startOfDay } from "@/display/times";
import { dismissNotices } from "@/shell/notices";
import { renderAt } from "@/test/render";
import { AROUND, COVERED, incident, SESSION } from "@/test/samples";
import { failing, serve } from "@/test/server";

const COUNTS = { by_severity: [4, 3, 2, 1], is_complete: true };
const two = [incident(), incident({ incident_uuid: "i2", camera_name: "Yard", last_event_uuid: "e2" })];
const answers = (incidents = two) => ({
  ...AROUND,
  "GET /api/incidents": { incidents, next_before: null },
  "GET /api/incidents/counts": COUNTS,
});

afterEach(dismissNotices);

describe("the filter of incidents", () => {
  it.each([
    ["", { reviewed: false }],
    ["view=all&severity=2&camera=gate", { severity_min: 2, camera_id: ["gate"] }],
    ["view=done&severity=9", { reviewed: true }],
    ["day=2026-02-03", { reviewed: false, from: startOfDay("2026-02-03"), to: startOfDay("2026-02-04") }],
    ["day=nonsense", { reviewed: false }],
  ])("%s", (address, asked) => {
    expect(askedIncidents(new URLSearchParams(address))).toEqual(asked);
  });

  it.each([
    [null, undefined, true],
    [5, undefined, true],
    [null, false, true],
    [5, false, false],
    [null, true, false],
    [5, true, true],
  ])("reviewed at %s, asked for reviewed %s: %s", (reviewed_at, reviewed, fits) => {
    expect(fitsReview({ reviewed_at }, reviewed === undefined ? {} : { reviewed })).toBe(fits);
  });

  it("counts what is as grave or graver", () => {
    expect([0, 1, 2, 3].map((step) => atLeast(COUNTS.by_severity, step))).toEqual([10, 6, 3, 1]);
  });
});

describe("incidents", () => {
  it("show counts, what goes on, and what is wrong with a camera", async () => {
    serve(answers([incident({ is_ongoing: true, issue: COVERED, primary_event: "camera_issue" })]));
    await renderAt("/incidents");
    const card = await screen.findByRole("article");
    expect(within(card).getByText("Ongoing")).toBeVisible();
    expect(within(card).getByRole("link", { name: COVERED.label_en })).toHaveAttribute("href", "/events/e1");
    expect(await screen.findByRole("button", { name: "Warning or more 3" })).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: "Alarm 1" }));
    expect(screen.getByRole("button", { name: "Alarm 1" })).toHaveAttribute("aria-pressed", "true");
  });

  it("are reviewed by J and R, leave the list at once, and come back by undo", async () => {
    const reviewed = new Set<string>();
    const asked = serve({
      ...answers(),
      "GET /api/incidents": () => ({
        incidents: two.filter((one) => !reviewed.has(one.incident_uuid)),
        next_before: null,
      }),
      "POST /api/incidents/i2/review": () => {
        reviewed.add("i2");
        return { ...two[1], reviewed_at: 1 };
      },
      "DELETE /api/incidents/i2/review": () => {
        reviewed.delete("i2");
        return two[1];
      },
    });
    await renderAt("/incidents");
    await waitFor(() => expect(screen.getAllByRole("article")).toHaveLength(2));
    await userEvent.keyboard("jj");
    expect(screen.getAllByRole("article")[1]).toHaveAttribute("aria-current", "true");
    await userEvent.keyboard("r");
    await waitFor(() => expect(screen.getAllByRole("article")).toHaveLength(1));
    const sent = await asked.find((one) => one.method === "POST")?.json();
    expect(sent).toEqual({ severity_max: 2, last_event_uuid: "e2" });
    await userEvent.click(await screen.findByRole("button", { name: "Undo" }));
    await waitFor(() => expect(screen.getAllByRole("article")).toHaveLength(2));
  });

  it("are not reviewed by R before one is chosen, and the last of all keeps its place", async () => {
    const asked = serve({ ...answers(), "POST /api/incidents/i2/review": { ...two[1], reviewed_at: 1 } });
    await renderAt("/incidents?view=all");
    await waitFor(() => expect(screen.getAllByRole("article")).toHaveLength(2));
    await userEvent.keyboard("r");
    expect(asked.some((one) => one.method === "POST")).toBe(false);
    await userEvent.keyboard("jjr");
    await waitFor(() => expect(asked.some((one) => one.method === "POST")).toBe(true));
    expect(screen.getAllByRole("article")[1]).toHaveAttribute("aria-current", "true");
  });

  it("say why a review was refused, and stay", async () => {
    serve({ ...answers(), "POST /api/incidents/i1/review": failing(403, "forbidden", "no") });
    await renderAt("/incidents");
    await userEvent.click((await screen.findAllByRole("button", { name: /Mark as reviewed/ }))[0] as HTMLElement);
    expect(await screen.findByText("It could not be changed (code: forbidden)")).toBeVisible();
    await waitFor(() => expect(screen.getAllByRole("article")).toHaveLength(2));
  });

  it("offer no review to whoever may not", async () => {
    serve({ ...answers(), "GET /api/session": SESSION });
    await renderAt("/incidents");
    await screen.findAllByRole("article");
    expect(screen.queryByRole("button", { name: /Mark as reviewed/ })).toBeNull();
  });

  it("that are all reviewed lead on", async () => {
    serve(answers([]));
    await renderAt("/incidents");
    expect(await screen.findByText("Nothing to review")).toBeVisible();
    const done = screen.getAllByRole("button", { name: "Reviewed" });
    await userEvent.click(done.at(-1) as HTMLElement);
    expect(done[0]).toHaveAttribute("aria-pressed", "true");
  });
});
