import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it } from "vitest";
import type { Share } from "@/api/types";
import { dismissNotices } from "@/shell/notices";
import { renderAt } from "@/test/render";
import { ADMIN, AROUND, event, frame, NOW, SESSION } from "@/test/samples";
import { failing, serve } from "@/test/server";

const URL_ONCE = "https://house/share/secret";
const DETAIL = { ...event(), incident: null, best_frame: frame(), clip: null, llm_review: null, scores: [] };
const EVENT = {
  ...AROUND,
  "GET /api/events/e1": DETAIL,
  "GET /api/events/e1/frames": { frames: [frame()], next_after: null },
};
const NONE = { shares: [], next_before: null };

const share = (given: Partial<Share> = {}): Share => ({
  ...{ share_uuid: "s1", kind: "event", uuid: "e1", camera_id: "entrance", camera_name: "Entrance", site: "main" },
  ...{ by: "owner", note: "for the neighbour", created_at: NOW, expires_at: NOW + 86_400_000, opened_count: 3 },
  ...{ last_opened_at: NOW, ...given },
});

const openDialog = async () => {
  await renderAt("/events/e1");
  await userEvent.click(await screen.findByRole("button", { name: "Share" }));
  return screen.findByRole("dialog", { name: "Share the event" });
};

afterEach(dismissNotices);

describe("an event", () => {
  it("is shared for seven days, and the address is shown once", async () => {
    const asked = serve({ ...EVENT, "POST /api/shares": { share: share(), url: URL_ONCE } });
    const dialog = await openDialog();
    await userEvent.type(within(dialog).getByLabelText("Note (optional)"), " for the neighbour ");
    await userEvent.click(within(dialog).getByRole("button", { name: "Make the address" }));
    expect(await within(dialog).findByDisplayValue(URL_ONCE)).toBeVisible();
    expect(within(dialog).getByText(/shown only now.*Whoever has this address sees the event/)).toBeVisible();
    expect(within(dialog).getByText(/It can be opened until .*2026.*unless it is revoked/)).toBeVisible();
    expect(await asked.find((one) => one.method === "POST")?.json()).toEqual({
      ...{ kind: "event", uuid: "e1", note: "for the neighbour", ttl_sec: 7 * 86_400 },
    });
    await userEvent.click(within(dialog).getAllByRole("button", { name: "Close" })[0] as HTMLElement);
    expect(screen.queryByDisplayValue(URL_ONCE)).toBeNull();
  });

  it("is shared for longer or shorter, and until that is revoked", async () => {
    const asked = serve({ ...EVENT, "POST /api/shares": { share: share({ expires_at: null }), url: URL_ONCE } });
    const dialog = await openDialog();
    const choices = within(within(dialog).getByLabelText("For")).getAllByRole("option");
    expect(choices.map((one) => one.textContent)).toEqual(["1 day", "7 days", "30 days", "until it is revoked"]);
    await userEvent.selectOptions(within(dialog).getByLabelText("For"), "until it is revoked");
    await userEvent.click(within(dialog).getByRole("button", { name: "Make the address" }));
    expect(await within(dialog).findByText(/It can be opened until it is revoked/)).toBeVisible();
    expect(await asked.find((one) => one.method === "POST")?.json()).toMatchObject({ ttl_sec: null, note: "" });
  });

  it("of a case is not, and the server says why", async () => {
    serve({ ...EVENT, "POST /api/shares": failing(403, "forbidden", "This belongs to a case.") });
    const dialog = await openDialog();
    await userEvent.click(within(dialog).getByRole("button", { name: "Make the address" }));
    expect(await within(dialog).findByText("This belongs to a case. (Code: forbidden)")).toBeVisible();
    expect(within(dialog).getByRole("button", { name: "Make the address" })).toBeEnabled();
  });

  it("is not offered for sharing to those who may not", async () => {
    serve({ ...EVENT, "GET /api/session": { ...ADMIN, may_share: false } });
    await renderAt("/events/e1");
    expect(await screen.findByRole("button", { name: "Add to a case" })).toBeVisible();
    expect(screen.queryByRole("button", { name: "Share" })).toBeNull();
  });
});

