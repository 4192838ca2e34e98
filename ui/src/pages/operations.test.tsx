import { act, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it } from "vitest";
import type { Job, Lease, SystemStatus, Worker } from "@/api/types";
import { dismissNotices } from "@/shell/notices";
import { FakeSocket } from "@/test/media";
import { renderAt } from "@/test/render";
import { AROUND, NOW } from "@/test/samples";
import { failing, serve } from "@/test/server";
import { askedJobs } from "./queue";

const WORKER: Worker = {
  ...{ worker_id: "shop-1", site: "main", status: "ok", version: "1.0", slots: 20, used: 3, cpu: 4, gpu: 0, mem: 1 },
  ...{
    labels: { gpu: "no" },
    is_connected: true,
    is_draining: false,
    last_seen_at: NOW,
    metrics: {},
    metrics_at: null,
  },
};
const LEASE: Lease = {
  ...{ camera_id: "entrance", site: "main", worker_id: "shop-1", generation: 2, state: "ACTIVE", reason: "" },
  ...{ granted_at: NOW, expires_at: NOW, left_ms: 24_200, is_holder_connected: false, is_orphaned_soon: true },
  ...{ is_stopping: false, failures: 2, auth_failures: 0, next_attempt_at: null },
};
const JOB: Job = {
  ...{
    frame_uuid: "f1",
    camera_id: "entrance",
    camera_name: "Entrance",
    status: "dead",
    attempt: 5,
    reason: "timeout",
  },
  ...{ error: "no answer in 10 s", captured_at: NOW, created_at: NOW, available_at: null, finished_at: NOW },
};
const SITES = { sites: [{ name: "main", cameras: 1, workers: 1, site_uuid: "s", created_at: 0, timezone: "UTC" }] };
const STATUS: SystemStatus = {
  ...{ now: NOW, version: "1.2", store: "sqlite", cameras: 3, health: { up: 2, down: 1 }, sessions: {} },
  ...{ unfinished_jobs: { queued: 4 }, recent_jobs: {}, open_events: 1, ready: false, checks: { database: "away" } },
  ...{ healthy: true, cpu_percent: 12, memory_percent: 34, load_warnings: [], active_modals: 0 },
  ...{ modal_budget: 35, modal_budget_remaining: 12, modal_requests_24h: 40, modal_rejections_24h: 7 },
  suggest_active: false,
  analyzer: { standing: "stalled", last_done_at: null, oldest_waiting_at: NOW, last_error_kind: "timeout" },
};

afterEach(dismissNotices);

