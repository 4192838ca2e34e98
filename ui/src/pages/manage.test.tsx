import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it } from "vitest";
import type { Delivery, NotifyRule, Receiver, User } from "@/api/types";
import { objectPage } from "@/display/audit";
import { keptConfig, RECEIVER_FIELDS, receiverValues } from "@/display/receiver-kinds";
import { asked, moved, weekday } from "@/display/rules";
import { dateAndTime, startOfDay } from "@/display/times";
import { ja } from "@/i18n/pages/deliveries";
import { rolesUpTo } from "@/settings/people";
import { dismissNotices } from "@/shell/notices";
import { renderAt } from "@/test/render";
import { ADMIN, AROUND, camera, NOW, SESSION } from "@/test/samples";
import { failing, serve } from "@/test/server";
import { askedAudit } from "./audit";

const DELIVERY: Delivery = {
  ...{ delivery_uuid: "d1", kind: "notify", status: "dead", attempt: 12, created_at: NOW, available_at: NOW },
  ...{ camera_id: "entrance", event_uuid: "e1", frame_uuid: null, parent_uuid: null, site: "main", result: null },
  ...{ receiver_uuid: "r1", receiver_name: "office", receiver_kind: "slack", finished_at: NOW },
  ...{ last_error: "404 no such channel", reason: "" },
};
const RECEIVER: Receiver = {
  ...{ receiver_uuid: "r1", name: "office", kind: "slack", enabled: true, language: "en", hourly_cap: null },
  ...{ config: { channel: "#cams", picture: true }, secrets: { webhook_url: { is_set: true } } },
  ...{ created_at: NOW, updated_at: NOW, last_ok_at: null, last_error: null, last_error_at: null },
};
const RULE: NotifyRule = {
  ...{ rule_uuid: "u1", name: "Night", enabled: true, sites: null, camera_ids: null, primary_events: null },
  ...{ min_severity: 2, receivers: ["r1"], gone: 0, created_at: NOW, updated_at: NOW },
  quiet: { from: "22:00", to: "06:00", days: [0], through_severity: 3 },
};
const USER: User = {
  ...{ user_uuid: "p1", login: "guard", display_name: "Guard", role: "viewer", language: "ja", disabled: false },
  ...{ grants: null, has_password: true, oidc_subject: null, created_at: NOW, last_seen_at: null },
};
const SITES = { sites: [{ name: "main", cameras: 1, workers: 1, site_uuid: "s", created_at: 0, timezone: "UTC" }] };

afterEach(dismissNotices);

