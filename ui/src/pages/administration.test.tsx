import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it } from "vitest";
import type { Tenant } from "@/api/types";
import { dismissNotices } from "@/shell/notices";
import { renderAt } from "@/test/render";
import { AROUND, camera, event, NOW } from "@/test/samples";
import { failing, serve } from "@/test/server";

const SNOOZE = {
  ...{ snooze_uuid: "z1", site: "main", camera_id: "entrance", receiver_uuid: null, receiver_name: null },
  ...{ until: Date.now() + 3_600_000, reason: "works", by: "guard", created_at: NOW },
};
const WORKER = {
  ...{ worker_id: "shop-2", site: "main", labels: {}, version: "1", used: 1, slots: 10, is_connected: true },
  ...{ is_draining: false, last_seen_at: NOW },
};
const TENANT: Tenant = {
  ...{ tenant_uuid: "t1", name: "Harbour", is_home: false, disabled: false, erasing_at: null, created_at: NOW },
  ...{ erased_rows: 0, erased_objects: 0 },
  quotas: [{ quota: "cameras_max", used: 9, most: 10, is_short: true }],
};

const bodyOf = async (asked: Request[], method: string, path: string) => {
  await waitFor(() => expect(asked.some((one) => one.method === method && one.url.endsWith(path))).toBe(true));
  return asked.findLast((one) => one.method === method && one.url.endsWith(path))?.json();
};

afterEach(dismissNotices);

describe("silence", () => {
  it("is listed, ended and brought back", async () => {
    const asked = serve({
      ...AROUND,
      "GET /api/snoozes": { snoozes: [SNOOZE] },
      "DELETE /api/snoozes/z1": null,
      "POST /api/snoozes": SNOOZE,
    });
    await renderAt("/deliveries/snoozes");
    await userEvent.click(await screen.findByRole("button", { name: "End: Camera entrance" }));
    await userEvent.click(await screen.findByRole("button", { name: "Undo" }));
    const body = await bodyOf(asked, "POST", "/api/snoozes");
    expect(body).toMatchObject({ camera_id: "entrance", reason: "works" });
    expect(body.duration_sec).toBeGreaterThan(3000);
  });

  it("is asked for at a camera", async () => {
    const asked = serve({
      ...AROUND,
      "GET /api/cameras/entrance": camera(),
      "GET /api/workers": { workers: [WORKER], next_after: null },
      "POST /api/snoozes": SNOOZE,
      "POST /api/cameras/entrance/pin": { camera_id: "entrance", worker_id: "shop-1" },
    });
    await renderAt("/cameras/entrance");
    await userEvent.click(await screen.findByRole("button", { name: "Silence" }));
    const dialog = screen.getByRole("dialog");
    await userEvent.selectOptions(within(dialog).getByLabelText("For"), "4 hours");
    await userEvent.click(within(dialog).getByRole("button", { name: "Silence" }));
    expect(await bodyOf(asked, "POST", "/api/snoozes")).toEqual({
      ...{ camera_id: "entrance", duration_sec: 14_400, reason: "" },
    });
    await userEvent.selectOptions(await screen.findByLabelText("Worker"), "shop-2");
    await userEvent.click(screen.getByRole("button", { name: "Pin" }));
    expect(await bodyOf(asked, "POST", "/pin")).toEqual({ worker_id: "shop-2" });
    expect(await screen.findByText("Pinned to shop-2")).toBeVisible();
  });
});

describe("the rules of telling", () => {
  it("are tried on an event that happened", async () => {
    const previewed = {
      ...{ receiver_uuid: "r1", name: "office", kind: "slack", verdict: "quiet_hours", rule: "Night" },
      ...{ why: { id: "quiet_hours", label_ja: "静かな時間", label_en: "Quiet hours" }, until: null, held_back: 2 },
      ...{ language: "en", title: "Person detected", lines: ["Entrance"] },
    };
    serve({
      ...AROUND,
      "GET /api/notify/rules": { rules: [] },
      "GET /api/receivers": { receivers: [] },
      "GET /api/events": { events: [event()], next_before: null },
      "GET /api/notify/preview": { event_uuid: "e1", receivers: [previewed] },
    });
    await renderAt("/deliveries/rules");
    const list = await screen.findByRole("list", { name: "What each receiver would get" });
    expect(list).toHaveTextContent("officenot told");
    expect(list).toHaveTextContent("Quiet hours · Rule: Night · 2 held back");
    expect(list).toHaveTextContent("Person detected");
  });
});

describe("a file with cameras", () => {
  it("is checked, its mistakes are named by line, and the good ones are added", async () => {
    const row = { where: "2", camera_id: "yard", action: "add", message: "" };
    const problem = { where: "line 3", line: 3, column: "url", message: "This is no address." };
    const asked = serve({
      ...AROUND,
      "POST /api/imports": async (request: Request) => {
        const { dry_run } = await request.clone().json();
        return { cameras: [{ ...row, action: dry_run ? "add" : "added" }], problems: [problem], notes: [] };
      },
    });
    await renderAt("/cameras/import");
    await userEvent.click(await screen.findByLabelText("Or paste what is in it"));
    await userEvent.paste("camera_id,url\nyard,rtsp://192.0.2.1/\nx,y");
    await userEvent.click(screen.getByRole("button", { name: "Check" }));
    expect(await screen.findByRole("table", { name: "1 mistake" })).toHaveTextContent(
      "Line3ColumnurlWhatThis is no address.",
    );
    const add = screen.getByRole("button", { name: "Add 1 camera" });
    expect(add).toBeDisabled();
    await userEvent.click(screen.getByLabelText("Leave out lines with mistakes and add the others"));
    await userEvent.click(add);
    expect(await screen.findByText("1 camera was added")).toBeVisible();
    expect(await bodyOf(asked, "POST", "/api/imports")).toMatchObject({
      format: "csv",
      skip_bad: true,
      dry_run: false,
    });
  });
});