describe("workers", () => {
  const answers = {
    ...AROUND,
    "GET /api/workers": { workers: [WORKER], next_after: null },
    "GET /api/leases": { leases: [LEASE], next_after: null, ttl_ms: 30_000 },
    "GET /api/quota": { cameras_running_max: 10, running: 3 },
    "GET /api/sites": SITES,
  };

  it("that are not there are enrolled from where that is said", async () => {
    serve({ ...answers, "GET /api/workers": { workers: [], next_after: null } });
    await renderAt("/workers");
    await screen.findByText("There are no workers");
    await userEvent.click(screen.getAllByRole("button", { name: "Enrol a worker" }).at(-1) as HTMLElement);
    expect(await screen.findByRole("dialog", { name: "Enrol a worker" })).toBeVisible();
  });

  it("are all there, page by page", async () => {
    serve({
      ...answers,
      "GET /api/workers": (request: Request) =>
        new URL(request.url).searchParams.get("after") === WORKER.worker_id
          ? { workers: [{ ...WORKER, worker_id: "yard-1" }], next_after: null }
          : { workers: [WORKER], next_after: WORKER.worker_id },
    });
    await renderAt("/workers");
    await userEvent.click(await screen.findByRole("button", { name: "Load more" }));
    expect(await screen.findByText("yard-1")).toBeVisible();
    expect(screen.getAllByText(WORKER.worker_id)[0]).toBeVisible();
  });

  it("show what they hold, for how long, and what is wrong", async () => {
    serve(answers);
    await renderAt("/workers");
    expect(await screen.findByText("3 of 20")).toBeVisible();
    const leases = await screen.findByRole("table", { name: "List of leases" });
    expect(await within(leases).findByText("25 s")).toBeVisible();
    expect(within(leases).getByText("worker is away")).toBeVisible();
    expect(within(leases).getByText("2 failures")).toBeVisible();
    expect(screen.getByRole("meter", { name: "Cameras running at once" })).toHaveAttribute("aria-valuenow", "3");
  });

  it("are asked for again when the feed tells of them, and jobs when pictures come", async () => {
    const asked = serve({
      ...answers,
      "GET /api/jobs": { jobs: [], next_before: null },
      "GET /api/jobs/counts": { statuses: {}, reasons: {} },
    });
    const times = (path: string) => asked.filter((one) => new URL(one.url).pathname === path).length;
    const feed = () => FakeSocket.opened.find((one) => one.address.includes("/api/feed") && !one.closed);
    FakeSocket.opened = [];
    const shown = await renderAt("/workers", FakeSocket);
    await screen.findByText("3 of 20");
    act(() => feed()?.says({ type: "ping", last_seq: 1 }));
    await waitFor(() => expect(times("/api/workers")).toBe(2));
    act(() => feed()?.says({ type: "system", last_seq: 1 }));
    await waitFor(() => expect([times("/api/workers"), times("/api/leases")]).toEqual([3, 3]));
    shown.unmount();

    FakeSocket.opened = [];
    await renderAt("/queue", FakeSocket);
    await waitFor(() => expect(times("/api/jobs")).toBe(1));
    act(() => feed()?.says({ type: "ping", last_seq: 1 }));
    await waitFor(() => expect(times("/api/jobs")).toBe(2));
    const change = { seq: 2, kind: "frame", at: 1, site: null, camera_id: "entrance", object: "f1" };
    act(() => feed()?.says({ type: "changes", changes: [change], last_seq: 2, live: true }));
    await waitFor(() => expect(times("/api/jobs")).toBe(3), { timeout: 3000 });
  });

  it("tell why a camera is held as it is", async () => {
    serve({
      ...answers,
      "GET /api/cameras/entrance/why": {
        camera_id: "entrance",
        lines: [{ code: "held", text_ja: "shop-1 が持っています", text_en: "shop-1 holds it", values: {} }],
      },
    });
    await renderAt("/workers");
    expect(await screen.findByText("running")).toHaveAttribute("title", "ACTIVE");
    await userEvent.click(screen.getByRole("button", { name: "Why: entrance" }));
    expect(await screen.findByText("shop-1 holds it")).toBeVisible();
  });

  it("are drained with a way back, and revoked only by name", async () => {
    const asked = serve({
      ...answers,
      "POST /api/workers/shop-1/drain": { ...WORKER, is_draining: true },
      "POST /api/workers/shop-1/undrain": WORKER,
    });
    await renderAt("/workers");
    await userEvent.click(await screen.findByRole("button", { name: "Drain: shop-1" }));
    await userEvent.click(await screen.findByRole("button", { name: "Undo" }));
    await waitFor(() => expect(asked.filter((one) => one.url.endsWith("/undrain"))).toHaveLength(1));
    await userEvent.click(screen.getByRole("button", { name: "Revoke: shop-1" }));
    expect(within(screen.getByRole("dialog")).getByRole("button", { name: "Revoke" })).toBeDisabled();
  });

  it("are enrolled by a token that is shown once", async () => {
    serve({
      ...answers,
      "POST /api/workers/enrolments": {
        token: "one-time",
        ca_sha256: "ab",
        expires_at: NOW,
        site: "main",
        worker_id: null,
      },
    });
    await renderAt("/workers");
    await userEvent.click(await screen.findByRole("button", { name: "Enrol a worker" }));
    await userEvent.click(screen.getByRole("button", { name: "Make a token" }));
    expect(await screen.findByDisplayValue("one-time")).toBeVisible();
  });

  it("give a camera back, and the outcome is told", async () => {
    const asked = serve({ ...answers, "POST /api/leases/reclaim": { outcome: "reclaimed", lease: LEASE } });
    await renderAt("/workers");
    await userEvent.click(await screen.findByRole("button", { name: "Reclaim: entrance" }));
    await userEvent.click(within(screen.getByRole("dialog")).getByRole("button", { name: "Reclaim" }));
    expect(await screen.findByText("It was taken back")).toBeVisible();
    expect(await asked.find((one) => one.method === "POST")?.json()).toEqual({ camera_id: "entrance", force: false });
  });
});