describe("deliveries", () => {
  const answers = {
    ...AROUND,
    "GET /api/deliveries": { deliveries: [DELIVERY], next_before: null },
    "GET /api/receivers": { receivers: [RECEIVER] },
    "GET /api/notify/rules": { rules: [RULE, { ...RULE, rule_uuid: "u2", name: "Rest" }] },
  };

  it("that were given up say why, and are sent again", async () => {
    const sent = serve({ ...answers, "POST /api/deliveries/d1/requeue": { ...DELIVERY, status: "queued" } });
    await renderAt("/deliveries");
    expect(await screen.findByText("404 no such channel")).toBeVisible();
    expect(sent.some((one) => one.url.includes("status=dead"))).toBe(true);
    await userEvent.click(screen.getByRole("button", { name: "Try again: office" }));
    expect(await screen.findByText("1 delivery queued again")).toBeVisible();
  });

  it("are tried by a test, and what became of it is told", async () => {
    serve({
      ...answers,
      "POST /api/receivers/r1/test": { delivery_uuid: "d9" },
      "GET /api/deliveries/d9": { ...DELIVERY, status: "delayed" },
    });
    await renderAt("/deliveries/receivers");
    await userEvent.click(await screen.findByRole("button", { name: "Send a test: office" }));
    const results = await screen.findByRole("list", { name: "What became of the test" });
    expect(await within(results).findByText("It did not arrive: 404 no such channel")).toBeVisible();
  });

  it("lose what is emptied in a receiver's form, and keep what it does not ask for", async () => {
    const sent = serve({
      ...answers,
      "GET /api/receivers": {
        receivers: [{ ...RECEIVER, kind: "email", config: { host: "mail", port: 25, later: "x" } }],
      },
      "PATCH /api/receivers/r1": RECEIVER,
    });
    await renderAt("/deliveries/receivers");
    await userEvent.click(await screen.findByRole("button", { name: "Change: office" }));
    const dialog = screen.getByRole("dialog");
    await userEvent.clear(within(dialog).getByLabelText("Port (optional)"));
    await userEvent.selectOptions(within(dialog).getByLabelText("Encryption"), "TLS from the first byte");
    await userEvent.type(within(dialog).getByLabelText("Sender"), "a@b.c");
    await userEvent.type(within(dialog).getByLabelText("To (separated by spaces)"), "d@e.f");
    await userEvent.click(within(dialog).getByRole("button", { name: "Save" }));
    await waitFor(() => expect(sent.some((one) => one.method === "PATCH")).toBe(true));
    const config = (await sent.find((one) => one.method === "PATCH")?.json())?.config;
    expect(config).toMatchObject({ host: "mail", later: "x", security: "tls", sender: "a@b.c", to: ["d@e.f"] });
    expect(config).not.toHaveProperty("port");
    expect(keptConfig("folder", { path: "/a", more: 1 })).toEqual({ more: 1 });
  });

  it("have receivers whose secrets are kept unless they are written", async () => {
    const sent = serve({ ...answers, "PATCH /api/receivers/r1": RECEIVER });
    await renderAt("/deliveries/receivers");
    await userEvent.click(await screen.findByRole("button", { name: "Change: office" }));
    const dialog = screen.getByRole("dialog");
    expect(within(dialog).getByText("It is set. Fill it in only to change it")).toBeVisible();
    await userEvent.click(within(dialog).getByRole("button", { name: "Save" }));
    await waitFor(() => expect(sent.some((one) => one.method === "PATCH")).toBe(true));
    const body = await sent.find((one) => one.method === "PATCH")?.json();
    expect([body.secrets, body.config.channel]).toEqual([{}, "#cams"]);
  });

  it("have forms with words for every field", () => {
    const names = Object.values(RECEIVER_FIELDS).flatMap((fields) => fields.map((field) => field.name));
    for (const name of names) expect(ja.field, name).toHaveProperty(name);
    expect(
      receiverValues("email", { host: "mail", port: "25", to: "a@b.c, d@e.f", sender: "", picture: "on" }),
    ).toEqual({
      config: { host: "mail", port: 25, to: ["a@b.c", "d@e.f"], picture: true, summaries: false, signed_link: false },
      secrets: {},
    });
  });

  it("follow rules that are moved, and removed with a way back", async () => {
    const sent = serve({
      ...answers,
      "POST /api/notify/rules/order": { rules: [] },
      "DELETE /api/notify/rules/u1": null,
      "POST /api/notify/rules": RULE,
    });
    await renderAt("/deliveries/rules");
    await userEvent.click(await screen.findByRole("button", { name: "Down: Night" }));
    await waitFor(() => expect(sent.some((one) => one.url.endsWith("/order"))).toBe(true));
    expect(await sent.find((one) => one.url.endsWith("/order"))?.json()).toEqual({ rule_uuids: ["u2", "u1"] });
    await userEvent.click(screen.getByRole("button", { name: "Remove: Night" }));
    await userEvent.click(within(screen.getByRole("dialog")).getByRole("button", { name: "Remove" }));
    await userEvent.click(await screen.findByRole("button", { name: "Undo" }));
    // Back in its place, and not at the end.
    await waitFor(() => expect(sent.filter((one) => one.url.endsWith("/order"))).toHaveLength(2));
    expect(await sent.findLast((one) => one.url.endsWith("/order"))?.json()).toEqual({ rule_uuids: ["u1", "u2"] });
    expect(moved(["a", "b", "c"], 2, -1)).toEqual(["a", "c", "b"]);
    expect(asked(RULE)).not.toHaveProperty("gone");
    expect([weekday(0, "en"), weekday(6, "ja")]).toEqual(["Mon", "日"]);
  });

  it("get a new rule for all cameras and all receivers", async () => {
    const sent = serve({ ...answers, "POST /api/notify/rules": RULE });
    await renderAt("/deliveries/rules");
    await userEvent.click(await screen.findByRole("button", { name: "Add a rule" }));
    const dialog = screen.getByRole("dialog");
    await userEvent.type(within(dialog).getByLabelText("Name"), "All");
    await userEvent.click(within(dialog).getByRole("button", { name: "Save" }));
    await waitFor(() => expect(sent.some((one) => one.method === "POST")).toBe(true));
    expect(await sent.find((one) => one.method === "POST")?.json()).toEqual({
      ...{ name: "All", enabled: true, min_severity: 1, camera_ids: null, receivers: null, quiet: null },
      ...{ primary_events: null, sites: null },
    });
  });
});