describe("shares among the settings", () => {
  it("are listed with what, who, until when and how often", async () => {
    const picture = share({
      ...{ share_uuid: "s2", kind: "frame", uuid: "f1", note: "", expires_at: null, opened_count: 0 },
      last_opened_at: null,
    });
    serve({ ...AROUND, "GET /api/shares": { shares: [share(), picture], next_before: null } });
    await renderAt("/settings/shares");
    await screen.findByRole("link", { name: "Entrance" });
    const [, first, second] = screen.getAllByRole("row") as HTMLElement[];
    expect(within(first as HTMLElement).getByRole("link", { name: "Entrance" })).toHaveAttribute(
      "href",
      "/events/e1",
    );
    for (const text of ["Event · main", "owner", "for the neighbour", "2026", "3 times"]) {
      expect(first).toHaveTextContent(text);
    }
    // A picture has no page of its own.
    expect(within(second as HTMLElement).queryByRole("link")).toBeNull();
    for (const text of ["Picture · main", "until it is revoked", "not yet"]) expect(second).toHaveTextContent(text);
  });

  it("are revoked once that is confirmed", async () => {
    let shares = [share()];
    const asked = serve({
      ...AROUND,
      "GET /api/shares": () => ({ shares, next_before: null }),
      "DELETE /api/shares/s1": () => {
        shares = [];
        return null;
      },
    });
    await renderAt("/settings/shares");
    await userEvent.click(await screen.findByRole("button", { name: "Revoke: Entrance (for the neighbour)" }));
    const dialog = screen.getByRole("dialog", { name: "Revoke the share?" });
    expect(asked.some((one) => one.method === "DELETE")).toBe(false);
    await userEvent.click(within(dialog).getByRole("button", { name: "Revoke" }));
    expect(await screen.findByText("The share of Entrance (for the neighbour) was revoked")).toBeVisible();
    expect(await screen.findByRole("heading", { name: "Nothing is shared" })).toBeVisible();
  });

  it("say why one could not be revoked", async () => {
    serve({
      ...AROUND,
      "GET /api/shares": { shares: [share()], next_before: null },
      "DELETE /api/shares/s1": failing(404, "not_found", "It was revoked already."),
    });
    await renderAt("/settings/shares");
    await userEvent.click(await screen.findByRole("button", { name: /^Revoke/ }));
    await userEvent.click(within(screen.getByRole("dialog")).getByRole("button", { name: "Revoke" }));
    expect(await screen.findByText("It was revoked already. (Code: not_found)")).toBeVisible();
  });

  it("are all there, page by page", async () => {
    serve({
      ...AROUND,
      "GET /api/shares": (request: Request) =>
        new URL(request.url).searchParams.get("before") === "h0.2"
          ? { shares: [share({ share_uuid: "s2", note: "older" })], next_before: null }
          : { shares: [share()], next_before: "h0.2" },
    });
    await renderAt("/settings/shares");
    await userEvent.click(await screen.findByRole("button", { name: "Load more" }));
    expect(await screen.findByText("older")).toBeVisible();
    expect(screen.getByText("for the neighbour")).toBeVisible();
  });

  it("say so when they can't be loaded", async () => {
    serve({ ...AROUND, "GET /api/shares": failing(503, "busy", "Too busy.") });
    await renderAt("/settings/shares");
    expect(await screen.findByText("Too busy.")).toBeVisible();
  });

  it.each([SESSION, { ...ADMIN, may_share: false }])("are not there for those who may not share", async (session) => {
    serve({ ...AROUND, "GET /api/session": session, "GET /api/shares": NONE });
    await renderAt("/settings/shares");
    expect(await screen.findByText("For this browser only.")).toBeVisible();
    expect(screen.queryByRole("link", { name: "Shares" })).toBeNull();
  });
});
