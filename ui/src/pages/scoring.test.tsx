import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { ScoringOffer, ScoringRunDetail, ScoringSheet } from "@/api/types";
import { readBudget, readCategories } from "@/display/scoring";
import { asScoringSearch } from "@/display/search-filter";
import { mayOpen, NAV } from "@/shell/page-table";
import { renderAt } from "@/test/render";
import { ADMIN, AROUND, NOW } from "@/test/samples";
import { serve } from "@/test/server";

const SESSION = { ...ADMIN, features: ["scoring" as const] };
const OFFER: ScoringOffer = {
  is_configured: true,
  provider: "openai",
  model: "small",
  upload_max_bytes: 100_000_000,
  part_bytes: 4,
  kept_max_bytes: 1_000_000_000,
  endings: [".csv", ".xlsx"],
  has_google: true,
  files: ["here.csv"],
  running: 0,
};
const SHEET: ScoringSheet = {
  sheet_uuid: "s1",
  kind: "file",
  name: "answers.csv",
  state: "looked",
  message: null,
  model: "small",
  categories: ["delivery", "trespass"],
  check: {
    ok: true,
    rows: 1200,
    distinct_rows: 1000,
    empty_rows: 3,
    filled_cells: 0,
    last_row: 1207,
    categories: 2,
    findings: [{ severity: "warning", problem: "text_missing", where: "C7", message: "3 rows have no text" }],
  },
  estimate: {
    rows: 1200,
    tasks: 1200,
    unique_calls: 1000,
    cache_hits: 10,
    same: 190,
    filled: 0,
    tokens_in: 100_000,
    tokens_out: 20_000,
    cost_usd: 0.25,
    seconds: 90,
    is_time_measured: false,
  },
  is_priced: true,
  size_bytes: 9,
  received_bytes: 9,
  created_at: NOW,
  updated_at: NOW,
};
const RUN: ScoringRunDetail = {
  run_uuid: "r1",
  sheet: "file:s1",
  brought: { sheet_uuid: "s1", kind: "file", name: "answers.csv" },
  has_result: true,
  provider: "openai",
  model: "small",
  categories: ["delivery", "trespass"],
  status: "paused",
  wanted: "pause",
  reason: "budget",
  message: "the budget is used up",
  last_row: 1207,
  passes: 1,
  budget_micro: 500_000,
  cost_micro: 499_000,
  calls: 800,
  refused: 4,
  cache_hits: 10,
  same_hits: 190,
  tokens_in: 1,
  tokens_out: 1,
  created_at: NOW,
  updated_at: NOW,
  finished_at: null,
  totals: {
    chunks: 3,
    chunks_over: 2,
    chunks_failed: 0,
    rows_read: 1000,
    tasks: 1000,
    done: 998,
    failed: 2,
    written: 998,
  },
  metrics: { processing_ms: 61_000, hit_share: 0.2, refused_share: 0.005, limit: 12.5, write_delay_ms: 40 },
  notes: [{ row: 7, first_category: 0, state: "failed", note: "no answer" }],
};
const CHUNK = {
  number: 1,
  row_start: 5,
  row_end: 504,
  status: "completed" as const,
  retry_count: 1,
  last_error: "status 500",
  tasks: 500,
  done: 500,
  failed: 0,
  written: 500,
  updated_at: NOW,
};
const answers = {
  ...AROUND,
  "GET /api/session": SESSION,
  "GET /api/scoring": OFFER,
  "GET /api/scoring/sheets": { sheets: [SHEET], next_before: null },
  "GET /api/scoring/runs": { runs: [RUN], next_before: null },
  "GET /api/scoring/sheets/s1": SHEET,
  "GET /api/scoring/runs/r1": RUN,
  "GET /api/scoring/runs/r1/chunks": { chunks: [CHUNK], next_after: null },
};