describe("notifications among the settings", () => {
  const other = { ...RECEIVER, receiver_uuid: "r2", name: "guard", kind: "email" as const };
  const answers = {
    ...AROUND,
    "GET /api/receivers": { receivers: [RECEIVER, other, { ...RECEIVER, receiver_uuid: "r3", enabled: false }] },
    "GET /api/notify/rules": { rules: [RULE, { ...RULE, rule_uuid: "u2", name: "Rest", receivers: null }] },
    "GET /api/sites": { sites: [...SITES.sites, { ...SITES.sites[0], name: "dock", site_uuid: "s2" }] },
    "GET /api/events": { events: [], next_before: null },
  };

  it("hold receivers and rules, and say of each receiver what became of a rule's test", async () => {
    const sent = serve({
      ...answers,
      "POST /api/receivers/r1/test": { delivery_uuid: "d1" },
      "POST /api/receivers/r2/test": failing(409, "conflict", "it has no address"),
      "GET /api/deliveries/d1": { ...DELIVERY, status: "done" },
    });
    await renderAt("/settings/notifications");
    expect(await screen.findByRole("button", { name: "Send a test: guard" })).toBeVisible();
    await userEvent.click(await screen.findByRole("button", { name: "Send a test: Rest" }));
    const dialog = screen.getByRole("dialog", { name: "Test: Rest" });
    expect(await within(dialog).findByText("It arrived")).toBeVisible();
    expect(await within(dialog).findByText("It did not arrive: it has no address")).toBeVisible();
    expect(sent.some((one) => one.url.includes("r3"))).toBe(false); // it is off
    await userEvent.click(within(dialog).getAllByRole("button", { name: "Close" })[1] as HTMLElement);
    expect(screen.queryByRole("dialog")).toBeNull();
  });

  it("narrow a rule by kinds, sites and quiet hours of some days", async () => {
    const sent = serve({ ...answers, "PATCH /api/notify/rules/u1": RULE });
    await renderAt("/settings/notifications");
    expect(await screen.findAllByText("Mon · Alarm gets through")).toHaveLength(2);
    await userEvent.click(await screen.findByRole("button", { name: "Change: Night" }));
    const dialog = screen.getByRole("dialog");
    for (const [group, option] of [
      ["Kinds", "Person detected"],
      ["Sites", "dock"],
    ] as const) {
      const choice = within(dialog).getByRole("group", { name: group });
      await userEvent.click(within(choice).getByLabelText("all"));
      await userEvent.click(within(choice).getByLabelText(option));
    }
    // The only day can't be taken away, since hours that never begin are none.
    expect(within(dialog).getByLabelText("Mon")).toBeDisabled();
    await userEvent.click(within(dialog).getByLabelText("Sun"));
    await userEvent.selectOptions(within(dialog).getByLabelText("Sent even in quiet hours"), "Nothing");
    await userEvent.click(within(dialog).getByRole("button", { name: "Save" }));
    await waitFor(() => expect(sent.some((one) => one.method === "PATCH")).toBe(true));
    expect(await sent.find((one) => one.method === "PATCH")?.json()).toEqual({
      ...{ primary_events: ["human"], sites: ["dock"] },
      quiet: { from: "22:00", to: "06:00", days: [0, 6], through_severity: null },
    });
  });

  it("warn that a first rule keeps the rest from everybody, and say that a test has nobody to go to", async () => {
    serve({ ...answers, "GET /api/notify/rules": { rules: [] }, "GET /api/receivers": { receivers: [] } });
    const { unmount } = await renderAt("/settings/notifications");
    await userEvent.click(await screen.findByRole("button", { name: "Add a rule" }));
    expect(screen.getByText(/what does not fit it is told to nobody/)).toBeVisible();
    unmount();
    serve({ ...answers, "GET /api/receivers": { receivers: [] } });
    await renderAt("/settings/notifications");
    await userEvent.click(await screen.findByRole("button", { name: "Send a test: Night" }));
    expect(screen.getByText("No receiver is switched on.")).toBeVisible();
  });
});

