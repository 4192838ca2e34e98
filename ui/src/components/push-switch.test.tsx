import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it, vi } from "vitest";
import { noPushBrowser, PUBLIC_KEY, pushBrowser, subscriptionFor } from "@/test/push-browser";
import { renderAt } from "@/test/render";
import { SESSION, VOCABULARY } from "@/test/samples";
import { serve } from "@/test/server";

const PAGE = {
  "GET /api/session": SESSION,
  "GET /api/vocabulary": VOCABULARY,
  "GET /api/cameras": { cameras: [], next_after: null },
  "GET /api/events": { events: [], next_before: null },
};
const OWN = {
  subscription_uuid: "s1",
  endpoint_hash: "h",
  user_agent: "",
  created_at: 0,
  last_ok_at: null,
  failures: 0,
};
const PUSH = {
  "GET /api/push/key": { public_key: PUBLIC_KEY, enabled: true },
  "GET /api/push/subscriptions": { subscriptions: [] },
  "POST /api/push/subscriptions": OWN,
};

async function openMenu() {
  await renderAt("/");
  await userEvent.click(await screen.findByRole("button", { name: "Account: First" }));
  return screen.findByRole("menuitemcheckbox", { name: "Notify me in this browser" });
}

afterEach(noPushBrowser);

describe("notify me in this browser", () => {
  it("is switched on and off, and the menu stays open", async () => {
    const browser = pushBrowser();
    serve({ ...PAGE, ...PUSH });
    const item = await openMenu();
    await waitFor(() => expect(item).toHaveAttribute("aria-checked", "false"));
    await waitFor(() => expect(item).not.toHaveAttribute("aria-disabled"));
    await userEvent.click(item);
    await waitFor(() => expect(item).toHaveAttribute("aria-checked", "true"));
    expect(browser.subscription).not.toBeNull();
    await userEvent.click(item);
    await waitFor(() => expect(item).toHaveAttribute("aria-checked", "false"));
    expect(browser.subscription).toBeNull();
  });

  it("makes a browser known again that the server forgot, without anybody opening the menu", async () => {
    const browser = pushBrowser({ permission: "granted" });
    browser.subscription = subscriptionFor(browser, null);
    localStorage.setItem("camserver.push-owner", SESSION.login);
    const asked = serve({ ...PAGE, ...PUSH });
    await renderAt("/");
    await waitFor(() => expect(asked.some((one) => one.method === "POST")).toBe(true));
  });

  it("says that the server tells no browser, and can be switched off", async () => {
    const browser = pushBrowser();
    serve({ ...PAGE, ...PUSH, "GET /api/push/key": { public_key: PUBLIC_KEY, enabled: false } });
    const item = await openMenu();
    await waitFor(() => expect(item).not.toHaveAttribute("aria-disabled"));
    await userEvent.click(item);
    expect(await screen.findByText(/switched off on this server/)).toBeVisible();
    expect(item).toHaveAttribute("aria-checked", "true");
    await userEvent.click(item);
    await waitFor(() => expect(item).toHaveAttribute("aria-checked", "false"));
    expect(browser.subscription).toBeNull();
  });

  it("says that this browser can't", async () => {
    vi.stubGlobal("isSecureContext", true);
    serve({ ...PAGE });
    const item = await openMenu();
    expect(await screen.findByText(/can't show notifications/)).toBeVisible();
    expect(item).toHaveAttribute("aria-disabled", "true");
    expect(item).toHaveAccessibleDescription(/can't show notifications/);
  });

  it("says that it needs https", async () => {
    vi.stubGlobal("isSecureContext", false);
    serve({ ...PAGE });
    await openMenu();
    expect(await screen.findByText(/need an https address/)).toBeVisible();
  });

  it("says that the person has forbidden it, and how to allow it", async () => {
    pushBrowser({ answer: "denied" });
    serve({ ...PAGE, ...PUSH });
    const item = await openMenu();
    await waitFor(() => expect(item).not.toHaveAttribute("aria-disabled"));
    await userEvent.click(item);
    expect(await screen.findByText(/blocks notifications/)).toBeVisible();
    expect(item).toHaveAttribute("aria-disabled", "true");
  });

  it("says that the push service was not reached, and can be tried again", async () => {
    const browser = pushBrowser({ failure: new DOMException("push service error", "AbortError") });
    serve({ ...PAGE, ...PUSH });
    const item = await openMenu();
    await waitFor(() => expect(item).not.toHaveAttribute("aria-disabled"));
    await userEvent.click(item);
    expect(await screen.findByText(/push service of its maker/)).toBeVisible();
    browser.failure = null;
    await userEvent.click(item);
    await waitFor(() => expect(item).toHaveAttribute("aria-checked", "true"));
    expect(screen.queryByText(/push service of its maker/)).toBeNull();
  });
});