describe("the queue", () => {
  const answers = {
    ...AROUND,
    "GET /api/jobs": { jobs: [JOB], next_before: null },
    "GET /api/jobs/counts": { statuses: { dead: 1 }, reasons: { timeout: 1 } },
    "GET /api/jobs/status": {
      ...{ now: NOW, standing: "stalled", unfinished_jobs: {}, last_done_at: null, oldest_waiting_at: NOW },
      analyzers: [
        {
          ...{ url: "http://127.0.0.1:9", dispatcher: "d", state: "away", concurrency: 4, in_flight: 0 },
          ...{ latency_ms: null, seen_at: NOW, last_error: "refused" },
        },
      ],
    },
  };

  it.each([
    ["", { status: ["dead"] }],
    ["state=all", {}],
    ["state=queued&camera=gate", { status: ["queued"], camera_id: ["gate"] }],
    ["state=nonsense", { status: ["dead"] }],
  ])("%s", (address, asked) => {
    expect(askedJobs(new URLSearchParams(address))).toEqual(asked);
  });

  it("shows why something was given up, and queues it again", async () => {
    serve({ ...answers, "POST /api/jobs/f1/requeue": { ...JOB, status: "queued" } });
    await renderAt("/queue");
    expect(await screen.findByText("it took too long")).toBeVisible();
    expect(await screen.findByText("refused")).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: "Try again: Entrance" }));
    expect(await screen.findByText("1 job queued again")).toBeVisible();
  });

  it("queues all again when asked twice, and says what went wrong", async () => {
    serve({ ...answers, "POST /api/jobs/requeue": failing(503, "store_busy", "busy") });
    await renderAt("/queue");
    await waitFor(() => expect(screen.getByRole("button", { name: "Try all given up again" })).toBeEnabled());
    await userEvent.click(screen.getByRole("button", { name: "Try all given up again" }));
    await userEvent.click(within(screen.getByRole("dialog")).getByRole("button", { name: "Try again" }));
    expect(await screen.findByText("busy (Code: store_busy)")).toBeVisible();
  });
});

describe("the system", () => {
  it("says what is not well, and how long the disk will do", async () => {
    serve({
      ...AROUND,
      "GET /api/system/status": STATUS,
      "GET /api/retention": {
        ...{ days: {}, camera_max_bytes: 0, tenant_max_bytes: 0, free_bytes: 5e9, free_min_bytes: 1e9, cameras: [] },
        ...{ kept: [], sweeps: [], grown_bytes_a_day: 2e8, days_until_floor: 20.4, counted_at: NOW },
        ...{ round_ended_at: NOW, round_wanted_at: null },
      },
      "GET /api/statistics": { by: "hour", from_at: NOW, to_at: NOW, buckets: [] },
    });
    await renderAt("/system");
    expect(await screen.findByText("Not ready")).toBeVisible();
    expect(screen.getByText("away")).toBeVisible();
    expect(screen.getByText("stalled")).toBeVisible();
    expect(await screen.findByText("The floor is reached in about 20 days")).toBeVisible();
    expect(await screen.findByText("Nothing was counted yet")).toBeVisible();
    expect(screen.getByRole("meter", { name: "Stream units" })).toHaveAttribute("aria-valuetext", "23 of 35 in use");
    expect(screen.getByText("40, 7 refused")).toBeVisible();
  });
});