describe("settings", () => {
  it("set flags and the quota", async () => {
    const asked = serve({
      ...AROUND,
      "GET /api/quota": { cameras_running_max: 10, running: 4 },
      "POST /api/quota": { cameras_running_max: null, running: 4 },
      "GET /api/flags": { flags: [{ name: "assignment.style", site: null, value: "pack", updated_at: NOW }] },
      "POST /api/flags": { flags: [] },
    });
    await renderAt("/settings/features");
    expect(await screen.findByText("4 of 10")).toBeVisible();
    const most = screen.getByLabelText("At most (empty: any number)");
    await userEvent.clear(most);
    await userEvent.click(screen.getAllByRole("button", { name: "Set" })[0] as HTMLElement);
    expect(await bodyOf(asked, "POST", "/api/quota")).toEqual({ cameras_running_max: null });
    await userEvent.click(await screen.findByRole("button", { name: /^As usual again: How cameras/ }));
    expect(await bodyOf(asked, "POST", "/api/flags")).toEqual({
      ...{ name: "assignment.style", site: null, value: null },
    });
  });

  it("add a tenant, show its link once, and say what is nearly full", async () => {
    const asked = serve({
      ...AROUND,
      "GET /api/tenants": { tenants: [TENANT], next_after: null },
      "POST /api/tenants": {
        tenant: TENANT,
        password_link: { url: "https://house/password#token=x", expires_at: NOW },
      },
    });
    await renderAt("/settings/tenants");
    expect(await screen.findByText(/nearly full/)).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: "Add a tenant" }));
    const dialog = screen.getByRole("dialog");
    await userEvent.click(within(dialog).getByLabelText("Name"));
    await userEvent.paste("Harbour");
    await userEvent.click(within(dialog).getByLabelText("Login of its administrator"));
    await userEvent.paste("boss");
    await userEvent.click(within(dialog).getByRole("button", { name: "Add" }));
    expect(await bodyOf(asked, "POST", "/api/tenants")).toMatchObject({
      name: "Harbour",
      admin: "boss",
      site: "main",
    });
    expect(await within(dialog).findByDisplayValue("https://house/password#token=x")).toBeVisible();
  });

  it("are all there, page by page", async () => {
    serve({
      ...AROUND,
      "GET /api/tenants": (request: Request) =>
        new URL(request.url).searchParams.get("after") === "Harbour"
          ? { tenants: [{ ...TENANT, tenant_uuid: "t2", name: "Yard" }], next_after: null }
          : { tenants: [TENANT], next_after: "Harbour" },
    });
    await renderAt("/settings/tenants");
    await userEvent.click(await screen.findByRole("button", { name: "Load more" }));
    expect(await screen.findByText("Yard")).toBeVisible();
    expect(screen.getByText("Harbour")).toBeVisible();
  });

  it("make a link for an administrator of a tenant who lost the way in", async () => {
    const asked = serve({
      ...AROUND,
      "GET /api/tenants": {
        tenants: [TENANT, { ...TENANT, tenant_uuid: "t2", name: "Attic", disabled: true }],
        next_after: null,
      },
      "POST /api/tenants/t1/admin-link": {
        login: "boss",
        made: false,
        password_link: { url: "https://house/password#token=y", expires_at: NOW },
      },
    });
    await renderAt("/settings/tenants");
    // Nobody of a tenant that is switched off gets in.
    expect(await screen.findByRole("button", { name: "Administrator's link: Attic" })).toBeDisabled();
    await userEvent.click(screen.getByRole("button", { name: "Administrator's link: Harbour" }));
    const dialog = screen.getByRole("dialog");
    await userEvent.click(within(dialog).getByLabelText("Login of its administrator"));
    await userEvent.paste("boss");
    await userEvent.click(within(dialog).getByRole("button", { name: "Make the link" }));
    expect(await bodyOf(asked, "POST", "/api/tenants/t1/admin-link")).toEqual({ login: "boss" });
    expect(await within(dialog).findByDisplayValue("https://house/password#token=y")).toBeVisible();
    expect(within(dialog).getByText("It is for the administrator boss.")).toBeVisible();
  });

  it("take a vocabulary from a file, and say what is wrong with it", async () => {
    serve({
      ...AROUND,
      "GET /api/vocabulary/versions": { versions: [] },
      "POST /api/vocabulary": failing(422, "bad_vocabulary", "tags[3] has no label"),
    });
    await renderAt("/settings/vocabulary");
    const field = await screen.findByLabelText("Vocabulary file (JSON)");
    await userEvent.upload(field, new File(["{"], "words.json", { type: "application/json" }));
    expect(await screen.findByText("This can't be read as JSON")).toBeVisible();
    expect(screen.getByText("words.json")).toBeVisible();
    await userEvent.upload(field, new File(["{}"], "words.json", { type: "application/json" }));
    expect(await screen.findByText(/tags\[3\] has no label/)).toBeVisible();
  });
});
