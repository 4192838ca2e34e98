import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";
import { renderAt } from "@/test/render";
import { AROUND, SESSION } from "@/test/samples";
import { serve } from "@/test/server";
import { press } from "./keyboard";
import { matches } from "./matching";
import { mayOpen, NAV, ROUTES } from "./page-table";

const ANSWERS = { ...AROUND, "GET /api/events": { events: [], next_before: null } };

describe("finding by name", () => {
  it.each([
    ["Back gate", "gate", true],
    ["Back gate", "ga ba", true],
    ["Ｂａｃｋ　gate", "back", true],
    ["入口カメラ", "ｶﾒﾗ", true],
    ["Back gate", "front", false],
    ["Back gate", "", true],
  ])("%s by %s", (text, wanted, found) => {
    expect(matches(text, wanted)).toBe(found);
  });
});

describe("the navigation", () => {
  it("has a route for every entry", () => {
    const paths = ROUTES.map((route) => route.path.replace(/\/:.*$/, ""));
    for (const { to } of NAV) expect(paths).toContain(to);
  });

  it("leads only where somebody may go", async () => {
    serve({ ...ANSWERS, "GET /api/session": SESSION });
    await renderAt("/events");
    const [side] = await screen.findAllByRole("navigation", { name: "Pages" });
    const links = within(side as HTMLElement).getAllByRole("link");
    expect(links).toHaveLength(NAV.filter((entry) => mayOpen(SESSION, entry)).length);
    expect(within(side as HTMLElement).getByRole("link", { name: "Events" })).toHaveAttribute("aria-current", "page");
  });
});

describe("the budget of live view", () => {
  const status = (used: number, healthy = true) => ({
    modal_budget: 35,
    modal_budget_remaining: 35 - used,
    healthy,
  });

  it("is in the header, with what of it is in use, and leads to the system's page", async () => {
    serve({ ...ANSWERS, "GET /api/system/status": status(12) });
    await renderAt("/events");
    const mark = await screen.findByRole("link", { name: "Live view: 12 of 35 units in use" });
    expect(mark).toHaveTextContent("12/35");
    expect(mark).toHaveAttribute("href", "/system");
  });

  it("says when nobody else gets any", async () => {
    serve({ ...ANSWERS, "GET /api/system/status": status(3, false) });
    await renderAt("/events");
    expect(await screen.findByRole("link", { name: /too busy for more/ })).toHaveClass("text-severity-2");
  });

  it("is not there where nothing streams", async () => {
    const asked = serve({ ...ANSWERS, "GET /api/system/status": { ...status(0), modal_budget: 0 } });
    await renderAt("/events");
    await waitFor(() => expect(asked.some((one) => one.url.endsWith("/api/system/status"))).toBe(true));
    expect(screen.queryByRole("link", { name: /Live view/ })).toBeNull();
  });
});

describe("the palette", () => {
  it("opens by Ctrl+K, finds a page and goes there", async () => {
    serve({ ...ANSWERS, "GET /api/incidents": { incidents: [], next_before: null } });
    await renderAt("/events");
    await screen.findByRole("heading", { level: 1, name: "Events" });
    await userEvent.keyboard("{Control>}k{/Control}");
    const input = await screen.findByRole("combobox", { name: "Find pages, cameras and actions" });
    await userEvent.type(input, "incid");
    const list = screen.getByRole("listbox");
    expect(within(list).getAllByRole("option")).toHaveLength(1);
    // Enter that ends a word being composed chooses nothing.
    fireEvent.keyDown(input, { key: "Enter", keyCode: 229, isComposing: true });
    expect(list).toBeVisible();
    await userEvent.keyboard("{Enter}");
    expect(await screen.findByRole("heading", { level: 1, name: "Incidents" })).toBeVisible();
  });

  it("finds cameras, and goes through what it found by arrows", async () => {
    serve(ANSWERS);
    await renderAt("/events");
    await userEvent.click(await screen.findByRole("button", { name: "Find pages, cameras and actions" }));
    const input = await screen.findByRole("combobox", { name: /^Find/ });
    await userEvent.type(input, "entrance");
    const list = screen.getByRole("listbox");
    expect(await within(list).findByRole("option", { name: /Entrance/ })).toHaveAttribute("aria-selected", "true");
    await userEvent.clear(input);
    await userEvent.keyboard("{ArrowDown}{ArrowDown}{ArrowUp}");
    expect(within(list).getAllByRole("option")[1]).toHaveAttribute("aria-selected", "true");
    fireEvent.change(input, { target: { value: "インシデント" } });
    expect(within(list).getByRole("option", { name: /Incidents/ })).toBeVisible();
    fireEvent.change(input, { target: { value: "" } });
    await userEvent.type(input, "nothing like that");
    expect(screen.getByText("Nothing found")).toBeVisible();
  });
});

describe("keys", () => {
  it("show what they do, and do nothing while somebody writes", async () => {
    serve(ANSWERS);
    await renderAt("/events");
    await screen.findByRole("heading", { level: 1, name: "Events" });
    await userEvent.keyboard("?");
    const help = await screen.findByRole("dialog", { name: "Keyboard shortcuts" });
    expect(within(help).getByText("Find pages, cameras and actions")).toBeVisible();
    // Nothing is listed on this page, so that all of them work everywhere.
    expect(within(help).queryByText("On this page")).toBeNull();
    fireEvent(help, new Event("cancel", { cancelable: true }));
    await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
    screen.getByLabelText("From").focus();
    await userEvent.keyboard("?");
    expect(screen.queryByRole("dialog")).toBeNull();
  });

  it("lead to the search, where one goes on writing", async () => {
    serve({
      ...ANSWERS,
      "GET /api/session": { ...SESSION, permissions: [...SESSION.permissions, "investigate"] },
      "GET /api/search": { events: [], next_before: null, is_cut: false },
    });
    await renderAt("/events");
    await screen.findByRole("heading", { level: 1, name: "Events" });
    await userEvent.keyboard("/");
    await waitFor(() => expect(screen.getByRole("searchbox")).toHaveFocus());
    expect(screen.getByRole("searchbox")).toHaveValue("");
  });

  it("are left to whoever composes a word or holds Ctrl", () => {
    const prevent = vi.fn();
    for (const given of [{ isComposing: true }, { keyCode: 229 }, { ctrlKey: true }, { metaKey: true }]) {
      const event = new KeyboardEvent("keydown", { key: "?", cancelable: true, ...given });
      event.preventDefault = prevent;
      press(event);
    }
    expect(prevent).not.toHaveBeenCalled();
  });
});
