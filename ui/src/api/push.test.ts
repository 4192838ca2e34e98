import { afterEach, describe, expect, it, vi } from "vitest";
import { noPushBrowser, PUBLIC_KEY, pushBrowser, subscriptionFor } from "@/test/push-browser";
import { failing, serve } from "@/test/server";
import { bytesOf, forgetBrowser, pushState, sameKey, sha256Hex, turnOff, turnOn } from "./push";
import { WORKER } from "./worker";

const KEY = { "GET /api/push/key": { public_key: PUBLIC_KEY, enabled: true } };
const HASH = await sha256Hex("https://push.example/1");
const listed = (...hashes: string[]) => ({
  "GET /api/push/subscriptions": {
    subscriptions: hashes.map((endpoint_hash) => ({
      subscription_uuid: "s1",
      endpoint_hash,
      user_agent: "",
      created_at: 0,
      last_ok_at: null,
      failures: 0,
    })),
  },
});
const ADDED = { "POST /api/push/subscriptions": listed(HASH)["GET /api/push/subscriptions"].subscriptions[0] };

afterEach(noPushBrowser);

describe("how it stands", () => {
  it("is told where it can't be", async () => {
    vi.stubGlobal("isSecureContext", false);
    expect(await pushState("me")).toBe("insecure");
    vi.stubGlobal("isSecureContext", true);
    expect(await pushState("me")).toBe("unsupported");
    pushBrowser({ permission: "denied" });
    expect(await pushState("me")).toBe("denied");
  });

  it("is off until it is switched on", async () => {
    pushBrowser();
    expect(await pushState("me")).toBe("off");
  });

  it("makes a browser known again that the server forgot", async () => {
    const browser = pushBrowser({ permission: "granted" });
    browser.subscription = subscriptionFor(browser, null);
    const asked = serve({ ...KEY, ...listed(HASH), ...ADDED });
    expect(await pushState("me")).toBe("on");
    expect(asked.some((one) => one.method === "POST")).toBe(false);
    localStorage.setItem("camserver.push-owner", "me");
    const again = serve({ ...KEY, ...listed("another"), ...ADDED });
    expect(await pushState("me")).toBe("on");
    expect(again.filter((one) => one.method === "POST")).toHaveLength(1);
  });
});

it("ends what somebody else switched on in this browser", async () => {
  const browser = pushBrowser();
  serve({ ...KEY, ...listed(HASH), ...ADDED });
  expect(await turnOn("somebody else")).toBe("on");
  const asked = serve({ ...KEY, ...listed(), ...ADDED });
  expect(await pushState("me")).toBe("off");
  expect(browser.subscription).toBeNull();
  expect(asked.some((one) => one.method === "POST")).toBe(false);
});

it("says when the server tells no browser", async () => {
  const browser = pushBrowser({ permission: "granted" });
  browser.subscription = subscriptionFor(browser, null);
  serve({ ...listed(HASH), "GET /api/push/key": { public_key: PUBLIC_KEY, enabled: false } });
  expect(await pushState("me")).toBe("muted");
});

describe("switching on", () => {
  it("asks the person, subscribes with the server's key and tells the server", async () => {
    const browser = pushBrowser();
    const asked = serve({ ...KEY, ...ADDED });
    document.documentElement.lang = "en";
    expect(await turnOn("me")).toBe("on");
    expect(browser.registered).toEqual([WORKER]);
    expect(sameKey(browser.subscription?.options.applicationServerKey ?? null, PUBLIC_KEY)).toBe(true);
    expect(await asked.find((one) => one.method === "POST")?.json()).toEqual({
      endpoint: "https://push.example/1",
      keys: { p256dh: "point", auth: "secret" },
      language: "en",
    });
  });

  it.each([
    ["denied", "denied"],
    ["default", "off"],
  ] as const)("does nothing when the person answers %s", async (answer, state) => {
    const browser = pushBrowser({ answer });
    serve({});
    expect(await turnOn("me")).toBe(state);
    expect(browser.registered).toEqual([]);
  });

  it("lets go of what was made for another key", async () => {
    const browser = pushBrowser();
    const old = subscriptionFor(browser, new Uint8Array([1, 2, 3]).buffer);
    const unsubscribe = vi.spyOn(old, "unsubscribe");
    browser.subscription = old;
    serve({ ...KEY, ...ADDED });
    expect(await turnOn("me")).toBe("on");
    expect(unsubscribe).toHaveBeenCalledOnce();
  });
});

describe("switching off", () => {
  it("makes the server and the browser forget", async () => {
    const browser = pushBrowser({ permission: "granted" });
    browser.subscription = subscriptionFor(browser, null);
    const asked = serve({ ...listed(HASH), "DELETE /api/push/subscriptions/s1": null });
    expect(await turnOff()).toBe("off");
    expect(browser.subscription).toBeNull();
    expect(asked.filter((one) => one.method === "DELETE")).toHaveLength(1);
  });

  it("makes the browser forget before somebody signs out, also when the server is away", async () => {
    const browser = pushBrowser({ permission: "granted" });
    browser.subscription = subscriptionFor(browser, null);
    serve({ "GET /api/push/subscriptions": failing(503, "store_busy") });
    await forgetBrowser();
    expect(browser.subscription).toBeNull();
  });

  it("is nothing where there is nothing", async () => {
    serve({});
    await forgetBrowser();
    pushBrowser();
    expect(await turnOff()).toBe("off");
  });
});

it("reads keys as the server writes them", () => {
  expect([...bytesOf("AP-_")]).toEqual([0, 255, 191]);
  expect(bytesOf(PUBLIC_KEY)).toHaveLength(64);
  expect(sameKey(null, PUBLIC_KEY)).toBe(false);
});