describe("the audit log", () => {
  const entry = {
    ...{ entry_id: 1, at: NOW, who: "owner", actor_kind: "user", action: "camera_added", object_kind: "camera" },
    ...{ object_id: "gate", object_name: null, address: "192.0.2.1", details: { name: "Gate" }, batch_no: null },
  };
  const answers = { ...AROUND, "GET /api/audit": { entries: [entry], next_before: null } };

  it("is asked for as the address says", () => {
    expect(askedAudit(new URLSearchParams("who=owner&from=2026-02-03&to=nonsense"))).toEqual({
      who: "owner",
      from: startOfDay("2026-02-03"),
    });
  });

  it.each([
    ["event", "e1", "/events/e1"],
    ["camera", "a/b", "/cameras/a%2Fb"],
    ["case", "", null],
    ["password", "p1", null],
  ])("knows where %s %s is: %s", (kind, id, page) => {
    expect(objectPage(kind, id)).toBe(page);
  });

  it("says what was done in words where it has them", async () => {
    const other = { ...entry, entry_id: 2, action: "something_else", details: { rows: 3, why: "later" } };
    const about = { object_kind: "user", object_id: "5", object_name: "kato" };
    const out = { ...entry, ...about, entry_id: 3, action: "sign_out", details: null };
    serve({ ...answers, "GET /api/audit": { entries: [entry, other, out], next_before: null } });
    await renderAt("/audit");
    expect(await screen.findByText("Camera added")).toBeVisible();
    expect(screen.getByText("Signed out")).toBeVisible();
    expect(screen.getByText("kato")).toBeVisible();
    expect(screen.getByText("something_else")).toBeVisible();
    expect(screen.getByText("rows: 3 · why: later")).toBeVisible();
    expect(screen.getAllByRole("link", { name: "Camera" })[0]).toHaveAttribute("href", "/cameras/gate");
  });

  it("says what became of it in words where it has them", async () => {
    const details = { role: "viewer", role_before: "site_manager", all_sites: 0, disabled: 1, sites: "north, yard" };
    const user = { ...entry, action: "user_changed", object_kind: "user", details };
    const snooze = { ...entry, entry_id: 2, action: "snoozed", object_kind: "snooze", details: { until: NOW } };
    serve({ ...answers, "GET /api/audit": { entries: [user, snooze], next_before: null } });
    await renderAt("/audit");
    const told = "role: viewer · role before: site_manager · all sites: no · switched off: yes · sites: north, yard";
    expect(await screen.findByText(told)).toBeVisible();
    expect(screen.getByText(`until: ${dateAndTime(NOW, "en")}`)).toBeVisible();
  });

  it("is verified part by part", async () => {
    serve({
      ...answers,
      "POST /api/audit/verify": async (request: Request) => ({
        ...{ batches: 1, entries: 5, findings: [], key_id: "k" },
        next_after: (await request.clone().json()).after_batch === 0 ? 7 : null,
      }),
    });
    await renderAt("/audit");
    expect(await screen.findByText("camera_added")).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: "Verify" }));
    expect(await screen.findByText("10 entries verified. Nothing was changed.")).toBeVisible();
  });

  it("names what is wrong and what to do", async () => {
    const finding = { batch_no: 1, entry_ids: [1], wrong: "forged", message: "forged!", what_to_do: "look" };
    serve({
      ...answers,
      "POST /api/audit/verify": { batches: 1, entries: 5, findings: [finding], key_id: "k", next_after: null },
    });
    await renderAt("/audit");
    await userEvent.click(await screen.findByRole("button", { name: "Verify" }));
    expect(await screen.findByText("forged!")).toBeVisible();
    expect(screen.getByText("look")).toBeVisible();
  });
});

