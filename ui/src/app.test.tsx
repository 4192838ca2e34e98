import { act, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import { FakeSocket } from "@/test/media";
import { renderAt } from "@/test/render";
import { AROUND, NOW, SESSION } from "@/test/samples";
import { failing, serve } from "@/test/server";

const CASE = {
  case_uuid: "c1",
  title: "The theft",
  state: "open",
  hold: false,
  created_at: NOW,
  created_by: "first-admin",
  updated_at: NOW,
  closed_at: null,
  items: 0,
  notes: 0,
};
const AN_ADMIN = { ...AROUND, "GET /api/cases": { cases: [CASE], next_before: null } };
const GUARD = { ...SESSION, login: "guard" };
const A_GUARD = { ...AROUND, "GET /api/session": GUARD, "GET /api/cases": failing(403, "forbidden", "not yours") };

async function casesOfAnAdmin() {
  serve(AN_ADMIN);
  const { client } = await renderAt("/cases");
  expect(await screen.findByText("The theft")).toBeVisible();
  return () => act(() => client.refetchQueries({ queryKey: ["session"] }));
}

async function expectNothingOfTheirs() {
  expect(await screen.findByText("not yours")).toBeVisible();
  expect(screen.queryByText("The theft")).toBeNull();
}

describe("what somebody may", () => {
  it("is followed when the feed says to read everything anew", async () => {
    FakeSocket.opened = [];
    serve(AN_ADMIN);
    await renderAt("/cases", FakeSocket);
    const pages = async () => (await screen.findAllByRole("navigation", { name: "Pages" }))[0] as HTMLElement;
    expect(await within(await pages()).findByRole("link", { name: "Deliveries" })).toBeVisible();
    const feed = FakeSocket.opened.find((one) => one.address.includes("/api/feed"));
    act(() => feed?.says({ type: "changes", changes: [], last_seq: 7, live: true }));
    serve({ ...AN_ADMIN, "GET /api/session": { ...SESSION, role: "viewer" } });
    act(() => feed?.says({ type: "resync", last_seq: 8 }));
    await waitFor(async () => expect(within(await pages()).queryByRole("link", { name: "Deliveries" })).toBeNull());
    expect(within(await pages()).getByRole("link", { name: "Events" })).toBeVisible();
  });
});

describe("what one person was shown", () => {
  it("is not there for who signs in where their session ended", async () => {
    const askAgain = await casesOfAnAdmin();
    serve({ "GET /api/session": failing(401, "unauthenticated", "sign in") });
    await askAgain();
    expect(await screen.findByRole("heading", { name: "Sign in" })).toBeVisible();
    serve({ ...A_GUARD, "POST /api/session": GUARD });
    await userEvent.type(await screen.findByLabelText("Login name"), "guard");
    await userEvent.type(screen.getByLabelText("Password"), "long enough, surely");
    await userEvent.click(screen.getByRole("button", { name: "Sign in" }));
    await expectNothingOfTheirs();
  });

  it("is not there for who signed in at another tab", async () => {
    const askAgain = await casesOfAnAdmin();
    serve(A_GUARD);
    await askAgain();
    await expectNothingOfTheirs();
  });
});