describe("what is written becomes what is asked", () => {
  it("of categories, budgets and searches", () => {
    expect(readCategories("delivery: brings: something\n\n 侵入：中にいる \nstaff")).toEqual([
      { name: "delivery", definition: "brings: something" },
      { name: "侵入", definition: "中にいる" },
      { name: "staff", definition: "" },
    ]);
    expect([readBudget(""), readBudget("2.5"), readBudget("-1"), readBudget("x")]).toEqual([
      null,
      2_500_000,
      undefined,
      undefined,
    ]);
    expect(asScoringSearch({ camera_id: ["door"], from: 5 })).toMatchObject({ camera_ids: ["door"], from_ms: 5 });
  });
});

describe("scoring", () => {
  it("is in the navigation only where a model is configured", () => {
    const [entry] = NAV.filter((one) => one.name === "scoring");
    expect(entry && mayOpen(SESSION, entry)).toBe(true);
    expect(entry && mayOpen(ADMIN, entry)).toBe(false);
  });

  it("takes a file in pieces and leads to what was found in it", async () => {
    const asked = serve({
      ...answers,
      "POST /api/scoring/sheets": { ...SHEET, state: "coming" },
      "POST /api/scoring/sheets/s1/parts/0": { ...SHEET, state: "coming" },
      "POST /api/scoring/sheets/s1/parts/1": { ...SHEET, state: "coming" },
      "POST /api/scoring/sheets/s1/parts/2": { ...SHEET, state: "waiting" },
    });
    await renderAt("/scoring");
    await userEvent.click(await screen.findByRole("button", { name: "Add a sheet" }));
    const dialog = screen.getByRole("dialog");
    await userEvent.upload(within(dialog).getByLabelText("File"), new File(["123456789"], "answers.csv"));
    await userEvent.click(within(dialog).getByRole("button", { name: "Add" }));
    await waitFor(() => expect(asked.filter((one) => one.url.includes("/parts/"))).toHaveLength(3));
    expect(await screen.findByText("Estimate")).toBeVisible();
    expect(screen.getByText("C7: rows without a text are left out")).toBeVisible();
    const sent = asked.filter((one) => one.url.includes("/parts/"));
    expect(sent).toHaveLength(3);
    expect(sent[0]?.headers.get("Content-Type")).toBe("application/octet-stream");
    expect(sent[0]?.headers.get("X-CSRF-Token")).toBe(SESSION.csrf_token);
  });

  it("begins a run within a budget and shows how it stands", async () => {
    const asked = serve({
      ...answers,
      "POST /api/scoring/sheets/s1/runs": RUN,
      "POST /api/scoring/runs/r1/control": { ...RUN, status: "running" },
    });
    await renderAt("/scoring/sheets/s1");
    await userEvent.type(await screen.findByLabelText("Budget in US dollars (optional)"), "0");
    await userEvent.click(screen.getByRole("button", { name: "Score it" }));
    expect(screen.getByRole("alert")).toHaveTextContent("above zero");
    await userEvent.type(screen.getByLabelText("Budget in US dollars (optional)"), ".5");
    await userEvent.click(screen.getByRole("button", { name: "Score it" }));
    expect(await screen.findByText("the budget is used up")).toBeVisible();
    const begun = asked.find((one) => one.url.endsWith("/runs") && one.method === "POST");
    expect(await begun?.json()).toEqual({ budget_micro: 500_000 });
    expect(await screen.findByText("status 500")).toBeVisible();
    expect(screen.getByText("no answer")).toBeVisible();
    expect(screen.getByRole("meter", { name: "Chunks" })).toHaveAttribute("aria-valuetext", "2 of 3 chunks");
    expect(screen.getByRole("link", { name: "Download the result" })).toHaveAttribute(
      "href",
      "/api/scoring/runs/r1/result",
    );
    await userEvent.click(screen.getByRole("button", { name: "Try again what failed" }));
    await waitFor(() => expect(asked.some((one) => one.url.endsWith("/control"))).toBe(true));
  });
});