describe("settings", () => {
  const answers = {
    ...AROUND,
    "GET /api/users": { users: [USER], next_after: null },
    "GET /api/sites": SITES,
    "GET /api/tokens": { tokens: [], next_after: null },
    "GET /api/sessions": { sign_ins: [] },
    "GET /api/vocabulary/versions": {
      versions: [{ schema_version: "2", is_active: false, created_at: NOW, activated_at: null }],
    },
    "GET /api/settings": {
      settings: [{ section: "web", key: "port", value: 8080, source: "default", doc: "Where it listens" }],
      warnings: ["careful"],
    },
  };

  it("are only those that somebody may see", async () => {
    serve({ ...answers, "GET /api/session": SESSION });
    await renderAt("/settings/people");
    // Not theirs: they come to their own ones instead.
    expect(await screen.findByText("For this browser only.")).toBeVisible();
    expect(screen.queryByRole("link", { name: "People" })).toBeNull();
    expect(rolesUpTo("tenant_admin")).toEqual(["viewer", "site_manager", "tenant_admin"]);
  });

  it("add people and show their link once", async () => {
    const sent = serve({
      ...answers,
      "GET /api/session": ADMIN,
      "POST /api/users": { user: USER, password_link: { url: "https://house/password#token=x", expires_at: NOW } },
    });
    await renderAt("/settings/people");
    await userEvent.click(await screen.findByRole("button", { name: "Add somebody" }));
    const dialog = screen.getByRole("dialog");
    await userEvent.type(within(dialog).getByLabelText("Login"), "guard");
    await userEvent.click(within(dialog).getByRole("button", { name: "Save" }));
    expect(await screen.findByDisplayValue("https://house/password#token=x")).toBeVisible();
    expect(await sent.find((one) => one.method === "POST")?.json()).toMatchObject({ login: "guard", role: "viewer" });
  });

  it("hold somebody to sites and to single cameras", async () => {
    const sites = [...SITES.sites, { ...SITES.sites[0], name: "annex", site_uuid: "s2" }];
    const cameras = [camera(), camera({ camera_id: "yard", name: "Yard", site: "annex" })];
    const guard = { ...USER, grants: { sites: [], camera_ids: ["entrance"] } };
    const sent = serve({
      ...answers,
      "GET /api/session": ADMIN,
      "GET /api/sites": { sites },
      "GET /api/cameras": { cameras, next_after: null },
      "GET /api/users": { users: [guard], next_after: null },
      "PATCH /api/users/guard": guard,
    });
    await renderAt("/settings/people");
    await userEvent.click(await screen.findByRole("button", { name: "Change: Guard" }));
    const dialog = screen.getByRole("dialog");
    expect(await within(dialog).findByLabelText(`Entrance (${camera().site})`)).toBeChecked();
    await userEvent.click(within(dialog).getByLabelText("annex"));
    const yard = within(dialog).getByLabelText("Yard (annex)");
    expect(yard).toBeChecked();
    expect(yard).toBeDisabled();
    await userEvent.click(within(dialog).getByLabelText(`Entrance (${camera().site})`));
    await userEvent.click(within(dialog).getByRole("button", { name: "Save" }));
    expect(await sent.find((one) => one.method === "PATCH")?.json()).toMatchObject({
      grants: { sites: ["annex"], camera_ids: [] },
    });
  });

  it("remove somebody only by their login, and say why not", async () => {
    serve({ ...answers, "DELETE /api/users/guard": failing(409, "conflict", "the last one stays") });
    await renderAt("/settings/people");
    await userEvent.click(await screen.findByRole("button", { name: "Remove: Guard" }));
    const dialog = screen.getByRole("dialog");
    await userEvent.type(within(dialog).getByRole("textbox"), "guard");
    await userEvent.click(within(dialog).getByRole("button", { name: "Remove" }));
    expect(await screen.findByText("the last one stays (Code: conflict)")).toBeVisible();
  });

  it("make tokens with what is ticked", async () => {
    const sent = serve({ ...answers, "POST /api/tokens": { secret: "cam_secret", token: {} } });
    await renderAt("/settings/account");
    await userEvent.click(await screen.findByRole("button", { name: "Make a token" }));
    const dialog = screen.getByRole("dialog");
    await userEvent.type(within(dialog).getByLabelText("Name"), "ha");
    await userEvent.click(within(dialog).getByLabelText("Review"));
    await userEvent.click(within(dialog).getByRole("button", { name: "Make a token" }));
    expect(await screen.findByDisplayValue("cam_secret")).toBeVisible();
    expect(await sent.find((one) => one.method === "POST")?.json()).toEqual({
      name: "ha",
      days: 90,
      scopes: ["read", "review"],
    });
  });

  it("show sites, words and the configuration", async () => {
    serve(answers);
    const sites = await renderAt("/settings/sites");
    expect(await screen.findByRole("button", { name: "Change: main" })).toBeVisible();
    sites.unmount();
    const vocabulary = await renderAt("/settings/vocabulary");
    expect(await screen.findByRole("button", { name: "Use this one: 2" })).toBeVisible();
    vocabulary.unmount();
    await renderAt("/settings/configuration?name=listens");
    expect(await screen.findByText("web.port")).toBeVisible();
    expect(screen.getByText("careful")).toBeVisible();
  });
});
